//! Notices that a service is down, for all processes at once, so that files wait for it instead of failing by it.
//!
//! Every call is reported with the ending of the stage that made it. So many failures in a row open the circuit: the
//! stages that need the service claim nothing. After a while it is half open: a few files go first, and by what
//! becomes of them it closes or opens again. A failure that opened it, or met it open, costs its file no attempt; when
//! it opens, neither did those that led to it. But where the service did well for somebody since it last failed a file, it
//! may be the file, and its attempt counts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::records::events::{self, Event};
use landfall_core::clock::{Time, to_delta};
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Retry};
use landfall_core::service::{Report, Service};
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::{Tx, args};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Failures in a row that open the circuit.
    pub threshold: u32,
    /// How long it stays open.
    pub timeout: Duration,
    /// How many files try it when it is half open; as many successes close it.
    pub probes: u32,
}

/// The circuit of one service. One that was never in trouble has no row.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Circuit {
    #[sqlx(try_from = "String")]
    pub state: CircuitState,
    /// In a row, until it opened.
    pub failures: i64,
    pub failing_since: Option<Time>,
    /// Open: when it may be tried again.
    pub until: Option<Time>,
    /// Half open: how many of those that tried it did well.
    pub successes: i64,
    /// When it last did well for somebody, as far as that was of interest.
    pub last_up_at: Option<Time>,
    pub changed_at: Option<Time>,
}

const COLUMNS: &str = "state, failures, failing_since, until, successes, last_up_at, changed_at";

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
    /// Whether nothing is the matter with it.
    pub fn is_well(&self) -> bool {
        self.state == CircuitState::Closed && self.failures == 0
    }

    /// How many files may go there now, beside those that are on their way; `None` for as many as there are.
    pub fn lets_through(&mut self, on_their_way: i64, now: Time, config: BreakerConfig) -> Option<usize> {
        if self.is_well() {
            return None;
        }
        if self.state == CircuitState::Closed {
            // It may be about to open. No more are sent than it takes to know.
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

    /// Who began later than this is on the way to it with what is known of it now.
    pub fn in_doubt_since(&self) -> Option<Time> {
        if self.state == CircuitState::Closed { self.failing_since } else { self.changed_at }
    }

    /// Learns what a call met.
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
            // A call from before it opened. Only one that was let through on purpose closes it.
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

    pub async fn find(tx: &mut Tx, service: Service) -> Result<Self, Error> {
        let sql = format!("SELECT {COLUMNS} FROM circuits WHERE service = $1");
        Ok(tx.row(sql, args![service.name()]).await?.unwrap_or_default())
    }

    /// The same, held against other processes until the transaction ends.
    pub async fn hold(tx: &mut Tx, service: Service) -> Result<Self, Error> {
        if tx.is_only_writer() {
            return Self::find(tx, service).await;
        }
        let insert =
            "INSERT INTO circuits (service, state) VALUES ($1, 'closed') ON CONFLICT (service) DO NOTHING";
        tx.execute(insert, args![service.name()]).await?;
        let sql = format!("SELECT {COLUMNS} FROM circuits WHERE service = $1 {}", tx.for_update());
        Ok(tx.row(sql, args![service.name()]).await?.unwrap_or_default())
    }

    /// Writes what became of it, and says so where its state changed.
    pub async fn write(&self, tx: &mut Tx, service: Service, before: &Self, now: Time) -> Result<(), Error> {
        if self == before {
            return Ok(());
        }
        tx.execute(
            format!(
                "INSERT INTO circuits (service, {COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                 ON CONFLICT (service) DO UPDATE SET state = excluded.state, failures = excluded.failures,
                     failing_since = excluded.failing_since, until = excluded.until,
                     successes = excluded.successes, last_up_at = excluded.last_up_at,
                     changed_at = excluded.changed_at"
            ),
            args![
                service.name(),
                self.state.name(),
                self.failures,
                self.failing_since,
                self.until,
                self.successes,
                self.last_up_at,
                self.changed_at,
            ],
        )
        .await?;
        if self.state == before.state {
            return Ok(());
        }
        tracing::warn!(service = service.name(), state = self.state.name(), "a circuit changed");
        let data = json!({ "service": service, "from": before.state, "to": self.state, "until": self.until });
        events::record(tx, vec![Event::of_system(EventKind::CircuitChanged, now, data)]).await
    }
}

/// Counts what calls met, in their order. Answers how it stands with each service that was down for one of them.
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
        if all_well && Circuit::find(tx, service).await?.is_well() {
            continue;
        }
        let before = Circuit::hold(tx, service).await?;
        let mut circuit = before.clone();
        for report in reports {
            circuit.learn(report, now, config);
        }
        circuit.write(tx, service, &before, now).await?;
        if before.state == CircuitState::Closed && circuit.state == CircuitState::Open {
            give_attempts_back(tx, service, circuit.failing_since.unwrap_or(now)).await?;
        }
        if !all_well {
            troubled.insert(service, circuit);
        }
    }
    Ok(troubled)
}

/// The files that found the service down before it was known to be down failed by it all the same.
async fn give_attempts_back(tx: &mut Tx, service: Service, since: Time) -> Result<(), Error> {
    let codes: Vec<String> = Code::ALL
        .iter()
        // Whoever only had to wait lost none.
        .filter(|code| code.service() == Some(service) && code.retry() != Retry::Wait)
        .map(|code| format!("'{code}'"))
        .collect();
    if codes.is_empty() {
        return Ok(());
    }
    // One that somebody else has hold of is being claimed, which is to say tried again.
    let skip_locked = tx.skip_locked();
    let sql = format!(
        "WITH failed AS MATERIALIZED (
             SELECT id FROM files
             WHERE status = 'queued' AND error_code IS NOT NULL AND error_at >= $1 AND attempt > 0
               AND error_code IN ({}) {skip_locked})
         UPDATE files SET attempt = attempt - 1 WHERE id IN (SELECT id FROM failed)",
        codes.join(", ")
    );
    tx.execute(sql, args![since]).await.map(drop)
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
