//! The statements about the table `reindexing`: one row, for the re-embedding that is under way or was the last.

use uuid::Uuid;

use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use landfall_store::wake::Signal;
use landfall_store::{Tx, Write, args};

#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Reindexing {
    pub id: Uuid,
    pub model: String,
    pub total: i64,
    pub done: i64,
    pub failed: i64,
    pub started_by: String,
    pub started_at: Time,
    pub worker: Option<Uuid>,
    pub ended_at: Option<Time>,
    pub message: Option<String>,
    /// How many processes there are of the worker's id: none once it is gone.
    pub holders: i64,
}

impl Reindexing {
    /// Whether this process may take it: no other does it.
    pub fn is_free_for(&self, worker: Uuid) -> bool {
        self.ended_at.is_none() && (self.holders == 0 || self.worker == Some(worker))
    }
}

pub async fn find(tx: &mut Tx) -> Result<Option<Reindexing>, Error> {
    tx.row(
        "SELECT id, model, total, done, failed, started_by, started_at, worker, ended_at, message,
                (SELECT COUNT(*) FROM workers WHERE workers.id = reindexing.worker) AS holders
         FROM reindexing",
        args![],
    )
    .await
}

/// Starts to re-embed, unless that is under way.
pub struct Start {
    pub id: Uuid,
    pub model: String,
    pub total: i64,
    pub by: String,
    pub now: Time,
}

impl Write for Start {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let started = tx
            .execute(
                "INSERT INTO reindexing (only_one, id, model, total, started_by, started_at)
                 VALUES (TRUE, $1, $2, $3, $4, $5)
                 ON CONFLICT (only_one) DO UPDATE SET id = excluded.id, model = excluded.model, total = excluded.total,
                     done = 0, failed = 0, started_by = excluded.started_by, started_at = excluded.started_at,
                     worker = NULL, ended_at = NULL, message = NULL
                 WHERE reindexing.ended_at IS NOT NULL OR reindexing.id = excluded.id",
                args![self.id, &self.model, self.total, &self.by, self.now],
            )
            .await?;
        if started == 0 {
            let message = "The files are being re-embedded already; stop that first to begin anew";
            return Err(Refusal::new(RefusalCode::JobRunning, message).retryable().into());
        }
        tx.signal(Signal::Reindex);
        Ok(())
    }
}

/// Ends what is under way. What was re-embedded stays so.
pub struct Stop {
    pub by: String,
    pub now: Time,
}

impl Write for Stop {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let message = format!("Stopped by {}.", self.by);
        tx.execute(
            "UPDATE reindexing SET ended_at = $1, message = $2 WHERE ended_at IS NULL",
            args![self.now, message],
        )
        .await?;
        tx.signal(Signal::Reindex);
        Ok(())
    }
}

/// A process takes what no other process does. Returns whether it has it.
pub struct Take {
    pub id: Uuid,
    pub worker: Uuid,
}

impl Write for Take {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let taken = tx
            .execute(
                "UPDATE reindexing SET worker = $2 WHERE id = $1 AND ended_at IS NULL
                   AND (worker IS NULL OR worker = $2
                        OR NOT EXISTS (SELECT 1 FROM workers WHERE workers.id = reindexing.worker))",
                args![self.id, self.worker],
            )
            .await?;
        Ok(taken > 0)
    }
}

/// What becomes of the work after this note of its progress.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    GoesOn,
    /// This process tries again later, for this reason.
    Waits(String),
    /// Another process may take it, because this one stops.
    GivenBack,
    Ends(String),
}

/// Notes how far the work of a process is. Returns whether the work is still its own and wanted.
#[derive(Debug, Clone)]
pub struct Note {
    pub id: Uuid,
    pub worker: Uuid,
    pub done: i64,
    pub failed: i64,
    pub next: Next,
    pub now: Time,
}

impl Write for Note {
    type Output = bool;

    async fn apply(&self, tx: &mut Tx) -> Result<bool, Error> {
        let (message, ended_at) = match &self.next {
            Next::GoesOn | Next::GivenBack => (None, None),
            Next::Waits(message) => (Some(message.clone()), None),
            Next::Ends(message) => (Some(message.clone()), Some(self.now)),
        };
        let worker = (self.next != Next::GivenBack).then_some(self.worker);
        let noted = tx
            .execute(
                "UPDATE reindexing SET done = $3, failed = $4, message = $5, ended_at = $6, worker = $7
                 WHERE id = $1 AND worker = $2 AND ended_at IS NULL",
                args![self.id, self.worker, self.done, self.failed, message, ended_at, worker],
            )
            .await?;
        Ok(noted > 0)
    }
}
