//! Injects faults between a process and its database: breaks the connection at a step, or holds the process there.

use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_store::Error;
use landfall_store::{FaultInjector, Step};
use tokio_util::sync::CancellationToken;

use super::script::Gate;

/// What happens to the connection at the chosen step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// The connection is lost once; the next step gets another.
    Once,
    /// The connection is lost, and there is no other.
    Permanently,
}

#[derive(Default)]
pub struct PlannedFaults {
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    /// The number of steps since the plan was made, and which of them were commits.
    steps: usize,
    commits: Vec<usize>,
    break_at: Option<(usize, Break)>,
    /// Cancelled when the connection breaks permanently.
    broken: CancellationToken,
    hold_at: Option<(HoldPoint, Gate)>,
}

/// Where a process is held.
#[derive(Debug, Clone, Copy)]
pub enum HoldPoint {
    BeforeBegin,
    /// Before the first transaction after a statement that contains this.
    BeforeBeginAfter(&'static str),
    /// Before a statement that contains this.
    Before(&'static str),
    /// Before that step, the first being 1.
    Step(usize),
}

impl PlannedFaults {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Removes all faults and restarts the count of steps.
    pub fn reset(&self) {
        *self.plan() = Plan::default();
    }

    /// The number of steps, and which of them were commits.
    pub fn steps(&self) -> (usize, Vec<usize>) {
        let plan = self.plan();
        (plan.steps, plan.commits.clone())
    }

    /// Breaks the connection at that step from now, the first being 1. The token is cancelled at a permanent break.
    pub fn break_at(&self, step: usize, how: Break) -> CancellationToken {
        let broken = CancellationToken::new();
        *self.plan() = Plan { break_at: Some((step, how)), broken: broken.clone(), ..Plan::default() };
        broken
    }

    /// Holds the next process that reaches this point, once.
    pub fn hold_at(&self, held: HoldPoint) -> Gate {
        let gate = Gate::default();
        self.plan().hold_at = Some((held, gate.clone()));
        gate
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().expect("not poisoned")
    }

    /// Whether the connection works, and the gate to wait at first.
    fn next(&self, step: Step<'_>) -> (bool, Option<Gate>) {
        let mut plan = self.plan();
        plan.steps += 1;
        if matches!(step, Step::Commit | Step::Committed) {
            let this = plan.steps;
            plan.commits.push(this);
        }
        let is_connected = match plan.break_at {
            Some((at, Break::Once)) => plan.steps != at,
            Some((at, Break::Permanently)) => plan.steps < at,
            None => true,
        };
        if !is_connected && matches!(plan.break_at, Some((_, Break::Permanently))) {
            plan.broken.cancel();
        }
        let number = plan.steps;
        let gate = plan.hold_at.take_if(|(held, _)| match (*held, step) {
            (HoldPoint::Step(wanted), _) => number == wanted,
            (HoldPoint::BeforeBegin, Step::Begin) => true,
            (HoldPoint::Before(part), Step::Statement(sql)) => sql.contains(part),
            (HoldPoint::BeforeBeginAfter(part), Step::Statement(sql)) if sql.contains(part) => {
                *held = HoldPoint::BeforeBegin;
                false
            }
            _ => false,
        });
        (is_connected, gate.map(|(_, gate)| gate))
    }
}

impl FaultInjector for PlannedFaults {
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        let (is_connected, gate) = self.next(step);
        async move {
            if let Some(gate) = gate {
                gate.wait().await;
            }
            if is_connected {
                return Ok(());
            }
            let lost = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "broken by the test");
            Err(Error::Database(sqlx::Error::Io(lost)))
        }
        .boxed()
    }
}
