//! Dead letters by their causes.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::Filter;
use landfall_store::Error;
use landfall_store::{Tx, args};

/// The dead letters of one cause, with the newest of them as a sample.
#[derive(Debug, Serialize, sqlx::FromRow, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterGroup)]
pub struct Group {
    pub fingerprint: String,
    #[schema(value_type = landfall_core::lifecycle::Stage)]
    pub stage: String,
    #[schema(value_type = landfall_core::failure::Code)]
    pub code: String,
    #[sqlx(flatten)]
    pub sample: Sample,
    pub count: i64,
    pub first_seen: DateTime<Utc>,
    pub last_seen: DateTime<Utc>,
}

#[derive(Debug, Serialize, sqlx::FromRow, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetterSample)]
pub struct Sample {
    pub file_id: Uuid,
    pub file_name: String,
    pub message: String,
}

/// The causes of most dead letters, the largest first.
pub async fn groups(tx: &mut Tx, filter: &Filter, limit: i64) -> Result<Vec<Group>, Error> {
    let mut arguments = args![limit];
    let counted = filter.condition("files", &mut arguments);
    let sampled = filter.condition("s", &mut arguments);
    tx.rows(
        format!(
            "SELECT g.fingerprint, f.error_stage AS stage, f.error_code AS code, f.id AS file_id, f.file_name,
                    f.error_message AS message, g.count, g.first_seen, g.last_seen
             FROM (SELECT fingerprint, CAST(SUM(count) AS BIGINT) AS count, MIN(first_seen) AS first_seen,
                          MAX(last_seen) AS last_seen
                   -- By user first, as the index is ordered: it alone is read, also for everybody's.
                   FROM (SELECT error_fingerprint AS fingerprint, COUNT(*) AS count, MIN(failed_at) AS first_seen,
                                MAX(failed_at) AS last_seen
                         FROM files WHERE {counted} GROUP BY user_id, error_fingerprint) AS u
                   GROUP BY fingerprint ORDER BY 2 DESC, fingerprint LIMIT $1) AS g
             JOIN files f ON f.id = (SELECT s.id FROM files s
                                     WHERE {sampled} AND s.error_fingerprint = g.fingerprint
                                       AND s.failed_at = g.last_seen
                                     ORDER BY s.id DESC LIMIT 1)
             ORDER BY g.count DESC, g.fingerprint"
        ),
        arguments,
    )
    .await
}
