//! Lets a test delay a database step of this process, or break the connection at it.
//!
//! In production there is no injector, and each step only checks an `Option`.

use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::Error;

/// A database step that this process is about to do, or has just done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'a> {
    Begin,
    Statement(&'a str),
    Commit,
    /// The commit is done. An error here simulates a reply that is lost.
    Committed,
}

pub trait FaultInjector: Send + Sync {
    /// Called before each step. The step happens if this returns `Ok`; otherwise the error replaces it.
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
