//! Puts right what can be put right without guessing: what is counted is counted anew, what nobody holds goes back to the
//! queue, what belongs to nobody goes. A file that has lost its bytes, or a ready one its index, is left for a person.
//!
//! Each fix is a transaction that looks again before it changes anything, so it may run beside servers at work, twice,
//! and be stopped at any time.

use serde_json::json;
use uuid::Uuid;

use super::invariants::{self, Fix, Invariant};
use super::{Finding, Violation, Violations};
use crate::content::index;
use crate::queue::rescue::RescueWorker;
use crate::records::batch;
use crate::records::events::{self, Event};
use crate::records::file::{File, Shift};
use crate::records::quota;
use crate::records::totals;
use crate::recovery::orphan_cleanup::orphan_blobs::{self, Orphans, Permit};
use crate::recovery::ownership::Ownership;
use crate::recovery::{abandoned_uploads, unfinished_deletions};
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Status, Transition};
use landfall_store::Error;
use landfall_store::locks;
use landfall_store::{Db, Tx, Write, args};

#[derive(Debug, Default)]
pub struct Fixed {
    pub findings: Vec<Finding>,
    /// Why blobs were left that no row knows.
    pub held_back: Option<String>,
}

/// `oldest_heartbeat`: a worker that gave no sign since then is not alive. `written_before`: a blob without a row is left
/// alone unless it is older than that. `force`: also if those are so many that it looks like a mistake.
pub async fn fix(
    storage: &Ownership,
    oldest_heartbeat: Time,
    written_before: Time,
    force: bool,
    now: Time,
) -> Result<Fixed, Error> {
    let standing = storage.look().await?;
    if !standing.may_be_used() {
        return Err(Error::StorageNotOurs(standing.to_string()));
    }
    let db = &storage.db;
    let (mut fixed, held_back) = fix_blobs(storage, written_before, force).await?;
    // What dead workers held, before what nobody knows who held.
    for worker in locks::dead_workers(db, oldest_heartbeat).await? {
        let Some(rescued) = db.write(RescueWorker { worker, now }).await? else { continue };
        locks::forget(db, worker);
        let files = rescued.requeued + rescued.failed;
        if files > 0 {
            let what = format!("worker {worker} is dead; it held {files} files");
            fixed.push(Finding { invariant: "running files are held by living workers", what });
        }
    }
    for invariant in invariants::all(db.is_postgres(), oldest_heartbeat) {
        fixed.extend(fix_rows(db, &invariant, oldest_heartbeat, now).await?);
    }
    Ok(Fixed { findings: fixed, held_back })
}

async fn fix_blobs(
    storage: &Ownership,
    written_before: Time,
    force: bool,
) -> Result<(Vec<Finding>, Option<String>), Error> {
    let Ownership { db, blobs } = storage;
    // Deletions and uploads that were cut short have a note of what is to do.
    unfinished_deletions::sweep_once(db, blobs).await?;
    abandoned_uploads::sweep_once(db, blobs).await?;
    let most = match orphan_blobs::permit(storage, written_before, force).await? {
        Permit::Remove { most } => most,
        Permit::HeldBack { why, .. } => return Ok((Vec::new(), Some(why))),
    };
    let mut removed = Violations::default();
    let mut orphans = Orphans::look(db, blobs, written_before);
    while let Some(page) = orphans.next_page().await? {
        for orphan in page {
            // What is beyond what was counted stays a finding.
            if removed.count < most {
                blobs.remove(&orphan.blob.key).await?;
                removed.push(format!("blob {} belonged to no file", orphan.blob.key));
            }
        }
    }
    Ok((removed.into_findings("no blob without its row").collect(), None))
}

async fn fix_rows(
    db: &Db,
    invariant: &Invariant,
    oldest_heartbeat: Time,
    now: Time,
) -> Result<Vec<Finding>, Error> {
    let Some(fix) = invariant.fix else { return Ok(Vec::new()) };
    let found: Vec<Violation> = db.read().await?.rows(invariant.sql.clone(), invariant.args.clone()).await?;
    let mut fixed = Violations::default();
    for violation in found {
        let what = violation.what(invariant);
        let Violation { id, name, .. } = violation;
        let put_right = PutRight { fix, id, name, oldest_heartbeat, now };
        match db.write(put_right).await {
            Ok(true) => fixed.push(what),
            Ok(false) => {}
            // It stays a finding; the others are fixed all the same.
            Err(error) => tracing::warn!(%error, what, "could not be fixed"),
        }
    }
    Ok(fixed.into_findings(invariant.name).collect())
}

/// Puts one violation right, if it still is one. Answers whether it did.
struct PutRight {
    fix: Fix,
    id: Option<Uuid>,
    name: Option<String>,
    oldest_heartbeat: Time,
    now: Time,
}

impl Write for PutRight {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        match (self.fix, self.id, self.name.as_deref()) {
            (Fix::Claim, Some(file), _) => self.give_back(tx, file).await,
            (Fix::History, Some(file), _) => self.tell_history(tx, file).await,
            (Fix::Index, Some(file), _) => take_out_of_index(tx, file).await,
            (Fix::Batch, Some(batch), _) => batch::recount(tx, batch, self.now).await,
            (Fix::Account, _, Some(tenant)) => quota::add_up(tx, tenant).await,
            (Fix::Totals, _, Some(user)) => totals::recount(tx, user).await,
            (Fix::Words, _, Some(chunk)) => remove_words(tx, chunk).await,
            _ => Ok(false),
        }
    }
}

impl PutRight {
    /// A file that a process holds which nobody knows any more. Its attempt does not count.
    async fn give_back(&self, tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
        let Some(mut file) = File::lock(tx, id).await? else { return Ok(false) };
        let (Some(holder), Some(stage)) = (file.claimed_by, file.status.stage()) else { return Ok(false) };
        let living = "SELECT COUNT(*) FROM workers WHERE id = $1 AND heartbeat_at >= $2";
        if tx.number(living, args![holder, self.oldest_heartbeat]).await? > 0 {
            return Ok(false);
        }
        let failure = Failure::new(Code::WorkerLost, "The worker that held this file is not known any more");
        file.shift(
            tx,
            Shift {
                transition: Transition::Requeue(stage),
                now: self.now,
                set: "run_after = $4, is_due = TRUE, claim = NULL, claimed_by = NULL, claimed_at = NULL,
                      attempt = CASE WHEN attempt > 0 THEN attempt - 1 ELSE 0 END",
                args: args![],
                failure: Some(failure),
            },
        )
        .await?;
        Ok(true)
    }

    async fn tell_history(&self, tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
        let Some(file) = File::lock(tx, id).await? else { return Ok(false) };
        let last: Option<(Option<String>,)> = tx
            .row(
                "SELECT to_state FROM events WHERE file_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1",
                args![id, EventKind::FileStatusChanged],
            )
            .await?;
        let last: Option<Status> = last.and_then(|(state,)| state).and_then(|state| state.parse().ok());
        if last == Some(file.status) {
            return Ok(false);
        }
        let event = Event {
            from: last,
            to: Some(file.status),
            data: Some(json!({ "reason": "audit" })),
            ..file.event(self.now)
        };
        // Where the file is, its owner's totals knew already, or are counted anew.
        events::write_down(tx, vec![event]).await?;
        Ok(true)
    }
}

/// A ready file that is not rightly in the index would not be found at all without what is there.
async fn take_out_of_index(tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
    let file = File::lock(tx, id).await?;
    if file.is_some_and(|file| file.status == Status::Ready) {
        return Ok(false);
    }
    index::remove(tx, id).await?;
    Ok(true)
}

/// Only SQLite keeps words beside vectors.
async fn remove_words(tx: &mut Tx, chunk: &str) -> Result<bool, Error> {
    let Ok(chunk) = chunk.parse::<i64>() else { return Ok(false) };
    if tx.number("SELECT COUNT(*) FROM chunk_index WHERE chunk_id = $1", args![chunk]).await? > 0 {
        return Ok(false);
    }
    tx.execute("DELETE FROM chunk_words WHERE rowid = $1", args![chunk]).await?;
    Ok(true)
}
