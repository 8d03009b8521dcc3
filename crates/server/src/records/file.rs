//! A file: its row, and the one way in which a single row changes state.

use uuid::Uuid;

use super::batch::Tally;
use super::events::{self, Event};
use crate::telemetry::traces::TracedFile;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Failure};
use landfall_core::lifecycle::{Stage, Status, Transition};
use landfall_core::refusal::Refusal;
use landfall_store::Error;
use landfall_store::{Arg, Tx, args};

/// The row, which is the whole truth about a file.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct File {
    pub id: Uuid,
    pub tenant_id: String,
    pub user_id: String,
    pub batch_id: Option<Uuid>,
    pub file_name: String,
    pub content_type: Option<String>,
    pub size_bytes: i64,
    pub declared_md5: Option<String>,
    pub blob_key: Option<String>,
    pub md5: Option<String>,
    #[sqlx(try_from = "String")]
    pub status: Status,
    #[sqlx(try_from = "String")]
    pub next_stage: Stage,
    pub priority: i64,
    pub run_after: Option<Time>,
    pub is_due: bool,
    pub due_at: Option<Time>,
    pub claim: Option<Uuid>,
    pub claimed_by: Option<Uuid>,
    pub claimed_at: Option<Time>,
    pub attempt: i64,
    pub lost_workers: i64,
    pub retry_count: i64,
    pub retried_at: Option<Time>,
    pub error_code: Option<String>,
    pub error_message: Option<String>,
    pub error_stage: Option<String>,
    pub error_at: Option<Time>,
    pub trace_parent: Option<String>,
    pub trace_first: Option<String>,
    pub chunk_count: Option<i64>,
    pub upload_until: Option<Time>,
    pub created_at: Time,
    pub updated_at: Time,
    pub confirmed_at: Option<Time>,
    pub ready_at: Option<Time>,
    pub failed_at: Option<Time>,
    pub deleted_at: Option<Time>,
}

impl File {
    pub async fn find(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        tx.row("SELECT * FROM files WHERE id = $1", args![id]).await
    }

    /// The file if it is the caller's; everything else does not exist for them.
    pub async fn find_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        Self::visible(Self::find(tx, id).await?, caller)
    }

    /// The same, held against other writers until the transaction ends.
    pub async fn lock_for(tx: &mut Tx, caller: &Caller, id: Uuid) -> Result<Self, Error> {
        Self::visible(Self::lock(tx, id).await?, caller)
    }

    /// A file held against other writers until the transaction ends. (SQLite has one writer as it is.)
    pub async fn lock(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, Error> {
        let sql = if tx.is_postgres() {
            "SELECT * FROM files WHERE id = $1 FOR UPDATE"
        } else {
            "SELECT * FROM files WHERE id = $1"
        };
        tx.row(sql, args![id]).await
    }

    fn visible(found: Option<Self>, caller: &Caller) -> Result<Self, Error> {
        found
            .filter(|file| caller.admin || file.user_id == caller.user)
            .ok_or_else(|| Refusal::no_such_file().into())
    }

    /// Moves one file, which the transaction holds, with all that belongs to it: the row, the batch's counts, the
    /// history. `set` is what else changes in the row; its arguments are numbered from `$5`.
    ///
    /// The error is a refusal that names both states, for a move that its state does not allow.
    pub async fn shift(&mut self, tx: &mut Tx, change: Shift<'_>) -> Result<(), Error> {
        self.shift_because(tx, change, None).await
    }

    /// The same for a move that nobody asked for: its history says why.
    pub async fn shift_because(
        &mut self,
        tx: &mut Tx,
        change: Shift<'_>,
        reason: Option<&str>,
    ) -> Result<(), Error> {
        let from = self.status;
        let to = from.apply(change.transition).map_err(Refusal::from)?;
        let separator = if change.set.is_empty() { "" } else { ", " };
        let mut arguments = args![self.id, from, to, change.now];
        arguments.extend(change.args);
        let moved = tx
            .row::<Self>(
                format!(
                    "UPDATE files SET status = $3, updated_at = $4{separator}{} WHERE id = $1 AND status = $2 RETURNING *",
                    change.set
                ),
                arguments,
            )
            .await?
            .ok_or_else(|| Error::Internal(format!("file {} left {from} while it was held", self.id)))?;
        if let Some(batch) = moved.batch_id {
            Tally::of(from, to).apply(tx, batch, change.now).await?;
        }
        events::record(
            tx,
            vec![Event {
                from: Some(from),
                to: Some(to),
                stage: from.stage().or(to.stage()),
                failure: change.failure,
                data: reason.map(|reason| serde_json::json!({ "reason": reason })),
                ..moved.event(change.now)
            }],
        )
        .await?;
        *self = moved;
        Ok(())
    }

    /// An event about this file. The caller fills in what happened to it.
    pub fn event(&self, at: Time) -> Event {
        Event {
            at,
            kind: EventKind::FileStatusChanged,
            tenant: self.tenant_id.clone(),
            user: self.user_id.clone(),
            file: Some(self.id),
            batch: self.batch_id,
            from: None,
            to: None,
            stage: None,
            next_stage: Some(self.next_stage),
            attempt: Some(self.attempt),
            worker: None,
            failure: None,
            data: None,
        }
    }

    /// What a trace needs to know of it.
    pub fn traced(&self) -> TracedFile<'_> {
        TracedFile {
            id: self.id,
            batch: self.batch_id,
            stage: self.next_stage,
            attempt: self.attempt,
            parent: self.trace_parent.as_deref(),
            first: self.trace_first.as_deref(),
            due_at: self.due_at,
            claimed_at: self.claimed_at,
        }
    }

    pub fn code(&self) -> Option<Code> {
        self.error_code.as_deref().and_then(Code::parse)
    }
}

/// What moves, and what changes with it.
pub struct Shift<'a> {
    pub transition: Transition,
    pub now: Time,
    pub set: &'a str,
    pub args: Vec<Arg>,
    /// Why, where the history should say so.
    pub failure: Option<Failure>,
}
