//! Maintenance jobs, for administrators.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// A job as its operator sees it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
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
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct JobList {
    pub jobs: Vec<JobView>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
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
