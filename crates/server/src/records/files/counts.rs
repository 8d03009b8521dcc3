//! Files counted and added up, for what keeps such counts beside the rows: batches, accounts and totals.

use landfall_core::caller::TenantUser;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

/// The column of a user's totals that a row of `files` is counted in, in SQL.
pub const COLUMN_OF_TOTALS: &str =
    "CASE WHEN status IN ('queued', 'scanning', 'extracting', 'chunking', 'embedding')
                                      THEN 'at_' || next_stage ELSE status END";

/// How many files a batch has in each state, by its name.
pub async fn in_batch(tx: &mut Tx, batch: Uuid) -> Result<Vec<(String, i64)>, Error> {
    tx.rows("SELECT status, COUNT(*) FROM files WHERE batch_id = $1 GROUP BY status", args![batch]).await
}

/// How many files of a batch are still to come.
pub async fn registered_in_batch(tx: &mut Tx, batch: Uuid) -> Result<i64, Error> {
    tx.number("SELECT COUNT(*) FROM files WHERE batch_id = $1 AND status = 'registered'", args![batch]).await
}

/// How many files a batch has in each state, without those that are deleted.
pub async fn living_in_batch(tx: &mut Tx, batch: Uuid) -> Result<Vec<(String, i64)>, Error> {
    tx.rows(
        "SELECT status, COUNT(*) FROM files WHERE batch_id = $1 AND status <> 'deleted' GROUP BY status",
        args![batch],
    )
    .await
}

/// What the files of a tenant take up: before they are confirmed, and after.
#[derive(Debug, Default, Clone, Copy)]
pub struct Sums {
    pub reserved_bytes: i64,
    pub reserved_files: i64,
    pub used_bytes: i64,
    pub used_files: i64,
}

/// Adds up what the files of a tenant take up.
pub async fn of_tenant(tx: &mut Tx, tenant: &str) -> Result<Sums, Error> {
    let sums: Option<(i64, i64, i64, i64)> = tx
        .row(
            "SELECT CAST(COALESCE(SUM(CASE WHEN confirmed_at IS NULL THEN size_bytes ELSE 0 END), 0) AS BIGINT),
                    CAST(COALESCE(SUM(CASE WHEN confirmed_at IS NULL THEN 1 ELSE 0 END), 0) AS BIGINT),
                    CAST(COALESCE(SUM(CASE WHEN confirmed_at IS NULL THEN 0 ELSE size_bytes END), 0) AS BIGINT),
                    CAST(COALESCE(SUM(CASE WHEN confirmed_at IS NULL THEN 0 ELSE 1 END), 0) AS BIGINT)
             FROM files WHERE tenant_id = $1 AND status <> 'deleted'",
            args![tenant],
        )
        .await?;
    let (reserved_bytes, reserved_files, used_bytes, used_files) = sums.unwrap_or_default();
    Ok(Sums { reserved_bytes, reserved_files, used_bytes, used_files })
}

/// How many files of a user are counted in each column of the totals, by column.
pub async fn of_user(tx: &mut Tx, owner: &TenantUser) -> Result<Vec<(String, i64)>, Error> {
    tx.rows(
        format!(
            "SELECT {COLUMN_OF_TOTALS} AS counted_in, COUNT(*) FROM files
             WHERE tenant_id = $1 AND user_id = $2 AND deleted_at IS NULL GROUP BY counted_in"
        ),
        args![&owner.tenant, &owner.user],
    )
    .await
}

/// How many files there are that are not deleted.
pub async fn living(tx: &mut Tx) -> Result<i64, Error> {
    tx.number("SELECT COUNT(*) FROM files WHERE status <> 'deleted'", args![]).await
}

/// Whether there is a file at all, deleted or not.
pub async fn any(tx: &mut Tx) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM files LIMIT 1) AS known";
    Ok(tx.number(sql, args![]).await? > 0)
}
