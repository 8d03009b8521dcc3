//! What heals by itself: each sweep makes good what a crash left undone, and is safe to run at any time, twice, and
//! by two processes at once.
//!
//! What has to be done at once runs in a loop of its own in every process: [`abandoned_uploads`], [`resumable_uploads`],
//! [`unfinished_deletions`], [`old_terms`]; and [`upload_expiry`], which is a job as well. What has time runs by the calendar: a [`Sweep`] with a schedule, of
//! which [`Jobs`] runs each tick on one process alone and keeps a record of every run.

pub mod config;
pub mod ownership;
pub mod abandoned_uploads;
pub mod batch_timeout;
pub mod blob_scrub;
pub mod exhausted_waits;
pub mod old_terms;
pub mod orphan_cleanup;
pub mod restores;
pub mod resumable_uploads;
pub mod retention;
pub mod runs;
pub mod schedule;
pub mod stuck_files;
pub mod times_ahead;
pub mod unfinished_deletions;
pub mod upload_expiry;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::process::liveness::Liveness;
use landfall_api::maintenance::RunView;
use landfall_core::clock::{Clock, Stopwatch, Time, to_delta};
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_core::states::RunOutcome;
use landfall_store::Db;
use landfall_store::Error;
use runs::{Begin, Begun, End, Here, Trigger};
use schedule::Schedule;

/// How often the schedules are looked at where none is due sooner: another process may have changed them.
const INTERVAL: Duration = Duration::from_mins(1);
/// How long to wait before what the database would not take is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);
/// Errors of one run that are kept one by one; the rest is counted.
const ERRORS_KEPT: usize = 100;

/// What a sweep found and did.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SweepReport {
    pub metrics: Map<String, Value>,
    /// What went wrong with single items. Each is left for the next run, and none keeps the others.
    pub errors: Vec<String>,
}

/// Something to put right from time to time. It has no input but the time: what there is to do, the rows say.
pub trait Sweep: Send + Sync {
    /// As it is called by people, in the schedules and in the records of its runs.
    fn name(&self) -> &'static str;

    fn sweep_once(&self, now: Time) -> BoxFuture<'_, Result<SweepReport, Error>>;

    /// The sweep without its safety limit, for `--force`. `None` where it has no such limit.
    fn forced(&self) -> Option<Arc<dyn Sweep>> {
        None
    }
}

/// A sweep, and when it runs.
pub struct Job {
    pub sweep: Arc<dyn Sweep>,
    pub schedule: Schedule,
}

/// The sweeps that run by the calendar or by hand.
#[derive(Clone)]
pub struct Jobs {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    clock: Clock,
    liveness: Arc<Liveness>,
    jobs: Vec<Job>,
    /// Runs under way here, and their tasks.
    here: Here,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// A run that was begun here. It goes on whether or not a caller waits for it.
pub struct Started {
    pub run: Uuid,
    pub ended: JoinHandle<()>,
}

impl Jobs {
    /// Makes the schedules known to all processes.
    pub async fn start(db: Db, clock: Clock, liveness: Arc<Liveness>, jobs: Vec<Job>) -> Result<Self, Error> {
        let now = clock.now();
        let announced = |job: &Job| runs::Announced {
            name: job.sweep.name(),
            schedule: job.schedule.text().to_owned(),
            due_at: job.schedule.next_after(now),
        };
        db.write(runs::Announce { schedules: jobs.iter().map(announced).collect(), now }).await?;
        let (here, tasks, stop) = (Here::default(), TaskTracker::new(), CancellationToken::new());
        Ok(Self { inner: Arc::new(Inner { db, clock, liveness, jobs, here, tasks, stop }) })
    }

    /// Runs what is due, until `stop`.
    pub async fn run(&self, stop: CancellationToken) {
        let inner = &self.inner;
        while !stop.is_cancelled() {
            let next_look = match self.run_due().await {
                Ok(next_look) => next_look,
                Err(error) => {
                    tracing::warn!(%error, "could not look at the schedules");
                    inner.clock.now() + to_delta(TRY_AGAIN)
                }
            };
            stop.run_until_cancelled(inner.clock.sleep_until(next_look)).await;
        }
    }

    /// Ends what runs here, in good order.
    pub async fn stop(&self) {
        self.inner.stop.cancel();
        self.inner.tasks.close();
        self.inner.tasks.wait().await;
    }

    /// Begins every run whose time has come and that no other process was faster to take. Returns when to check again.
    pub async fn run_due(&self) -> Result<Time, Error> {
        let inner = &self.inner;
        let now = inner.clock.now();
        let schedules = runs::schedules(&mut inner.db.read().await?).await?;
        let mut next_look = now + to_delta(INTERVAL);
        for job in &inner.jobs {
            let Some(known) = schedules.iter().find(|known| known.name == job.sweep.name()) else { continue };
            let Some(mut due_at) = known.due_at else { continue };
            let latest = job.schedule.next_after(now + to_delta(times_ahead::TOLERANCE));
            if known.schedule == job.schedule.text()
                && let Some(latest) = latest.filter(|latest| *latest < due_at)
            {
                // A later time was written by a clock that was ahead.
                inner.db.write(runs::BringForward { name: job.sweep.name(), due_at, latest }).await?;
                due_at = latest;
            }
            if due_at > now {
                next_look = next_look.min(due_at);
                continue;
            }
            // Counted from now: of the ticks that were missed, one is made up for.
            let next_at = job.schedule.next_after(now);
            match self.begin(job.sweep.clone(), Trigger::Tick { due_at, next_at }).await {
                Ok((Begun::Run | Begun::Elsewhere, _)) => {}
                Ok((Begun::Running(run), _)) => {
                    tracing::info!(job = known.name, runId = %run.id, "still runs, and is not begun again");
                }
                Err(error) => {
                    tracing::warn!(job = known.name, %error, "could not be begun");
                    next_look = next_look.min(now + to_delta(TRY_AGAIN));
                }
            }
            next_look = next_look.min(next_at.unwrap_or(next_look));
        }
        Ok(next_look)
    }

    /// Begins a run because a person wants it.
    pub async fn run_by_hand(&self, name: &str, user: &str) -> Result<Started, Error> {
        self.run_for(self.find(name)?, user).await
    }

    /// The same, though it looks as if that were a mistake.
    pub async fn run_by_force(&self, name: &str, user: &str) -> Result<Started, Error> {
        let forced = self.find(name)?.forced().ok_or_else(|| {
            Refusal::new(
                RefusalCode::NothingToForce,
                format!("Nothing holds {name} back; run it without force"),
            )
        })?;
        tracing::warn!(job = name, user, "run by force");
        self.run_for(forced, user).await
    }

    /// Runs a job because there is something to do, and waits for its end. If it runs already, that run does it.
    pub async fn run_now(&self, name: &str) -> Result<(), Error> {
        if let (_, Some(started)) = self.begin(self.find(name)?, Trigger::Need).await? {
            // A run that panicked has written that down.
            started.ended.await.ok();
        }
        Ok(())
    }

    /// Whether there is a job of this name.
    pub fn require(&self, name: &str) -> Result<(), Refusal> {
        self.find(name).map(drop)
    }

    fn find(&self, name: &str) -> Result<Arc<dyn Sweep>, Refusal> {
        let job = self.inner.jobs.iter().find(|job| job.sweep.name() == name);
        job.map(|job| job.sweep.clone()).ok_or_else(|| {
            let names: Vec<&str> = self.inner.jobs.iter().map(|job| job.sweep.name()).collect();
            let message = format!("There is no such job; there are {}", names.join(", "));
            Refusal::new(RefusalCode::JobNotFound, message)
        })
    }

    async fn run_for(&self, sweep: Arc<dyn Sweep>, user: &str) -> Result<Started, Error> {
        let name = sweep.name();
        match self.begin(sweep, Trigger::Hand { user: user.to_owned() }).await? {
            (Begun::Run, Some(started)) => Ok(started),
            (Begun::Running(run), _) => {
                let message = format!("{name} runs already, at {}", run.worker_name);
                let details = serde_json::json!({ "run": RunView::from(run) });
                Err(Refusal::new(RefusalCode::JobRunning, message).retryable().details(details).into())
            }
            _ => Err(Error::Internal(format!("the job {name} was not begun"))),
        }
    }

    async fn begin(
        &self,
        sweep: Arc<dyn Sweep>,
        trigger: Trigger,
    ) -> Result<(Begun, Option<Started>), Error> {
        let inner = &self.inner;
        let name = sweep.name();
        let (run, now) = (inner.clock.new_id(), inner.clock.now());
        inner.here.add(run);
        let by = match &trigger {
            Trigger::Hand { user } => Some(user.clone()),
            Trigger::Tick { .. } | Trigger::Need => None,
        };
        let begun = inner.write_beginning(name, run, trigger, now).await;
        if !matches!(begun, Ok(Begun::Run)) {
            inner.here.remove(run);
        }
        let begun = begun?;
        let started = matches!(begun, Begun::Run).then(|| {
            tracing::info!(job = name, runId = %run, startedBy = by, worker = inner.liveness.name(), "job started");
            let inner = inner.clone();
            let ended = self.inner.tasks.spawn(async move {
                inner.carry_out(&*sweep, run, now).await;
                inner.here.remove(run);
            });
            Started { run, ended }
        });
        Ok((begun, started))
    }
}

impl Inner {
    /// Writes that a run begins. An answer that is lost is asked for once more: the tick may have been taken, and comes
    /// only once.
    async fn write_beginning(
        &self,
        name: &'static str,
        run: Uuid,
        trigger: Trigger,
        now: Time,
    ) -> Result<Begun, Error> {
        let begin = || Begin {
            run,
            name,
            trigger: trigger.clone(),
            worker: self.liveness.identity().id,
            worker_name: self.liveness.name().to_owned(),
            here: self.here.clone(),
            now,
        };
        match self.db.write(begin()).await {
            Err(error) => {
                tracing::warn!(job = name, runId = %run, %error, "the beginning of a job is written once more");
                self.db.write(begin()).await
            }
            begun => begun,
        }
    }

    /// Sweeps, and writes down what came of it.
    async fn carry_out(&self, sweep: &dyn Sweep, run: Uuid, now: Time) {
        let (name, began) = (sweep.name(), Stopwatch::start());
        let swept = AssertUnwindSafe(sweep.sweep_once(now)).catch_unwind();
        let (outcome, mut report) = match self.stop.run_until_cancelled(swept).await {
            Some(Ok(Ok(report))) => (RunOutcome::Completed, report),
            Some(Ok(Err(error))) => (RunOutcome::Failed, failed(error.to_string())),
            Some(Err(_)) => (RunOutcome::Failed, failed("it met an unexpected error".to_owned())),
            None => (RunOutcome::Interrupted, failed("the process was stopped before the end".to_owned())),
        };
        shorten(&mut report.errors);
        log_end(name, run, &report, began.elapsed());
        loop {
            let end = End { run, name, report: report.clone(), outcome, now: self.clock.now() };
            let Err(error) = self.db.write(end).await else { return };
            tracing::warn!(job = name, runId = %run, %error, "the end of a job could not be written");
            // A run without an end would keep the next from its beginning for as long as this process lives.
            if self.stop.run_until_cancelled(Clock::System.sleep(TRY_AGAIN)).await.is_none() {
                return;
            }
        }
    }
}

/// The metrics as the run's own record has them, as one object.
fn log_end(job: &str, run: Uuid, report: &SweepReport, took: Duration) {
    let duration = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let metrics = Value::Object(report.metrics.clone());
    if report.errors.is_empty() {
        tracing::info!(job, runId = %run, metrics.json = %metrics, durationMs = duration, "job completed");
    } else {
        let errors = Value::from(report.errors.clone());
        tracing::error!(
            job, runId = %run, metrics.json = %metrics, errors.json = %errors, durationMs = duration,
            "job completed with errors"
        );
    }
}

fn failed(error: String) -> SweepReport {
    SweepReport { errors: vec![error], ..SweepReport::default() }
}

fn shorten(errors: &mut Vec<String>) {
    let more = errors.len().saturating_sub(ERRORS_KEPT);
    if more > 0 {
        errors.truncate(ERRORS_KEPT);
        errors.push(format!("and {more} more"));
    }
}
