//! Archives, and the files that were in them.

use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use serde_json::Value;
use uuid::Uuid;

use crate::records::file::File;

/// A file that the transaction holds is an archive, and this batch has its files.
pub async fn unpacked_into(tx: &mut Tx, archive: Uuid, batch: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE files SET archive_batch = $2 WHERE id = $1", args![archive, batch]).await.map(drop)
}

/// A file of an archive.
#[derive(Debug, landfall_store::FromRow)]
pub struct Member {
    pub id: Uuid,
    pub file_name: String,
    pub attributes: Option<Value>,
    pub size_bytes: i64,
    pub status: String,
}

/// The files of an archive that are not deleted, in the order of their ids.
pub async fn members(tx: &mut Tx, batch: Uuid) -> Result<Vec<Member>, Error> {
    tx.rows(
        "SELECT id, file_name, attributes, size_bytes, status FROM files
         WHERE batch_id = $1 AND status <> 'deleted' ORDER BY id",
        args![batch],
    )
    .await
}

/// Up to `limit` files of an archive that are not deleted, held against other writers until the transaction ends.
pub async fn lock_members(tx: &mut Tx, batch: Uuid, limit: usize) -> Result<Vec<File>, Error> {
    let sql = format!(
        "SELECT * FROM files WHERE batch_id = $1 AND status <> 'deleted' ORDER BY id LIMIT $2 {}",
        tx.for_update()
    );
    tx.rows(sql, args![batch, limit]).await
}

/// The files of an archive that failed or were cancelled before the archive was retried, and were not retried since. They
/// are held against other writers until the transaction ends.
pub async fn lock_failed_before(tx: &mut Tx, batch: Uuid, retried_at: Time) -> Result<Vec<File>, Error> {
    let sql = format!(
        "SELECT * FROM files WHERE batch_id = $1 AND idle_status IN ('failed', 'cancelled') AND error_at <= $2
           AND (retried_at IS NULL OR retried_at < $2) AND blob_key IS NOT NULL ORDER BY id {}",
        tx.for_update()
    );
    tx.rows(sql, args![batch, retried_at]).await
}
