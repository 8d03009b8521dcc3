//! What heals by itself: each sweep makes good what a crash left undone, and is safe to run at any time, twice, and
//! by two processes at once.

pub mod abandoned_uploads;
pub mod orphan_cleanup;
pub mod retention;
pub mod unfinished_deletions;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::clock::Time;
use crate::error::Error;

/// What a sweep found and did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SweepReport {
    pub metrics: Map<String, Value>,
    /// What went wrong with single items. Each is left for the next run, and none keeps the others.
    pub errors: Vec<String>,
}

/// Something to put right from time to time. It has no input but the time: what there is to do, the rows say.
pub trait Sweep: Send + Sync {
    /// As it is called by people, in the schedules and in the records of its runs.
    fn name(&self) -> &'static str;

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>>;
}
