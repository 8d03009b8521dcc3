//! Dead letters: files that failed permanently.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::page::{Listed, Page};
use landfall_core::failure::Code;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::schemas::StoredCode;
use landfall_core::states::Scope;

/// Which dead letters to retry. Without a field, any value matches.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeadLetterFilter {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Code>)]
    pub code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stage: Option<Stage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>)]
    pub batch_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[0-9a-f]{16}$")]
    pub fingerprint: Option<String>,
    /// `all`: those of all users, for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
}

/// Which dead letters to list: the same filter, and a page. A query cannot be nested, so the fields are repeated.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::IntoParams)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct DeadLetterQuery {
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<i64>,
    /// The `nextCursor` of the page before.
    pub cursor: Option<String>,
    /// How many dead letters to leave out at the beginning, in place of a cursor.
    #[param(minimum = 0, maximum = 100_000)]
    pub offset: Option<i64>,
    #[param(value_type = Option<Code>)]
    pub code: Option<String>,
    pub stage: Option<Stage>,
    #[param(value_type = Option<Uuid>)]
    pub batch_id: Option<String>,
    #[param(pattern = "^[0-9a-f]{16}$")]
    pub fingerprint: Option<String>,
    /// `all`: those of all users, for administrators.
    pub scope: Option<Scope>,
}

impl DeadLetterQuery {
    /// A page of what the filter matches.
    pub fn of(filter: DeadLetterFilter, limit: i64, cursor: Option<String>) -> Self {
        let DeadLetterFilter { code, stage, batch_id, fingerprint, scope } = filter;
        Self { limit: Some(limit), cursor, offset: None, code, stage, batch_id, fingerprint, scope }
    }

    pub fn filter(self) -> DeadLetterFilter {
        let Self { code, stage, batch_id, fingerprint, scope, .. } = self;
        DeadLetterFilter { code, stage, batch_id, fingerprint, scope }
    }
}

/// A dead letter as clients see it.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter {
    pub file_id: Uuid,
    #[serde(default)]
    #[schema(required = true)]
    pub tenant_id: String,
    #[serde(default)]
    #[schema(required = true)]
    pub user_id: String,
    pub file_name: String,
    pub batch_id: Option<Uuid>,
    pub stage: Stage,
    #[schema(value_type = StoredCode)]
    pub code: String,
    pub error: String,
    pub attempts: i64,
    pub failed_at: DateTime<Utc>,
    /// When it will be deleted, unless it is retried.
    pub deletion_at: DateTime<Utc>,
    /// When it was retried before and failed again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retried_at: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub retried_by: Option<String>,
}

impl Listed for DeadLetter {
    const FIELD: &'static str = "entries";
    const SCHEMA: &'static str = "DeadLetterList";
}

pub type DeadLetterList = Page<DeadLetter>;

/// The dead letters of one cause, with the newest of them as a sample.
#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroup)]
pub struct Group {
    pub fingerprint: String,
    pub stage: Stage,
    #[schema(value_type = StoredCode)]
    pub code: String,
    pub sample: Sample,
    pub count: i64,
    pub first_seen: DateTime<Utc>,
    pub last_seen: DateTime<Utc>,
    /// How many of them failed in each of the last 24 hours, the oldest first.
    #[serde(default)]
    #[schema(min_items = 24, max_items = 24, required = true)]
    pub trend: Vec<i64>,
    #[serde(default)]
    #[schema(required = true)]
    pub owners: GroupOwners,
    /// Whether a retry can help without another upload.
    #[serde(default)]
    #[schema(required = true)]
    pub retry_helps: bool,
    /// What would help.
    #[serde(default)]
    #[schema(required = true)]
    pub advice: String,
}

/// Whose files a group has.
#[derive(Debug, Clone, Default, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = DeadLetterOwners)]
pub struct GroupOwners {
    pub count: i64,
    /// The five with the most.
    pub top: Vec<GroupOwner>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterOwner)]
pub struct GroupOwner {
    pub tenant_id: String,
    pub user_id: String,
    pub count: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterSample)]
pub struct Sample {
    pub file_id: Uuid,
    pub file_name: String,
    pub message: String,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[schema(as = DeadLetterGroupList)]
pub struct GroupList {
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RetriedDeadLetter)]
pub struct Retried {
    pub success: bool,
    pub file_id: Uuid,
    pub status: Status,
}
