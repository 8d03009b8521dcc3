//! Fixes what can be fixed without guessing: counts are recomputed, files without a living worker go back to the
//! queue, and orphans are removed. A file that has lost its bytes, or a ready file without its index, is left for a
//! person.
//!
//! Each fix is a transaction that checks again before it changes anything, so it may run beside active servers, run
//! twice, and be stopped at any time.

use serde_json::json;
use uuid::Uuid;

use super::invariants::{self, Fix, Invariant, Violation};
use super::{CODES, Finding, Violations};
use crate::content::codes::uncoded::{self, CodeAgain};
use crate::content::index;
use crate::process::workers;
use crate::queue::rescue::RescueWorker;
use crate::records::batch;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::files::listed;
use crate::records::moves::{self, Change, Ending};
use crate::records::quota;
use crate::records::totals;
use crate::recovery::orphan_cleanup::orphan_blobs::{self, Orphans, Permit};
use crate::recovery::ownership::Ownership;
use crate::recovery::{abandoned_uploads, resumable_uploads, unfinished_deletions};
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Status, Transition};
use landfall_store::Error;
use landfall_store::locks;
use landfall_store::{Db, Tx, Write};

/// The maximum number of violations in memory.
const FIXED_AT_ONCE: usize = 100_000;

#[derive(Debug, Default)]
pub struct Fixed {
    pub findings: Vec<Finding>,
    /// Why blobs without a row were left.
    pub held_back: Option<String>,
}

/// `oldest_heartbeat`: a worker whose last heartbeat is older is dead. `written_before`: a blob without a row is
/// left alone unless it is older than that. `force`: also removes them if there are so many that it looks like a
/// mistake.
pub async fn fix(
    storage: &Ownership,
    oldest_heartbeat: Time,
    written_before: Time,
    force: bool,
    now: Time,
) -> Result<Fixed, Error> {
    let standing = storage.standing().await?;
    if !standing.may_be_used() {
        return Err(Error::StorageMismatch(standing.to_string()));
    }
    let db = &storage.db;
    let (mut fixed, held_back) = fix_blobs(storage, written_before, force).await?;
    // First what registered dead workers held, then what unknown workers held.
    let expiry = (now - oldest_heartbeat).to_std().unwrap_or_default();
    for worker in locks::dead_workers(db, expiry, now).await? {
        let Some(rescued) = db.write(RescueWorker { worker, now }).await? else { continue };
        locks::forget(db, worker);
        let files = rescued.requeued + rescued.failed;
        if files > 0 {
            let what = format!("worker {worker} is dead; it held {files} files");
            fixed.push(Finding { invariant: "running files are held by living workers", what });
        }
    }
    let all = invariants::all(&db.read().await?, oldest_heartbeat);
    for invariant in all {
        fixed.extend(fix_rows(db, &invariant, oldest_heartbeat, now).await?);
    }
    fixed.extend(fix_codes(db).await?);
    Ok(Fixed { findings: fixed, held_back })
}

async fn fix_blobs(
    storage: &Ownership,
    written_before: Time,
    force: bool,
) -> Result<(Vec<Finding>, Option<String>), Error> {
    let Ownership { db, blobs } = storage;
    // Interrupted deletions and uploads left a record of what remains to do.
    unfinished_deletions::sweep_once(db, blobs).await?;
    abandoned_uploads::sweep_once(db, blobs).await?;
    resumable_uploads::remove_unknown(db, blobs).await?;
    let most = match orphan_blobs::permit(storage, written_before, force).await? {
        Permit::Remove { most } => most,
        Permit::HeldBack { why, .. } => return Ok((Vec::new(), Some(why))),
    };
    let mut removed = Violations::default();
    let mut orphans = Orphans::scan(db, blobs, written_before);
    while let Some(page) = orphans.next_page().await? {
        for orphan in page {
            // What was found beyond the permitted number stays a finding.
            if removed.count < most {
                blobs.remove(&orphan.blob.key).await?;
                removed.push(format!("blob {} belonged to no file", orphan.blob.key));
            }
        }
    }
    Ok((removed.into_findings("no blob without its row").collect(), None))
}

/// The vectors are right: their codes are made again.
async fn fix_codes(db: &Db) -> Result<Vec<Finding>, Error> {
    let (scopes, wrong) = super::wrong_codes(&mut db.snapshot().await?).await?;
    if scopes.is_empty() {
        return Ok(Vec::new());
    }
    for scope in scopes {
        db.write(CodeAgain { scope }).await?;
    }
    uncoded::code_all(db).await?;
    Ok(wrong.into_findings(CODES).collect())
}

async fn fix_rows(
    db: &Db,
    invariant: &Invariant,
    oldest_heartbeat: Time,
    now: Time,
) -> Result<Vec<Finding>, Error> {
    let Some(fix) = invariant.fix else { return Ok(Vec::new()) };
    let (mut fixed, mut left) = (Violations::default(), 0);
    loop {
        // Those that are fixed are found no more, and those that are left are found again.
        let found = invariant.violations(&mut db.read().await?, FIXED_AT_ONCE, left).await?;
        let is_last = found.len() < FIXED_AT_ONCE;
        for violation in found {
            let what = violation.what(invariant);
            let Violation { id, name, .. } = violation;
            let fix_violation = FixViolation { fix, id, name, oldest_heartbeat, now };
            match db.write(fix_violation).await {
                Ok(true) => fixed.push(what),
                Ok(false) => left += 1,
                // It stays a finding; the other fixes continue.
                Err(error) => {
                    left += 1;
                    tracing::warn!(%error, what, "could not be fixed");
                }
            }
        }
        if is_last {
            return Ok(fixed.into_findings(invariant.name).collect());
        }
    }
}

/// Fixes one violation, if it still exists. Returns whether it did.
struct FixViolation {
    fix: Fix,
    id: Option<Uuid>,
    name: Option<String>,
    oldest_heartbeat: Time,
    now: Time,
}

impl Write for FixViolation {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        match (self.fix, self.id, self.name.as_deref()) {
            (Fix::Claim, Some(file), _) => self.release(tx, file).await,
            (Fix::History, Some(file), _) => self.append_history(tx, file).await,
            (Fix::Index, Some(file), _) => remove_from_index(tx, file).await,
            (Fix::List, Some(file), _) => list_again(tx, file).await,
            (Fix::Batch, Some(batch), _) => batch::recount(tx, batch, self.now).await,
            (Fix::Account, _, Some(tenant)) => quota::add_up(tx, tenant).await,
            (Fix::Totals, _, Some(user)) => totals::recount_named(tx, user).await,
            (Fix::Words, _, Some(chunk)) => fix_words(tx, chunk).await,
            _ => Ok(false),
        }
    }
}

impl FixViolation {
    /// Releases a file whose worker is not registered any more. The attempt does not count.
    async fn release(&self, tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
        let Some(mut file) = File::lock(tx, id).await? else { return Ok(false) };
        let (Some(holder), Some(stage)) = (file.claimed_by, file.status.stage()) else { return Ok(false) };
        if workers::is_living(tx, holder, self.oldest_heartbeat).await? {
            return Ok(false);
        }
        let failure =
            Failure::new(Code::WorkerLost, "The worker that held this file is not registered any more");
        let Some(release) = Ending::release(&file, self.now) else { return Ok(false) };
        let change = Change::End(release.with_failure(failure, self.now));
        let actor = Actor::system("audit");
        moves::apply_to(tx, &mut file, Transition::Requeue(stage), change, actor, None, self.now).await?;
        Ok(true)
    }

    async fn append_history(&self, tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
        let Some(file) = File::lock(tx, id).await? else { return Ok(false) };
        let last = events::last_state(tx, id).await?;
        if last == Some(file.status) {
            return Ok(false);
        }
        let event = Event {
            from: last,
            to: Some(file.status),
            actor: Some(Actor::system("audit")),
            data: Some(
                json!({ "reason": "The audit found the file in this state without a step that led to it" }),
            ),
            ..file.event(self.now)
        };
        // The owner's totals have the file's state already, or are recounted.
        events::write_down(tx, vec![event]).await?;
        Ok(true)
    }
}

/// A ready file stays, even if its index entries are wrong: without them it would not be found at all.
async fn remove_from_index(tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
    let file = File::lock(tx, id).await?;
    if file.is_some_and(|file| file.status == Status::Ready) {
        return Ok(false);
    }
    index::remove(tx, id).await?;
    Ok(true)
}

async fn list_again(tx: &mut Tx, id: Uuid) -> Result<bool, Error> {
    // Held, so that it is not deleted meanwhile.
    File::lock(tx, id).await?;
    listed::renew(tx, id).await
}

async fn fix_words(tx: &mut Tx, chunk: &str) -> Result<bool, Error> {
    let Ok(chunk) = chunk.parse::<i64>() else { return Ok(false) };
    index::fix_terms(tx, chunk).await
}
