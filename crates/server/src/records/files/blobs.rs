//! Files and the keys of their blobs, and the tombstones of deleted files.

use landfall_core::clock::Time;
use landfall_store::{Error, Rows, Tx, args};
use uuid::Uuid;

/// Whether a file has this blob, whatever its state.
pub async fn has(tx: &mut Tx, file: Uuid, key: &str) -> Result<bool, Error> {
    let row: Option<(Option<String>,)> =
        tx.row("SELECT blob_key FROM files WHERE id = $1", args![file]).await?;
    Ok(row.is_some_and(|(known,)| known.as_deref() == Some(key)))
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

/// A file that a blob was uploaded for, and the blob that it has.
#[derive(Debug, sqlx::FromRow)]
pub struct BlobOwner {
    pub id: Uuid,
    pub blob_key: Option<String>,
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
        "SELECT id, blob_key, tenant_id, user_id FROM files WHERE id IN (SELECT * FROM ({values}) AS v)"
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
