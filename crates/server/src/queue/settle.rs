//! The one fenced door: every ending of a stage goes through here, and only with the claim that it began with.
//!
//! Many endings are written in one transaction with all that belongs to them: the rows, what the stage produced, the
//! batches' counts, the hourly counters, the history. A claim that is not the file's any more changes nothing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use uuid::Uuid;

use super::breaker::{self, BreakerConfig, Circuit};
use super::dead_letter::fingerprint;
use crate::content::artifacts;
use crate::content::index;
use crate::records::batch::Tally;
use crate::records::events::{self, Event};
use crate::records::file::File;
use crate::records::hourly::Counters;
use crate::records::notifications;
use crate::stages::Output;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Failure, Retry};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::service::{Report, Service};
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::{Durability, Rows, Tx, Write, args};

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
    /// What the attempt met at the services that it needed.
    pub reports: Vec<(Service, Report)>,
}

/// Whose a file is, as its claim found it.
#[derive(Debug)]
pub struct Owner {
    pub tenant: String,
    pub user: String,
    pub batch: Option<Uuid>,
    pub confirmed_at: Option<Time>,
    pub last_failed_at: Option<Time>,
}

impl Owner {
    pub fn of(file: &File) -> Arc<Self> {
        Arc::new(Self {
            tenant: file.tenant_id.clone(),
            user: file.user_id.clone(),
            batch: file.batch_id,
            confirmed_at: file.confirmed_at,
            last_failed_at: file.error_at,
        })
    }
}

#[derive(Debug, Clone)]
pub enum Verdict {
    /// The stage is done. `carry`: the same worker goes on with the next one at once, under the same claim.
    Advance {
        output: Arc<Output>,
        carry: bool,
    },
    /// Unless it only has to wait, the attempt counts.
    RetryAt {
        failure: Failure,
        at: Time,
    },
    DeadLetter {
        failure: Failure,
    },
    /// Given back unfinished through no fault of the file's: the attempt does not count.
    Release,
}

impl Verdict {
    /// What the log and the traces call it.
    pub fn words(&self) -> (&'static str, Option<Code>) {
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

    /// The same ending where a service was down: the file waits for it, at no cost, if it failed by that alone.
    fn excused(&self, down: &BTreeMap<Service, Circuit>, now: Time) -> Option<Self> {
        let failure = self.failure().filter(|failure| failure.retry != Retry::Never)?;
        let circuit =
            down.get(&failure.code.service()?).filter(|circuit| circuit.state != CircuitState::Closed)?;
        // It has done well for somebody since it last failed this file, so it may be the file that it fails at. Without
        // this a document that a service cannot take would keep the circuit open for ever.
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

/// Settles a group of attempts. Answers, in their order, where each file is now; `None` if the attempt did not hold it
/// any more.
pub struct SettleGroup {
    pub settlements: Vec<Settlement>,
    pub worker_name: String,
    pub breaker: BreakerConfig,
    pub now: Time,
}

impl Write for SettleGroup {
    type Output = Vec<Option<Status>>;

    fn durability(&self) -> Durability {
        // A file that has arrived stays arrived. A stage before that can be done again.
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
        let moved = self.move_all(tx, &settlements).await?;
        let mut events = Vec::with_capacity(moved.len());
        let mut tallies: BTreeMap<Uuid, Tally> = BTreeMap::new();
        let mut counters = Counters::default();
        let mut failed = Vec::new();
        for settlement in &settlements {
            if !moved.contains(&(settlement.file, settlement.claim)) {
                continue;
            }
            let owner = &settlement.owner;
            let (from, to) = (settlement.stage.running(), settlement.transition().to());
            if let Verdict::Advance { output, .. } = &settlement.verdict {
                keep(tx, settlement.file, &owner.user, output, self.now).await?;
            }
            events.push(self.event(settlement));
            if to == Status::Failed {
                failed.push(settlement.file);
            }
            if let Some(batch) = owner.batch {
                *tallies.entry(batch).or_default() += Tally::of(from, to);
            }
            counters.count(&owner.user, to, settlement.failure(), owner.confirmed_at, self.now);
        }
        events::record(tx, events).await?;
        notifications::tell_of_failures(tx, &failed, self.now).await?;
        // In the order of their ids, so that two processes never wait for one another.
        for (batch, tally) in tallies {
            tally.apply(tx, batch, self.now).await?;
        }
        counters.write(tx, self.now).await?;
        let endings = settlements.iter().map(|settlement| {
            let is_moved = moved.contains(&(settlement.file, settlement.claim));
            is_moved.then(|| settlement.transition().to())
        });
        Ok(endings.collect())
    }
}

impl SettleGroup {
    /// Answers which files were moved, each with the claim that moved it.
    ///
    /// A statement answers files and not claims, so no file is in one twice: the late ending of somebody who had a file
    /// before may be in the same group as that of its holder, and only one of them moves it.
    async fn move_all(
        &self,
        tx: &mut Tx,
        settlements: &[Cow<'_, Settlement>],
    ) -> Result<HashSet<(Uuid, Uuid)>, Error> {
        let mut moved = HashSet::new();
        let mut left: Vec<&Settlement> = settlements.iter().map(Cow::as_ref).collect();
        while !left.is_empty() {
            let mut files = HashSet::new();
            let (now, later): (Vec<_>, Vec<_>) = left.into_iter().partition(|one| files.insert(one.file));
            let ids: HashSet<Uuid> = self.move_rows(tx, &now).await?.into_iter().map(|(id,)| id).collect();
            moved.extend(now.iter().filter(|one| ids.contains(&one.file)).map(|one| (one.file, one.claim)));
            left = later;
        }
        Ok(moved)
    }

    async fn move_rows(&self, tx: &mut Tx, settlements: &[&Settlement]) -> Result<Vec<(Uuid,)>, Error> {
        let mut rows = Rows::default();
        for settlement in settlements {
            let to = settlement.transition().to();
            let failure = settlement.failure();
            let run_after = match &settlement.verdict {
                Verdict::RetryAt { at, .. } => Some(*at),
                _ => (to == Status::Queued).then_some(self.now),
            };
            let chunks = match &settlement.verdict {
                Verdict::Advance { output, .. } => output.chunk_count(),
                _ => None,
            };
            let advanced = matches!(settlement.verdict, Verdict::Advance { .. });
            rows.push(args![
                settlement.file,
                settlement.claim,
                settlement.stage.running(),
                to,
                settlement.next_stage(),
                i64::from(to.is_running()),
                run_after,
                settlement.attempts_after(),
                i64::from(advanced),
                failure.map(|failure| failure.code),
                failure.map(|failure| failure.message.clone()),
                chunks,
                // The same for all; a statement's arguments are all in its rows.
                self.now,
                failure
                    .filter(|_| to == Status::Failed)
                    .map(|failure| fingerprint(settlement.stage, failure)),
            ]);
        }
        let (values, arguments) = rows.into_values(tx.is_postgres());
        let sql = format!(
            "UPDATE files SET
                 status = v.column4,
                 next_stage = v.column5,
                 claim = CASE WHEN v.column6 = 1 THEN claim END,
                 claimed_by = CASE WHEN v.column6 = 1 THEN claimed_by END,
                 claimed_at = CASE WHEN v.column6 = 1 THEN v.column13 END,
                 run_after = v.column7,
                 is_due = (v.column4 = 'queued' AND v.column7 <= v.column13),
                 attempt = v.column8,
                 -- A stage that was finished proves that the file does not kill its workers.
                 lost_workers = CASE WHEN v.column9 = 1 THEN 0 ELSE lost_workers END,
                 -- Progress clears the last error; being given back does not.
                 error_code = CASE WHEN v.column9 = 1 THEN NULL ELSE COALESCE(v.column10, error_code) END,
                 error_message = CASE WHEN v.column9 = 1 THEN NULL ELSE COALESCE(v.column11, error_message) END,
                 error_stage = CASE WHEN v.column9 = 1 THEN NULL WHEN v.column10 IS NULL THEN error_stage
                               ELSE v.column5 END,
                 error_at = CASE WHEN v.column9 = 1 THEN NULL WHEN v.column10 IS NULL THEN error_at
                            ELSE v.column13 END,
                 error_fingerprint = v.column14,
                 chunk_count = COALESCE(v.column12, chunk_count),
                 ready_at = CASE WHEN v.column4 = 'ready' THEN v.column13 ELSE ready_at END,
                 failed_at = CASE WHEN v.column4 = 'failed' THEN v.column13 ELSE failed_at END,
                 updated_at = v.column13
             FROM ({values}) AS v
             -- The fence.
             WHERE files.id = v.column1 AND files.claim = v.column2 AND files.status = v.column3
             RETURNING id"
        );
        tx.rows(sql, arguments).await
    }

    fn event(&self, settlement: &Settlement) -> Event {
        let chunks = match &settlement.verdict {
            Verdict::Advance { output, .. } => output.chunk_count(),
            _ => None,
        };
        Event {
            at: self.now,
            kind: EventKind::FileStatusChanged,
            tenant: settlement.owner.tenant.clone(),
            user: settlement.owner.user.clone(),
            file: Some(settlement.file),
            batch: settlement.owner.batch,
            from: Some(settlement.stage.running()),
            to: Some(settlement.transition().to()),
            stage: Some(settlement.stage),
            next_stage: Some(settlement.next_stage()),
            attempt: Some(settlement.attempt),
            worker: Some(self.worker_name.clone()),
            failure: settlement.failure().cloned(),
            data: chunks.map(|count| serde_json::json!({ "chunkCount": count })),
        }
    }
}

/// Keeps what a stage produced, in place of what an earlier attempt did.
async fn keep(tx: &mut Tx, file: Uuid, user: &str, output: &Output, now: Time) -> Result<(), Error> {
    match output {
        Output::Nothing => Ok(()),
        Output::Extracted(extracted) => artifacts::keep_text(tx, file, extracted, now).await,
        Output::Converted(converted, extracted) => {
            artifacts::keep_result(tx, file, converted, now).await?;
            artifacts::keep_text(tx, file, extracted, now).await
        }
        Output::Chunked(chunks) => artifacts::keep_chunks(tx, file, chunks).await,
        Output::Embedded(embedded) => index::replace(tx, file, user, embedded).await,
    }
}
