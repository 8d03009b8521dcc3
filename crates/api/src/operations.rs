//! Operations: many files are retried, cancelled or deleted.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::comma_list::CommaList;
use crate::file_queries::FileFilter;
use crate::page::{Listed, Page};
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::states::{OperationAction, OperationStatus, Scope};

/// An operation as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationView {
    pub operation_id: Uuid,
    #[serde(default)]
    #[schema(required = true)]
    pub action: OperationAction,
    pub status: OperationStatus,
    pub reason: Option<String>,
    /// How many files matched when it began. Null where they were not counted: for dead letters, and for too many files.
    #[serde(default)]
    pub total_count: Option<i64>,
    /// How many files were retried, cancelled or deleted. With `skippedCount` and `errorCount` it says how far the operation is.
    #[serde(default)]
    #[schema(required = true)]
    pub done_count: i64,
    /// The same for a retry; 0 otherwise.
    pub retried_count: i64,
    pub skipped_count: i64,
    pub error_count: i64,
    /// The first of the files that could not be retried.
    #[schema(value_type = Vec<OperationError>)]
    pub errors: Value,
    /// The first of the files that were left alone.
    #[serde(default)]
    #[schema(required = true, value_type = Vec<OperationError>)]
    pub skipped: Value,
    pub scope: Scope,
    pub filter: FilterView,
    pub created_by: String,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub ended_at: Option<DateTime<Utc>>,
}

/// A file that an operation did not change, and why.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperationError {
    pub file_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub file_name: Option<String>,
    pub code: String,
    pub message: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OperationFilter)]
pub struct FilterView {
    /// One code, or several separated by commas.
    pub code: Option<String>,
    pub stage: Option<Stage>,
    pub batch_id: Option<Uuid>,
    pub fingerprint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub status: Option<CommaList<Status>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub q: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub tenant_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub created_after: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub created_before: Option<DateTime<Utc>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub warnings: Option<bool>,
}

/// What to do, and with which files: those that match the filter, or those with these ids. Exactly one of the two is given.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewOperation)]
pub struct OperationRequest {
    pub action: OperationAction,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<FileFilter>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(min_items = 1, max_items = 1000)]
    pub file_ids: Option<Vec<Uuid>>,
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
    pub scope: Option<Scope>,
}
