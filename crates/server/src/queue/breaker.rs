//! Detects that a service is down, for all processes at once, so that files wait for it instead of failing.
//!
//! Every call is reported with the ending of the stage that made it. A number of failures in a row opens the
//! circuit: the stages that need the service claim nothing. After a timeout it is half open: a few files probe the
//! service, and their results close the circuit or open it again. A failure that opens the circuit, or that ends
//! while it is open, costs its file no attempt. When the circuit opens, the failures that led to it cost no attempt
//! either. But if the service has processed another file since it last failed a file, that file may be the cause,
//! and its attempt counts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use super::circuits;
use crate::records::events::{self, Event};
use crate::records::files::queue;
use landfall_core::clock::{Time, to_delta};
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Retry};
use landfall_core::service::{Report, Service};
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::Tx;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Failures in a row that open the circuit.
    pub threshold: u32,
    /// How long it stays open.
    pub timeout: Duration,
    /// How many files probe it when it is half open; the same number of successes closes it.
    pub probes: u32,
}

/// The circuit of one service. A service that was never in trouble has no row.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Circuit {
    #[sqlx(try_from = "String")]
    pub state: CircuitState,
    /// In a row, until it opened.
    pub failures: i64,
    pub failing_since: Option<Time>,
    /// Open: when it may be tried again.
    pub until: Option<Time>,
    /// Half open: how many probes succeeded.
    pub successes: i64,
    /// When a call last succeeded. The update may be skipped while the circuit is closed and without failures.
    pub last_up_at: Option<Time>,
    pub changed_at: Option<Time>,
}

impl Default for Circuit {
    fn default() -> Self {
        Self {
            state: CircuitState::Closed,
            failures: 0,
            failing_since: None,
            until: None,
            successes: 0,
            last_up_at: None,
            changed_at: None,
        }
    }
}

impl Circuit {
    /// Whether it is closed and without failures.
    pub fn is_well(&self) -> bool {
        self.state == CircuitState::Closed && self.failures == 0
    }

    /// How many files may use the service now, besides those already running; `None` for no limit.
    pub fn lets_through(&mut self, on_their_way: i64, now: Time, config: BreakerConfig) -> Option<usize> {
        if self.is_well() {
            return None;
        }
        if self.state == CircuitState::Closed {
            // It may be about to open. Send no more files than are needed to decide.
            let missing = i64::from(config.threshold) - self.failures - on_their_way;
            return Some(usize::try_from(missing).unwrap_or(0));
        }
        if self.state == CircuitState::Open {
            if self.until.is_some_and(|until| now < until) {
                return Some(0);
            }
            self.turn(CircuitState::HalfOpen, now);
            (self.until, self.successes) = (None, 0);
            return Some(usize::try_from(config.probes).unwrap_or(usize::MAX));
        }
        let missing = i64::from(config.probes) - self.successes - on_their_way;
        Some(usize::try_from(missing).unwrap_or(0))
    }

    /// Files claimed at or after this time count as running calls whose result is still missing.
    pub fn in_doubt_since(&self) -> Option<Time> {
        if self.state == CircuitState::Closed { self.failing_since } else { self.changed_at }
    }

    /// Updates the circuit with the result of a call.
    pub fn learn(&mut self, report: Report, now: Time, config: BreakerConfig) {
        if report == Report::Up {
            self.last_up_at = Some(now);
        }
        match (self.state, report) {
            (CircuitState::Closed, Report::Up) => (self.failures, self.failing_since) = (0, None),
            (CircuitState::Closed, Report::Down) => {
                self.failures += 1;
                self.failing_since.get_or_insert(now);
                if self.failures >= i64::from(config.threshold) {
                    self.open(now, config);
                }
            }
            (CircuitState::HalfOpen, Report::Up) => {
                self.successes += 1;
                if self.successes >= i64::from(config.probes) {
                    *self = Self { changed_at: Some(now), last_up_at: self.last_up_at, ..Self::default() };
                }
            }
            (CircuitState::HalfOpen, Report::Down) => self.open(now, config),
            // A call from before it opened. Only the result of a probe closes it.
            (CircuitState::Open, _) => {}
        }
    }

    fn open(&mut self, now: Time, config: BreakerConfig) {
        self.turn(CircuitState::Open, now);
        self.until = Some(now + to_delta(config.timeout));
        self.successes = 0;
    }

    fn turn(&mut self, state: CircuitState, now: Time) {
        if self.state != state {
            (self.state, self.changed_at) = (state, Some(now));
        }
    }

    /// Writes the circuit if it changed, and records an event if its state changed.
    pub async fn write(&self, tx: &mut Tx, service: Service, before: &Self, now: Time) -> Result<(), Error> {
        if self == before {
            return Ok(());
        }
        circuits::store(tx, service, self).await?;
        if self.state == before.state {
            return Ok(());
        }
        let data = json!({ "service": service, "from": before.state, "to": self.state, "until": self.until });
        events::record(tx, vec![Event::of_system(EventKind::CircuitChanged, now, data)]).await
    }
}

/// Counts the results of calls, in their order. Returns the circuit of each service that was down for one of them.
pub async fn count(
    tx: &mut Tx,
    reports: impl Iterator<Item = (Service, Report)>,
    now: Time,
    config: BreakerConfig,
) -> Result<BTreeMap<Service, Circuit>, Error> {
    let mut by_service: BTreeMap<Service, Vec<Report>> = BTreeMap::new();
    for (service, report) in reports {
        by_service.entry(service).or_default().push(report);
    }
    let mut troubled = BTreeMap::new();
    for (service, reports) in by_service {
        let all_well = reports.iter().all(|report| *report == Report::Up);
        if all_well && circuits::find(tx, service).await?.is_well() {
            continue;
        }
        let before = circuits::hold(tx, service).await?;
        let mut circuit = before.clone();
        for report in reports {
            circuit.learn(report, now, config);
        }
        circuit.write(tx, service, &before, now).await?;
        if before.state == CircuitState::Closed && circuit.state == CircuitState::Open {
            refund_attempts(tx, service, circuit.failing_since.unwrap_or(now)).await?;
        }
        if !all_well {
            troubled.insert(service, circuit);
        }
    }
    Ok(troubled)
}

/// Restores the attempts of files that failed because the service was down, before the circuit opened.
async fn refund_attempts(tx: &mut Tx, service: Service, since: Time) -> Result<(), Error> {
    let codes: Vec<Code> = Code::ALL
        .iter()
        .copied()
        // A file that only had to wait lost no attempt.
        .filter(|code| code.service() == Some(service) && code.retry() != Retry::Wait)
        .collect();
    queue::refund_attempts(tx, &codes, since).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BreakerConfig = BreakerConfig { threshold: 5, timeout: Duration::from_mins(1), probes: 3 };

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_000_000_000 + seconds, 0).unwrap()
    }

    fn open_at(seconds: i64) -> Circuit {
        let mut circuit = Circuit::default();
        (0..5).for_each(|_| circuit.learn(Report::Down, at(seconds), CONFIG));
        assert_eq!(circuit.state, CircuitState::Open);
        circuit
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let mut circuit = Circuit::default();
        for _ in 0..3 {
            (0..4).for_each(|_| circuit.learn(Report::Down, at(0), CONFIG));
            circuit.learn(Report::Up, at(0), CONFIG);
        }
        assert!(circuit.is_well());
        (0..5).for_each(|_| circuit.learn(Report::Down, at(0), CONFIG));
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn after_a_failure_no_more_are_sent_than_it_takes_to_know() {
        let mut circuit = Circuit::default();
        assert_eq!(circuit.lets_through(7, at(0), CONFIG), None);
        circuit.learn(Report::Down, at(0), CONFIG);
        assert_eq!(circuit.lets_through(1, at(0), CONFIG), Some(3));
        assert_eq!(circuit.lets_through(7, at(0), CONFIG), Some(0));
        circuit.learn(Report::Up, at(0), CONFIG);
        assert_eq!(circuit.lets_through(7, at(0), CONFIG), None);
    }

    #[test]
    fn an_open_one_lets_nothing_through_until_its_time_and_then_three_and_no_more() {
        let mut circuit = open_at(0);
        assert_eq!(circuit.lets_through(0, at(59), CONFIG), Some(0));
        assert_eq!(circuit.lets_through(0, at(60), CONFIG), Some(3));
        assert_eq!(circuit.state, CircuitState::HalfOpen);
        assert_eq!(circuit.lets_through(3, at(61), CONFIG), Some(0));
    }

    #[test]
    fn one_failure_opens_a_half_open_one_again() {
        let mut circuit = open_at(0);
        circuit.lets_through(0, at(60), CONFIG);
        circuit.learn(Report::Up, at(61), CONFIG);
        circuit.learn(Report::Down, at(62), CONFIG);
        assert_eq!((circuit.state, circuit.until), (CircuitState::Open, Some(at(122))));
    }

    #[test]
    fn three_successes_close_it() {
        let mut circuit = open_at(0);
        circuit.lets_through(0, at(60), CONFIG);
        (0..3).for_each(|_| circuit.learn(Report::Up, at(61), CONFIG));
        assert!(circuit.is_well());
        assert_eq!(circuit.lets_through(9, at(61), CONFIG), None);
    }

    #[test]
    fn a_late_success_from_before_does_not_close_an_open_one() {
        let mut circuit = open_at(0);
        (0..9).for_each(|_| circuit.learn(Report::Up, at(1), CONFIG));
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn probes_that_never_come_back_are_sent_again() {
        let mut circuit = open_at(0);
        circuit.lets_through(0, at(60), CONFIG);
        circuit.learn(Report::Up, at(61), CONFIG);
        assert_eq!(circuit.lets_through(2, at(62), CONFIG), Some(0));
        // Cancelled, or lost with their worker.
        assert_eq!(circuit.lets_through(0, at(63), CONFIG), Some(2));
    }
}
