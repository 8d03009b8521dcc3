//! Detects that a service is down, for all processes at once, so that files wait for it instead of failing.
//!
//! Every call is reported with the ending of the stage that made it. A number of failures in a row opens the
//! circuit: the stages that need the service claim nothing. After a timeout it is half open: a few files probe the
//! service, and their results close the circuit or open it again. A failure that opens the circuit, or that ends
//! while it is open, costs its file no attempt. When the circuit opens, the failures that led to it cost no attempt
//! either. But if the service has processed another file since it last failed a file, or says that it is well, that
//! file may be the cause, and its attempt counts.
//!
//! Each change of state begins a round. A call reports with the round that it began in, so the late failure of a call
//! from before the outage cannot end a probe. The failures of one file count once, so one document cannot open a
//! circuit, however often it is retried. A call that made no connection counts each time: the document was not sent.
//!
//! One document cannot keep a circuit open either. When as many probes in a row as open the circuit have reached the service
//! and failed, all with fewer files than open it, and no other file waits for the service, these files are the cause, and
//! their attempts count.
//!
//! Files that are too few to open the circuit do not pay for an outage either. A call that made no connection costs no
//! attempt, and neither does one that the service answered with "not available", unless it works for other files. After
//! another failure that would be the file's last, the service is asked whether it is well, where it can be asked.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;

use super::circuits;
use crate::records::events::{self, Event};
use crate::records::files::queue;
use landfall_core::clock::{Time, to_delta};
use landfall_core::event::EventKind;
use landfall_core::failure::{Code, Contact, Retry};
use landfall_core::mutants::{self, Mutant};
use landfall_core::service::{Report, Service};
use landfall_core::states::CircuitState;
use landfall_store::Error;
use landfall_store::Json;
use landfall_store::Tx;
use uuid::Uuid;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Files that the service fails in a row, which open the circuit.
    pub threshold: u32,
    /// How long it stays open.
    pub timeout: Duration,
    /// How many files probe it when it is half open; the same number of successes closes it.
    pub probes: u32,
    /// How long a file waits for a service that fails it, without a sign that the file is the cause.
    pub patience: Duration,
}

impl BreakerConfig {
    /// The latest time until which a circuit can be open. A later one was written by a clock that was wrong.
    ///
    /// The process that opened it may have read its clock a little later than this one, which then waited for the row.
    pub fn latest_until(&self, now: Time) -> Time {
        now + to_delta(self.timeout.saturating_mul(2))
    }
}

/// A call of a service, as the attempt that made it reports it.
#[derive(Debug, Clone)]
pub struct Call {
    pub service: Service,
    pub report: Report,
    pub file: Uuid,
    /// The round of the circuit that the call began in.
    pub round: i64,
    /// When the service last failed this file.
    pub last_failed_at: Option<Time>,
    /// How far a call that failed came.
    pub contact: Contact,
    /// Whether the service had the document when it failed, so that the document may be the cause.
    pub had_document: bool,
    /// Whether a file waits for the service that did not probe it lately. Not known where that decides nothing.
    pub others_wait: Option<bool>,
    /// What the service said of itself after it failed this file, if it was asked.
    pub says_well: Option<bool>,
    pub error: Option<String>,
}

/// The circuit of one service. A service that was never in trouble has no row.
#[derive(Debug, Clone, PartialEq, Eq, landfall_store::FromRow)]
pub struct Circuit {
    #[row(try_from = "String")]
    pub state: CircuitState,
    /// How many files it failed in a row, until it opened.
    pub failures: i64,
    pub failing_since: Option<Time>,
    /// Open: when it may be tried again.
    pub until: Option<Time>,
    /// Half open: how many probes succeeded.
    pub successes: i64,
    /// When a call last succeeded. The update may be skipped while the circuit is closed and without failures.
    pub last_up_at: Option<Time>,
    pub changed_at: Option<Time>,
    /// Counts the changes of state.
    pub round: i64,
    /// Closed: the files that it failed. Otherwise: the file of each of the last failures, if the service had the document each
    /// time.
    pub failing_files: Json<Vec<Uuid>>,
    pub last_error: Option<String>,
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
            round: 0,
            failing_files: Json(Vec::new()),
            last_error: None,
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
            let missing = (i64::from(config.threshold) - self.failures).max(1) - on_their_way;
            return Some(usize::try_from(missing).unwrap_or(0));
        }
        if self.state == CircuitState::Open {
            if self.until.is_some_and(|until| now < until && until <= config.latest_until(now)) {
                return Some(0);
            }
            self.probe(now);
            return Some(usize::try_from(config.probes).unwrap_or(usize::MAX));
        }
        // At least one, or a smaller setting after a restart would stop the stage for good.
        let missing = (i64::from(config.probes) - self.successes).max(1) - on_their_way;
        Some(usize::try_from(missing).unwrap_or(0))
    }

    /// An open circuit becomes half open. Returns whether it was open.
    pub fn probe(&mut self, now: Time) -> bool {
        let is_open = self.state == CircuitState::Open;
        if is_open {
            self.turn(CircuitState::HalfOpen, now);
            (self.until, self.successes) = (None, 0);
        }
        is_open
    }

    /// Files claimed at or after this time count as running calls whose result is still missing.
    pub fn in_doubt_since(&self) -> Option<Time> {
        if self.state == CircuitState::Closed { self.failing_since } else { self.changed_at }
    }

    /// Updates the circuit with the result of a call.
    pub fn learn(&mut self, call: &Call, now: Time, config: BreakerConfig) {
        if call.report == Report::Up {
            // Also from an earlier round: it shows that the service can process documents.
            self.last_up_at = Some(now);
        }
        if self.state != CircuitState::Closed {
            // Also from an earlier round: the more files fail, the less one of them is the cause.
            self.note_in_outage(call, config);
        }
        if call.round != self.round {
            return;
        }
        match (self.state, call.report) {
            (CircuitState::Closed, Report::Up) => self.forget_failures(),
            // A document that the service cannot process says nothing about the service.
            (CircuitState::Closed | CircuitState::HalfOpen, Report::Down)
                if self.blames_file(call, now, config) => {}
            (CircuitState::Closed, Report::Down) => self.count_failure(call, now, config),
            (CircuitState::HalfOpen, Report::Up) => {
                self.successes += 1;
                if self.successes >= i64::from(config.probes) {
                    self.turn(CircuitState::Closed, now);
                    self.successes = 0;
                    self.forget_failures();
                }
            }
            (CircuitState::HalfOpen, Report::Down) => self.open(now, config, call.error.clone()),
            // No call begins while it is open.
            (CircuitState::Open, _) => {}
        }
    }

    /// Whether the file caused the failure of this call: the service has processed another file since it last failed
    /// this one, or says that it is well, or has failed only this file and a few others for a while. Without this check, a
    /// document that a service cannot process would keep the circuit open permanently.
    pub fn blames_file(&self, call: &Call, now: Time, config: BreakerConfig) -> bool {
        if mutants::on(Mutant::ChargedOutage) || mutants::on(Mutant::UnboundedExcuse) {
            return mutants::on(Mutant::ChargedOutage);
        }
        // A success that lies ahead was written by a clock that was wrong.
        let last_up_at = self.last_up_at.filter(|up| *up <= now);
        call.says_well == Some(true)
            || call.last_failed_at.zip(last_up_at).is_some_and(|(failed, up)| up >= failed)
            || call.others_wait == Some(false) && self.keeps_failing_few(call, config)
    }

    /// Whether the last failures are those of this file and of others that are too few to open the circuit.
    fn keeps_failing_few(&self, call: &Call, config: BreakerConfig) -> bool {
        self.state != CircuitState::Closed
            && self.fails_few(config)
            && self.failing_files.contains(&call.file)
    }

    /// Whether there are enough failures in the list to tell, and whether they are of few files.
    fn fails_few(&self, config: BreakerConfig) -> bool {
        let threshold = usize::try_from(config.threshold).unwrap_or(usize::MAX);
        let files: BTreeSet<&Uuid> = self.failing_files.iter().collect();
        self.failing_files.len() >= threshold && files.len() < threshold
    }

    /// Notes the file that failed, while the circuit is not closed.
    fn note_in_outage(&mut self, call: &Call, config: BreakerConfig) {
        let may_be_the_cause =
            call.report == Report::Down && call.had_document && call.says_well != Some(false);
        // What the service made of others says nothing about a file that comes later.
        let comes_later = self.fails_few(config) && !self.failing_files.contains(&call.file);
        if !may_be_the_cause || comes_later {
            self.failing_files.clear();
        }
        if may_be_the_cause {
            self.failing_files.push(call.file);
            let most = usize::try_from(config.threshold).unwrap_or(usize::MAX);
            let surplus = self.failing_files.len().saturating_sub(most);
            self.failing_files.drain(..surplus);
        }
    }

    fn count_failure(&mut self, call: &Call, now: Time, config: BreakerConfig) {
        self.failing_since.get_or_insert(now);
        self.last_error.clone_from(&call.error);
        let is_new = !self.failing_files.contains(&call.file);
        if is_new {
            self.failing_files.push(call.file);
        }
        // A document that was not sent cannot be the cause, however often that happens.
        if is_new || call.contact == Contact::NotReached {
            self.failures += 1;
        }
        if self.failures >= i64::from(config.threshold) {
            self.open(now, config, call.error.clone());
        }
    }

    fn forget_failures(&mut self) {
        (self.failures, self.failing_since, self.last_error) = (0, None, None);
        self.failing_files.clear();
    }

    fn open(&mut self, now: Time, config: BreakerConfig, error: Option<String>) {
        if self.state == CircuitState::Closed {
            // The first of the failures may be days old. The outage begins here.
            self.failing_since = Some(now);
            self.failing_files.clear();
        }
        self.turn(CircuitState::Open, now);
        self.until = Some(now + to_delta(config.timeout));
        self.successes = 0;
        self.last_error = error;
    }

    fn turn(&mut self, state: CircuitState, now: Time) {
        if self.state != state {
            (self.state, self.changed_at) = (state, Some(now));
            self.round += 1;
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
pub async fn count<'a>(
    tx: &mut Tx,
    calls: impl Iterator<Item = &'a Call>,
    now: Time,
    config: BreakerConfig,
) -> Result<BTreeMap<Service, Circuit>, Error> {
    let mut by_service: BTreeMap<Service, Vec<&Call>> = BTreeMap::new();
    for call in calls {
        by_service.entry(call.service).or_default().push(call);
    }
    let mut troubled = BTreeMap::new();
    for (service, calls) in by_service {
        let all_well = calls.iter().all(|call| call.report == Report::Up);
        if all_well && circuits::find(tx, service).await?.is_well() {
            continue;
        }
        let before = circuits::hold(tx, service).await?;
        let mut circuit = before.clone();
        for call in calls {
            circuit.learn(call, now, config);
        }
        circuit.write(tx, service, &before, now).await?;
        if before.state == CircuitState::Closed && circuit.state == CircuitState::Open {
            refund_attempts(tx, service, before.failing_since.unwrap_or(now)).await?;
        }
        if !all_well {
            troubled.insert(service, circuit);
        }
    }
    Ok(troubled)
}

/// Restores the attempts of files that failed because the service was down, before the circuit opened.
async fn refund_attempts(tx: &mut Tx, service: Service, since: Time) -> Result<(), Error> {
    // A file that only had to wait lost no attempt.
    let codes: Vec<Code> = codes_of(service).filter(|code| code.retry() != Retry::Wait).collect();
    queue::refund_attempts(tx, &codes, since).await
}

/// The codes of files that this service failed.
pub fn codes_of(service: Service) -> impl Iterator<Item = Code> {
    Code::ALL.iter().copied().filter(move |code| code.service() == Some(service))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: BreakerConfig = BreakerConfig {
        threshold: 5,
        timeout: Duration::from_mins(1),
        probes: 3,
        patience: Duration::from_hours(24),
    };

    fn at(seconds: i64) -> Time {
        Time::from_timestamp(1_000_000_000 + seconds, 0).unwrap()
    }

    fn call(circuit: &Circuit, report: Report) -> Call {
        Call {
            service: Service::Gateway,
            report,
            file: landfall_core::random::new_uuid(),
            round: circuit.round,
            last_failed_at: None,
            contact: Contact::Reached,
            had_document: true,
            others_wait: None,
            says_well: None,
            error: None,
        }
    }

    /// Another file reports, in the circuit's present round.
    fn learn(circuit: &mut Circuit, report: Report, now: Time) {
        let call = call(circuit, report);
        circuit.learn(&call, now, CONFIG);
    }

    fn open_at(seconds: i64) -> Circuit {
        let mut circuit = Circuit::default();
        (0..5).for_each(|_| learn(&mut circuit, Report::Down, at(seconds)));
        assert_eq!(circuit.state, CircuitState::Open);
        circuit
    }

    fn half_open_at(seconds: i64) -> Circuit {
        let mut circuit = open_at(seconds - 60);
        assert_eq!(circuit.lets_through(0, at(seconds), CONFIG), Some(3));
        circuit
    }

    #[test]
    fn failures_in_a_row_open_it_and_a_success_between_them_does_not() {
        let mut circuit = Circuit::default();
        for _ in 0..3 {
            (0..4).for_each(|_| learn(&mut circuit, Report::Down, at(0)));
            learn(&mut circuit, Report::Up, at(0));
        }
        assert!(circuit.is_well());
        (0..5).for_each(|_| learn(&mut circuit, Report::Down, at(0)));
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn the_failures_of_one_file_count_once() {
        let mut circuit = Circuit::default();
        let of_one = call(&circuit, Report::Down);
        (0..100).for_each(|_| circuit.learn(&of_one, at(0), CONFIG));
        assert_eq!((circuit.state, circuit.failures), (CircuitState::Closed, 1));
        (0..4).for_each(|_| learn(&mut circuit, Report::Down, at(0)));
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn each_call_without_a_connection_counts() {
        let mut circuit = Circuit::default();
        let of_one = Call { contact: Contact::NotReached, ..call(&circuit, Report::Down) };
        (0..4).for_each(|_| circuit.learn(&of_one, at(0), CONFIG));
        assert_eq!((circuit.state, circuit.failures), (CircuitState::Closed, 4));
        circuit.learn(&of_one, at(0), CONFIG);
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn after_a_failure_no_more_are_sent_than_it_takes_to_know() {
        let mut circuit = Circuit::default();
        assert_eq!(circuit.lets_through(7, at(0), CONFIG), None);
        learn(&mut circuit, Report::Down, at(0));
        assert_eq!(circuit.lets_through(1, at(0), CONFIG), Some(3));
        assert_eq!(circuit.lets_through(7, at(0), CONFIG), Some(0));
        learn(&mut circuit, Report::Up, at(0));
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
        let mut circuit = half_open_at(60);
        learn(&mut circuit, Report::Up, at(61));
        learn(&mut circuit, Report::Down, at(62));
        assert_eq!((circuit.state, circuit.until), (CircuitState::Open, Some(at(122))));
        assert_eq!(circuit.failing_since, Some(at(0)), "the trouble is one");
    }

    #[test]
    fn three_successes_close_it() {
        let mut circuit = half_open_at(60);
        (0..3).for_each(|_| learn(&mut circuit, Report::Up, at(61)));
        assert!(circuit.is_well());
        assert_eq!(circuit.lets_through(9, at(61), CONFIG), None);
    }

    #[test]
    fn a_call_from_an_earlier_round_changes_no_state() {
        let closed = Circuit::default();
        let (late_failure, late_success) = (call(&closed, Report::Down), call(&closed, Report::Up));
        let mut circuit = half_open_at(60);
        circuit.learn(&late_failure, at(61), CONFIG);
        assert_eq!(circuit.state, CircuitState::HalfOpen);
        (0..9).for_each(|_| circuit.learn(&late_success, at(61), CONFIG));
        assert_eq!((circuit.state, circuit.successes), (CircuitState::HalfOpen, 0));
        // But it shows that the service can process documents.
        assert_eq!(circuit.last_up_at, Some(at(61)));

        let mut circuit = open_at(0);
        (0..9).for_each(|_| circuit.learn(&late_success, at(1), CONFIG));
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn a_document_that_only_it_fails_at_does_not_open_a_half_open_one() {
        let mut circuit = half_open_at(60);
        learn(&mut circuit, Report::Up, at(61));
        let poison = Call { last_failed_at: Some(at(0)), ..call(&circuit, Report::Down) };
        circuit.learn(&poison, at(62), CONFIG);
        assert_eq!(circuit.state, CircuitState::HalfOpen);
        let contradicted = Call { says_well: Some(true), ..call(&circuit, Report::Down) };
        circuit.learn(&contradicted, at(62), CONFIG);
        assert_eq!(circuit.state, CircuitState::HalfOpen);
    }

    /// Lets the time of an open circuit pass, and these files probe it and fail.
    fn probes_fail(circuit: &mut Circuit, minute: i64, files: &[Uuid], others_wait: bool) {
        circuit.lets_through(0, at(minute * 60), CONFIG);
        for file in files {
            let failed = Call { file: *file, others_wait: Some(others_wait), ..call(circuit, Report::Down) };
            circuit.learn(&failed, at(minute * 60), CONFIG);
        }
    }

    #[test]
    fn a_few_files_cannot_keep_it_open() {
        let (one, other) = (landfall_core::random::new_uuid(), landfall_core::random::new_uuid());
        let mut circuit = open_at(0);
        for minute in 1..3 {
            probes_fail(&mut circuit, minute, &[one], false);
            probes_fail(&mut circuit, minute + 10, &[other], false);
            assert_eq!(circuit.state, CircuitState::Open, "too few failures to tell");
        }
        probes_fail(&mut circuit, 20, &[one], false);
        assert_eq!(circuit.state, CircuitState::HalfOpen, "the file is the cause");
        // A file that comes later is not taken for one of them.
        probes_fail(&mut circuit, 21, &[landfall_core::random::new_uuid()], false);
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn few_files_are_not_the_cause_while_others_wait_or_the_service_shows_that_it_is_down() {
        let one = landfall_core::random::new_uuid();
        let mut circuit = open_at(0);
        for minute in 1..100 {
            probes_fail(&mut circuit, minute, &[one], true);
            assert_eq!(circuit.state, CircuitState::Open);
        }
        let mut circuit = open_at(0);
        for minute in 1..100 {
            // The fifth failure in a row would tell.
            let had_document = minute % 5 != 0;
            circuit.lets_through(0, at(minute * 60), CONFIG);
            let failed =
                Call { file: one, others_wait: Some(false), had_document, ..call(&circuit, Report::Down) };
            circuit.learn(&failed, at(minute * 60), CONFIG);
            assert_eq!(circuit.state, CircuitState::Open);
        }
    }

    #[test]
    fn as_many_files_as_open_it_keep_it_open() {
        let files: Vec<Uuid> = (0..5).map(|_| landfall_core::random::new_uuid()).collect();
        let mut circuit = open_at(0);
        for minute in 1..100 {
            probes_fail(&mut circuit, minute, &files, false);
            assert_eq!(circuit.state, CircuitState::Open);
        }
    }

    #[test]
    fn documents_that_only_it_fails_at_open_no_closed_one() {
        let mut circuit = Circuit::default();
        learn(&mut circuit, Report::Down, at(0));
        learn(&mut circuit, Report::Up, at(1));
        for _ in 0..9 {
            let poison = Call { last_failed_at: Some(at(0)), ..call(&circuit, Report::Down) };
            circuit.learn(&poison, at(2), CONFIG);
        }
        assert!(circuit.is_well());
    }

    #[test]
    fn an_outage_begins_when_the_circuit_opens() {
        let mut circuit = Circuit::default();
        learn(&mut circuit, Report::Down, at(0));
        (0..4).for_each(|_| learn(&mut circuit, Report::Down, at(200_000)));
        assert_eq!((circuit.state, circuit.failing_since), (CircuitState::Open, Some(at(200_000))));
    }

    #[test]
    fn smaller_settings_after_a_restart_stop_nothing() {
        let smaller = BreakerConfig { threshold: 2, probes: 1, ..CONFIG };
        let mut circuit = Circuit::default();
        (0..4).for_each(|_| learn(&mut circuit, Report::Down, at(0)));
        assert_eq!(circuit.lets_through(0, at(1), smaller), Some(1));
        let mut circuit = half_open_at(60);
        (0..2).for_each(|_| learn(&mut circuit, Report::Up, at(61)));
        assert_eq!(circuit.lets_through(0, at(62), smaller), Some(1));
    }

    #[test]
    fn a_process_whose_clock_is_a_little_behind_leaves_it_open() {
        let mut circuit = open_at(0);
        assert_eq!(circuit.lets_through(0, at(-1), CONFIG), Some(0));
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn times_that_lie_ahead_are_not_believed() {
        let mut circuit = open_at(1_000_000);
        assert_eq!(circuit.lets_through(0, at(0), CONFIG), Some(3), "the clock was wrong");
        let mut circuit = half_open_at(60);
        circuit.last_up_at = Some(at(1_000_000));
        let failed = Call { last_failed_at: Some(at(0)), ..call(&circuit, Report::Down) };
        circuit.learn(&failed, at(61), CONFIG);
        assert_eq!(circuit.state, CircuitState::Open);
    }

    #[test]
    fn probes_that_never_come_back_are_sent_again() {
        let mut circuit = half_open_at(60);
        learn(&mut circuit, Report::Up, at(61));
        assert_eq!(circuit.lets_through(2, at(62), CONFIG), Some(0));
        // Cancelled, or lost with their worker.
        assert_eq!(circuit.lets_through(0, at(63), CONFIG), Some(2));
    }
}
