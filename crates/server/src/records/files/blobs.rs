//! Files and the keys of their blobs, and the tombstones of deleted files.

use landfall_core::clock::Time;
use landfall_store::{Error, Rows, Tx, args};
use uuid::Uuid;

/// The key of a file's blob, whatever its state, and whether its client may be sending one to the object store.
pub async fn key_of(tx: &mut Tx, file: Uuid) -> Result<Option<(Option<String>, bool)>, Error> {
    let sql = "SELECT blob_key, is_direct AND status = 'registered' FROM files WHERE id = $1";
    tx.row(sql, args![file]).await
}

/// Whether a file has this blob and is not deleted.
pub async fn still_has(tx: &mut Tx, file: Uuid, key: &str) -> Result<bool, Error> {
    let sql = "SELECT id FROM files WHERE id = $1 AND blob_key = $2 AND status <> 'deleted'";
    Ok(tx.row::<(Uuid,)>(sql, args![file, key]).await?.is_some())
}

/// A page of the files that should have their blob in the storage, with its key and size, in the order of their ids,
/// behind `after`.
pub async fn page_of_kept(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<(Uuid, String, i64)>, Error> {
    tx.rows(
        "SELECT id, blob_key, size_bytes FROM files
         WHERE id > $1 AND blob_key IS NOT NULL AND status <> 'deleted'
           AND COALESCE(error_code, '') <> 'INFECTED' ORDER BY id LIMIT $2",
        args![after, limit],
    )
    .await
}

/// Deleted and infected files whose blob is still to be removed, in the order of their ids, behind `after`.
pub async fn to_be_removed(tx: &mut Tx, after: Uuid, limit: i64) -> Result<Vec<(Uuid, String)>, Error> {
    tx.rows(
        "SELECT id, blob_key FROM files
         WHERE (deleted_at IS NOT NULL OR error_code = 'INFECTED') AND blob_key IS NOT NULL AND id > $1
         ORDER BY id LIMIT $2",
        args![after, limit],
    )
    .await
}

/// The blob of a deleted or infected file is gone.
pub async fn forget(tx: &mut Tx, file: Uuid, key: &str) -> Result<(), Error> {
    tx.execute(
        "UPDATE files SET blob_key = NULL
         WHERE id = $1 AND (deleted_at IS NOT NULL OR error_code = 'INFECTED') AND blob_key = $2",
        args![file, key],
    )
    .await
    .map(drop)
}

/// A file whose blob is to be checked.
#[derive(Debug, landfall_store::FromRow)]
pub struct ToScrub {
    pub id: Uuid,
    pub blob_key: String,
    pub size_bytes: i64,
    pub md5: Option<String>,
    pub blob_sha256: Option<String>,
    pub blob_etag: Option<String>,
    pub blob_version: Option<String>,
}

/// Files whose blobs were not checked since `before`: first those that never were, then those whose check is the oldest.
pub async fn to_scrub(tx: &mut Tx, before: Time, limit: usize) -> Result<Vec<ToScrub>, Error> {
    const COLUMNS: &str =
        "SELECT id, blob_key, size_bytes, md5, blob_sha256, blob_etag, blob_version FROM files
         WHERE blob_key IS NOT NULL AND status <> 'deleted' AND COALESCE(error_code, '') <> 'INFECTED'";
    let never = format!("{COLUMNS} AND blob_checked_at IS NULL ORDER BY id LIMIT $1");
    let found: Vec<ToScrub> = tx.rows(never, args![limit]).await?;
    if !found.is_empty() {
        return Ok(found);
    }
    let oldest = format!("{COLUMNS} AND blob_checked_at < $1 ORDER BY blob_checked_at, id LIMIT $2");
    tx.rows(oldest, args![before, limit]).await
}

/// The blob has the bytes that arrived.
pub async fn note_right(tx: &mut Tx, file: Uuid, key: &str, sha256: &str, now: Time) -> Result<(), Error> {
    tx.execute(
        "UPDATE files SET blob_sha256 = COALESCE(blob_sha256, $3), blob_checked_at = $4, blob_damaged_at = NULL
         WHERE id = $1 AND blob_key = $2",
        args![file, key, sha256, now],
    )
    .await
    .map(drop)
}

/// The blob is missing, or has other bytes. Returns whether the file should have it.
pub async fn note_damage(tx: &mut Tx, file: Uuid, key: &str, now: Time) -> Result<bool, Error> {
    let noted = tx
        .execute(
            "UPDATE files SET blob_checked_at = $3, blob_damaged_at = COALESCE(blob_damaged_at, $3)
             WHERE id = $1 AND blob_key = $2 AND status <> 'deleted' AND COALESCE(error_code, '') <> 'INFECTED'",
            args![file, key, now],
        )
        .await?;
    Ok(noted > 0)
}

/// How many files have a blob that was found to be damaged.
pub async fn damaged(tx: &mut Tx) -> Result<i64, Error> {
    let sql = "SELECT COUNT(*) FROM files WHERE blob_damaged_at IS NOT NULL AND status <> 'deleted'";
    tx.number(sql, args![]).await
}

/// A file that a blob was uploaded for, and the blob that it has.
#[derive(Debug, landfall_store::FromRow)]
pub struct BlobOwner {
    pub id: Uuid,
    pub blob_key: Option<String>,
    /// Its client may be sending one to the object store.
    pub awaits_direct: bool,
    pub tenant_id: String,
    pub user_id: String,
}

/// The rows of these files: at least one, and at most [`Rows::MAX`].
pub async fn owners(tx: &mut Tx, files: impl Iterator<Item = Uuid>) -> Result<Vec<BlobOwner>, Error> {
    let mut ids = Rows::default();
    for file in files {
        ids.push(args![file]);
    }
    let (values, arguments) = ids.into_values(tx);
    let sql = format!(
        "SELECT id, blob_key, is_direct AND status = 'registered' AS awaits_direct, tenant_id, user_id
         FROM files WHERE id IN (SELECT * FROM ({values}) AS v)"
    );
    tx.rows(sql, arguments).await
}

/// Removes the rows of up to `limit` files that were deleted before a time. Returns their ids.
pub async fn remove_tombstones(tx: &mut Tx, before: Time, limit: i64) -> Result<Vec<Uuid>, Error> {
    let gone: Vec<(Uuid,)> = tx
        .rows(
            // A key that is still there is the only note of a blob that is still to be removed.
            "DELETE FROM files WHERE id IN (SELECT id FROM files WHERE deleted_at < $1 AND blob_key IS NULL LIMIT $2)
                 AND deleted_at < $1 AND blob_key IS NULL RETURNING id",
            args![before, limit],
        )
        .await?;
    Ok(gone.into_iter().map(|(id,)| id).collect())
}
