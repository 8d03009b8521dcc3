//! The same files under the names of an older API, whose clients call them jobs.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use landfall_core::lifecycle::Status;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RetriedJob {
    pub message: String,
    pub job: JobState,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobState {
    pub id: Uuid,
    pub status: Status,
}
