//! The one function that moves files: [`apply`].
//!
//! A move is a [`Transition`] of one file with what changes in its row. `Status::apply` decides whether the move exists.
//! Everything that belongs to it is written in the same transaction: the row, behind its fence; the counts of its batch;
//! its history; the hourly counters; the notification of its owner; and, through the hooks of the transaction, the owner's
//! totals, the metrics of this process and the signals to whatever waits for it.
//!
//! Moves of one kind share a statement, so a thousand of them cost a few.

mod kinds;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use landfall_core::actor::Actor;
use landfall_core::clock::Time;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::mutants::{self, Mutant};
use landfall_core::refusal::Refusal;
use landfall_core::warning::Warning;
use landfall_store::wake::Signal;
use landfall_store::{Error, Rows, Tx, args};
use serde_json::{Value, json};
use uuid::Uuid;

use super::batch::Tally;
use super::effects::Counts;
use super::events::{self, Event};
use super::file::{File, Owner, StoredBytes};
use super::files::listed;
use super::hourly::{Counters, Step};
use super::lines;
use super::notifications::{self, FailedFile};
use super::waited::Waited;
use kinds::{COMMON, Kind};
use landfall_core::event::EventKind;

/// A move of one file.
#[derive(Debug, Clone)]
pub struct Move {
    pub file: Uuid,
    pub from: Status,
    /// The moves before it that are not written yet, in their order. Their changes are part of `change`.
    pub passed: Vec<Passed>,
    pub transition: Transition,
    pub change: Change,
    /// The worker that does it, for the history.
    pub worker: Option<String>,
    /// Who or what does it.
    pub actor: Actor,
    /// What else the history says.
    pub data: Option<Value>,
}

/// A move that is written together with a later one of the same file: the row changes once, and the history has both.
#[derive(Debug, Clone)]
pub struct Passed {
    pub transition: Transition,
    pub attempt: i64,
    pub at: Time,
    pub data: Option<Value>,
}

impl Move {
    /// The error is a refusal, if `Status::apply` does not allow one of its transitions.
    fn check(&self) -> Result<(), Refusal> {
        let mut from = self.from;
        for passed in &self.passed {
            from = from.apply(passed.transition)?;
        }
        from.apply(self.transition)?;
        Ok(())
    }

    /// The state that its own transition begins at.
    fn last_from(&self) -> Status {
        self.passed.last().map_or(self.from, |passed| passed.transition.to())
    }

    /// What the history says of it, or of a move that it passed.
    fn event(&self, owner: &Owner, from: Status, to: Status, at: Time) -> Event {
        Event {
            at,
            kind: EventKind::FileStatusChanged,
            tenant: owner.tenant.clone(),
            user: owner.user.clone(),
            file: Some(self.file),
            batch: owner.batch,
            from: Some(from),
            to: Some(to),
            stage: from.stage().or(to.stage()),
            next_stage: to.stage(),
            attempt: None,
            worker: self.worker.clone(),
            actor: Some(self.actor.clone()),
            failure: None,
            data: None,
        }
    }
}

/// What changes in the row beside its state.
#[derive(Debug, Clone)]
pub enum Change {
    /// The whole upload is in the storage.
    Upload {
        bytes: StoredBytes,
        until: Time,
    },
    /// The file takes its place in the queue. `recoveries` is added to the number of times that it was recovered.
    Confirm {
        trace: Option<String>,
        recoveries: i64,
        /// What the object store has, if the client sent the bytes there and the row does not know them yet.
        arrived: Option<StoredBytes>,
    },
    /// A worker takes the file.
    Claim {
        token: Uuid,
        worker: Uuid,
    },
    /// The holder's attempt is over.
    End(Ending),
    /// The file begins again at a stage, with all its attempts before it.
    Revive {
        stage: Stage,
        by: String,
        operation: Option<Uuid>,
        trace: Option<String>,
        /// When it had failed, if it had.
        failed_at: Option<Time>,
    },
    /// A file in the queue fails at its stage.
    GiveUp {
        stage: Stage,
        failure: Failure,
    },
    Cancel {
        failure: Failure,
    },
    /// `gave_up`: the server decided it, because the upload was not finished in time.
    Delete {
        gave_up: bool,
        /// The key of an object that a client may have sent to the store, if the row knows none.
        unconfirmed: Option<String>,
    },
}

/// How an attempt ended, for a file that is claimed. The fence is its claim: if the file has another one by now, nothing
/// changes.
#[derive(Debug, Clone)]
pub struct Ending {
    pub claim: Uuid,
    pub owner: Arc<Owner>,
    /// The stage that the file is at afterwards.
    pub next_stage: Stage,
    /// The attempt that ended, and how many count afterwards.
    pub attempt: i64,
    pub attempts_after: i64,
    /// When the file may be claimed again, where it goes back to the queue.
    pub run_after: Option<Time>,
    /// The stage is done. That clears the last error and every suspicion.
    pub advanced: bool,
    pub chunk_count: Option<i64>,
    /// What is missing of the text, from the stage that extracts it. They replace those of the last time.
    pub warnings: Option<Vec<Warning>>,
    pub failure: Option<Failure>,
    /// Since when the file waits for a service that failed it at no cost.
    pub waits_since: Option<Time>,
    /// For how long it has waited for each service by now, if that has changed.
    pub waited: Option<Waited>,
    /// What the death of its worker says about the file.
    pub death: Death,
    /// What is added to the number of recoveries.
    pub recoveries: i64,
}

/// What is added to the numbers of deaths of a file, and whether it is claimed alone from now on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Death {
    /// A worker died that held the file.
    pub in_hand: i64,
    /// It worked on the file when it died.
    pub at_work: i64,
    /// It worked on nothing else.
    pub alone: i64,
    pub isolates: bool,
}

impl Ending {
    /// A claimed file goes back to the queue at its stage, and its attempt does not count.
    pub fn release(file: &File, now: Time) -> Option<Self> {
        Some(Self {
            claim: file.claim?,
            owner: file.owner(),
            next_stage: file.next_stage,
            attempt: file.attempt,
            attempts_after: (file.attempt - 1).max(0),
            run_after: Some(now),
            advanced: false,
            chunk_count: None,
            warnings: None,
            failure: None,
            waits_since: None,
            waited: None,
            death: Death::default(),
            recoveries: 0,
        })
    }

    /// The same, with the reason why the worker lost the file. A file that waits for a service has waited for it until now.
    #[must_use]
    pub fn with_failure(self, failure: Failure, now: Time) -> Self {
        let waited = self.owner.waited_until(failure.code, now, now);
        Self { failure: Some(failure), waited, ..self }
    }

    /// A claimed file fails.
    pub fn dead_letter(file: &File, failure: Failure) -> Option<Self> {
        Some(Self {
            claim: file.claim?,
            owner: file.owner(),
            next_stage: file.next_stage,
            attempt: file.attempt,
            attempts_after: file.attempt,
            run_after: None,
            advanced: false,
            chunk_count: None,
            warnings: None,
            failure: Some(failure),
            waits_since: None,
            waited: None,
            death: Death::default(),
            recoveries: 0,
        })
    }
}

/// A file that was moved.
#[derive(Debug)]
pub struct Moved {
    pub status: Status,
    /// The row as it is now. An ending does not read it back.
    pub file: Option<File>,
}

/// Moves files. Returns, in the order of `moves`, where each file is now; `None` where the fence refused an ending.
///
/// The error is a refusal that names both states, for a move that the state does not allow. A move without a fence expects
/// that the transaction holds its row.
pub async fn apply(tx: &mut Tx, moves: Vec<Move>, now: Time) -> Result<Vec<Option<Moved>>, Error> {
    let mut outcomes: Vec<Option<Moved>> = Vec::with_capacity(moves.len());
    let mut records = Vec::with_capacity(moves.len());
    let mut by_kind: BTreeMap<Kind, Vec<usize>> = BTreeMap::new();
    for (place, one) in moves.iter().enumerate() {
        one.check()?;
        by_kind.entry(one.change.kind(one.transition.to())).or_default().push(place);
        outcomes.push(None);
    }
    for (kind, mut left) in by_kind {
        // A statement names each file once. The late ending of an earlier holder may be in the same group as that of the
        // holder, and only one of them moves the file.
        while !left.is_empty() {
            let mut files = HashSet::new();
            let (these, later): (Vec<usize>, Vec<usize>) =
                left.into_iter().partition(|place| files.insert(moves[*place].file));
            for places in these.chunks(Rows::MAX) {
                let group: Vec<&Move> = places.iter().map(|place| &moves[*place]).collect();
                let mut updated = update(tx, kind, &group, now).await?;
                if kind == Kind::Delete {
                    listed::remove(tx, group.iter().map(|one| one.file)).await?;
                }
                for (place, one) in places.iter().zip(group) {
                    let Some(Updated { file, warnings }) = updated.remove(&one.file) else {
                        if kind.is_fenced() {
                            continue;
                        }
                        let message = format!("file {} left {} while it was held", one.file, one.from);
                        return Err(Error::Internal(message));
                    };
                    records.extend(Record::of_passed(one));
                    records.push(Record::of(one, file.as_ref(), warnings, now));
                    outcomes[*place] = Some(Moved { status: one.transition.to(), file });
                }
            }
            left = later;
        }
    }
    record(tx, records, now).await?;
    Ok(outcomes)
}

/// Moves one file that the transaction holds, and brings the caller's copy of its row up to date.
pub async fn apply_to(
    tx: &mut Tx,
    file: &mut File,
    transition: Transition,
    change: Change,
    actor: Actor,
    reason: Option<&str>,
    now: Time,
) -> Result<(), Error> {
    let data = reason.map(|reason| json!({ "reason": reason }));
    let (id, from, passed) = (file.id, file.status, Vec::new());
    let one = Move { file: id, from, passed, transition, change, worker: None, actor, data };
    let held = || Error::Internal(format!("file {} left {} while it was held", file.id, file.status));
    let moved = apply(tx, vec![one], now).await?.pop().flatten().ok_or_else(held)?;
    *file = match moved.file {
        Some(moved) => moved,
        None => File::find(tx, file.id).await?.ok_or_else(Refusal::no_such_file)?,
    };
    Ok(())
}

/// A row that was changed. Of an ending only its warnings are read back, for the event.
struct Updated {
    file: Option<File>,
    warnings: Option<Value>,
}

/// Changes the rows. Returns those that changed, by their ids.
async fn update(
    tx: &mut Tx,
    kind: Kind,
    group: &[&Move],
    now: Time,
) -> Result<HashMap<Uuid, Updated>, Error> {
    let (columns, set) = kind.statement();
    let mut rows = Rows::default();
    for one in group {
        let to = one.transition.to();
        let mut row = args![one.file, one.from, to, now];
        row.extend(one.change.values(kind, to));
        rows.push(row);
    }
    let columns: Vec<&str> = COMMON.iter().chain(columns).copied().collect();
    let (values, arguments) = rows.named("v", &columns, tx);
    let is_fenced = kind.is_fenced() && !mutants::on(Mutant::UnfencedSettle);
    let fence = if is_fenced { "AND files.claim = v.fence" } else { "" };
    let returned = if kind.is_fenced() { "files.id, files.warnings".to_owned() } else { tx.all_of("files") };
    let sql = format!(
        "WITH {values}
         UPDATE files SET status = v.to_status, updated_at = v.now{}{set} FROM v
         WHERE files.id = v.id AND files.status = v.from_status {fence} RETURNING {returned}",
        if set.is_empty() { "" } else { ", " }
    );
    Ok(if kind.is_fenced() {
        let rows: Vec<(Uuid, Option<Value>)> = tx.rows(sql, arguments).await?;
        rows.into_iter().map(|(id, warnings)| (id, Updated { file: None, warnings })).collect()
    } else {
        let files: Vec<File> = tx.rows(sql, arguments).await?;
        files.into_iter().map(|file| (file.id, Updated { file: Some(file), warnings: None })).collect()
    })
}

/// What is recorded of a move, whatever kind it was.
struct Record {
    owner: Arc<Owner>,
    event: Event,
    /// When a file had failed that is retried now.
    had_failed_at: Option<Time>,
    /// When a worker may take the file.
    run_after: Option<Time>,
    /// Whether that is now.
    is_due: bool,
    /// Whether it leaves a blob that no file needs.
    leaves_blob: bool,
    /// Whether the server deletes it because its upload was not finished in time.
    gave_up: bool,
}

impl Record {
    /// The moves that are written together with `one`, which they come before. Only an ending has some.
    fn of_passed(one: &Move) -> Vec<Self> {
        let Change::End(ending) = &one.change else { return Vec::new() };
        let mut from = one.from;
        let mut records = Vec::with_capacity(one.passed.len());
        for passed in &one.passed {
            let to = passed.transition.to();
            let owner = ending.owner.clone();
            let event = Event {
                attempt: Some(passed.attempt),
                data: passed.data.clone(),
                ..one.event(&owner, from, to, passed.at)
            };
            records.push(Self {
                owner,
                event,
                had_failed_at: None,
                run_after: None,
                is_due: false,
                leaves_blob: false,
                gave_up: false,
            });
            from = to;
        }
        records
    }

    fn of(one: &Move, row: Option<&File>, warnings: Option<Value>, now: Time) -> Self {
        let from = one.last_from();
        let to = one.transition.to();
        let failure = one.change.failure().cloned();
        let (owner, next_stage, attempt, run_after, has_blob) = match (&one.change, row) {
            (Change::End(ending), _) => {
                let infected = failure.as_ref().is_some_and(|failure| failure.code == Code::Infected);
                let owner = ending.owner.clone();
                (owner, Some(ending.next_stage), Some(ending.attempt), ending.run_after, infected)
            }
            (_, Some(file)) => {
                let deleted_with_blob = to == Status::Deleted && file.blob_key.is_some();
                (file.owner(), Some(file.next_stage), Some(file.attempt), file.run_after, deleted_with_blob)
            }
            (_, None) => (Arc::default(), None, None, None, false),
        };
        let event = Event {
            stage: one.change.stage().or(from.stage()).or(to.stage()),
            next_stage,
            attempt,
            failure,
            data: if to == Status::Ready {
                with_warnings(one.data.clone(), warnings)
            } else {
                one.data.clone()
            },
            ..one.event(&owner, from, to, now)
        };
        let is_due = to == Status::Queued && run_after.is_some_and(|at| at <= now);
        let gave_up = matches!(one.change, Change::Delete { gave_up: true, .. });
        let had_failed_at = match &one.change {
            Change::Revive { failed_at, .. } => *failed_at,
            _ => None,
        };
        Self { owner, event, had_failed_at, run_after, is_due, leaves_blob: has_blob, gave_up }
    }
}

/// What the event of a file that is ready says, with what is missing of it.
fn with_warnings(data: Option<Value>, warnings: Option<Value>) -> Option<Value> {
    let Some(Value::Array(warnings)) = warnings else { return data };
    let mut data = data.unwrap_or_else(|| json!({}));
    data["warningCount"] = json!(warnings.len());
    data["warnings"] = json!(warnings);
    Some(data)
}

/// Writes what belongs to moves beside the rows.
async fn record(tx: &mut Tx, records: Vec<Record>, now: Time) -> Result<(), Error> {
    let mut tallies: BTreeMap<Uuid, Tally> = BTreeMap::new();
    let mut counters = Counters::default();
    let (mut failed, mut settled) = (Vec::new(), Vec::new());
    let mut events = Vec::with_capacity(records.len());
    for Record { owner, event, had_failed_at, run_after, is_due, leaves_blob, gave_up } in records {
        let (Some(from), Some(to), Some(file)) = (event.from, event.to, event.file) else { continue };
        let is_counted = !(mutants::on(Mutant::StaleBatch) && from.is_terminal());
        if let Some(batch) = owner.batch.filter(|_| is_counted) {
            *tallies.entry(batch).or_default() += Tally::of(from, to, gave_up);
        }
        let step = Step { owner: &owner, from, to, failure: event.failure.as_ref(), had_failed_at };
        counters.count(&step, now);
        match (from, to) {
            (_, Status::Ready) => tx.hook::<Counts>().completed(&owner, now),
            (Status::Failed | Status::Cancelled, Status::Queued) => tx.hook::<Counts>().retried_by_hand(),
            _ => {}
        }
        lines::moved(tx, &owner, &event, run_after);
        if is_due && !mutants::on(Mutant::LostWake) {
            tx.signal(Signal::Work);
        }
        if leaves_blob {
            tx.signal(Signal::BlobToRemove);
        }
        let was_told = from == Status::Failed || owner.retried_at.is_some();
        if was_told && matches!(to, Status::Ready | Status::Deleted) {
            settled.push(file);
        }
        if let (Status::Failed, Some(failure), Some(stage)) = (to, &event.failure, event.stage) {
            failed.push(FailedFile { id: file, owner, failure: failure.clone(), stage });
        }
        events.push(event);
    }
    events::record(tx, events).await?;
    notifications::tell_of_failures(tx, failed, now).await?;
    notifications::resolve(tx, &settled, now).await?;
    // In the order of their ids, so that two processes never wait for one another.
    for (batch, tally) in tallies {
        tally.apply(tx, batch, now).await?;
    }
    counters.write(tx, now).await
}
