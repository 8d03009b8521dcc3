//! Deletes a file: first its row, its quota and its index entries in one transaction, then its blob.
//!
//! The tombstone keeps the blob's key until the blob is removed, so that after a crash between the two steps the
//! server still knows which blob to remove.

use serde_json::json;
use uuid::Uuid;

use super::cancel::cancel;
use crate::blobs::Blobs;
use crate::content::{artifacts, chunks, index};
use crate::records::batch::archives;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::files::{attributes, blobs};
use crate::records::moves::{self, Change, Move};
use crate::records::quota;
use landfall_core::actor::Actor;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::lifecycle::{Status, Transition};
use landfall_core::mutants::{self, Mutant};
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Db, Tx, Write};

/// Deletes a file in any state. Repeating it is safe.
pub async fn delete(db: &Db, blobs: &Blobs, caller: &Caller, id: Uuid, now: Time) -> Result<(), Error> {
    let deletion = Delete { caller: caller.clone(), file: id, only_failed: false, now };
    carry_out(db, blobs, deletion).await
}

/// Deletes a file that failed, and refuses any other: a dead letter that was retried meanwhile is no longer one.
pub async fn discard(db: &Db, blobs: &Blobs, caller: &Caller, id: Uuid, now: Time) -> Result<(), Error> {
    let deletion = Delete { caller: caller.clone(), file: id, only_failed: true, now };
    carry_out(db, blobs, deletion).await
}

async fn carry_out(db: &Db, blobs: &Blobs, deletion: Delete) -> Result<(), Error> {
    let id = deletion.file;
    if mutants::on(Mutant::DeleteBeforeRow) {
        for key in blobs.keys_of(id).await? {
            blobs.remove(&key).await?;
        }
    }
    if let Some(key) = db.write(deletion).await? {
        remove_blob(db, blobs, id, &key).await?;
    }
    Ok(())
}

/// Removes the blob of a deleted or infected file and clears its key in the row.
pub async fn remove_blob(db: &Db, blobs: &Blobs, id: Uuid, key: &str) -> Result<(), Error> {
    blobs.remove(key).await?;
    db.write(BlobGone { file: id, key: key.to_owned() }).await
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
            if mutants::on(Mutant::DoubleRefund) {
                quota::refund(tx, std::slice::from_ref(&file)).await?;
            }
            return Ok(file.blob_key);
        }
        if self.only_failed && file.status != Status::Failed {
            return Err(Refusal::not_failed(file.status).into());
        }
        if file.status == Status::Queued || file.status.is_running() {
            // A worker that holds it finds its claim gone and changes nothing.
            cancel(tx, &mut file, &self.caller, self.now).await?;
        }
        let actor = Actor::caller(&self.caller, &file.tenant_id, &file.user_id);
        let tombstones = bury(tx, vec![file], &actor, None, self.now).await?;
        Ok(tombstones.into_iter().next().and_then(|tombstone| tombstone.blob_key))
    }
}

/// Turns files into tombstones and deletes all that belongs to them, except the blobs, whose keys the tombstones
/// keep. The transaction must have locked the files, and no worker may hold them. Returns the tombstones.
///
/// Every deletion of a file goes through here. `actor` requested or decided it. `cause` is the reason, if the owner did not request the deletion.
pub async fn bury(
    tx: &mut Tx,
    files: Vec<File>,
    actor: &Actor,
    cause: Option<Cause<'_>>,
    now: Time,
) -> Result<Vec<File>, Error> {
    for file in &files {
        // A file that was never confirmed has no index entries, chunks or artifacts.
        if file.confirmed_at.is_some() && !mutants::on(Mutant::GhostInIndex) {
            index::remove(tx, file.id).await?;
            chunks::remove(tx, file.id).await?;
            artifacts::remove(tx, file.id).await?;
        }
        if file.attributes.is_some() {
            attributes::remove(tx, file.id).await?;
        }
        if let Some(batch) = file.archive_batch {
            archives::delete_files(tx, batch).await?;
            tx.signal(Signal::BlobToRemove);
        }
    }
    let reason = cause.and_then(|cause| cause.reason);
    let gave_up = cause.is_some_and(|cause| cause.name.is_some());
    let moves = files.iter().map(|file| Move {
        file: file.id,
        from: file.status,
        passed: Vec::new(),
        transition: Transition::Delete,
        change: Change::Delete {
            gave_up,
            unconfirmed: (file.is_direct && file.confirmed_at.is_none()).then(|| Blobs::direct_key(file.id)),
        },
        worker: None,
        actor: actor.clone(),
        data: reason.map(|reason| json!({ "reason": reason })),
    });
    let moved = moves::apply(tx, moves.collect(), now).await?;
    let tombstones: Vec<File> = moved.into_iter().flatten().filter_map(|moved| moved.file).collect();
    if let Some(Cause { name: Some(name), .. }) = cause {
        let cleaned = tombstones.iter().map(|file| cleaned_up(file, name, now)).collect();
        events::record(tx, cleaned).await?;
    }
    if cause.is_none() || !mutants::on(Mutant::ForgottenRefund) {
        quota::refund(tx, &tombstones).await?;
    }
    Ok(tombstones)
}

/// Why files are deleted without a request of their owner for each file.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cause<'a> {
    /// The reason in the event `file:cleaned-up`, if the server decided the deletion.
    pub name: Option<&'static str>,
    /// The reason in the file's history.
    pub reason: Option<&'a str>,
}

/// The event for a file that the server deleted: the reason and the reclaimed size.
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
        blobs::forget(tx, self.file, &self.key).await
    }
}
