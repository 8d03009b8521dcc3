//! A file goes: first its row, its quota and its index entries in one transaction, then its blob.
//!
//! The tombstone keeps the blob's key until the blob is really gone, so that a crash between the two leaves a note of
//! what is still to do.

use serde_json::json;
use uuid::Uuid;

use super::cancel::cancel;
use crate::blobs::Blobs;
use crate::content::index;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::moves::{self, Change, Move};
use crate::records::quota;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write, args};

/// Deletes a file, whatever state it is in. Doing it twice is doing it once.
pub async fn delete(db: &Db, blobs: &Blobs, caller: &Caller, id: Uuid, now: Time) -> Result<(), Error> {
    let deletion = Delete { caller: caller.clone(), file: id, only_failed: false, now };
    carry_out(db, blobs, deletion).await
}

/// Deletes a file that failed, and refuses any other: a dead letter that somebody retried meanwhile is none.
pub async fn discard(db: &Db, blobs: &Blobs, caller: &Caller, id: Uuid, now: Time) -> Result<(), Error> {
    let deletion = Delete { caller: caller.clone(), file: id, only_failed: true, now };
    carry_out(db, blobs, deletion).await
}

async fn carry_out(db: &Db, blobs: &Blobs, deletion: Delete) -> Result<(), Error> {
    let id = deletion.file;
    if let Some(key) = db.write(deletion).await? {
        remove_blob(db, blobs, id, &key).await?;
    }
    Ok(())
}

/// Removes the blob of a deleted or infected file and notes that it is gone.
pub async fn remove_blob(db: &Db, blobs: &Blobs, id: Uuid, key: &str) -> Result<(), Error> {
    blobs.remove(key).await?;
    db.write(BlobGone { file: id, key: key.to_owned() }).await
}

/// Deleted and infected files whose blob is still to be removed, in the order of their ids, after `after`.
pub async fn unfinished(db: &Db, after: Uuid, limit: i64) -> Result<Vec<(Uuid, String)>, Error> {
    db.read()
        .await?
        .rows(
            "SELECT id, blob_key FROM files
             WHERE (deleted_at IS NOT NULL OR error_code = 'INFECTED') AND blob_key IS NOT NULL AND id > $1
             ORDER BY id LIMIT $2",
            args![after, limit],
        )
        .await
}

struct Delete {
    caller: Caller,
    file: Uuid,
    only_failed: bool,
    now: Time,
}

impl Write for Delete {
    type Output = Option<String>;

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let mut file = File::lock_for(tx, &self.caller, self.file).await?;
        if file.status == Status::Deleted {
            return Ok(file.blob_key);
        }
        if self.only_failed && file.status != Status::Failed {
            return Err(Refusal::not_failed(file.status).into());
        }
        if file.status == Status::Queued || file.status.is_running() {
            // A worker that holds it finds its claim gone and changes nothing.
            cancel(tx, &mut file, &self.caller, self.now).await?;
        }
        let tombstones = bury(tx, vec![file], None, self.now).await?;
        Ok(tombstones.into_iter().next().and_then(|tombstone| tombstone.blob_key))
    }
}

/// Makes tombstones of files that the transaction holds and that no worker has, with all that belongs to them. What is left
/// to do is the blobs, whose keys the tombstones still have. Returns the tombstones.
///
/// This is the one way in which a file is deleted. `cause` is why, where the owner did not ask for it.
pub async fn bury(
    tx: &mut Tx,
    files: Vec<File>,
    cause: Option<Cause>,
    now: Time,
) -> Result<Vec<File>, Error> {
    for file in &files {
        // Before its bytes were confirmed a file has nothing but its row.
        if file.confirmed_at.is_some() {
            index::remove(tx, file.id).await?;
            tx.execute("DELETE FROM chunks WHERE file_id = $1", args![file.id]).await?;
            tx.execute("DELETE FROM artifacts WHERE file_id = $1", args![file.id]).await?;
        }
    }
    let reason = cause.and_then(|cause| cause.reason);
    let moves = files.iter().map(|file| Move {
        file: file.id,
        from: file.status,
        transition: Transition::Delete,
        change: Change::Delete,
        worker: None,
        data: reason.map(|reason| json!({ "reason": reason })),
    });
    let moved = moves::apply(tx, moves.collect(), now).await?;
    let tombstones: Vec<File> = moved.into_iter().flatten().filter_map(|moved| moved.file).collect();
    if let Some(Cause { name: Some(name), .. }) = cause {
        let cleaned = tombstones.iter().map(|file| cleaned_up(file, name, now)).collect();
        events::record(tx, cleaned).await?;
    }
    quota::refund(tx, &tombstones).await?;
    Ok(tombstones)
}

/// Why files are deleted without their owner's asking for each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cause {
    /// What the event `file:cleaned-up` calls it, where the server decided it.
    pub name: Option<&'static str>,
    /// What the history says.
    pub reason: Option<&'static str>,
}

/// The event of a file that the server deleted: why, and how much room that made.
fn cleaned_up(file: &File, cause: &str, now: Time) -> Event {
    Event {
        kind: EventKind::FileCleanedUp,
        data: Some(json!({
            "fileId": file.id,
            "tenantId": file.tenant_id,
            "reason": cause,
            "sizeReclaimed": file.size_bytes,
        })),
        ..file.event(now)
    }
}

struct BlobGone {
    file: Uuid,
    key: String,
}

impl Write for BlobGone {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "UPDATE files SET blob_key = NULL
             WHERE id = $1 AND (deleted_at IS NOT NULL OR error_code = 'INFECTED') AND blob_key = $2",
            args![self.file, &self.key],
        )
        .await
        .map(drop)
    }
}
