//! Batches: files that are uploaded together.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::page::{Listed, Page};
use crate::uploads::mapping_schema;
use landfall_core::lifecycle::Status;
use landfall_core::priority::Priority;
use landfall_core::states::BatchStatus;

/// The body that opens a batch.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewBatch {
    #[schema(minimum = 1, maximum = 10000)]
    pub file_count: i64,
    /// Anything that the client wants to find again with the batch: up to 16 KB of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Value>,
    #[serde(default)]
    pub priority: Priority,
    /// For the operator's own extraction: up to 16 KB of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = mapping_schema)]
    pub mapping: Option<Value>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenedBatch {
    pub batch_id: Uuid,
    pub status: BatchStatus,
    pub file_count: i64,
    pub expires_at: DateTime<Utc>,
}

/// A batch as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BatchView {
    pub batch_id: Uuid,
    pub status: BatchStatus,
    pub file_count: i64,
    pub registered: i64,
    /// How many files are in each state now.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<std::collections::HashMap<String, i64>>, nullable = false)]
    pub progress: Option<Progress>,
    pub summary: Summary,
    pub priority: Priority,
    /// The archive that its files were unpacked from; null for a batch that a client opened.
    #[serde(default)]
    pub archive_file_id: Option<Uuid>,
    /// What the client stored with the batch. It is left out in lists, and if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, nullable = false)]
    pub metadata: Option<Value>,
    pub created_at: DateTime<Utc>,
    pub expires_at: DateTime<Utc>,
    pub completed_at: Option<DateTime<Utc>>,
}

impl BatchView {
    /// How many files are in the states that are asked for.
    pub fn count(&self, wanted: impl Fn(Status) -> bool) -> i64 {
        let progress = self.progress.iter().flatten();
        progress.filter(|(status, _)| wanted(**status)).map(|(_, files)| files).sum()
    }
}

/// A number of files for each state.
pub type Progress = BTreeMap<Status, i64>;

/// What became of the promised files. Once none of them waits or runs any more, the other numbers add up to `total`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BatchSummary)]
pub struct Summary {
    pub total: i64,
    pub ready: i64,
    pub failed: i64,
    pub cancelled: i64,
    /// Deleted by their owner, or at the end of their retention.
    pub deleted: i64,
    /// Their bytes had not come when their registration or the batch expired.
    pub never_uploaded: i64,
}

impl Listed for BatchView {
    const FIELD: &'static str = "batches";
    const SCHEMA: &'static str = "BatchList";
}

pub type BatchList = Page<BatchView>;
