//! How a file arrives: it is registered, its bytes are uploaded, its owner confirms them. And how it is deleted.

pub mod adopt;
pub mod announce;
pub mod archives;
pub mod arrivals;
pub mod attributes;
pub mod batches;
pub mod body;
pub mod cancel;
pub mod cancel_batch;
pub mod confirm;
pub mod delete;
pub mod direct;
pub mod idempotency;
pub mod pace;
pub mod register;
pub mod registrations;
pub mod resumable;
pub mod upload;

use std::time::Duration;

use landfall_core::lifecycle::Stage;

use crate::queue::limits::RateLimit;
use crate::records::quota;

#[derive(Debug, Clone)]
pub struct IntakeConfig {
    pub max_file_bytes: u64,
    /// The bytes a second that an upload must bring.
    pub min_rate: u64,
    /// How long an upload URL is valid.
    pub url_ttl: Duration,
    /// How long a registration lives after its last sign of life.
    pub confirm_window: Duration,
    /// How long an unfinished resumable upload lives after its last bytes.
    pub resumable_window: Duration,
    pub batch_timeout: Duration,
    /// The limits of a tenant that has none of its own.
    pub quota: quota::Limits,
    /// How many files and batches a tenant may register in some time.
    pub registrations: RateLimit,
    /// How many batches of a tenant may be active at the same time.
    pub max_active_batches: i64,
    /// The first stage of a confirmed file.
    pub first_stage: Stage,
    /// Whether clients send bytes straight to the object store.
    pub is_direct: bool,
}
