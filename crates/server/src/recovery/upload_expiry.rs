//! An upload is expired if and only if its file is `registered` or `uploaded` and its deadline is over: its owner has
//! not confirmed it, and there was no sign of life (a byte, a fresh URL) for as long as `UPLOAD_CONFIRM_WINDOW_MS`. A sign of
//! life of one file keeps the other registrations of its batch alive ([`deadline`]).
//!
//! If its bytes are whole, its owner wanted it and only the confirmation got lost: it is adopted, as if it had been
//! confirmed, unless the operator wants such uploads deleted. If they are not, it is deleted: the row and its quota in
//! one transaction, then the blob.
//!
//! A confirmation, a byte or a fresh URL may come at the same moment. The row decides by compare-and-set: the deadline and
//! the blob must still be what was looked at.

use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use super::config::Unconfirmed;
use super::{Jobs, Sweep, SweepReport};
use crate::blobs::Blobs;
use crate::intake::adopt;
use crate::intake::delete::{self, Cause};
use crate::intake::direct;
use crate::intake::resumable::Resumables;
use crate::records::batch::deadline;
use crate::records::cleanup_failures::{Leftovers, Uncleaned};
use crate::records::file::{File, StoredBytes};
use crate::records::files::uploads;
use crate::records::notifications;
use crate::telemetry::metrics;
use landfall_core::actor::Actor;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_core::lifecycle::Status;
use landfall_store::Error;
use landfall_store::{Db, Tx, Write};

/// The name of the job.
pub const NAME: &str = "upload-expiry";
/// How often to look where no deadline is nearer.
const INTERVAL: Duration = Duration::from_mins(1);
/// How long to wait before what could not be dealt with is tried again.
const TRY_AGAIN: Duration = Duration::from_mins(1);
const PAGE: usize = 200;

#[derive(Clone)]
pub struct UploadExpiry {
    pub db: Db,
    pub blobs: Blobs,
    pub clock: Clock,
    /// How long after the last sign of life a deadline is.
    pub window: Duration,
    pub unconfirmed: Unconfirmed,
    pub resumables: Resumables,
}

/// What became of an expired upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    Adopted,
    /// The key of the blob that is still to be removed.
    Deleted(Option<String>),
    /// It is not expired any more: confirmed, deleted, or alive.
    Spared,
}

impl Sweep for UploadExpiry {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        Self::sweep_once(self, now).boxed()
    }
}

impl UploadExpiry {
    /// Deals with every upload at the moment at which it expires, by a run of the job. The schedule of the job is the net
    /// under this, and how it is noticed that no process does it.
    pub async fn run(self, jobs: Jobs) {
        loop {
            let now = self.clock.now();
            let next_look = self.run_if_due(&jobs, now).await;
            // No upload that is registered from now on expires before the window is over.
            let latest = now + to_delta(INTERVAL.min(self.window));
            let at = match next_look {
                Ok(None) => latest,
                Ok(Some(deadline)) if deadline > now => deadline.min(latest),
                Ok(Some(_)) => now + to_delta(TRY_AGAIN),
                Err(error) => {
                    tracing::warn!(%error, "could not look for expired uploads");
                    now + to_delta(TRY_AGAIN)
                }
            };
            self.clock.sleep_until(at).await;
        }
    }

    /// Returns the next deadline.
    async fn run_if_due(&self, jobs: &Jobs, now: Time) -> Result<Option<Time>, Error> {
        let next = self.next_deadline().await?;
        if next.is_none_or(|deadline| deadline > now) {
            return Ok(next);
        }
        jobs.run_now(NAME).await?;
        self.next_deadline().await
    }

    /// Deals with all that have expired. One that cannot be dealt with does not keep the others.
    pub async fn sweep_once(&self, now: Time) -> Result<SweepReport, Error> {
        let (mut adopted, mut deleted, mut failures) = (0, 0, Vec::new());
        let mut last: Option<(Time, Uuid)> = None;
        loop {
            let page = self.expired(last, now).await?;
            let Some(file) = page.last() else { break };
            last = file.upload_until.map(|until| (until, file.id));
            for file in &page {
                match self.expire(file, false, now).await {
                    Ok(Fate::Adopted) => adopted += 1,
                    Ok(Fate::Deleted(_)) => deleted += 1,
                    Ok(Fate::Spared) => {}
                    Err(error) => {
                        metrics::cleanup_failed(&error);
                        tracing::warn!(fileId = %file.id, %error, "an expired upload could not be dealt with");
                        let (subject, error) = (format!("upload {}", file.id), error.to_string());
                        failures.push(Uncleaned { subject, file: Some(file.id), error });
                    }
                }
            }
        }
        let errors =
            failures.iter().map(|failure| format!("{}: {}", failure.subject, failure.error)).collect();
        Leftovers { scope: NAME, failures, is_complete: true, now }.keep(&self.db).await?;
        let metrics = [("adopted", json!(adopted)), ("deleted", json!(deleted))];
        let metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(SweepReport { metrics, errors })
    }

    /// Adopts or deletes one file. `is_recovery`: it should have been done long ago, and counts as a recovery.
    pub async fn expire(&self, file: &File, is_recovery: bool, now: Time) -> Result<Fate, Error> {
        // The last byte of a resumable upload is its confirmation.
        if Box::pin(self.resumables.complete(file.id)).await? {
            tracing::info!(fileId = %file.id, "confirmed a resumable upload that is whole");
            return Ok(Fate::Adopted);
        }
        let whole = if self.unconfirmed == Unconfirmed::Adopt { self.whole(file).await? } else { Whole::No };
        let change = Expire {
            file: file.id,
            until: file.upload_until,
            blob: file.blob_key.clone(),
            whole,
            is_recovery,
            now,
        };
        let fate = self.db.write(change).await?;
        match &fate {
            Fate::Adopted => {
                tracing::info!(fileId = %file.id, "adopted an upload that is whole and was never confirmed");
            }
            Fate::Deleted(blob) => {
                metrics::abandoned_upload_deleted();
                tracing::info!(fileId = %file.id, bytes = file.size_bytes, "deleted an upload that was never confirmed");
                if let Some(key) = blob {
                    delete::remove_blob(&self.db, &self.blobs, file.id, key).await?;
                }
            }
            Fate::Spared => {}
        }
        Ok(fate)
    }

    async fn expired(&self, after: Option<(Time, Uuid)>, now: Time) -> Result<Vec<File>, Error> {
        let (until, id) = after.unwrap_or((Time::UNIX_EPOCH, Uuid::nil()));
        uploads::expired(&mut self.db.read().await?, (until, id), PAGE, now).await
    }

    async fn next_deadline(&self) -> Result<Option<Time>, Error> {
        uploads::next_deadline(&mut self.db.read().await?).await
    }

    /// Whether all bytes are there, as they were declared.
    async fn whole(&self, file: &File) -> Result<Whole, Error> {
        if file.is_direct && file.blob_key.is_none() {
            return match direct::arrived(&self.blobs, file).await {
                Ok(Some(bytes)) => Ok(Whole::Arrived(bytes)),
                // Those that are not what was declared are removed with the file.
                Ok(None) | Err(Error::Refused(_)) => Ok(Whole::No),
                Err(error) => Err(error),
            };
        }
        let (Status::Uploaded, Some(key)) = (file.status, &file.blob_key) else { return Ok(Whole::No) };
        let as_declared = file.declared_md5.is_none() || file.declared_md5 == file.md5;
        let is_whole = as_declared && self.blobs.size(key).await? == u64::try_from(file.size_bytes).ok();
        Ok(if is_whole { Whole::Known } else { Whole::No })
    }
}

/// Whether the bytes of an upload are whole.
enum Whole {
    No,
    /// They are, and the row knows them.
    Known,
    /// They are in the object store, where the client sent them, and the row does not know them yet.
    Arrived(StoredBytes),
}

struct Expire {
    file: Uuid,
    /// As it was when it was looked at.
    until: Option<Time>,
    blob: Option<String>,
    whole: Whole,
    is_recovery: bool,
    now: Time,
}

impl Write for Expire {
    type Output = Fate;

    async fn apply(&self, tx: &mut Tx) -> Result<Fate, Error> {
        let Some(mut file) = File::lock(tx, self.file).await? else { return Ok(Fate::Spared) };
        let expired = file.upload_until.is_some_and(|until| until <= self.now);
        let unchanged = file.upload_until == self.until && file.blob_key == self.blob;
        if !matches!(file.status, Status::Registered | Status::Uploaded) || !expired || !unchanged {
            return Ok(Fate::Spared);
        }
        let arrived = match &self.whole {
            Whole::No => None,
            Whole::Known => Some(None),
            Whole::Arrived(bytes) => Some(Some(bytes.clone())),
        };
        if let Some(arrived) = arrived {
            self.adopt(tx, &mut file, arrived).await?;
            return Ok(Fate::Adopted);
        }
        if deadline::spare(tx, &file, self.now).await? {
            return Ok(Fate::Spared);
        }
        let reason = match file.status {
            Status::Registered => "Its bytes did not arrive in time",
            _ => "It was not confirmed in time",
        };
        let cause = Cause { name: Some("orphaned"), reason: Some(reason) };
        let tombstones = delete::bury(tx, vec![file], &Actor::sweep(NAME), Some(cause), self.now).await?;
        notifications::tell_of_expired_uploads(tx, &tombstones, self.now).await?;
        Ok(Fate::Deleted(tombstones.into_iter().next().and_then(|tombstone| tombstone.blob_key)))
    }
}

impl Expire {
    async fn adopt(&self, tx: &mut Tx, file: &mut File, arrived: Option<StoredBytes>) -> Result<(), Error> {
        let why = (Actor::sweep(NAME), "It was not confirmed in time, but its bytes are whole: adopted");
        adopt::adopt(tx, file, arrived, i64::from(self.is_recovery), why, self.now).await
    }
}
