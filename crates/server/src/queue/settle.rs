//! The only fenced write: every ending of a stage is written here, and only with the claim that it began with.
//!
//! Many endings are written in one transaction with all that belongs to them: the rows, the output of the stage, the
//! batches' counts, the hourly counters, the history. A claim that no longer holds the file changes nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;

use super::breaker::{self, BreakerConfig, Circuit};
use crate::content::index;
use crate::content::{artifacts, chunks};
use crate::records::file::Owner;
use crate::records::moves::{self, Change, Ending, Move};
use crate::stages::Output;
use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure, Retry};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::service::{Report, Service};
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
    pub stage: Stage,
    pub attempt: i64,
    pub verdict: Verdict,
    /// Whether the services that the attempt needed were up or down.
    pub reports: Vec<(Service, Report)>,
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
            Self::Release => ("released", None),
        }
    }
}

impl Settlement {
    fn transition(&self) -> Transition {
        match &self.verdict {
            Verdict::Advance { carry, .. } if *carry || self.stage.next().is_none() => {
                Transition::Advance(self.stage)
            }
            Verdict::Advance { .. } => Transition::HandOver(self.stage),
            Verdict::RetryAt { .. } | Verdict::Release => Transition::Requeue(self.stage),
            Verdict::DeadLetter { .. } => Transition::DeadLetter(self.stage),
        }
    }

    /// The same ending if a service was down: the file waits for the service without losing an attempt, if that was
    /// the only reason for its failure.
    fn excused(&self, down: &BTreeMap<Service, Circuit>, now: Time) -> Option<Self> {
        let failure = self.failure().filter(|failure| failure.retry != Retry::Never)?;
        let circuit =
            down.get(&failure.code.service()?).filter(|circuit| circuit.state != CircuitState::Closed)?;
        // The service has processed another file since it last failed this one, so this file may be the cause.
        // Without this check, a document that a service cannot process would keep the circuit open permanently.
        if self.owner.last_failed_at.zip(circuit.last_up_at).is_some_and(|(failed, up)| up > failed) {
            return None;
        }
        let at = match &self.verdict {
            Verdict::RetryAt { at, .. } => *at,
            _ => now,
        };
        let failure = Failure { retry: Retry::Wait, ..failure.clone() };
        let at = at.max(circuit.until.unwrap_or(now));
        Some(Self { verdict: Verdict::RetryAt { failure, at }, ..self.clone() })
    }

    fn failure(&self) -> Option<&Failure> {
        match &self.verdict {
            Verdict::RetryAt { failure, .. } | Verdict::DeadLetter { failure } => Some(failure),
            Verdict::Advance { .. } | Verdict::Release => None,
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
            Verdict::RetryAt { failure, .. } if failure.retry == Retry::Wait => self.attempt - 1,
            Verdict::RetryAt { .. } | Verdict::DeadLetter { .. } => self.attempt,
            Verdict::Release => self.attempt - 1,
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
        let arrived = self.settlements.iter().any(|settlement| settlement.transition().to().is_terminal());
        if arrived { Durability::Synced } else { Durability::Unsynced }
    }

    async fn apply(&self, tx: &mut Tx) -> Result<Self::Output, Error> {
        let reports = self.settlements.iter().flat_map(|settlement| settlement.reports.iter().copied());
        let down = breaker::count(tx, reports, self.now, self.breaker).await?;
        let settlements: Vec<Cow<'_, Settlement>> = self
            .settlements
            .iter()
            .map(|settlement| match settlement.excused(&down, self.now) {
                Some(excused) => Cow::Owned(excused),
                None => Cow::Borrowed(settlement),
            })
            .collect();
        let moves = settlements.iter().map(|settlement| self.as_move(settlement)).collect();
        let moved = moves::apply(tx, moves, self.now).await?;
        for (settlement, moved) in settlements.iter().zip(&moved) {
            if let (Some(_), Verdict::Advance { output, .. }) = (moved, &settlement.verdict) {
                keep(tx, settlement.file, &settlement.owner.user, output, self.now).await?;
            }
        }
        Ok(moved.into_iter().map(|moved| moved.map(|moved| moved.status)).collect())
    }
}

impl SettleGroup {
    fn as_move(&self, settlement: &Settlement) -> Move {
        let transition = settlement.transition();
        let run_after = match &settlement.verdict {
            Verdict::RetryAt { at, .. } => Some(*at),
            _ => (transition.to() == Status::Queued).then_some(self.now),
        };
        let chunk_count = match &settlement.verdict {
            Verdict::Advance { output, .. } => output.chunk_count(),
            _ => None,
        };
        let ending = Ending {
            claim: settlement.claim,
            owner: settlement.owner.clone(),
            next_stage: settlement.next_stage(),
            attempt: settlement.attempt,
            attempts_after: settlement.attempts_after(),
            run_after,
            advanced: matches!(settlement.verdict, Verdict::Advance { .. }),
            chunk_count,
            failure: settlement.failure().cloned(),
            lost_workers: 0,
            recoveries: 0,
        };
        Move {
            file: settlement.file,
            from: settlement.stage.running(),
            transition,
            change: Change::End(ending),
            worker: Some(self.worker_name.clone()),
            actor: Actor::worker(&self.worker_name),
            data: match settlement.verdict {
                Verdict::Release => Some(json!({ "reason": RELEASED })),
                _ => chunk_count.map(|count| json!({ "chunkCount": count })),
            },
        }
    }
}

/// Stores the output of a stage, and replaces the output of an earlier attempt.
async fn keep(tx: &mut Tx, file: Uuid, user: &str, output: &Output, now: Time) -> Result<(), Error> {
    match output {
        Output::Nothing => Ok(()),
        Output::Extracted(extracted) => artifacts::keep_text(tx, file, extracted, now).await,
        Output::Converted(converted, extracted) => {
            artifacts::keep_result(tx, file, converted, now).await?;
            artifacts::keep_text(tx, file, extracted, now).await
        }
        Output::Chunked(chunks) => chunks::keep(tx, file, chunks).await,
        Output::Embedded(embedded) => index::replace(tx, file, user, embedded).await,
    }
}
