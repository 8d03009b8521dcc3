//! Reads the events in the order of their ids, each once, however they came to be written.
//!
//! On PostgreSQL an event takes its id before it is committed, so a lower id can appear after a higher one. Whoever read
//! up to the highest that is visible would pass that one by. So nobody reads beyond the horizon: the highest id of which
//! it is known that it and all below it are visible or never will be. It is found in this order:
//!
//! 1. Which id was taken last?
//! 2. Who is writing events? An `INSERT` locks the table (not against other `INSERT`s) before it takes an id, and holds
//!    that to the end of its transaction; so whoever took an id up to that one, and is not seen here, has ended.
//! 3. Wait until those that were seen have ended as well. They become visible before they let go of their locks.
//!
//! The sequence must not hand out ids in advance (`CACHE 1`, which an identity column has), or a transaction could begin
//! after the look at the locks with an id from before it. SQLite has one writer, so there an id is visible as soon as
//! the next is taken.
//!
//! # An event on the wire
//!
//! ```json
//! { "id": 4711, "type": "file:status-changed", "at": "2026-01-02T03:04:05Z", "tenantId": "acme", "userId": "alice",
//!   "data": { "fileId": "…", "batchId": "…", "from": "chunking", "to": "embedding", "stage": "chunk", "attempt": 1,
//!             "chunkCount": 12 } }
//! ```
//!
//! `tenantId` and `userId` are missing from events of the whole system. `data` has `fileId`, `batchId`, `from`, `to`,
//! `stage`, `attempt` and `error {code, class, message}` where the event has them, and what its type has beside them.

use std::time::Duration;

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use landfall_core::clock::{Clock, Stopwatch, Time};
use landfall_core::failure::{Class, Code};
use landfall_store::Error;
use landfall_store::{Db, Tx, args};

/// Rows that one page looks at to find a user's, at most. Others' events are passed over without an index of their own,
/// which every event would pay for.
const LOOKED_AT: i64 = 5_000;
/// How long to wait for transactions that write events, before saying that one of them hangs.
const PATIENCE: Duration = Duration::from_secs(30);
const FIRST_LOOK_AGAIN: Duration = Duration::from_millis(1);
const LAST_LOOK_AGAIN: Duration = Duration::from_millis(20);

/// An event as it was written down.
#[derive(Debug, Clone, PartialEq, sqlx::FromRow)]
pub struct StoredEvent {
    pub id: i64,
    pub at: Time,
    pub kind: String,
    /// Empty, like the user, where the event belongs to nobody's files.
    #[sqlx(rename = "tenant_id")]
    pub tenant: String,
    #[sqlx(rename = "user_id")]
    pub user: String,
    #[sqlx(rename = "file_id")]
    pub file: Option<Uuid>,
    #[sqlx(rename = "batch_id")]
    pub batch: Option<Uuid>,
    #[sqlx(rename = "from_state")]
    pub from: Option<String>,
    #[sqlx(rename = "to_state")]
    pub to: Option<String>,
    pub stage: Option<String>,
    pub attempt: Option<i64>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub data: Option<Value>,
}

const COLUMNS: &str =
    "id, at, kind, tenant_id, user_id, file_id, batch_id, from_state, to_state, stage, attempt,
    error_code, error_message, data";

impl StoredEvent {
    /// What the event says, without when and whose.
    pub fn content(&self) -> Map<String, Value> {
        let error = self.error_code.as_ref().map(|code| {
            let class = Code::parse(code).map_or(Class::Unknown, Code::class);
            json!({ "code": code, "class": class, "message": self.error_message })
        });
        let columns = [
            ("fileId", self.file.map(|id| json!(id))),
            ("batchId", self.batch.map(|id| json!(id))),
            ("from", self.from.as_ref().map(|state| json!(state))),
            ("to", self.to.as_ref().map(|state| json!(state))),
            ("stage", self.stage.as_ref().map(|stage| json!(stage))),
            ("attempt", self.attempt.map(|attempt| json!(attempt))),
            ("error", error),
        ];
        let mut content: Map<String, Value> = columns
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| (name.to_owned(), value)))
            .collect();
        if let Some(Value::Object(own)) = &self.data {
            content.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        }
        content
    }
}

impl Serialize for StoredEvent {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Wire<'a> {
            id: i64,
            r#type: &'a str,
            at: Time,
            #[serde(skip_serializing_if = "str::is_empty")]
            tenant_id: &'a str,
            #[serde(skip_serializing_if = "str::is_empty")]
            user_id: &'a str,
            data: Map<String, Value>,
        }
        let wire = Wire {
            id: self.id,
            r#type: &self.kind,
            at: self.at,
            tenant_id: &self.tenant,
            user_id: &self.user,
            data: self.content(),
        };
        wire.serialize(to)
    }
}

/// Whose events somebody gets.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Audience {
    User(String),
    /// All users' and the system's own: for administrators.
    Everybody,
}

impl Audience {
    pub fn hears(&self, event: &StoredEvent) -> bool {
        match self {
            Self::User(user) => *user == event.user,
            Self::Everybody => true,
        }
    }
}

/// A stretch of the events.
#[derive(Debug)]
pub struct Page {
    pub events: Vec<StoredEvent>,
    /// Where the next page begins. There are none of the audience's between the last of these and that.
    pub up_to: i64,
}

/// The audience's events after `after`, at most up to the horizon `up_to`. All of them have been seen when the page is
/// as far as that; before, a page may be empty.
pub async fn page(
    tx: &mut Tx,
    after: i64,
    up_to: i64,
    audience: &Audience,
    limit: i64,
) -> Result<Page, Error> {
    let (end, events): (i64, Vec<StoredEvent>) = match audience {
        Audience::Everybody => {
            let sql = format!("SELECT {COLUMNS} FROM events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3");
            (up_to, tx.rows(sql, args![after, up_to, limit]).await?)
        }
        Audience::User(user) => {
            let looked_at: (i64, Option<i64>) = tx
                .row(
                    "SELECT COUNT(*), MAX(id) FROM
                         (SELECT id FROM events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3) AS next",
                    args![after, up_to, LOOKED_AT],
                )
                .await?
                .unwrap_or_default();
            let end = match looked_at {
                (LOOKED_AT, Some(last)) => last,
                _ => up_to,
            };
            let sql = format!(
                "SELECT {COLUMNS} FROM events WHERE id > $1 AND id <= $2 AND user_id = $3 ORDER BY id LIMIT $4"
            );
            (end, tx.rows(sql, args![after, end, user, limit]).await?)
        }
    };
    let full = i64::try_from(events.len()) == Ok(limit);
    let up_to = events.last().filter(|_| full).map_or(end, |last| last.id);
    Ok(Page { events, up_to })
}

/// When the first event after that one was written, if there is one.
pub async fn first_after(tx: &mut Tx, position: i64) -> Result<Option<Time>, Error> {
    let first: Option<(Time,)> =
        tx.row("SELECT at FROM events WHERE id > $1 ORDER BY id LIMIT 1", args![position]).await?;
    Ok(first.map(|(at,)| at))
}

/// The horizon: this id and all below it are visible from now on, or never will be. Waits for transactions that are
/// just writing events; one that goes on for too long is an error.
pub async fn settled_up_to(db: &Db) -> Result<i64, Error> {
    let mut tx = db.read().await?;
    let last = tx.last_id("events").await?;
    let mut writing = tx.writers_of("events").await?;
    let waiting = Stopwatch::start();
    let mut pause = FIRST_LOOK_AGAIN;
    while !writing.is_empty() {
        if waiting.elapsed() > PATIENCE {
            let seconds = PATIENCE.as_secs();
            return Err(Error::Internal(format!(
                "a transaction that writes events has been open for {seconds} seconds; events wait for it"
            )));
        }
        Clock::System.sleep(pause).await;
        pause = LAST_LOOK_AGAIN.min(pause * 2);
        // Only those that were there at first: who came later has a later id.
        let still = tx.writers_of("events").await?;
        writing.retain(|one| still.contains(one));
    }
    Ok(last)
}
