//! The dashboard: a summary of a user's files, or of all files.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::queues::CircuitView;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::schemas::StoredCode;
use landfall_core::states::Scope;

/// Whose files the dashboard is about.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DashboardQuery {
    /// `all`: those of all users, for administrators.
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Dashboard {
    #[schema(value_type = std::collections::HashMap<String, i64>)]
    pub status_distribution: BTreeMap<Status, i64>,
    pub active_batches: i64,
    pub dlq_depth: i64,
    pub stuck_files: i64,
    pub queue_depths: BTreeMap<String, i64>,
    pub recent_errors: Vec<RecentError>,
    pub metrics: Metrics,
    pub circuits: Vec<CircuitView>,
    /// How long the oldest file has waited that a worker could take; 0 if none waits.
    pub oldest_waiting_ms: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecentError {
    pub file_id: Uuid,
    pub file_name: String,
    pub error: String,
    #[schema(value_type = StoredCode)]
    pub code: String,
    pub stage: Stage,
    pub timestamp: DateTime<Utc>,
}

/// Of the files that became ready or failed within the last day.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = DashboardMetrics)]
pub struct Metrics {
    /// From confirm to ready, in milliseconds.
    #[serde(rename = "averageProcessingTime")]
    pub average_processing_time: i64,
    #[serde(rename = "throughput24h")]
    pub throughput: i64,
    /// In percent.
    #[serde(rename = "failureRate24h")]
    pub failure_rate: f64,
}
