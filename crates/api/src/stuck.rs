//! Stuck files.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use landfall_core::lifecycle::{Stage, Status};
use landfall_core::states::{Scope, StuckReason};

/// Which stuck files to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StuckQuery {
    #[param(minimum = 1, maximum = 1000, default = 50)]
    pub limit: Option<usize>,
    /// `all`: those of all users, for administrators.
    pub scope: Option<Scope>,
}

/// Which stuck files to retry.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct RetryQuery {
    /// `all`: those of all users, for administrators.
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StuckFileList)]
pub struct StuckList {
    pub files: Vec<StuckView>,
    pub total: usize,
    /// How many files wait at each stage that no worker runs.
    #[schema(value_type = BTreeMap<String, i64>)]
    pub without_workers: BTreeMap<Stage, i64>,
}

/// A stuck file as its owner sees it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StuckFile)]
pub struct StuckView {
    pub id: Uuid,
    pub file_name: String,
    pub status: Status,
    /// In milliseconds.
    pub stuck_duration: i64,
    pub retry_count: i64,
    pub batch_id: Option<Uuid>,
    pub updated_at: DateTime<Utc>,
    pub reason: StuckReason,
    pub message: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetriedStuckFile)]
pub struct RetriedStuck {
    pub success: bool,
    pub file_id: Uuid,
    pub previous_status: Status,
    pub new_status: Status,
    pub retry_count: i64,
}

/// The result of retrying all stuck files.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetriedStuckFiles)]
pub struct RetriedAll {
    pub success: bool,
    pub retried_count: i64,
    pub skipped_count: i64,
    pub errors: Vec<RetryError>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryError {
    pub file_id: Uuid,
    pub error: String,
}
