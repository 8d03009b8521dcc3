//! Where a test steps in between this process and its database: it can hold a step up, or break the connection at it.
//!
//! In production there is no injector, and each step costs a look at an `Option`.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::Error;

/// What this process is about to do with its database, or has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    Begin,
    Statement(&'a str),
    Commit,
    /// The commit has happened. An error here is a reply that is lost on its way.
    Committed,
}

pub trait FaultInjector: Send + Sync {
    /// Called before each step. The step happens if this returns `Ok`; an error takes its place.
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>>;
}

/// The injector, if there is one.
#[derive(Clone, Default)]
pub(crate) struct Faults(pub Option<Arc<dyn FaultInjector>>);

impl Faults {
    pub async fn inject(&self, step: Step<'_>) -> Result<(), Error> {
        match &self.0 {
            None => Ok(()),
            Some(injector) => injector.inject(step).await,
        }
    }
}
