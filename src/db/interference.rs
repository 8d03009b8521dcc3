//! Where a test gets between this process and its database: it can hold a step up, or break the connection at it.
//!
//! Nobody does so in production. There each step looks at an `Option` and goes on.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::error::Error;

/// What this process is about to do with its database, or has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    Begin,
    Statement(&'a str),
    Commit,
    /// The commit has happened. An error here is an answer that gets lost on its way.
    Committed,
}

pub trait Interference: Send + Sync {
    /// Called at each step, which happens when this answers `Ok`. An error takes its place.
    fn meet<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>>;
}

/// Who stands between, if anybody does.
#[derive(Clone, Default)]
pub(super) struct Between(pub Option<Arc<dyn Interference>>);

impl Between {
    pub async fn meet(&self, step: Step<'_>) -> Result<(), Error> {
        match &self.0 {
            None => Ok(()),
            Some(interference) => interference.meet(step).await,
        }
    }
}
