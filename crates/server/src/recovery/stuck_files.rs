//! A file is stuck if and only if one of these is true:
//!
//! - `claim_broken`: it is `scanning`, `extracting`, `chunking` or `embedding`, the process that it is claimed by is not
//!   known, and nothing has moved it for as long as its patience lasts. No process works on it, and none will.
//! - `unconfirmed`: it is `uploaded`, its deadline is over, and nothing has moved it for as long as its patience lasts,
//!   though unconfirmed uploads are to be adopted. (`upload_expiry` should have done so.)
//! - `not_due`: it is `queued`, and its next attempt is further ahead than any wait can be. A clock was wrong.
//!
//! Patience is `STUCK_FILE_THRESHOLD_MS` for a file that was never recovered, and after that the window that
//! `STUCK_RETRY_WINDOWS_MS` has for the number of its recoveries. A time that lies far ahead is no sign of life.
//!
//! A file that waits its turn is not stuck, however long the queue: its row is its place in it, and there is nothing to
//! recover. Nor is one that a living process holds, however long its stage takes, or one that waits for a service or a
//! rate. A queue without workers is reported, and costs no file anything.
//!
//! A file with a broken claim goes back to the queue at its stage, with `retryCount` one higher; after
//! `MAX_STUCK_RETRIES` of that it fails with `STUCK_EXHAUSTED`. An unconfirmed one is adopted. One that is not due is made
//! due; that was not its fault and is not counted.
//!
//! The sweep also ends the waits for a service that has been down for too long ([`super::exhausted_waits`]), and corrects those that
//! began at a time which has not come yet ([`super::times_ahead`]).

pub mod by_hand;
pub mod detection;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::TimeDelta;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::json;
use uuid::Uuid;

use detection::{Detection, Stuck};

use super::upload_expiry::{Fate, UploadExpiry};
use super::{Sweep, SweepReport};
use super::{exhausted_waits, times_ahead};
use crate::queue::waiting::Obstacles;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::files::queue;
use crate::records::moves::{self, Change, Ending};
use crate::records::totals::Distribution;
use crate::telemetry::metrics;
use landfall_core::actor::Actor;
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::states::StuckReason;
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Db, Tx, Write};

/// The name of the job.
pub const NAME: &str = "stuck-file-recovery";

/// The sweep.
pub struct StuckFiles {
    pub db: Db,
    pub detection: Detection,
    pub expiry: UploadExpiry,
    /// How long a file may wait for a service that is down.
    pub outage_patience: Duration,
}

impl Sweep for StuckFiles {
    fn name(&self) -> &'static str {
        NAME
    }

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>> {
        self.sweep(now).boxed()
    }
}

/// What was done about a stuck file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Requeued,
    Failed,
    /// It was not stuck any more.
    Spared,
}

impl StuckFiles {
    async fn sweep(&self, now: Time) -> Result<SweepReport, Error> {
        let mut tally = Recovered::default();
        let mut after = Some(Uuid::nil());
        while let Some(last) = after {
            let (stuck, next) =
                self.detection.scan(&mut self.db.read().await?, &Reach::All, last, now).await?;
            after = next;
            for stuck in &stuck {
                let file = stuck.file.id;
                self.log_detection(stuck, now);
                match self.recover(stuck, &Actor::sweep(NAME), now).await {
                    Ok(outcome) => tally.add(stuck, outcome, now),
                    Err(error) => tally.errors.push(format!("file {file}: {error}")),
                }
            }
        }
        let from_ahead = times_ahead::correct(&self.db, now).await?;
        let exhausted = exhausted_waits::end(&self.db, self.outage_patience, now).await?;
        let count = |number: i64| u64::try_from(number).unwrap_or_default();
        metrics::stuck_files_recovered(count(tally.requeued), count(tally.failed));
        let without_workers = without_workers(&mut self.db.snapshot().await?, &Reach::All, now).await?;
        for (stage, files) in &without_workers {
            tracing::warn!(
                stage = stage.name(),
                files,
                "files wait, and no process is running that does this stage"
            );
        }
        let mut report = tally.report(&without_workers);
        report.metrics.insert("waitedTooLong".to_owned(), json!(exhausted));
        report.metrics.insert("waitsFromAhead".to_owned(), json!(from_ahead));
        Ok(report)
    }

    async fn recover(&self, stuck: &Stuck, actor: &Actor, now: Time) -> Result<Outcome, Error> {
        let file = &stuck.file;
        let remedy = match stuck.reason {
            StuckReason::Unconfirmed => {
                return Ok(match self.expiry.expire(file, true, now).await? {
                    Fate::Adopted => Outcome::Requeued,
                    // What its row says is here is not.
                    Fate::Deleted(_) => Outcome::Failed,
                    Fate::Spared => Outcome::Spared,
                });
            }
            StuckReason::NotDue => Remedy::MakeDue,
            StuckReason::ClaimBroken if self.detection.may_be_recovered(file) => Remedy::Requeue,
            StuckReason::ClaimBroken => Remedy::Fail,
        };
        let outcome =
            self.db.write(Recover { seen: file.clone(), remedy, actor: actor.clone(), now }).await?;
        if outcome == Outcome::Requeued {
            // One that failed has a line of its own, as every file that fails.
            let retries = file.retry_count + i64::from(remedy == Remedy::Requeue);
            tracing::info!(
                fileId = %file.id, fileName = file.file_name, action = "reEnqueued", newRetryCount = retries,
                "recovered a stuck file"
            );
        }
        Ok(outcome)
    }

    fn log_detection(&self, stuck: &Stuck, now: Time) {
        let file = &stuck.file;
        tracing::warn!(
            fileId = %file.id, fileName = file.file_name, batchId = file.batch_id.map(display),
            userId = file.user_id, tenantId = file.tenant_id, reason = stuck.reason.name(),
            status = file.status.name(), stuckDuration = stuck.duration(now).num_milliseconds(),
            threshold = self.detection.patience_ms(file), retryCount = file.retry_count,
            maxRetries = self.detection.max_retries(),
            "detected a stuck file"
        );
    }
}

/// What a run did.
#[derive(Default)]
struct Recovered {
    requeued: i64,
    failed: i64,
    stood_still: TimeDelta,
    by_status: BTreeMap<Status, i64>,
    errors: Vec<String>,
}

impl Recovered {
    fn add(&mut self, stuck: &Stuck, outcome: Outcome, now: Time) {
        match outcome {
            Outcome::Requeued => self.requeued += 1,
            Outcome::Failed => self.failed += 1,
            Outcome::Spared => return,
        }
        self.stood_still += stuck.duration(now);
        *self.by_status.entry(stuck.file.status).or_default() += 1;
    }

    fn report(self, without_workers: &BTreeMap<Stage, i64>) -> SweepReport {
        let total = self.requeued + self.failed;
        let metrics = [
            ("totalStuck", json!(total)),
            ("reEnqueued", json!(self.requeued)),
            ("permanentlyFailed", json!(self.failed)),
            ("averageStuckDuration", json!(self.stood_still.num_milliseconds() / total.max(1))),
            ("byStatus", json!(self.by_status)),
            ("withoutWorkers", json!(without_workers)),
        ];
        let metrics = metrics.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        SweepReport { metrics, errors: self.errors }
    }
}

/// How many files wait at each stage without workers, of these owners.
pub async fn without_workers(tx: &mut Tx, reach: &Reach, now: Time) -> Result<BTreeMap<Stage, i64>, Error> {
    let obstacles = Obstacles::load(tx, None, now).await?;
    if Stage::ALL.into_iter().all(|stage| obstacles.someone_works_at(stage)) {
        return Ok(BTreeMap::new());
    }
    let distribution = Distribution::load(tx, reach).await?;
    let waiting = Stage::ALL.into_iter().filter(|stage| !obstacles.someone_works_at(*stage));
    let waiting = waiting.map(|stage| (stage, distribution.waiting(stage)));
    Ok(waiting.filter(|(_, files)| *files > 0).collect())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remedy {
    Requeue,
    Fail,
    MakeDue,
}

/// Changes a file that is still as it was seen.
struct Recover {
    seen: File,
    remedy: Remedy,
    actor: Actor,
    now: Time,
}

impl Write for Recover {
    type Output = Outcome;

    async fn apply(&self, tx: &mut Tx) -> Result<Outcome, Error> {
        let Some(mut file) = File::lock(tx, self.seen.id).await? else { return Ok(Outcome::Spared) };
        let unchanged = file.status == self.seen.status
            && file.claim == self.seen.claim
            && file.run_after == self.seen.run_after
            && file.updated_at == self.seen.updated_at;
        if !unchanged {
            return Ok(Outcome::Spared);
        }
        match self.remedy {
            Remedy::Requeue => {
                let failure = Failure::new(Code::WorkerLost, StuckReason::ClaimBroken.sentence());
                let reason = "No process works on it any more";
                requeue(tx, &mut file, Some(failure), &self.actor, reason, self.now).await?;
                // The history ends with where the file is, so this may follow it.
                events::record(tx, vec![file.stalled(file.retry_count, None, self.now)]).await?;
            }
            Remedy::MakeDue => {
                make_due(tx, &file, 0, &self.actor, StuckReason::NotDue.sentence(), self.now).await?;
            }
            Remedy::Fail => {
                self.fail(tx, &mut file).await?;
                return Ok(Outcome::Failed);
            }
        }
        Ok(Outcome::Requeued)
    }
}

impl Recover {
    async fn fail(&self, tx: &mut Tx, file: &mut File) -> Result<(), Error> {
        let stage = file.next_stage;
        let message = format!(
            "This file was given back to the queue {} times and did not come to an end at the {stage} stage",
            file.retry_count
        );
        let failure = Failure::new(Code::StuckExhausted, message);
        let ending = Ending::dead_letter(file, failure).ok_or_else(|| not_claimed(file))?;
        let (actor, change) = (self.actor.clone(), Change::End(ending));
        moves::apply_to(tx, file, Transition::DeadLetter(stage), change, actor, None, self.now).await
    }
}

fn not_claimed(file: &File) -> Error {
    Error::Internal(format!("file {} is {} and has no claim", file.id, file.status))
}

/// Takes a file from the worker that holds it, and releases it to the queue at its stage. The attempt does not
/// count, but the recovery does.
async fn requeue(
    tx: &mut Tx,
    file: &mut File,
    failure: Option<Failure>,
    actor: &Actor,
    reason: &str,
    now: Time,
) -> Result<(), Error> {
    let release = Ending::release(file, now).ok_or_else(|| not_claimed(file))?;
    let release = match failure {
        Some(failure) => release.with_failure(failure, now),
        None => release,
    };
    let change = Change::End(Ending { recoveries: 1, ..release });
    let transition = Transition::Requeue(file.next_stage);
    moves::apply_to(tx, file, transition, change, actor.clone(), Some(reason), now).await
}

/// Lets a file in the queue have its turn now. It stays where it is, so its history says only who wanted that and why.
async fn make_due(
    tx: &mut Tx,
    file: &File,
    retries: i64,
    actor: &Actor,
    reason: &str,
    now: Time,
) -> Result<(), Error> {
    queue::make_one_due(tx, file.id, retries, now).await?;
    tx.signal(Signal::Work);
    let step = Event {
        from: Some(Status::Queued),
        to: Some(Status::Queued),
        actor: Some(actor.clone()),
        data: Some(json!({ "reason": reason })),
        ..file.event(now)
    };
    events::record(tx, vec![step]).await
}
