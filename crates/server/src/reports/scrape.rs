//! The metrics that are facts: read on request, each with a query whose cost does not grow with the stored data.

use std::fmt::{Display, Write as _};

use super::dashboard;
use super::queue_status;
use crate::process::workers;
use crate::queue::pause;
use crate::records::cleanup_failures;
use crate::records::events::stored;
use crate::records::files::blobs;
use crate::records::totals::Distribution;
use crate::recovery::runs;
use crate::recovery::stuck_files::detection::Detection;
use crate::telemetry::metrics::{self, Kind};
use chrono::TimeDelta;
use landfall_api::queues::CircuitView;
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_core::lifecycle::{Stage, Status};
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::Tx;

/// Metrics in the format of Prometheus.
#[derive(Debug, Default)]
pub struct Exposition(String);

impl Exposition {
    /// One metric, with a value for each set of labels.
    pub fn gauge<V: Display>(&mut self, name: &str, samples: impl IntoIterator<Item = (Labels, V)>) {
        let help =
            metrics::find(name).filter(|metric| metric.kind == Kind::Gauge).map_or("", |metric| metric.help);
        let mut samples = samples.into_iter().peekable();
        if samples.peek().is_none() {
            return;
        }
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (labels, value) in samples {
            let labels: Vec<String> =
                labels.into_iter().map(|(label, text)| format!("{label}=\"{}\"", escaped(&text))).collect();
            let _ = if labels.is_empty() {
                writeln!(self.0, "{name} {value}")
            } else {
                writeln!(self.0, "{name}{{{}}} {value}", labels.join(","))
            };
        }
    }

    pub fn into_text(self) -> String {
        self.0
    }
}

pub type Labels = Vec<(&'static str, String)>;

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn label(name: &'static str, value: impl Into<String>) -> Labels {
    vec![(name, value.into())]
}

/// The facts of the database, all from one snapshot.
pub async fn facts(tx: &mut Tx, detection: &Detection, now: Time, to: &mut Exposition) -> Result<(), Error> {
    let distribution = Distribution::load(tx, &Reach::All).await?;
    let oldest = dashboard::oldest_waiting(tx, &Reach::All, now).await?;
    let stuck = detection.count(tx, &Reach::All, now).await?;
    let workers = workers::stages(tx).await?;
    let paused = pause::stages(tx).await?;
    let circuits = queue_status::circuits(tx, true).await?;
    let jobs = runs::last_ended(tx).await?;
    let uncleaned = cleanup_failures::count(tx).await?;
    let damaged = blobs::damaged(tx).await?;

    let states = Status::ALL.into_iter().filter(|status| *status != Status::Deleted);
    to.gauge(
        metrics::PIPELINE_STATUS,
        states.map(|status| (label("status", status.name()), distribution.count(status))),
    );
    let of_stages =
        |value: &dyn Fn(Stage) -> i64| Stage::ALL.map(|stage| (label("stage", stage.name()), value(stage)));
    to.gauge(metrics::QUEUE_DEPTH, of_stages(&|stage| distribution.waiting(stage)));
    to.gauge(metrics::OLDEST_WAIT, [(Labels::new(), seconds(oldest))]);
    to.gauge(metrics::STUCK_FILES, [(Labels::new(), stuck)]);
    let working = |stage: Stage| {
        let at_it = workers.iter().filter(|stages| stages.split(',').any(|name| name == stage.name()));
        i64::try_from(at_it.count()).unwrap_or(i64::MAX)
    };
    to.gauge(metrics::WORKERS, of_stages(&working));
    to.gauge(metrics::PAUSED, of_stages(&|stage| i64::from(paused.contains(&stage))));
    to.gauge(metrics::CIRCUIT_STATE, circuits.iter().flat_map(states_of));
    to.gauge(metrics::UNCLEANED, uncleaned.into_iter().map(|(scope, count)| (label("scope", scope), count)));
    to.gauge(metrics::DAMAGED_FILES, [(Labels::new(), damaged)]);
    jobs_to(jobs, now, to);
    Ok(())
}

/// How far this process is behind in sending events, which it has done up to `delivered_up_to`, if it has
/// listeners.
pub async fn event_lag(
    tx: &mut Tx,
    delivered_up_to: Option<i64>,
    now: Time,
    to: &mut Exposition,
) -> Result<(), Error> {
    let waiting = match delivered_up_to {
        Some(position) => stored::first_after(tx, position).await?,
        None => None,
    };
    let lag = waiting.map_or(0, |since| (now - since).num_milliseconds().max(0));
    to.gauge(metrics::EVENT_LAG, [(Labels::new(), seconds(lag))]);
    Ok(())
}

fn states_of(circuit: &CircuitView) -> impl Iterator<Item = (Labels, i64)> {
    let (service, current) = (circuit.service, circuit.state);
    [CircuitState::Closed, CircuitState::HalfOpen, CircuitState::Open].into_iter().map(move |state| {
        let labels = vec![("service", service.name().to_owned()), ("state", state.name().to_owned())];
        (labels, i64::from(state == current))
    })
}

fn jobs_to(jobs: Vec<runs::LastEnded>, now: Time, to: &mut Exposition) {
    let overdue = jobs.iter().filter_map(|job| {
        let late = job.due_at.map(|due| (now - due).num_milliseconds().max(0))?;
        Some((label("name", &job.name), seconds(late)))
    });
    to.gauge(metrics::JOB_OVERDUE, overdue);
    let ended: Vec<(&str, Time, Time, usize)> = jobs
        .iter()
        .filter_map(|job| {
            let errors = job.errors.as_ref().and_then(|errors| errors.as_array()).map_or(0, Vec::len);
            Some((job.name.as_str(), job.started_at?, job.ended_at?, errors))
        })
        .collect();
    to.gauge(
        metrics::JOB_ENDED,
        ended.iter().map(|(job, _, end, _)| (label("name", *job), seconds(end.timestamp_millis()))),
    );
    to.gauge(metrics::JOB_ERRORS, ended.iter().map(|(job, _, _, errors)| (label("name", *job), *errors)));
    for (name, of) in
        [(metrics::DETECTION_DURATION, "stuck-file-recovery"), (metrics::CLEANUP_DURATION, "orphan-cleanup")]
    {
        let took = ended.iter().filter(|(job, ..)| *job == of);
        to.gauge(
            name,
            took.map(|(_, start, end, _)| {
                (Labels::new(), seconds((*end - *start).num_milliseconds().max(0)))
            }),
        );
    }
}

/// From milliseconds.
#[expect(clippy::cast_precision_loss, reason = "a millisecond is lost after 285,000 years")]
fn seconds(milliseconds: i64) -> f64 {
    milliseconds as f64 / 1_000.0
}

/// What is known without the database.
pub fn of_process(
    database: &'static str,
    database_up: bool,
    storage_up: bool,
    clock_ahead: TimeDelta,
    free_disk: Option<u64>,
    to: &mut Exposition,
) {
    to.gauge(metrics::CLOCK_SKEW, [(Labels::new(), seconds(clock_ahead.num_milliseconds()))]);
    to.gauge(metrics::FREE_DISK, free_disk.map(|free| (Labels::new(), free)));
    to.gauge(metrics::DATABASE_UP, [(Labels::new(), i64::from(database_up))]);
    to.gauge(metrics::STORAGE_UP, [(Labels::new(), i64::from(storage_up))]);
    let build = vec![("version", env!("CARGO_PKG_VERSION").to_owned()), ("database", database.to_owned())];
    to.gauge(metrics::BUILD_INFO, [(build, 1)]);
    to.gauge(metrics::RESIDENT_MEMORY, resident_memory().map(|bytes| (Labels::new(), bytes)));
}

fn resident_memory() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let resident: u64 = pages.split_whitespace().nth(1)?.parse().ok()?;
    Some(resident * u64::try_from(rustix::param::page_size()).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_value_is_escaped() {
        let mut exposition = Exposition::default();
        exposition.gauge("x", [(label("job", "a\"b\\c\nd"), 1)]);
        assert!(exposition.into_text().ends_with("x{job=\"a\\\"b\\\\c\\nd\"} 1\n"));
    }
}
