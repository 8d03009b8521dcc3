//! A batch is opened, takes files, and is closed, cancelled or expired.

use landfall_core::caller::TenantUser;
use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use serde_json::Value;
use uuid::Uuid;

/// A batch as it is opened.
#[derive(Debug)]
pub struct Opened<'a> {
    pub id: Uuid,
    pub tenant: &'a str,
    pub user: &'a str,
    pub file_count: i64,
    pub priority: i64,
    pub metadata: Option<Value>,
    pub mapping: Option<Value>,
    /// The archive that its files are from.
    pub archive: Option<Uuid>,
    pub expires_at: Time,
    pub now: Time,
}

/// Writes the row of a new batch.
pub async fn open(tx: &mut Tx, batch: Opened<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO batches (id, tenant_id, user_id, status, file_count, priority, metadata, mapping,
                              created_at, updated_at, expires_at, archive_id)
         VALUES ($1, $2, $3, 'active', $4, $5, $6, $7, $8, $8, $9, $10)",
        args![
            batch.id,
            batch.tenant,
            batch.user,
            batch.file_count,
            batch.priority,
            batch.metadata,
            batch.mapping,
            batch.now,
            batch.expires_at,
            batch.archive,
        ],
    )
    .await
    .map(drop)
}

/// How many batches of a tenant are active, counted up to `most`, without those of archives.
pub async fn count_active(tx: &mut Tx, tenant: &str, most: i64) -> Result<i64, Error> {
    tx.number(
        "SELECT COUNT(*) FROM (SELECT 1 FROM batches WHERE tenant_id = $1 AND status = 'active'
             AND archive_id IS NULL LIMIT $2) AS active",
        args![tenant, most],
    )
    .await
}

/// Takes `count` of the free places of a user's batch. Returns the batch's priority; `None` if it has not so many, or takes
/// none.
pub async fn take_places(
    tx: &mut Tx,
    batch: Uuid,
    owner: &TenantUser,
    count: i64,
    now: Time,
) -> Result<Option<i64>, Error> {
    let taken: Option<(i64,)> = tx
        .row(
            "UPDATE batches SET registered_files = registered_files + $4, updated_at = $5
             WHERE id = $1 AND tenant_id = $2 AND user_id = $3 AND status = 'active'
               AND registered_files + $4 <= file_count
             RETURNING priority",
            args![batch, &owner.tenant, &owner.user, count, now],
        )
        .await?;
    Ok(taken.map(|(priority,)| priority))
}

/// Why a batch has no place for a file.
#[derive(Debug)]
pub struct Places {
    /// The name of its status.
    pub status: String,
    pub promised: i64,
    pub registered: i64,
}

/// The places of a user's batch.
pub async fn places(tx: &mut Tx, batch: Uuid, owner: &TenantUser) -> Result<Option<Places>, Error> {
    let found: Option<(String, i64, i64)> = tx
        .row(
            "SELECT status, file_count, registered_files FROM batches
             WHERE id = $1 AND tenant_id = $2 AND user_id = $3",
            args![batch, &owner.tenant, &owner.user],
        )
        .await?;
    Ok(found.map(|(status, promised, registered)| Places { status, promised, registered }))
}

/// The batch expects only the files that it has, if it is active. Its row is locked from here on.
pub async fn close(tx: &mut Tx, batch: Uuid, now: Time) -> Result<(), Error> {
    tx.execute(
        "UPDATE batches SET file_count = registered_files, updated_at = $2 WHERE id = $1 AND status = 'active'",
        args![batch, now],
    )
    .await
    .map(drop)
}

/// Cancels a batch. Returns whether it was not cancelled or completed before.
pub async fn cancel(tx: &mut Tx, batch: Uuid, now: Time) -> Result<bool, Error> {
    let newly = tx
        .execute(
            "UPDATE batches SET status = 'cancelled', updated_at = $2
             WHERE id = $1 AND status IN ('active', 'expired')",
            args![batch, now],
        )
        .await?;
    Ok(newly > 0)
}

/// A page of the batches that are timed out, by the times at which they expired and their ids, behind `after`: their time
/// is over and files are still missing. Each with both times, the second being when it was opened.
pub async fn timed_out(
    tx: &mut Tx,
    after: (Time, Uuid),
    limit: usize,
    now: Time,
) -> Result<Vec<(Time, Uuid, Time)>, Error> {
    tx.rows(
        "SELECT expires_at, id, created_at FROM batches
         WHERE status = 'active' AND expires_at <= $1 AND (expires_at, id) > ($2, $3)
           AND (registered_files < file_count
                OR EXISTS (SELECT 1 FROM files WHERE batch_id = batches.id AND status = 'registered'))
         ORDER BY expires_at, id LIMIT $4",
        args![now, after.0, after.1, limit],
    )
    .await
}

/// Expires a batch that is timed out, with so many `missing` files that the transaction holds. Returns whether it was.
pub async fn expire(tx: &mut Tx, batch: Uuid, missing: usize, now: Time) -> Result<bool, Error> {
    let expired = tx
        .execute(
            "UPDATE batches SET status = 'expired', progress_due = NULL, updated_at = $2
             WHERE id = $1 AND status = 'active' AND expires_at <= $2
               AND (registered_files < file_count OR $3 > 0)",
            args![batch, now, missing],
        )
        .await?;
    Ok(expired > 0)
}
