//! The only fenced write: every ending of a stage is written here, and only with the claim that it began with.
//!
//! Many endings are written in one transaction with all that belongs to them: the rows, the output of the stage, the
//! batches' counts, the hourly counters, the history. A claim that no longer holds the file changes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use uuid::Uuid;

use super::breaker::{self, BreakerConfig, Call, Circuit};
use super::patience;
use crate::content::index;
use crate::content::{artifacts, chunks, codes};
use crate::records::batch::archives;
use crate::records::file::{File, Owner};
use crate::records::moves::{self, Change, Death, Ending, Move, Passed};
use crate::records::waited::Waited;
use crate::stages::Output;
use landfall_core::actor::Actor;
use landfall_core::caller::TenantUser;
use landfall_core::clock::{Time, to_delta};
use landfall_core::failure::{Code, Contact, Failure, Retry};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::service::Service;
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::{Durability, Tx, Write};

/// Why a file is in the queue again that its worker released.
pub const RELEASED: &str = "The worker gave it back unfinished; the attempt does not count";

/// How an attempt at a stage ended.
#[derive(Debug, Clone)]
pub struct Settlement {
    pub file: Uuid,
    /// What does not change while the file is held.
    pub owner: Arc<Owner>,
    pub claim: Uuid,
    /// The stages before it that the worker has finished and that are not written yet, in their order.
    pub finished_before: Vec<Finished>,
    pub stage: Stage,
    pub attempt: i64,
    /// When it ended.
    pub at: Time,
    pub verdict: Verdict,
    /// What the attempts say about the services that they needed, in their order.
    pub calls: Vec<Call>,
}

/// A stage that is done, whose ending is written together with that of a later one.
#[derive(Debug, Clone)]
pub struct Finished {
    pub stage: Stage,
    pub attempt: i64,
    pub at: Time,
    pub output: Arc<Output>,
}

#[derive(Debug, Clone)]
pub enum Verdict {
    /// The stage is done. `carry`: the same worker continues with the next stage at once, under the same claim.
    Advance {
        output: Arc<Output>,
        carry: bool,
    },
    /// The attempt counts, unless the file only has to wait.
    RetryAt {
        failure: Failure,
        at: Time,
    },
    DeadLetter {
        failure: Failure,
    },
    /// The stage goes on later, and the attempt does not count.
    Wait {
        at: Time,
        reason: String,
    },
    /// Released unfinished, and not because of the file: the attempt does not count.
    Release,
}

impl Verdict {
    /// The label in the log and the traces.
    pub fn label(&self) -> (&'static str, Option<Code>) {
        match self {
            Self::Advance { .. } => ("done", None),
            Self::RetryAt { failure, .. } => ("retry", Some(failure.code)),
            Self::DeadLetter { failure } => ("failed", Some(failure.code)),
            Self::Wait { .. } => ("waits", None),
            Self::Release => ("released", None),
        }
    }
}

impl Settlement {
    /// Whether the worker may begin the next stage before this is written. Of a file that a worker died with, or that
    /// failed before, each ending is written first: the row must say what is known of it.
    pub fn may_be_written_later(&self) -> bool {
        let Verdict::Advance { output, carry: true } = &self.verdict else { return false };
        self.owner.is_unmarked && output.warnings().is_none_or(<[_]>::is_empty)
    }

    /// This ending, which may be written later, and that of the next stage as one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let Self { mut finished_before, mut calls, stage, attempt, at, verdict, .. } = self;
        if let Verdict::Advance { output, .. } = verdict {
            finished_before.push(Finished { stage, attempt, at, output });
        }
        finished_before.extend(next.finished_before);
        calls.extend(next.calls);
        Self { finished_before, calls, ..next }
    }

    /// The endings one by one, in their order.
    pub fn apart(mut self) -> Vec<Self> {
        let mut all = Vec::with_capacity(self.finished_before.len() + 1);
        for Finished { stage, attempt, at, output } in std::mem::take(&mut self.finished_before) {
            all.push(Self {
                file: self.file,
                owner: self.owner.clone(),
                claim: self.claim,
                finished_before: Vec::new(),
                stage,
                attempt,
                at,
                verdict: Verdict::Advance { output, carry: true },
                // The last one has them all: each is counted once.
                calls: Vec::new(),
            });
        }
        all.push(self);
        all
    }

    /// The stages that are done with it, and what each produced.
    fn outputs(&self) -> impl Iterator<Item = &Arc<Output>> {
        let last = match &self.verdict {
            Verdict::Advance { output, .. } => Some(output),
            _ => None,
        };
        self.finished_before.iter().map(|finished| &finished.output).chain(last)
    }

    fn transition(&self) -> Transition {
        match &self.verdict {
            Verdict::Advance { carry, .. } if *carry || self.stage.next().is_none() => {
                Transition::Advance(self.stage)
            }
            Verdict::Advance { .. } => Transition::HandOver(self.stage),
            Verdict::RetryAt { .. } | Verdict::Wait { .. } | Verdict::Release => {
                Transition::Requeue(self.stage)
            }
            Verdict::DeadLetter { .. } => Transition::DeadLetter(self.stage),
        }
    }

    /// The same ending if a service was down: the file waits for the service without losing an attempt, if that was
    /// the only reason for its failure.
    fn excused(&self, down: &BTreeMap<Service, Circuit>, breaker: BreakerConfig, now: Time) -> Option<Self> {
        let failure = self.failure().filter(|failure| failure.retry != Retry::Never)?;
        let service = failure.code.service()?;
        let circuit = down.get(&service)?;
        // The last: an earlier stage may have needed the same service.
        let call = self.calls.iter().rfind(|call| call.service == service)?;
        // A call of an earlier round belongs to the outage that ended that round.
        let in_outage = circuit.state != CircuitState::Closed || call.round != circuit.round;
        // Files that are too few to open the circuit are spared as well.
        let says_down = call.contact == Contact::Unavailable || call.says_well == Some(false);
        if !(in_outage || says_down) || circuit.blames_file(call, now, breaker) {
            return None;
        }
        let at = match &self.verdict {
            Verdict::RetryAt { at, .. } => *at,
            // There was to be no further attempt, so it has no time. It waits as for an open circuit.
            _ => now + to_delta(breaker.timeout),
        };
        let failure = Failure { retry: Retry::Wait, ..failure.clone() };
        let at = at.max(circuit.until.unwrap_or(now));
        Some(Self { verdict: Verdict::RetryAt { failure, at }, ..self.clone() })
    }

    /// The same ending if the file has waited for a service for too long: it fails.
    fn out_of_patience(
        &self,
        down: &BTreeMap<Service, Circuit>,
        patience: Duration,
        now: Time,
    ) -> Option<Self> {
        let failure = self.failure().filter(|_| self.waits())?;
        let waited = self.waited(down, now)?.for_service_of(failure.code);
        if waited < to_delta(patience) {
            return None;
        }
        let failure = patience::exhausted(failure, waited, self.owner.waits + 1);
        Some(Self { verdict: Verdict::DeadLetter { failure }, ..self.clone() })
    }

    /// Since when the file waits, if this is its first wait at its stage.
    fn waits_since(&self, down: &BTreeMap<Service, Circuit>, now: Time) -> Option<Time> {
        let failure = self.failure().filter(|_| self.waits())?;
        Some(self.owner.waiting_since.unwrap_or_else(|| self.failing_since(failure.code, down, now)))
    }

    /// Since when the service of this code fails the file: it was due, and the service failed.
    fn failing_since(&self, code: Code, down: &BTreeMap<Service, Circuit>, now: Time) -> Time {
        let service = code.service().and_then(|service| down.get(&service));
        let failing_since = service.and_then(|circuit| circuit.failing_since).unwrap_or(now);
        self.owner.due_at.map_or(failing_since, |due| failing_since.max(due))
    }

    /// For how long the file has waited for each service, if it waits or has waited.
    fn waited(&self, down: &BTreeMap<Service, Circuit>, now: Time) -> Option<Waited> {
        let code = self.failure()?.code;
        let failing_since = self.failing_since(code, down, now);
        let first = || self.waits().then(|| Waited::first(code, failing_since, now));
        self.owner.waited_until(code, failing_since, now).or_else(first)
    }

    /// Whether the file waits for a service, and the attempt does not count.
    fn waits(&self) -> bool {
        matches!(&self.verdict, Verdict::RetryAt { failure, .. } if failure.retry == Retry::Wait)
    }

    fn failure(&self) -> Option<&Failure> {
        match &self.verdict {
            Verdict::RetryAt { failure, .. } | Verdict::DeadLetter { failure } => Some(failure),
            Verdict::Advance { .. } | Verdict::Wait { .. } | Verdict::Release => None,
        }
    }

    /// The stage that the file is at afterwards.
    fn next_stage(&self) -> Stage {
        let advanced = matches!(self.verdict, Verdict::Advance { .. });
        self.stage.next().filter(|_| advanced).unwrap_or(self.stage)
    }

    /// The attempts made at the stage that the file is at afterwards.
    fn attempts_after(&self) -> i64 {
        match &self.verdict {
            Verdict::Advance { carry: true, .. } => 1,
            Verdict::Advance { carry: false, .. } => 0,
            Verdict::RetryAt { .. } if self.waits() => self.attempt - 1,
            Verdict::RetryAt { .. } | Verdict::DeadLetter { .. } => self.attempt,
            Verdict::Wait { .. } | Verdict::Release => self.attempt - 1,
        }
    }
}

/// Ends the wait of an archive at once if its files have all ended while the wait was written.
pub struct EndWait {
    pub file: Uuid,
    pub now: Time,
}

impl Write for EndWait {
    type Output = ();

    fn durability(&self) -> Durability {
        // Without it the wait ends by itself.
        Durability::Unsynced
    }

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        match File::find(tx, self.file).await?.and_then(|file| file.archive_batch) {
            Some(batch) => archives::end_wait(tx, batch, self.now).await,
            None => Ok(()),
        }
    }
}

/// Settles a group of attempts. Returns the new status of each file, in their order; `None` if the attempt no longer
/// held the file.
pub struct SettleGroup {
    pub settlements: Vec<Settlement>,
    pub worker_name: String,
    pub breaker: BreakerConfig,
    pub now: Time,
}

impl Write for SettleGroup {
    type Output = Vec<Option<Status>>;

    fn durability(&self) -> Durability {
        // A file that has reached a terminal status must keep it. An earlier stage can be repeated.
        // A failure of a service, or of the database, may end a wait that was too long.
        let may_fail = |settlement: &Settlement| {
            settlement.waits() || settlement.failure().is_some_and(|failure| failure.code.service().is_some())
        };
        let arrived = self
            .settlements
            .iter()
            .any(|settlement| settlement.transition().to().is_terminal() || may_fail(settlement));
        if arrived { Durability::Synced } else { Durability::Unsynced }
    }

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        // The first hook: while codes are written, the transaction does not hold the totals of an owner yet, which all
        // transactions of that owner need.
        tx.hook::<codes::Changes>();
        let calls = self.settlements.iter().flat_map(|settlement| settlement.calls.iter());
        let down = breaker::count(tx, calls, self.now, self.breaker).await?;
        let settlements: Vec<Cow<'_, Settlement>> =
            self.settlements.iter().map(|settlement| self.judged(settlement, &down)).collect();
        let moves = settlements.iter().map(|settlement| self.as_move(settlement, &down)).collect();
        let moved = moves::apply(tx, moves, self.now).await?;
        for (settlement, moved) in settlements.iter().zip(&moved) {
            if moved.is_some() {
                for output in settlement.outputs() {
                    keep(tx, settlement.file, &settlement.owner, output, self.now).await?;
                }
            }
        }
        Ok(moved.into_iter().map(|moved| moved.map(|moved| moved.status)).collect())
    }
}

impl SettleGroup {
    /// The ending as the state of the services makes it.
    fn judged<'a>(
        &self,
        settlement: &'a Settlement,
        down: &BTreeMap<Service, Circuit>,
    ) -> Cow<'a, Settlement> {
        let mut judged = Cow::Borrowed(settlement);
        if let Some(excused) = judged.excused(down, self.breaker, self.now) {
            judged = Cow::Owned(excused);
        }
        if let Some(exhausted) = judged.out_of_patience(down, self.breaker.patience, self.now) {
            judged = Cow::Owned(exhausted);
        }
        judged
    }

    fn as_move(&self, settlement: &Settlement, down: &BTreeMap<Service, Circuit>) -> Move {
        let transition = settlement.transition();
        let run_after = match &settlement.verdict {
            Verdict::RetryAt { at, .. } | Verdict::Wait { at, .. } => Some(*at),
            _ => (transition.to() == Status::Queued).then_some(self.now),
        };
        let (chunk_count, warnings) = match &settlement.verdict {
            Verdict::Advance { output, .. } => (output.chunk_count(), output.warnings()),
            _ => (None, None),
        };
        let passed = settlement.finished_before.iter().map(|finished| Passed {
            transition: Transition::Advance(finished.stage),
            attempt: finished.attempt,
            at: finished.at,
            data: chunked(finished.output.chunk_count()),
        });
        let first_stage = settlement.finished_before.first().map_or(settlement.stage, |first| first.stage);
        let ending = Ending {
            claim: settlement.claim,
            owner: settlement.owner.clone(),
            next_stage: settlement.next_stage(),
            attempt: settlement.attempt,
            attempts_after: settlement.attempts_after(),
            run_after,
            advanced: matches!(settlement.verdict, Verdict::Advance { .. }),
            chunk_count: settlement.outputs().filter_map(|output| output.chunk_count()).last(),
            warnings: warnings.map(<[_]>::to_vec),
            failure: settlement.failure().cloned(),
            waits_since: settlement.waits_since(down, self.now),
            waited: settlement.waited(down, self.now),
            death: Death::default(),
            recoveries: 0,
        };
        Move {
            file: settlement.file,
            from: first_stage.running(),
            passed: passed.collect(),
            transition,
            change: Change::End(ending),
            worker: Some(self.worker_name.clone()),
            actor: Actor::worker(&self.worker_name),
            data: match &settlement.verdict {
                Verdict::Release => Some(json!({ "reason": RELEASED })),
                Verdict::Wait { reason, .. } => Some(json!({ "reason": reason })),
                _ => chunked(chunk_count),
            },
        }
    }
}

/// What the history says of a stage that made chunks.
fn chunked(count: Option<i64>) -> Option<serde_json::Value> {
    count.map(|count| json!({ "chunkCount": count }))
}

/// Stores the output of a stage, and replaces the output of an earlier attempt.
async fn keep(tx: &mut Tx, file: Uuid, owner: &Owner, output: &Output, now: Time) -> Result<(), Error> {
    match output {
        Output::Nothing => Ok(()),
        // The intake makes files of an archive, and a wait is not the end of a stage.
        Output::Archive(_) | Output::Waits { .. } => {
            Err(Error::Internal(format!("file {file} cannot keep what is not the output of a stage")))
        }
        Output::Extracted(extracted) => artifacts::keep_text(tx, file, extracted, now).await,
        Output::Converted(converted, extracted) => {
            artifacts::keep_result(tx, file, converted, now).await?;
            artifacts::keep_text(tx, file, extracted, now).await
        }
        Output::Chunked(chunks) => chunks::keep(tx, file, chunks).await,
        Output::Embedded(embedded) => {
            let owner = TenantUser::new(owner.tenant.clone(), owner.user.clone());
            index::replace(tx, file, &owner, embedded).await
        }
    }
}
