//! Why files do not move, and what would help.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_core::states::{BlockerKind, Remedy, Scope};

/// Whose files the report is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct BlockerQuery {
    /// `tenant`: the files of the tenant, for its administrators; `all`: those of all users, for operators.
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct BlockerReport {
    pub blockers: Vec<Blocker>,
    pub stages: Vec<StageLoad>,
    /// The 20 tenants with the most files in the queue; empty unless the scope is `all`.
    pub tenants: Vec<TenantLoad>,
}

/// One cause, and the files that it holds up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    pub kind: BlockerKind,
    pub stage: Option<Stage>,
    /// The service that is down.
    pub service: Option<Service>,
    pub files: i64,
    /// Since when the first of them waits.
    pub oldest_at: Option<DateTime<Utc>>,
    /// Since when the cause holds them up.
    pub since: Option<DateTime<Utc>>,
    /// The next probe, the next attempt, or the end of the limit.
    pub until: Option<DateTime<Utc>>,
    /// What the service last said, for operators; for others one sentence without details of the server.
    pub last_error: Option<String>,
    /// The operator who paused the stage, for operators.
    pub by: Option<String>,
    /// What happens, and what to do.
    pub message: String,
    pub remedy: Option<Remedy>,
    /// Whether the caller may do what helps.
    pub is_allowed: bool,
}

/// A stage, and what is at it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StageLoad {
    pub stage: Stage,
    /// Files that wait for anything but their next attempt.
    pub waiting: i64,
    /// Files that wait for their next attempt.
    pub retrying: i64,
    pub running: i64,
    /// Since when the first file waits that a worker could take.
    pub oldest_at: Option<DateTime<Utc>>,
    /// Processes that work at it.
    pub workers: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TenantLoad {
    pub tenant_id: String,
    pub waiting: i64,
    pub running: i64,
    pub oldest_at: Option<DateTime<Utc>>,
}
