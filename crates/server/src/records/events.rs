//! What happened: rows written in the transaction of the change that they tell of.
//!
//! They are the history of each file, and they are the outbox of the event stream.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use landfall_core::clock::Time;

use super::effects;
use landfall_core::failure::Failure;
use landfall_core::lifecycle::{Stage, Status};
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

pub const FILE_STATUS_CHANGED: &str = "file:status-changed";
pub const FILE_PROCESSING_STALLED: &str = "file:processing-stalled";
pub const BATCH_EXPIRED: &str = "batch:expired";
pub const JOB_COMPLETED: &str = "job:completed";
pub const BATCH_PROGRESS: &str = "batch:progress";
pub const BATCH_COMPLETED: &str = "batch:completed";
pub const CIRCUIT_CHANGED: &str = "circuit:changed";
pub const QUEUE_RATE_LIMIT_EXCEEDED: &str = "queue:rate-limit-exceeded";
pub const BATCH_CANCELLED: &str = "batch:cancelled";
pub const FILE_CLEANED_UP: &str = "file:cleaned-up";
pub const NOTIFICATION_CREATED: &str = "notification:created";
pub const ALERT_RAISED: &str = "alert:raised";

/// The types of events that belong to somebody.
pub const OF_USERS: &[&str] = &[
    FILE_STATUS_CHANGED,
    FILE_PROCESSING_STALLED,
    FILE_CLEANED_UP,
    BATCH_PROGRESS,
    BATCH_COMPLETED,
    BATCH_EXPIRED,
    BATCH_CANCELLED,
    NOTIFICATION_CREATED,
];
/// Those of the whole system's, for administrators.
pub const OF_SYSTEM: &[&str] = &[QUEUE_RATE_LIMIT_EXCEEDED, CIRCUIT_CHANGED, JOB_COMPLETED, ALERT_RAISED];

#[derive(Debug, Clone)]
pub struct Event {
    pub at: Time,
    pub kind: &'static str,
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
    /// An event that belongs to nobody's files, for administrators.
    pub fn of_system(kind: &'static str, at: Time, data: serde_json::Value) -> Self {
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

/// Notes that these events are gone, so that nobody who resumes from before them believes to have seen all.
pub async fn note_removal(tx: &mut Tx, gone: &[(i64,)]) -> Result<(), Error> {
    let Some((last,)) = gone.iter().max() else { return Ok(()) };
    tx.execute(
        "INSERT INTO removed_events (one, up_to) VALUES (1, $1)
         ON CONFLICT (one) DO UPDATE SET up_to = excluded.up_to WHERE removed_events.up_to < excluded.up_to",
        args![*last],
    )
    .await
    .map(drop)
}

/// One step in the history of a file, as clients see it.
#[derive(Debug, Serialize, sqlx::FromRow, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HistoryEntry {
    pub id: i64,
    pub at: DateTime<Utc>,
    #[sqlx(rename = "from_state")]
    #[schema(value_type = Option<Status>)]
    pub from: Option<String>,
    #[sqlx(rename = "to_state")]
    #[schema(value_type = Option<Status>)]
    pub to: Option<String>,
    #[schema(value_type = Option<Stage>)]
    pub stage: Option<String>,
    pub attempt: Option<i64>,
    pub worker: Option<String>,
    #[schema(value_type = Option<landfall_core::failure::Code>)]
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    /// Why, where nobody asked for it.
    #[serde(rename = "reason", serialize_with = "reason")]
    #[schema(value_type = Option<String>)]
    pub data: Option<serde_json::Value>,
}

#[expect(clippy::ref_option, reason = "serde asks for it")]
fn reason<S: serde::Serializer>(data: &Option<serde_json::Value>, to: S) -> Result<S::Ok, S::Error> {
    data.as_ref().and_then(|data| data.get("reason")).serialize(to)
}

/// The history of a file, oldest first, after the entry `after`.
pub async fn history(tx: &mut Tx, file: Uuid, after: i64, limit: i64) -> Result<Vec<HistoryEntry>, Error> {
    tx.rows(
        "SELECT id, at, from_state, to_state, stage, attempt, worker, error_code, error_message, data
         FROM events WHERE file_id = $1 AND kind = $2 AND id > $3 ORDER BY id LIMIT $4",
        args![file, FILE_STATUS_CHANGED, after, limit],
    )
    .await
}
