//! Orphans: blobs without a file, and registrations without bytes.

use chrono::{DateTime, Utc};
use landfall_core::states::Scope;
use serde::{Deserialize, Serialize};

/// How to get the report.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct OrphanQuery {
    /// Scan the storage now, for administrators.
    pub refresh: Option<bool>,
    /// `all`: those of all users, for administrators.
    pub scope: Option<Scope>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrphanReport {
    pub last_scan_time: Option<DateTime<Utc>>,
    pub orphan_blobs: BlobsView,
    pub abandoned_uploads: AbandonedView,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = OrphanBlobs)]
pub struct BlobsView {
    pub count: i64,
    pub total_size: i64,
    pub samples: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AbandonedUploads)]
pub struct AbandonedView {
    pub count: i64,
    pub oldest_age: i64,
}
