//! The one function that moves files: [`apply`].
//!
//! A move is a [`Transition`] of one file with what changes in its row. `Status::apply` decides whether the move exists.
//! Everything that belongs to it is written in the same transaction: the row, behind its fence; the counts of its batch;
//! its history; the hourly counters; the notification of its owner; and, through the hooks of the transaction, the owner's
//! totals, the metrics of this process and the signals to whatever waits for it.
//!
//! Moves of one kind share a statement, so a thousand of them cost a few.

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
use landfall_store::{Arg, Error, Rows, Tx, args};
use serde_json::{Value, json};
use uuid::Uuid;

use super::batch::Tally;
use super::effects::Counts;
use super::events::{self, Event};
use super::file::{File, Owner, StoredBytes};
use super::fingerprint::fingerprint;
use super::hourly::{Counters, Step};
use super::lines;
use super::notifications::{self, FailedFile};
use landfall_core::event::EventKind;

/// A move of one file.
#[derive(Debug, Clone)]
pub struct Move {
    pub file: Uuid,
    pub from: Status,
    pub transition: Transition,
    pub change: Change,
    /// The worker that does it, for the history.
    pub worker: Option<String>,
    /// Who or what does it.
    pub actor: Actor,
    /// What else the history says.
    pub data: Option<Value>,
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
    /// What the death of its worker says about the file.
    pub death: Death,
    /// What is added to the number of recoveries.
    pub recoveries: i64,
}

/// What is added to the numbers of deaths of a file, and whether it is claimed alone from now on.
#[derive(Debug, Clone, Copy, Default)]
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
            death: Death::default(),
            recoveries: 0,
        })
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
        one.from.apply(one.transition).map_err(Refusal::from)?;
        by_kind.entry(one.change.kind()).or_default().push(place);
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
                for (place, one) in places.iter().zip(group) {
                    let Some(Updated { file, warnings }) = updated.remove(&one.file) else {
                        if kind == Kind::End {
                            continue;
                        }
                        let message = format!("file {} left {} while it was held", one.file, one.from);
                        return Err(Error::Internal(message));
                    };
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
    let one = Move { file: file.id, from: file.status, transition, change, worker: None, actor, data };
    let held = || Error::Internal(format!("file {} left {} while it was held", file.id, file.status));
    let moved = apply(tx, vec![one], now).await?.pop().flatten().ok_or_else(held)?;
    *file = match moved.file {
        Some(moved) => moved,
        None => File::find(tx, file.id).await?.ok_or_else(Refusal::no_such_file)?,
    };
    Ok(())
}

/// What kind of change it is: those of one kind share a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Upload,
    Confirm,
    Claim,
    End,
    Revive,
    GiveUp,
    Cancel,
    Delete,
}

/// The columns that every move has, before those of its kind.
const COMMON: [&str; 4] = ["id", "from_status", "to_status", "now"];

impl Kind {
    /// The values that a move of this kind brings, and what is set from them.
    const fn statement(self) -> (&'static [&'static str], &'static str) {
        match self {
            Self::Upload => (
                &["blob", "md5", "sha256", "etag", "version", "until"],
                "blob_key = v.blob, md5 = v.md5, blob_sha256 = v.sha256, blob_etag = v.etag, blob_version = v.version,
                 blob_checked_at = v.now, blob_damaged_at = NULL, upload_until = v.until",
            ),
            Self::Confirm => (
                &["trace", "recoveries", "blob", "md5", "sha256", "etag", "version"],
                "blob_key = COALESCE(v.blob, blob_key), md5 = COALESCE(v.md5, files.md5),
                 blob_sha256 = COALESCE(v.sha256, blob_sha256), blob_etag = COALESCE(v.etag, blob_etag),
                 blob_version = COALESCE(v.version, blob_version),
                 run_after = v.now, is_due = TRUE, confirmed_at = v.now, upload_until = NULL,
                 trace_parent = COALESCE(v.trace, trace_parent), retry_count = retry_count + v.recoveries",
            ),
            Self::Claim => (
                &["token", "worker"],
                "is_due = FALSE, due_at = run_after, run_after = NULL, claim = v.token, claimed_by = v.worker,
                 claimed_at = v.now, attempt = attempt + 1, begun = FALSE",
            ),
            Self::End => (
                &[
                    "fence",
                    "stage",
                    "is_carried",
                    "at",
                    "attempts",
                    "advanced",
                    "code",
                    "message",
                    "chunks",
                    "missing",
                    "missing_count",
                    "fingerprint",
                    "waited",
                    "since",
                    "died_in_hand",
                    "died_at_work",
                    "died_alone",
                    "isolated",
                    "recoveries",
                ],
                "next_stage = v.stage,
                 claim = CASE WHEN v.is_carried = 1 THEN claim END,
                 claimed_by = CASE WHEN v.is_carried = 1 THEN claimed_by END,
                 claimed_at = CASE WHEN v.is_carried = 1 THEN v.now END,
                 run_after = v.at,
                 is_due = (v.to_status = 'queued' AND v.at <= v.now
                           AND (v.advanced = 1 OR NOT (is_alone OR v.isolated = 1))),
                 attempt = v.attempts,
                 begun = FALSE,
                 -- A stage that was finished proves that the file does not kill its workers.
                 lost_workers = CASE WHEN v.advanced = 1 THEN 0 ELSE lost_workers + v.died_in_hand END,
                 deaths = CASE WHEN v.advanced = 1 THEN 0 ELSE deaths + v.died_at_work END,
                 deaths_alone = CASE WHEN v.advanced = 1 THEN 0 ELSE deaths_alone + v.died_alone END,
                 is_alone = (v.advanced = 0 AND (is_alone OR v.isolated = 1)),
                 waits = CASE WHEN v.advanced = 1 THEN 0 ELSE waits + v.waited END,
                 waiting_since = CASE WHEN v.advanced = 1 THEN NULL
                                      WHEN v.waited = 1 THEN COALESCE(waiting_since, v.since) ELSE waiting_since END,
                 generation = generation + v.waited + v.recoveries,
                 retry_count = retry_count + v.recoveries,
                 -- Progress clears the last error; a release does not.
                 error_code = CASE WHEN v.advanced = 1 THEN NULL ELSE COALESCE(v.code, error_code) END,
                 error_message = CASE WHEN v.advanced = 1 THEN NULL ELSE COALESCE(v.message, error_message) END,
                 error_stage = CASE WHEN v.advanced = 1 THEN NULL WHEN v.code IS NULL THEN error_stage ELSE v.stage END,
                 error_at = CASE WHEN v.advanced = 1 THEN NULL WHEN v.code IS NULL THEN error_at ELSE v.now END,
                 error_fingerprint = v.fingerprint,
                 chunk_count = COALESCE(v.chunks, chunk_count),
                 warnings = CASE WHEN v.missing_count IS NULL THEN warnings ELSE v.missing END,
                 warning_count = COALESCE(v.missing_count, warning_count),
                 ready_at = CASE WHEN v.to_status = 'ready' THEN v.now ELSE ready_at END,
                 failed_at = CASE WHEN v.to_status = 'failed' THEN v.now ELSE failed_at END",
            ),
            Self::Revive => (
                &["stage", "retrier", "operation", "trace"],
                "next_stage = v.stage, run_after = v.now, is_due = TRUE, attempt = 0, lost_workers = 0, retry_count = 0,
                 deaths = 0, deaths_alone = 0, is_alone = FALSE, waits = 0, waiting_since = NULL,
                 generation = generation + 1,
                 failed_at = NULL, error_code = NULL, error_message = NULL, error_stage = NULL, error_at = NULL,
                 error_fingerprint = NULL,
                 warnings = CASE WHEN v.stage IN ('scan', 'extract') THEN NULL ELSE warnings END,
                 warning_count = CASE WHEN v.stage IN ('scan', 'extract') THEN 0 ELSE warning_count END,
                 retried_at = v.now, retried_by = v.retrier, retried_in = v.operation,
                 trace_first = CASE WHEN v.trace IS NULL THEN trace_first ELSE COALESCE(trace_first, trace_parent) END,
                 trace_parent = COALESCE(v.trace, trace_parent)",
            ),
            Self::GiveUp => (
                &["code", "message", "fingerprint"],
                "run_after = NULL, is_due = FALSE, failed_at = v.now, error_code = v.code, error_message = v.message,
                 error_stage = next_stage, error_at = v.now, error_fingerprint = v.fingerprint",
            ),
            Self::Cancel => (
                &["code", "message"],
                "claim = NULL, claimed_by = NULL, claimed_at = NULL, run_after = NULL, is_due = FALSE,
                 error_code = v.code, error_message = v.message, error_stage = next_stage, error_at = v.now",
            ),
            // Warnings have names in them that the file contained.
            Self::Delete => (
                &["blob"],
                "blob_key = COALESCE(blob_key, v.blob), deleted_at = v.now, upload_until = NULL, failed_at = NULL, warnings = NULL, warning_count = 0",
            ),
        }
    }
}

impl Change {
    const fn kind(&self) -> Kind {
        match self {
            Self::Upload { .. } => Kind::Upload,
            Self::Confirm { .. } => Kind::Confirm,
            Self::Claim { .. } => Kind::Claim,
            Self::End(_) => Kind::End,
            Self::Revive { .. } => Kind::Revive,
            Self::GiveUp { .. } => Kind::GiveUp,
            Self::Cancel { .. } => Kind::Cancel,
            Self::Delete { .. } => Kind::Delete,
        }
    }

    /// The values of its kind's columns.
    fn values(&self, to: Status) -> Vec<Arg> {
        match self {
            Self::Upload { bytes, until } => {
                let mut values = columns_of(Some(bytes));
                values.extend(args![*until]);
                values
            }
            Self::Confirm { trace, recoveries, arrived } => {
                let mut values = args![trace.clone(), *recoveries];
                values.extend(columns_of(arrived.as_ref()));
                values
            }
            Self::Claim { token, worker } => args![*token, *worker],
            Self::End(ending) => {
                let failure = ending.failure.as_ref();
                args![
                    ending.claim,
                    ending.next_stage,
                    i64::from(to.is_running()),
                    ending.run_after,
                    ending.attempts_after,
                    i64::from(ending.advanced),
                    failure.map(|failure| failure.code),
                    failure.map(|failure| failure.message.clone()),
                    ending.chunk_count,
                    ending
                        .warnings
                        .as_ref()
                        .filter(|warnings| !warnings.is_empty())
                        .map(|warnings| json!(warnings)),
                    ending.warnings.as_ref().map(Vec::len),
                    failure
                        .filter(|_| to == Status::Failed)
                        .map(|failure| fingerprint(ending.next_stage, failure)),
                    i64::from(ending.waits_since.is_some()),
                    ending.waits_since,
                    ending.death.in_hand,
                    ending.death.at_work,
                    ending.death.alone,
                    i64::from(ending.death.isolates),
                    ending.recoveries,
                ]
            }
            Self::Revive { stage, by, operation, trace, .. } => args![*stage, by, *operation, trace.clone()],
            Self::GiveUp { stage, failure } => {
                args![failure.code, &failure.message, fingerprint(*stage, failure)]
            }
            Self::Cancel { failure } => args![failure.code, &failure.message],
            Self::Delete { unconfirmed, .. } => args![unconfirmed.clone()],
        }
    }

    /// The stage that a file in the queue fails at. Its states do not name it.
    const fn stage(&self) -> Option<Stage> {
        match self {
            Self::GiveUp { stage, .. } => Some(*stage),
            _ => None,
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            Self::End(ending) => ending.failure.as_ref(),
            Self::GiveUp { failure, .. } | Self::Cancel { failure } => Some(failure),
            _ => None,
        }
    }
}

fn columns_of(bytes: Option<&StoredBytes>) -> Vec<Arg> {
    args![
        bytes.map(|bytes| bytes.key.clone()),
        bytes.and_then(|bytes| bytes.md5.clone()),
        bytes.and_then(|bytes| bytes.sha256.clone()),
        bytes.and_then(|bytes| bytes.etag.clone()),
        bytes.and_then(|bytes| bytes.version.clone()),
    ]
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
        row.extend(one.change.values(to));
        rows.push(row);
    }
    let columns: Vec<&str> = COMMON.iter().chain(columns).copied().collect();
    let (values, arguments) = rows.named("v", &columns, tx);
    let is_fenced = kind == Kind::End && !mutants::on(Mutant::UnfencedSettle);
    let fence = if is_fenced { "AND files.claim = v.fence" } else { "" };
    let returned = if kind == Kind::End { "files.id, files.warnings".to_owned() } else { tx.all_of("files") };
    let sql = format!(
        "WITH {values}
         UPDATE files SET status = v.to_status, updated_at = v.now{}{set} FROM v
         WHERE files.id = v.id AND files.status = v.from_status {fence} RETURNING {returned}",
        if set.is_empty() { "" } else { ", " }
    );
    Ok(if kind == Kind::End {
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
    fn of(one: &Move, row: Option<&File>, warnings: Option<Value>, now: Time) -> Self {
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
            at: now,
            kind: EventKind::FileStatusChanged,
            tenant: owner.tenant.clone(),
            user: owner.user.clone(),
            file: Some(one.file),
            batch: owner.batch,
            from: Some(one.from),
            to: Some(to),
            stage: one.change.stage().or(one.from.stage()).or(to.stage()),
            next_stage,
            attempt,
            worker: one.worker.clone(),
            actor: Some(one.actor.clone()),
            failure,
            data: if to == Status::Ready {
                with_warnings(one.data.clone(), warnings)
            } else {
                one.data.clone()
            },
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
