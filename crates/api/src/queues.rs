//! The queue as its operator sees it.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::maintenance::JobView;
use landfall_core::lifecycle::Stage;
use landfall_core::service::Service;
use landfall_core::states::CircuitState;

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    pub throughput: Throughput,
    pub recent_hours: Vec<Hour>,
    pub workers: Vec<WorkerView>,
    pub queues: BTreeMap<String, QueueView>,
    pub circuits: Vec<CircuitView>,
    pub schedules: Vec<JobView>,
}

/// The longest time that the hours can be asked for.
pub const MAX_HOURS: i64 = 168;

/// Which hours to show.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct QueueStatusQuery {
    /// The last so many hours, each of them, the present one included. Without it: the last 48 hours, without those in which
    /// nothing happened.
    #[param(minimum = 1, maximum = 168)]
    pub hours: Option<i64>,
}

/// The name of a stage's queue, which is the key in `queues` and in the dashboard's `queueDepths`.
pub fn queue_name(stage: Stage) -> String {
    format!("file-{stage}")
}

/// Over the hours that are shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Throughput {
    pub total_completed: i64,
    pub total_failed: i64,
    pub total_timed_out: i64,
    /// Attempts that failed, whether or not their file was tried again, and those of them that timed out.
    pub total_failed_attempts: i64,
    pub total_attempts_timed_out: i64,
    /// Files that users retried after they had failed or were cancelled, and files that became ready after that.
    pub total_retried: i64,
    pub total_retried_ready: i64,
    /// The second of these in percent of the first; null if none was retried.
    pub retry_success_rate: Option<f64>,
    /// From confirm to ready.
    pub p50_ms: Option<i64>,
    pub p95_ms: Option<i64>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ThroughputHour)]
pub struct Hour {
    pub hour: DateTime<Utc>,
    pub completed: i64,
    /// All that failed, including those that timed out.
    pub failed: i64,
    pub timed_out: i64,
    pub by_class: BTreeMap<String, i64>,
    /// Attempts that failed, whether or not their file was tried again.
    pub failed_attempts: i64,
    pub attempts_timed_out: i64,
    pub attempts_by_class: BTreeMap<String, i64>,
    /// Files that users retried, and retried files that became ready.
    pub retried: i64,
    pub retried_ready: i64,
    /// From confirm to ready, less than a tenth off.
    pub p50_ms: Option<i64>,
    pub p95_ms: Option<i64>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerView {
    pub name: String,
    pub stages: String,
    pub started_at: DateTime<Utc>,
    pub heartbeat_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueView {
    /// Files that could be claimed now.
    pub waiting: i64,
    /// Files that wait for their next attempt.
    pub retrying: i64,
    pub running: i64,
    pub paused: Option<PauseView>,
    /// When the next file may start, if a rate limit delays the stage.
    pub limited_until: Option<DateTime<Utc>>,
}

impl QueueView {
    /// Whether no file is at this stage.
    pub const fn is_idle(&self) -> bool {
        self.waiting == 0 && self.retrying == 0 && self.running == 0
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PauseView {
    pub at: DateTime<Utc>,
    pub by: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CircuitView {
    pub service: Service,
    pub state: CircuitState,
    pub failures: i64,
    pub until: Option<DateTime<Utc>>,
    pub changed_at: Option<DateTime<Utc>>,
    /// What the service last said, for operators; for others one sentence without details of the server.
    #[serde(default)]
    pub last_error: Option<String>,
    /// When it is tried again, while the circuit is open.
    #[serde(default)]
    pub next_probe_at: Option<DateTime<Utc>>,
}

/// Whether a stage is paused.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StagePause {
    pub stage: Stage,
    pub paused: bool,
}
