//! A file: its row, and the one way in which a single row changes state.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::batch::Tally;
use crate::clock::{Time, to_delta};
use crate::config::QueueConfig;
use crate::db::{Arg, Tx, args};
use crate::error::{Error, Refusal};
use crate::events::{self, Event};
use crate::failure::{Class, Code, Failure};
use crate::lifecycle::{Stage, Status, Transition};
use crate::queue::waiting::{self, Obstacles, Waiting};

/// Who asks: the owner of files, the tenant that pays for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: String,
    pub tenant: String,
    pub admin: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, serde::Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    High,
    #[default]
    Normal,
    Low,
}

impl Priority {
    pub const fn rank(self) -> i64 {
        match self {
            Self::High => 0,
            Self::Normal => 1,
            Self::Low => 2,
        }
    }

    pub const fn from_rank(rank: i64) -> Self {
        match rank {
            0 => Self::High,
            2 => Self::Low,
            _ => Self::Normal,
        }
    }
}

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
                ..Event::of_file(&moved, change.now)
            }],
        )
        .await?;
        *self = moved;
        Ok(())
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

/// A file as clients see it.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileView {
    pub file_id: Uuid,
    pub file_name: String,
    pub size: i64,
    pub content_type: Option<String>,
    pub batch_id: Option<Uuid>,
    pub status: Status,
    pub next_stage: Option<Stage>,
    pub priority: Priority,
    pub attempt: i64,
    pub max_attempts: u32,
    pub retry_after: Option<DateTime<Utc>>,
    pub retry_count: i64,
    pub error: Option<ErrorView>,
    pub chunk_count: Option<i64>,
    /// Why it is not moving, in one word and in one sentence.
    pub waiting_for: Option<&'static str>,
    pub waiting_message: Option<String>,
    /// Its place among its owner's files at its stage, as far as that is counted.
    pub queue_position: Option<i64>,
    pub staleness: Staleness,
    pub inflight: Option<InflightView>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub confirmed_at: Option<DateTime<Utc>>,
    pub ready_at: Option<DateTime<Utc>>,
    pub failed_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
pub struct ErrorView {
    #[schema(value_type = Code)]
    pub code: String,
    pub class: Class,
    pub message: String,
    #[schema(value_type = Option<Stage>)]
    pub stage: Option<String>,
    pub at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InflightView {
    pub stage: Stage,
    pub started_at: Option<DateTime<Utc>>,
    pub attempt: i64,
    pub worker: Option<String>,
}

/// Whether a file that should be moving stands still.
#[derive(Debug, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Staleness {
    pub stale: bool,
    pub since_ms: i64,
    pub message: Option<String>,
}

/// What a view needs to know beside the row.
pub struct Surroundings {
    now: Time,
    max_attempts: u32,
    staleness: Duration,
    obstacles: Obstacles,
}

impl Surroundings {
    pub async fn look(tx: &mut Tx, user: &str, config: &QueueConfig, now: Time) -> Result<Self, Error> {
        let obstacles = Obstacles::look(tx, user, now).await?;
        Ok(Self { now, max_attempts: config.retry.max_attempts, staleness: config.staleness, obstacles })
    }

    pub async fn view(&self, tx: &mut Tx, file: File) -> Result<FileView, Error> {
        let position = waiting::position(tx, &file).await?;
        let waiting = self.obstacles.before(&file);
        let staleness = self.staleness(&file, waiting.as_ref());
        let workers = &self.obstacles.workers;
        let (waiting_for, waiting_message) = waiting.map(|waiting| (waiting.word, waiting.sentence)).unzip();
        Ok(FileView {
            next_stage: (!file.status.is_terminal() || file.status == Status::Failed)
                .then_some(file.next_stage),
            priority: Priority::from_rank(file.priority),
            max_attempts: self.max_attempts,
            retry_after: file.run_after.filter(|at| *at > self.now),
            error: file.error_code.as_ref().map(|code| ErrorView {
                code: code.clone(),
                class: Code::parse(code).map_or(Class::Unknown, Code::class),
                message: file.error_message.clone().unwrap_or_default(),
                stage: file.error_stage.clone(),
                at: file.error_at,
            }),
            inflight: file.status.stage().map(|stage| InflightView {
                stage,
                started_at: file.claimed_at,
                attempt: file.attempt,
                worker: workers.iter().find(|w| Some(w.id) == file.claimed_by).map(|w| w.name.clone()),
            }),
            queue_position: position,
            staleness,
            waiting_for,
            waiting_message,
            file_id: file.id,
            file_name: file.file_name,
            size: file.size_bytes,
            content_type: file.content_type,
            batch_id: file.batch_id,
            status: file.status,
            attempt: file.attempt,
            retry_count: file.retry_count,
            chunk_count: file.chunk_count,
            created_at: file.created_at,
            updated_at: file.updated_at,
            confirmed_at: file.confirmed_at,
            ready_at: file.ready_at,
            failed_at: file.failed_at,
        })
    }

    /// A file that nobody has moved for a while, though it is on its way. One that waits says what for.
    fn staleness(&self, file: &File, waiting: Option<&Waiting>) -> Staleness {
        let on_its_way = file.status == Status::Queued || file.status.is_running();
        let still = if on_its_way { self.now - file.updated_at } else { TimeDelta::zero() };
        let stale = on_its_way && still >= to_delta(self.staleness);
        let message = stale.then(|| {
            let minutes = still.num_minutes();
            match (waiting, file.status.stage()) {
                (Some(waiting), _) => format!("No progress for {minutes} minutes. {}", waiting.sentence),
                (None, Some(stage)) => {
                    format!("No progress for {minutes} minutes. A worker has it at the {stage} stage")
                }
                (None, None) => format!("No progress for {minutes} minutes"),
            }
        });
        Staleness { stale, since_ms: still.num_milliseconds().max(0), message }
    }
}
