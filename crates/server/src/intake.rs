//! A file arrives: it is registered, its bytes are uploaded, its owner confirms. And it leaves again: deleted.

pub mod announce;
pub mod batches;
pub mod cancel;
pub mod cancel_batch;
pub mod confirm;
pub mod delete;
pub mod idempotency;
pub mod register;
pub mod upload;

use std::time::Duration;

use landfall_core::lifecycle::Stage;

use crate::records::quota;

#[derive(Debug, Clone)]
pub struct IntakeConfig {
    pub max_file_bytes: u64,
    pub confirm_window: Duration,
    pub batch_timeout: Duration,
    /// What a tenant may store that has no limits of its own.
    pub quota: quota::Limits,
    /// The stage that a confirmed file begins with.
    pub first_stage: Stage,
}
