//! What happened: rows written in the transaction of the change that they tell of.
//!
//! They are the history of each file, and they are the outbox of the event stream.

pub mod removal;
pub mod stored;

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use landfall_api::files::{ActorView, HistoryEntry};
use landfall_core::actor::{Actor, ActorKind};
use landfall_core::clock::Time;
use landfall_core::event::EventKind;

use super::effects;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::reason;
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

#[derive(Debug, Clone)]
pub struct Event {
    pub at: Time,
    pub kind: EventKind,
    pub tenant: String,
    pub user: String,
    pub file: Option<Uuid>,
    pub batch: Option<Uuid>,
    pub from: Option<Status>,
    pub to: Option<Status>,
    pub stage: Option<Stage>,
    /// The stage that the file waits for, where it is in the queue before this or after it.
    pub next_stage: Option<Stage>,
    pub attempt: Option<i64>,
    pub worker: Option<String>,
    /// Who or what caused it. Every step of a file has one.
    pub actor: Option<Actor>,
    pub failure: Option<Failure>,
    pub data: Option<serde_json::Value>,
}

impl Event {
    /// An event of the whole system, which belongs to no user, for administrators.
    pub fn of_system(kind: EventKind, at: Time, data: serde_json::Value) -> Self {
        Self {
            at,
            kind,
            tenant: String::new(),
            user: String::new(),
            file: None,
            batch: None,
            from: None,
            to: None,
            stage: None,
            next_stage: None,
            attempt: None,
            worker: None,
            actor: None,
            failure: None,
            data: Some(data),
        }
    }
}

/// Writes events, in their order, in as few statements as their number allows. Every move of a file comes by here, so this
/// is where its owner's totals learn of it.
pub async fn record(tx: &mut Tx, events: Vec<Event>) -> Result<(), Error> {
    for event in &events {
        effects::learn(tx, event);
    }
    write_down(tx, events).await
}

/// The same for what did not happen now and is only told late: nothing is counted.
pub async fn write_down(tx: &mut Tx, events: Vec<Event>) -> Result<(), Error> {
    let mut rows = Rows::default();
    for event in events {
        let (code, message) = event.failure.map(|failure| (failure.code, failure.message)).unzip();
        let (actor_kind, actor_name) = event.actor.map(|actor| (actor.kind.name(), actor.name)).unzip();
        rows.push(args![
            event.at,
            event.kind,
            event.tenant,
            event.user,
            event.file,
            event.batch,
            event.from,
            event.to,
            event.stage,
            event.attempt,
            event.worker,
            code,
            message,
            event.data,
            actor_kind,
            actor_name,
        ]);
    }
    tx.insert(
        "events (at, kind, tenant_id, user_id, file_id, batch_id, from_state, to_state, stage, attempt, worker,
                 error_code, error_message, data, actor_kind, actor_name)",
        rows,
        "",
    )
    .await
}

/// The refusal for a deleted file. It says why the file was deleted, where its owner did not ask for that.
pub async fn gone(tx: &mut Tx, file: Uuid) -> Result<Refusal, Error> {
    let sql = "SELECT data FROM events WHERE file_id = $1 AND kind = $2 AND to_state = 'deleted' ORDER BY id DESC LIMIT 1";
    let deletion: Option<(Option<serde_json::Value>,)> =
        tx.row(sql, args![file, EventKind::FileStatusChanged]).await?;
    let data = deletion.and_then(|(data,)| data);
    Ok(match data.as_ref().and_then(|data| data.get("reason")).and_then(|reason| reason.as_str()) {
        Some(reason) => Refusal::deleted_because(reason),
        None => Refusal::gone(),
    })
}

/// One step in the history of a file.
#[derive(Debug, landfall_store::FromRow)]
struct HistoryRow {
    id: i64,
    at: Time,
    from_state: Option<String>,
    to_state: Option<String>,
    stage: Option<String>,
    attempt: Option<i64>,
    worker: Option<String>,
    error_code: Option<String>,
    error_message: Option<String>,
    data: Option<serde_json::Value>,
    actor_kind: Option<String>,
    actor_name: Option<String>,
}

impl From<HistoryRow> for HistoryEntry {
    fn from(row: HistoryRow) -> Self {
        let state = |name: &Option<String>| name.as_deref().and_then(|name| name.parse().ok());
        let (from, to): (Option<Status>, Option<Status>) = (state(&row.from_state), state(&row.to_state));
        let stage: Option<Stage> = row.stage.as_deref().and_then(|name| name.parse().ok());
        let given = row.data.as_ref().and_then(|data| data.get("reason")).and_then(|reason| reason.as_str());
        let reason =
            given.map_or_else(|| plain_reason(from, to, stage, row.error_code.is_some()), str::to_owned);
        let kind = row.actor_kind.as_deref().and_then(|kind| kind.parse().ok());
        let actor = match (kind, row.actor_name, &row.worker) {
            (Some(kind), Some(name), _) => Some(ActorView { kind, name }),
            // Written before actors were.
            (_, _, Some(worker)) => Some(ActorView { kind: ActorKind::Worker, name: worker.clone() }),
            _ => None,
        };
        let error_message = written(row.error_code.as_deref(), row.error_message.as_deref(), to);
        Self {
            id: row.id,
            at: row.at,
            from,
            to,
            stage,
            attempt: row.attempt,
            worker: row.worker,
            error_code: row.error_code,
            error_message,
            actor,
            reason,
        }
    }
}

/// Why a step was taken that has no reason of its own.
fn plain_reason(from: Option<Status>, to: Option<Status>, stage: Option<Stage>, has_error: bool) -> String {
    let stage = stage.map_or("current", Stage::name);
    let is_running = |status: Option<Status>| status.is_some_and(Status::is_running);
    match (from, to) {
        (None, _) => "Registered".to_owned(),
        (_, Some(Status::Uploaded)) => "Its bytes arrived".to_owned(),
        (Some(Status::Registered | Status::Uploaded), Some(Status::Queued)) => {
            "The upload was confirmed".to_owned()
        }
        (Some(Status::Failed | Status::Cancelled), Some(Status::Queued)) => "Retried by hand".to_owned(),
        (_, Some(Status::Queued)) if has_error => {
            format!("The {stage} stage did not finish; it is tried again")
        }
        (_, Some(Status::Queued)) => format!("The {stage} stage is done; the next one waits for a worker"),
        (_, Some(Status::Ready)) => "Every stage is done".to_owned(),
        (_, Some(Status::Failed)) => {
            format!("The {stage} stage failed, and no attempt is left or would help")
        }
        (_, Some(Status::Cancelled)) => "Cancelled on request".to_owned(),
        (_, Some(Status::Deleted)) => "Deleted on request".to_owned(),
        (from, to) if is_running(from) && is_running(to) => format!("The {stage} stage is done"),
        (_, to) if is_running(to) => format!("A worker began the {stage} stage"),
        _ => "Recorded without a reason".to_owned(),
    }
}

/// How many attempts were made at each stage of these files, over all their retries. An attempt that did not count, because a
/// worker gave the file back, has no number of its own.
pub async fn attempts(tx: &mut Tx, files: &[Uuid]) -> Result<HashMap<Uuid, BTreeMap<Stage, i64>>, Error> {
    let mut attempts: HashMap<Uuid, BTreeMap<Stage, i64>> = HashMap::new();
    for files in files.chunks(Rows::MAX) {
        let mut rows = Rows::default();
        for file in files {
            rows.push(args![*file]);
        }
        let (values, mut arguments) = rows.into_values(tx);
        arguments.push(EventKind::FileStatusChanged.into());
        let kind = arguments.len();
        // A manual retry begins to count again, so each life of a file is counted, and the lives are added up.
        let found: Vec<(Uuid, String, i64)> = tx
            .rows(
                format!(
                    "WITH steps AS (
                         SELECT file_id, stage, attempt,
                             SUM(CASE WHEN from_state IN ('failed', 'cancelled') AND to_state = 'queued' THEN 1 ELSE 0 END)
                                 OVER (PARTITION BY file_id ORDER BY id) AS life
                         FROM events WHERE file_id IN (SELECT * FROM ({values}) AS v) AND kind = ${kind}),
                     lives AS (
                         SELECT file_id, stage, life, MAX(attempt) AS attempts FROM steps
                         WHERE stage IS NOT NULL AND attempt > 0 GROUP BY file_id, stage, life)
                     SELECT file_id, stage, CAST(SUM(attempts) AS BIGINT) FROM lives GROUP BY file_id, stage"
                ),
                arguments,
            )
            .await?;
        for (file, stage, count) in found {
            if let Ok(stage) = stage.parse() {
                attempts.entry(file).or_default().insert(stage, count);
            }
        }
    }
    Ok(attempts)
}

/// What an event says about a failure: sentences that were true when it happened.
pub fn written(code: Option<&str>, said: Option<&str>, to: Option<Status>) -> Option<String> {
    Some(reason::sentences(code?, said.unwrap_or_default(), to.unwrap_or(Status::Deleted)))
}

/// The history of a file, oldest first, after the entry `after`.
pub async fn history(tx: &mut Tx, file: Uuid, after: i64, limit: i64) -> Result<Vec<HistoryEntry>, Error> {
    let rows: Vec<HistoryRow> = tx
        .rows(
            "SELECT id, at, from_state, to_state, stage, attempt, worker, error_code, error_message, data,
                    actor_kind, actor_name
             FROM events WHERE file_id = $1 AND kind = $2 AND id > $3 ORDER BY id LIMIT $4",
            args![file, EventKind::FileStatusChanged, after, limit],
        )
        .await?;
    Ok(rows.into_iter().map(HistoryEntry::from).collect())
}

/// The state that the history of a file ends with.
pub async fn last_state(tx: &mut Tx, file: Uuid) -> Result<Option<Status>, Error> {
    let last: Option<(Option<String>,)> = tx
        .row(
            "SELECT to_state FROM events WHERE file_id = $1 AND kind = $2 ORDER BY id DESC LIMIT 1",
            args![file, EventKind::FileStatusChanged],
        )
        .await?;
    Ok(last.and_then(|(state,)| state).and_then(|state| state.parse().ok()))
}
