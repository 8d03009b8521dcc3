//! Maintenance jobs, for administrators.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::states::RunOutcome;

/// A job as its operator sees it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MaintenanceJob)]
pub struct JobView {
    pub name: String,
    pub schedule: String,
    pub next_run_at: Option<DateTime<Utc>>,
    pub running: bool,
    /// The current run, or else the last one.
    pub last_run: Option<RunView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MaintenanceRun)]
pub struct RunView {
    pub run_id: Uuid,
    /// The user who started it; null if the schedule did.
    pub started_by: Option<String>,
    pub worker: String,
    pub started_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
    #[schema(value_type = Option<Object>)]
    pub metrics: Option<Value>,
    pub errors: Vec<String>,
    #[serde(default)]
    #[schema(required = true)]
    pub outcome: RunOutcome,
}

impl Listed for RunView {
    const FIELD: &'static str = "runs";
    const SCHEMA: &'static str = "RunList";
}

/// The runs of a job, the newest first.
pub type RunList = Page<RunView>;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MaintenanceJobList)]
pub struct JobList {
    pub jobs: Vec<JobView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = MaintenanceJobRun)]
pub struct JobRun {
    pub name: String,
    pub run: Option<RunView>,
}

/// How to run a job.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RunQuery {
    /// Ignore the job's safety limit.
    pub force: Option<bool>,
}

/// Which of the items to list that could not be cleaned.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct CleanupFailureQuery {
    #[param(minimum = 1, maximum = 1000, default = 50)]
    pub limit: Option<i64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CleanupFailureList {
    pub failures: Vec<CleanupFailure>,
    pub total: i64,
}

/// An item that could not be cleaned. It is tried again, and leaves the list when it is clean.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CleanupFailure {
    /// The file, or the key of a blob, in words.
    pub subject: String,
    /// The job or the task that could not clean it.
    pub scope: String,
    pub file_id: Option<Uuid>,
    /// The last error.
    pub error: String,
    pub attempts: i64,
    pub first_at: DateTime<Utc>,
    pub last_at: DateTime<Utc>,
}
