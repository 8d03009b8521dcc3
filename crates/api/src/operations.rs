//! Operations: retries of many dead letters.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::failure::Code;
use landfall_core::lifecycle::Stage;
use landfall_core::states::{OperationStatus, Scope};

/// An operation as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationView {
    pub operation_id: Uuid,
    pub status: OperationStatus,
    pub reason: Option<String>,
    pub retried_count: i64,
    pub skipped_count: i64,
    pub error_count: i64,
    #[schema(value_type = Vec<Object>)]
    pub errors: Value,
    /// The first of the files that were left alone, each with its `fileId`, `code` and `message`.
    #[serde(default)]
    #[schema(value_type = Vec<Object>)]
    pub skipped: Value,
    #[schema(inline)]
    pub scope: Scope,
    pub filter: FilterView,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FilterView {
    #[schema(value_type = Option<Code>)]
    pub code: Option<String>,
    pub stage: Option<Stage>,
    pub batch_id: Option<Uuid>,
    pub fingerprint: Option<String>,
}

impl Listed for OperationView {
    const FIELD: &'static str = "operations";
    const SCHEMA: &'static str = "OperationList";
}

pub type OperationList = Page<OperationView>;

/// Which operations to list.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OperationQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// `all`: those of all users, for administrators.
    #[param(inline)]
    pub scope: Option<Scope>,
}
