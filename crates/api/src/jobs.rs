//! The same files in the shape of an older API, whose clients call them jobs.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::lifecycle::Status;
use landfall_core::schemas::StoredCode;

/// The states of a job. There are fewer than those of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    /// Its bytes are not here, or not confirmed.
    Uploading,
    Queued,
    Processing,
    Complete,
    Failed,
    Cancelled,
}

impl JobStatus {
    pub const fn of(status: Status) -> Self {
        match status {
            Status::Registered | Status::Uploaded => Self::Uploading,
            Status::Queued => Self::Queued,
            Status::Scanning | Status::Extracting | Status::Chunking | Status::Embedding => Self::Processing,
            Status::Ready => Self::Complete,
            Status::Failed => Self::Failed,
            Status::Cancelled | Status::Deleted => Self::Cancelled,
        }
    }

    /// The states of files that a job in this state can have.
    pub const fn states(self) -> &'static [Status] {
        match self {
            Self::Uploading => &[Status::Registered, Status::Uploaded],
            Self::Queued => &[Status::Queued],
            Self::Processing => &[Status::Scanning, Status::Extracting, Status::Chunking, Status::Embedding],
            Self::Complete => &[Status::Ready],
            Self::Failed => &[Status::Failed],
            Self::Cancelled => &[Status::Cancelled],
        }
    }
}

/// A file as a job.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Job)]
pub struct JobView {
    pub id: Uuid,
    pub file_name: String,
    pub file_size: i64,
    pub status: JobStatus,
    pub attempt_count: i64,
    pub max_attempts: u32,
    #[schema(value_type = Option<StoredCode>)]
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub last_attempt_at: Option<DateTime<Utc>>,
    pub retry_after: Option<DateTime<Utc>>,
    pub is_dead_letter: bool,
    /// Whether its result can be downloaded.
    pub can_download: bool,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub queued_at: Option<DateTime<Utc>>,
    pub completed_at: Option<DateTime<Utc>>,
    pub failed_at: Option<DateTime<Utc>>,
}

impl Listed for JobView {
    const FIELD: &'static str = "jobs";
    const SCHEMA: &'static str = "JobList";
}

pub type JobList = Page<JobView>;

/// Which jobs to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    pub status: Option<JobStatus>,
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// How many jobs to leave out at the beginning.
    #[param(minimum = 0, maximum = 100_000)]
    pub offset: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct RetriedJob {
    pub message: String,
    pub job: JobState,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobState {
    pub id: Uuid,
    pub status: JobStatus,
}
