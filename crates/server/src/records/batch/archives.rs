//! The batch with the files of an archive.

use landfall_core::clock::Time;
use landfall_store::{Error, Tx, args};
use uuid::Uuid;

use super::{Batch, COLUMNS};
use crate::records::files::queue;

/// The batch of an archive.
pub async fn find(tx: &mut Tx, batch: Uuid) -> Result<Option<Batch>, Error> {
    tx.row(format!("SELECT {COLUMNS} FROM batches WHERE id = $1"), args![batch]).await
}

/// Whether the files of this batch are from an archive.
pub async fn is_of_archive(tx: &mut Tx, batch: Uuid) -> Result<bool, Error> {
    Ok(find(tx, batch).await?.is_some_and(|batch| batch.archive_id.is_some()))
}

/// Ends the wait of an archive whose files have all ended. They may have ended while the wait was written.
pub async fn end_wait(tx: &mut Tx, batch: Uuid, now: Time) -> Result<(), Error> {
    match find(tx, batch).await? {
        Some(batch) if batch.has_ended() => match batch.archive_id {
            Some(archive) => queue::end_wait(tx, archive, now).await,
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Notes that the files of a deleted archive are to be deleted.
pub async fn delete_files(tx: &mut Tx, batch: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE batches SET deletes_files = TRUE WHERE id = $1", args![batch]).await.map(drop)
}

/// No file of a deleted archive is left.
pub async fn files_deleted(tx: &mut Tx, batch: Uuid) -> Result<(), Error> {
    tx.execute("UPDATE batches SET deletes_files = FALSE WHERE id = $1", args![batch]).await.map(drop)
}

/// The batches of deleted archives whose files are to be deleted, in the order of their ids, behind `after`.
pub async fn deleting_files(tx: &mut Tx, after: Uuid, limit: usize) -> Result<Vec<Uuid>, Error> {
    let sql = "SELECT id FROM batches WHERE deletes_files AND id > $1 ORDER BY id LIMIT $2";
    let found: Vec<(Uuid,)> = tx.rows(sql, args![after, limit]).await?;
    Ok(found.into_iter().map(|(id,)| id).collect())
}
