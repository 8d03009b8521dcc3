//! Re-embeds files in the background of a server process, at an operator's wish.
//!
//! The wish is a row, which also says how far the work is. One process at a time does the work: the first that finds the
//! row without a living process. So it goes on after a restart, and another process takes over from one that died. A file
//! that was re-embedded is not stale any more, so nothing is done twice.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::rows::{self, Next, Note, Reindexing, Take};
use super::{Reindex, Report, count_stale};
use crate::process::liveness::Liveness;
use crate::stages::embed::Embedder;
use landfall_api::reindex::ReindexView;
use landfall_core::clock::{Clock, Time, to_delta};
use landfall_store::wake::{Signal, Wake};
use landfall_store::{Db, Error};

/// How often a process looks whether there is something to do that another process was asked for.
const INTERVAL: Duration = Duration::from_secs(5);
/// How often the progress is written. A wish to stop is noticed then.
const BETWEEN_NOTES: Duration = Duration::from_secs(1);
/// How long to wait after the model failed.
const TRY_AGAIN: Duration = Duration::from_mins(1);
/// After so many failures of the model without a file in between, the work ends.
const MAX_FAILURES: u32 = 10;

/// How far the work is, or how the last ended.
pub async fn view(db: &Db, embedder: &Embedder) -> Result<ReindexView, Error> {
    let remaining = count_stale(db, embedder).await?;
    let row = rows::find(&mut db.read().await?).await?;
    let model = embedder.name().to_owned();
    let Some(row) = row else {
        return Ok(ReindexView {
            is_running: false,
            model,
            total: remaining,
            done: 0,
            failed: 0,
            remaining,
            started_at: None,
            started_by: None,
            ended_at: None,
            message: None,
        });
    };
    let is_running = row.ended_at.is_none();
    Ok(ReindexView {
        is_running,
        model: if is_running { row.model } else { model },
        total: row.total,
        done: row.done,
        failed: row.failed,
        remaining,
        started_at: Some(row.started_at),
        started_by: Some(row.started_by),
        ended_at: row.ended_at,
        message: row.message,
    })
}

/// Asks for all stale files to be re-embedded.
pub async fn start(db: &Db, embedder: &Embedder, clock: &Clock, by: String) -> Result<(), Error> {
    let total = count_stale(db, embedder).await?;
    let (id, now) = (clock.new_id(), clock.now());
    db.write(rows::Start { id, model: embedder.name().to_owned(), total, by: by.clone(), now }).await?;
    tracing::info!(administrator = by, model = embedder.name(), files = total, "re-embedding was asked for");
    Ok(())
}

pub struct Background {
    pub db: Db,
    pub clock: Clock,
    pub wake: Wake,
    pub liveness: Arc<Liveness>,
    pub reindex: Reindex,
}

/// The failures of the model, in a row.
#[derive(Debug, Default)]
struct Failures {
    of: Option<Uuid>,
    count: u32,
    /// When the next attempt is due, by the clock of this machine.
    until: Option<Time>,
}

impl Failures {
    fn begin(&mut self, work: Uuid) {
        if self.of != Some(work) {
            *self = Self { of: Some(work), ..Self::default() };
        }
    }

    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Clock::System.now() >= until)
    }
}

impl Background {
    /// Does what is asked for, until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let mut failures = Failures::default();
        while !stop.is_cancelled() {
            if let Err(error) = self.advance(&mut failures, &stop).await {
                tracing::warn!(%error, "could not look whether files are to be re-embedded");
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.wake.wait(Signal::Reindex) => {}
                () = Clock::System.sleep(INTERVAL) => {}
            }
        }
    }

    async fn advance(&self, failures: &mut Failures, stop: &CancellationToken) -> Result<(), Error> {
        let worker = self.liveness.identity().id;
        let found = rows::find(&mut self.db.read().await?).await?;
        let is_ours = |row: &Reindexing| row.is_free_for(worker) && row.model == self.reindex.embedder.name();
        let Some(row) = found.filter(is_ours) else { return Ok(()) };
        failures.begin(row.id);
        if failures.is_over() && self.db.write(Take { id: row.id, worker }).await? {
            let note = self.carry_out(&row, worker, failures, stop).await;
            if let Next::Ends(message) = &note.next {
                tracing::info!(done = note.done, failed = note.failed, message, "re-embedding ended");
            }
            self.db.write(note).await?;
        }
        Ok(())
    }

    /// Re-embeds until the end, and returns what to note of it.
    async fn carry_out(
        &self,
        row: &Reindexing,
        worker: Uuid,
        failures: &mut Failures,
        stop: &CancellationToken,
    ) -> Note {
        let latest: Mutex<Report> = Mutex::new(Report { stale: row.total - row.done, ..Report::default() });
        let note = |report: &Report, next| {
            // What is not stale any more was done before, also if no process had noted it.
            let before = (row.total - report.stale).max(0);
            let handled = i64::try_from(report.reindexed + report.left_alone).unwrap_or(i64::MAX);
            let failed = i64::try_from(report.failed).unwrap_or(i64::MAX);
            Note { id: row.id, worker, done: before + handled, failed, next, now: self.clock.now() }
        };
        let ending = stop.child_token();
        let work = self.reindex.run(&ending, |report| {
            latest.lock().unwrap_or_else(PoisonError::into_inner).clone_from(report);
        });
        tokio::pin!(work);
        let ended = loop {
            tokio::select! {
                ended = &mut work => break ended,
                () = Clock::System.sleep(BETWEEN_NOTES) => {}
            }
            let report = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
            match self.db.write(note(&report, Next::GoesOn)).await {
                Ok(true) => {}
                // An operator stopped it, or another process took it.
                Ok(false) => ending.cancel(),
                Err(error) => tracing::warn!(%error, "the progress of the re-embedding could not be written"),
            }
        };
        let report = latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if ending.is_cancelled() {
            // What was stopped or taken by another process stays as it is.
            return note(&report, Next::GivenBack);
        }
        match outcome(ended) {
            ControlFlow::Break((report, message)) => note(&report, Next::Ends(message)),
            ControlFlow::Continue(why) => {
                failures.count = if report.reindexed > 0 { 1 } else { failures.count + 1 };
                failures.until = Some(Clock::System.now() + to_delta(TRY_AGAIN));
                let next = if failures.count >= MAX_FAILURES {
                    Next::Ends(format!("Given up because the model fails: {why}."))
                } else {
                    Next::Waits(format!("The model fails and is tried again in a minute: {why}."))
                };
                note(&report, next)
            }
        }
    }
}

/// How a run ended for good, or why it is to be tried again.
fn outcome(ended: Result<Report, Error>) -> ControlFlow<(Report, String), String> {
    let report = match ended {
        Ok(report) => report,
        Err(error) => return ControlFlow::Continue(sentence(&error.to_string())),
    };
    let handled = report.reindexed + report.left_alone + report.failed;
    let is_broken_off = i64::try_from(handled).unwrap_or(i64::MAX) < report.stale && report.failed > 0;
    let last = report.last_failure.as_deref().map(sentence).unwrap_or_default();
    if is_broken_off {
        return ControlFlow::Continue(last);
    }
    let message = match (report.failed, report.remaining) {
        (0, 0) => "All files have vectors of this model.".to_owned(),
        (0, remaining) => format!(
            "{remaining} files got vectors of another model in the meantime: a process with that model still runs."
        ),
        (failed, _) => {
            format!("{failed} files could not be re-embedded and stay as they were. The last error: {last}.")
        }
    };
    ControlFlow::Break((report, message))
}

fn sentence(text: &str) -> String {
    text.trim_end_matches('.').to_owned()
}
