//! Reads the events in the order of their ids, each once, whatever the order of their commits.
//!
//! On PostgreSQL an event takes its id before it is committed, so a lower id can appear after a higher one. A
//! reader that read up to the highest visible id would miss that event. So readers stop at the horizon: the highest
//! id for which it is known that it and all lower ids are visible or never will be. It is found in this order:
//!
//! 1. Read the id that was taken last.
//! 2. List the transactions that write events. An `INSERT` locks the table (not against other `INSERT`s) before it
//!    takes an id, and holds the lock to the end of its transaction; so a transaction that took an id up to that one,
//!    and is not listed, has ended.
//! 3. Wait until the listed ones have ended as well. They become visible before they release their locks.
//!
//! The sequence must not hand out ids in advance (`CACHE 1`, which an identity column has), or a transaction could
//! begin after step 2 with an id from before step 1. SQLite has one writer, so there an id is visible as soon as
//! the next is taken.
//!
//! # An event in JSON
//!
//! ```json
//! { "id": 4711, "type": "file:status-changed", "at": "2026-01-02T03:04:05Z", "epoch": "…", "tenantId": "acme",
//!   "userId": "alice", "data": { "fileId": "…", "batchId": "…", "from": "chunking", "to": "embedding", "stage": "chunk", "attempt": 1,
//!             "chunkCount": 12 } }
//! ```
//!
//! `tenantId` and `userId` are missing from events of the whole system. `data` has `fileId`, `batchId`, `from`,
//! `to`, `stage`, `attempt` and `error {code, class, message}` if the event has them, and the fields of its own
//! type.

use std::time::Duration;

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub use crate::records::events::stored::StoredEvent;

use crate::records::events::{self, stored};
use landfall_core::caller::Reach;
use landfall_core::clock::{Clock, Stopwatch, Time};
use landfall_core::failure::{Class, Code};
use landfall_store::Error;
use landfall_store::{Db, Tx};

/// The maximum number of rows that are read to find one page of some owners' events. Events of others are skipped
/// without an index, which every insert would have to pay for.
const MAX_ROWS_READ: i64 = 5_000;
/// How long to wait for transactions that write events before it is an error.
const WRITER_TIMEOUT: Duration = Duration::from_secs(30);
const MIN_POLL_DELAY: Duration = Duration::from_millis(1);
const MAX_POLL_DELAY: Duration = Duration::from_millis(20);

impl StoredEvent {
    /// The content of the event, without its time and owner.
    pub fn content(&self) -> Map<String, Value> {
        let error = self.error_code.as_ref().map(|code| {
            let class = Code::parse(code).map_or(Class::Unknown, Code::class);
            let to = self.to.as_ref().and_then(|state| state.parse().ok());
            let message = events::written(Some(code), self.error_message.as_deref(), to);
            json!({ "code": code, "class": class, "message": message })
        });
        let actor = self.actor_kind.as_ref().map(|kind| json!({ "kind": kind, "name": self.actor_name }));
        let columns = [
            ("fileId", self.file.map(|id| json!(id))),
            ("batchId", self.batch.map(|id| json!(id))),
            ("from", self.from.as_ref().map(|state| json!(state))),
            ("to", self.to.as_ref().map(|state| json!(state))),
            ("stage", self.stage.as_ref().map(|stage| json!(stage))),
            ("attempt", self.attempt.map(|attempt| json!(attempt))),
            ("error", error),
            ("actor", actor),
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
            #[serde(skip_serializing_if = "Option::is_none")]
            epoch: Option<Uuid>,
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
            epoch: self.epoch,
            tenant_id: &self.tenant,
            user_id: &self.user,
            data: self.content(),
        };
        wire.serialize(to)
    }
}

/// A range of the events.
#[derive(Debug)]
pub struct Page {
    pub events: Vec<StoredEvent>,
    /// Where the next page begins. There are no events of the owners between the last of these and that id.
    pub up_to: i64,
}

/// The events of these owners after `after`, at most up to the horizon `up_to`. A page that reaches the horizon is the
/// last; a page before that may be empty.
pub async fn page(tx: &mut Tx, after: i64, up_to: i64, reach: &Reach, limit: i64) -> Result<Page, Error> {
    let (end, events): (i64, Vec<StoredEvent>) = match reach {
        Reach::All => (up_to, stored::between(tx, after, up_to, limit).await?),
        _ => {
            let looked_at = stored::count_between(tx, after, up_to, MAX_ROWS_READ).await?;
            let end = match looked_at {
                (MAX_ROWS_READ, Some(last)) => last,
                _ => up_to,
            };
            (end, stored::between_of(tx, reach, after, end, limit).await?)
        }
    };
    let full = i64::try_from(events.len()) == Ok(limit);
    let up_to = events.last().filter(|_| full).map_or(end, |last| last.id);
    Ok(Page { events, up_to })
}

/// The horizon: this id and all below it are visible from now on, or never will be. Waits for transactions that are
/// writing events; one that takes too long is an error.
pub async fn settled_up_to(db: &Db) -> Result<i64, Error> {
    let mut tx = db.read().await?;
    let last = tx.last_id("events").await?;
    let mut writing = tx.writers_of("events").await?;
    let waiting = Stopwatch::start();
    let mut pause = MIN_POLL_DELAY;
    while !writing.is_empty() {
        if waiting.elapsed() > WRITER_TIMEOUT {
            let seconds = WRITER_TIMEOUT.as_secs();
            return Err(Error::Internal(format!(
                "a transaction that writes events has been open for {seconds} seconds; events wait for it"
            )));
        }
        Clock::System.sleep(pause).await;
        pause = MAX_POLL_DELAY.min(pause * 2);
        // Only those that were there at first: later ones have later ids.
        let still = tx.writers_of("events").await?;
        writing.retain(|one| still.contains(one));
    }
    Ok(last)
}
