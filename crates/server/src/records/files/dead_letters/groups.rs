//! Dead letters by their causes.

use uuid::Uuid;

use super::Filter;
use landfall_api::dead_letters::{Group, Sample};
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::reason;
use landfall_store::Error;
use landfall_store::{Tx, args};

#[derive(Debug, sqlx::FromRow)]
struct GroupRow {
    fingerprint: String,
    #[sqlx(try_from = "String")]
    stage: Stage,
    code: String,
    file_id: Uuid,
    file_name: String,
    message: String,
    count: i64,
    first_seen: Time,
    last_seen: Time,
}

impl From<GroupRow> for Group {
    fn from(row: GroupRow) -> Self {
        Self {
            fingerprint: row.fingerprint,
            stage: row.stage,
            sample: Sample {
                file_id: row.file_id,
                file_name: row.file_name,
                message: reason::sentences(&row.code, &row.message, Status::Failed),
            },
            code: row.code,
            count: row.count,
            first_seen: row.first_seen,
            last_seen: row.last_seen,
        }
    }
}

/// The causes of most dead letters, the largest first.
pub async fn groups(tx: &mut Tx, filter: &Filter, limit: i64) -> Result<Vec<Group>, Error> {
    let mut arguments = args![limit];
    let counted = filter.condition("files", &mut arguments);
    let sampled = filter.condition("s", &mut arguments);
    let rows: Vec<GroupRow> = tx.rows(
        format!(
            "SELECT g.fingerprint, f.error_stage AS stage, f.error_code AS code, f.id AS file_id, f.file_name,
                    f.error_message AS message, g.count, g.first_seen, g.last_seen
             FROM (SELECT fingerprint, CAST(SUM(count) AS BIGINT) AS count, MIN(first_seen) AS first_seen,
                          MAX(last_seen) AS last_seen
                   -- By owner first, as the index is ordered: it alone is read, also for all owners.
                   FROM (SELECT error_fingerprint AS fingerprint, COUNT(*) AS count, MIN(failed_at) AS first_seen,
                                MAX(failed_at) AS last_seen
                         FROM files WHERE {counted} GROUP BY tenant_id, user_id, error_fingerprint) AS u
                   GROUP BY fingerprint ORDER BY 2 DESC, fingerprint LIMIT $1) AS g
             JOIN files f ON f.id = (SELECT s.id FROM files s
                                     WHERE {sampled} AND s.error_fingerprint = g.fingerprint
                                       AND s.failed_at = g.last_seen
                                     ORDER BY s.id DESC LIMIT 1)
             ORDER BY g.count DESC, g.fingerprint"
        ),
        arguments,
    )
    .await?;
    Ok(rows.into_iter().map(Group::from).collect())
}
