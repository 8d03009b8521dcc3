//! A file goes: first its row, its quota and its index entries in one transaction, then its blob.
//!
//! The tombstone keeps the blob's key until the blob is really gone, so that a crash between the two leaves a note of
//! what is still to do.

use serde_json::json;
use uuid::Uuid;

use super::cancel::cancelled_by;
use crate::blobs::Blobs;
use crate::content::index;
use crate::records::events::{self, Event};
use crate::records::file::{File, Shift};
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
            file.shift(tx, cancelled_by(&self.caller, &file, self.now)).await?;
        }
        bury(tx, &mut file, self.now).await?;
        Ok(file.blob_key)
    }
}

/// Makes a tombstone of a file that the transaction holds and that nobody works on, with all that belongs to it. What
/// is left to do is the blob, whose key the tombstone still has.
pub async fn bury(tx: &mut Tx, file: &mut File, now: Time) -> Result<(), Error> {
    index::remove(tx, file.id).await?;
    tx.execute("DELETE FROM chunks WHERE file_id = $1", args![file.id]).await?;
    tx.execute("DELETE FROM artifacts WHERE file_id = $1", args![file.id]).await?;
    file.shift(
        tx,
        Shift {
            transition: Transition::Delete,
            now,
            set: "deleted_at = $4, upload_until = NULL, failed_at = NULL",
            args: args![],
            failure: None,
        },
    )
    .await?;
    quota::refund(tx, file).await
}

/// Says that a file was deleted by nobody in particular, why, and how much room that made.
pub async fn record_cleaning(tx: &mut Tx, file: &File, reason: &str, now: Time) -> Result<(), Error> {
    let event = Event {
        kind: EventKind::FileCleanedUp,
        data: Some(json!({
            "fileId": file.id,
            "tenantId": file.tenant_id,
            "reason": reason,
            "sizeReclaimed": file.size_bytes,
        })),
        ..file.event(now)
    };
    events::record(tx, vec![event]).await
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
