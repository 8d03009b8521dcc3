//! The records of sweeps: when each is due, and what became of its runs.
//!
//! A tick belongs to the process that moves the due time on from what it was. A run is under way if and only if it has no end, and
//! the process that runs it is still known and knows of it; there is never more than one of a job.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use uuid::Uuid;

use super::SweepReport;
use crate::records::cursor::Cursor;
use crate::records::events::{self, Event};
use landfall_api::maintenance::{JobView, RunView};
use landfall_core::clock::Time;
use landfall_core::event::EventKind;
use landfall_core::states::RunOutcome;
use landfall_store::Error;
use landfall_store::{Tx, Write, args};

/// What is written down for a run whose process is gone.
const DIED: &str = "the process that ran it died";

#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Known {
    pub name: String,
    pub schedule: String,
    pub due_at: Option<Time>,
}

pub async fn schedules(tx: &mut Tx) -> Result<Vec<Known>, Error> {
    tx.rows("SELECT name, schedule, due_at FROM job_schedules ORDER BY name", args![]).await
}

/// The row of a run.
#[derive(Debug, Clone, landfall_store::FromRow)]
pub struct Run {
    pub id: Uuid,
    pub started_by: Option<String>,
    pub worker_name: String,
    pub started_at: Time,
    pub ended_at: Option<Time>,
    pub metrics: Option<Value>,
    pub errors: Value,
    /// NULL while it has not ended.
    outcome: Option<String>,
    /// How many processes there are of its id: none once its process is gone.
    holders: i64,
}

impl Run {
    /// A run whose process is gone is over, whether or not another process has written that down.
    fn outcome(&self) -> RunOutcome {
        match self.outcome.as_deref().map(str::parse) {
            Some(Ok(outcome)) => outcome,
            // A process of an earlier version ended it.
            None if self.ended_at.is_some() => RunOutcome::Completed,
            None if self.holders > 0 => RunOutcome::Running,
            None | Some(Err(_)) => RunOutcome::Interrupted,
        }
    }
}

impl From<Run> for RunView {
    fn from(row: Run) -> Self {
        let outcome = row.outcome();
        let errors = row.errors.as_array().into_iter().flatten();
        Self {
            outcome,
            run_id: row.id,
            started_by: row.started_by,
            worker: row.worker_name,
            started_at: row.started_at,
            ended_at: row.ended_at,
            errors: errors.filter_map(|error| error.as_str().map(str::to_owned)).collect(),
            metrics: row.metrics,
        }
    }
}

const COLUMNS: &str = "id, started_by, worker_name, started_at, ended_at, metrics, errors, outcome,
                       (SELECT COUNT(*) FROM workers WHERE workers.id = job_runs.worker) AS holders";
/// How many runs of a job are kept, whatever their age.
const MAX_KEPT: i64 = 500;

impl Run {
    /// The position behind it in the history of its job.
    pub const fn place(&self) -> Cursor {
        Cursor { at: self.started_at, id: self.id }
    }

    pub async fn find(tx: &mut Tx, run: Uuid) -> Result<Option<Self>, Error> {
        tx.row(format!("SELECT {COLUMNS} FROM job_runs WHERE id = $1"), args![run]).await
    }
}

pub async fn list(tx: &mut Tx) -> Result<Vec<JobView>, Error> {
    let mut jobs = Vec::new();
    for known in schedules(tx).await? {
        let last_run: Option<Run> = tx
            .row(
                format!(
                    "SELECT {COLUMNS} FROM job_runs WHERE name = $1 ORDER BY started_at DESC, id DESC LIMIT 1"
                ),
                args![&known.name],
            )
            .await?;
        jobs.push(JobView {
            name: known.name,
            schedule: known.schedule,
            next_run_at: known.due_at,
            running: last_run.as_ref().is_some_and(|run| run.outcome() == RunOutcome::Running),
            last_run: last_run.map(RunView::from),
        });
    }
    Ok(jobs)
}

/// The runs of a job behind a position, newest first.
pub async fn history(tx: &mut Tx, job: &str, after: Option<Cursor>, limit: i64) -> Result<Vec<Run>, Error> {
    let mut arguments = args![job, limit];
    let mut behind = "";
    if let Some(Cursor { at, id }) = after {
        arguments.extend(args![at, id]);
        behind = "AND (started_at, id) < ($3, $4)";
    }
    let sql = format!(
        "SELECT {COLUMNS} FROM job_runs WHERE name = $1 {behind} ORDER BY started_at DESC, id DESC LIMIT $2"
    );
    tx.rows(sql, arguments).await
}

/// Removes the oldest runs of a job that have ended, of those beyond the last that are kept.
async fn keep_last(tx: &mut Tx, job: &str) -> Result<(), Error> {
    // One comes at a time. More are removed where a former version left more.
    const AT_ONCE: i64 = 100;
    tx.execute(
        "DELETE FROM job_runs WHERE ended_at IS NOT NULL AND id IN (
             SELECT id FROM job_runs WHERE name = $1 ORDER BY started_at DESC, id DESC LIMIT $3 OFFSET $2)",
        args![job, MAX_KEPT, AT_ONCE],
    )
    .await
    .map(drop)
}

/// A process is gone, and its runs with it.
pub struct InterruptRuns {
    pub worker: Uuid,
    pub now: Time,
}

impl Write for InterruptRuns {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        tx.execute(
            "UPDATE job_runs SET ended_at = $2, outcome = $3, errors = $4 WHERE worker = $1 AND ended_at IS NULL",
            args![self.worker, self.now, RunOutcome::Interrupted.name(), json!([DIED])],
        )
        .await
        .map(drop)
    }
}

/// A job, when it is due, and its last run that came to an end.
#[derive(Debug, landfall_store::FromRow)]
pub struct LastEnded {
    pub name: String,
    pub due_at: Option<Time>,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub errors: Option<Value>,
}

pub async fn last_ended(tx: &mut Tx) -> Result<Vec<LastEnded>, Error> {
    tx.rows(
        "SELECT s.name, s.due_at, r.started_at, r.ended_at, r.errors
         FROM job_schedules s LEFT JOIN job_runs r ON r.id =
             (SELECT l.id FROM job_runs l WHERE l.name = s.name AND l.ended_at IS NOT NULL
              ORDER BY l.started_at DESC, l.id DESC LIMIT 1)
         ORDER BY s.name",
        args![],
    )
    .await
}

/// The jobs whose last run ended after a time, with its errors: up to `limit`, by name.
pub async fn ended_since(tx: &mut Tx, since: Time, limit: i64) -> Result<Vec<(String, Value)>, Error> {
    tx.rows(
        "SELECT r.name, r.errors FROM job_schedules s JOIN job_runs r ON r.id =
             (SELECT l.id FROM job_runs l WHERE l.name = s.name AND l.ended_at IS NOT NULL
              ORDER BY l.started_at DESC, l.id DESC LIMIT 1)
         WHERE r.ended_at > $1 ORDER BY r.name LIMIT $2",
        args![since, limit],
    )
    .await
}

/// Removes up to `limit` runs that ended before a time. Returns how many.
pub async fn remove_ended(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM job_runs WHERE (id) IN (SELECT id FROM job_runs WHERE ended_at < $1 LIMIT $2) AND ended_at < $1",
        args![before, limit],
    )
    .await
}

/// Makes schedules known, in one transaction. One that has not changed stays as it is, and a tick that was missed stays due.
pub struct Announce {
    /// In the same order in every process, so that two that start at once do not lock each other out.
    pub schedules: Vec<Announced>,
    pub now: Time,
}

pub struct Announced {
    pub name: &'static str,
    pub schedule: String,
    pub due_at: Option<Time>,
}

impl Write for Announce {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        for job in &self.schedules {
            tx.execute(
                "INSERT INTO job_schedules (name, schedule, due_at) VALUES ($1, $2, $3)
                 ON CONFLICT (name) DO UPDATE SET schedule = excluded.schedule,
                     due_at = CASE WHEN job_schedules.due_at <= $4 THEN job_schedules.due_at ELSE excluded.due_at END
                 WHERE job_schedules.schedule <> excluded.schedule",
                args![job.name, &job.schedule, job.due_at, self.now],
            )
            .await?;
        }
        Ok(())
    }
}

/// Makes a job due at `latest`, if it is still due at `due_at`.
pub struct BringForward {
    pub name: &'static str,
    pub due_at: Time,
    pub latest: Time,
}

impl Write for BringForward {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let sql = "UPDATE job_schedules SET due_at = $3 WHERE name = $1 AND due_at = $2";
        tx.execute(sql, args![self.name, self.due_at, self.latest]).await.map(drop)
    }
}

/// Why a run begins.
#[derive(Debug, Clone)]
pub enum Trigger {
    Tick {
        due_at: Time,
        next_at: Option<Time>,
    },
    Hand {
        user: String,
    },
    /// There is something to do before the next tick.
    Need,
}

/// Begins a run, unless one is under way.
pub struct Begin {
    pub run: Uuid,
    pub name: &'static str,
    pub trigger: Trigger,
    pub worker: Uuid,
    pub worker_name: String,
    /// What is under way here.
    pub here: Here,
    pub now: Time,
}

/// The runs that a process has in hand, from before the first word of them is written until after the last.
#[derive(Debug, Clone, Default)]
pub struct Here {
    runs: Arc<Mutex<HashSet<Uuid>>>,
}

impl Here {
    pub fn add(&self, run: Uuid) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).insert(run);
    }

    pub fn remove(&self, run: Uuid) {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).remove(&run);
    }

    fn has(&self, run: Uuid) -> bool {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).contains(&run)
    }
}

#[derive(Debug)]
pub enum Begun {
    Run,
    /// This one runs already.
    Running(Run),
    /// Another process has this tick.
    Elsewhere,
}

impl Write for Begin {
    type Output = Begun;

    async fn apply(&self, tx: &mut Tx) -> Result<Begun, Error> {
        let begun_before = "SELECT COUNT(*) FROM job_runs WHERE id = $1 AND ended_at IS NULL";
        if tx.number(begun_before, args![self.run]).await? > 0 {
            // The answer to the first try was lost.
            return Ok(Begun::Run);
        }
        // Either statement holds the job's row, so that of two that begin at once the second sees the first.
        let started_by = match &self.trigger {
            Trigger::Tick { due_at, next_at } => {
                let sql = "UPDATE job_schedules SET due_at = $3 WHERE name = $1 AND due_at = $2";
                if tx.execute(sql, args![self.name, *due_at, *next_at]).await? == 0 {
                    return Ok(Begun::Elsewhere);
                }
                None
            }
            by_hand_or_need => {
                tx.execute("UPDATE job_schedules SET name = name WHERE name = $1", args![self.name]).await?;
                match by_hand_or_need {
                    Trigger::Hand { user } => Some(user.clone()),
                    _ => None,
                }
            }
        };
        self.end_abandoned_runs(tx).await?;
        let running: Option<Run> = tx
            .row(
                format!("SELECT {COLUMNS} FROM job_runs WHERE name = $1 AND ended_at IS NULL"),
                args![self.name],
            )
            .await?;
        if let Some(running) = running {
            return Ok(Begun::Running(running));
        }
        tx.execute(
            "INSERT INTO job_runs (id, name, started_by, worker, worker_name, started_at, errors)
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            args![self.run, self.name, started_by, self.worker, &self.worker_name, self.now, json!([])],
        )
        .await?;
        keep_last(tx, self.name).await?;
        Ok(Begun::Run)
    }
}

impl Begin {
    async fn end_abandoned_runs(&self, tx: &mut Tx) -> Result<(), Error> {
        let unended: Vec<(Uuid, Uuid, i64)> = tx
            .rows(
                "SELECT id, worker, (SELECT COUNT(*) FROM workers WHERE workers.id = job_runs.worker)
                 FROM job_runs WHERE name = $1 AND ended_at IS NULL",
                args![self.name],
            )
            .await?;
        for (run, worker, known) in unended {
            let why = if known == 0 {
                DIED
            } else if worker == self.worker && !self.here.has(run) {
                // That it had begun was not to be known here. It would keep all others for as long as this process lives.
                "the process did not learn that it had begun"
            } else {
                continue;
            };
            tx.execute(
                "UPDATE job_runs SET ended_at = $2, errors = $3, outcome = $4 WHERE id = $1",
                args![run, self.now, json!([why]), RunOutcome::Interrupted.name()],
            )
            .await?;
        }
        Ok(())
    }
}

/// A run is over.
pub struct End {
    pub run: Uuid,
    pub name: &'static str,
    pub report: SweepReport,
    pub outcome: RunOutcome,
    pub now: Time,
}

impl Write for End {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), Error> {
        let SweepReport { metrics, errors } = &self.report;
        let ended = tx
            .execute(
                "UPDATE job_runs SET ended_at = $2, metrics = $3, errors = $4, outcome = $5
                 WHERE id = $1 AND ended_at IS NULL",
                args![self.run, self.now, Value::Object(metrics.clone()), json!(errors), self.outcome.name()],
            )
            .await?;
        if ended == 0 {
            // This process was taken for dead, and the run with it.
            return Ok(());
        }
        let data = json!({ "job": self.name, "runId": self.run, "metrics": metrics, "errors": errors });
        events::record(tx, vec![Event::of_system(EventKind::JobCompleted, self.now, data)]).await
    }
}
