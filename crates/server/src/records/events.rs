//! What happened: rows written in the transaction of the change that they tell of.
//!
//! They are the history of each file, and they are the outbox of the event stream.

pub mod removal;
pub mod stored;

use uuid::Uuid;

use landfall_api::files::HistoryEntry;
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
        ]);
    }
    tx.insert(
        "events (at, kind, tenant_id, user_id, file_id, batch_id, from_state, to_state, stage, attempt, worker,
                 error_code, error_message, data)",
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
#[derive(Debug, sqlx::FromRow)]
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
}

impl From<HistoryRow> for HistoryEntry {
    fn from(row: HistoryRow) -> Self {
        let state = |name: Option<String>| name.and_then(|name| name.parse::<Status>().ok());
        let reason = row.data.as_ref().and_then(|data| data.get("reason")).and_then(|reason| reason.as_str());
        let to = state(row.to_state);
        let error_message = written(row.error_code.as_deref(), row.error_message.as_deref(), to);
        Self {
            id: row.id,
            at: row.at,
            from: state(row.from_state),
            to,
            stage: row.stage.and_then(|name| name.parse().ok()),
            attempt: row.attempt,
            worker: row.worker,
            error_code: row.error_code,
            error_message,
            reason: reason.map(str::to_owned),
        }
    }
}

/// What an event says about a failure: sentences that were true when it happened.
pub fn written(code: Option<&str>, said: Option<&str>, to: Option<Status>) -> Option<String> {
    Some(reason::sentences(code?, said.unwrap_or_default(), to.unwrap_or(Status::Deleted)))
}

/// The history of a file, oldest first, after the entry `after`.
pub async fn history(tx: &mut Tx, file: Uuid, after: i64, limit: i64) -> Result<Vec<HistoryEntry>, Error> {
    let rows: Vec<HistoryRow> = tx
        .rows(
            "SELECT id, at, from_state, to_state, stage, attempt, worker, error_code, error_message, data
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
