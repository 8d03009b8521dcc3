//! Gets between a process and its database: breaks the connection at a step, or holds the process up there.

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
    /// It is lost once; the next step finds another.
    Once,
    /// It is lost, and there is no other.
    ForGood,
}

#[derive(Default)]
pub struct Meddler {
    plan: Mutex<Plan>,
}

#[derive(Default)]
struct Plan {
    /// Steps since the last plan was made, and which of them were about a commit.
    steps: usize,
    commits: Vec<usize>,
    break_at: Option<(usize, Break)>,
    /// Told when the connection breaks for good.
    broken: CancellationToken,
    hold_at: Option<(Held, Gate)>,
}

/// Where a process is held up.
#[derive(Debug, Clone, Copy)]
pub enum Held {
    BeforeBegin,
    /// Before the first transaction after a statement that has this in it.
    BeforeBeginAfter(&'static str),
    /// Before a statement that has this in it.
    Before(&'static str),
}

impl Meddler {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// From now on nothing happens; steps are counted anew.
    pub fn rest(&self) {
        *self.plan() = Plan::default();
    }

    /// How many steps there were, and which of them were about a commit.
    pub fn steps(&self) -> (usize, Vec<usize>) {
        let plan = self.plan();
        (plan.steps, plan.commits.clone())
    }

    /// Breaks the connection at that step from now, the first being 1. Answers what is told when it breaks for good.
    pub fn break_at(&self, step: usize, how: Break) -> CancellationToken {
        let broken = CancellationToken::new();
        *self.plan() = Plan { break_at: Some((step, how)), broken: broken.clone(), ..Plan::default() };
        broken
    }

    /// Holds up whoever comes there next, once.
    pub fn hold_at(&self, held: Held) -> Gate {
        let gate = Gate::default();
        self.plan().hold_at = Some((held, gate.clone()));
        gate
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().expect("not poisoned")
    }

    /// Whether the connection is there, and where to wait first.
    fn next(&self, step: Step<'_>) -> (bool, Option<Gate>) {
        let mut plan = self.plan();
        plan.steps += 1;
        if matches!(step, Step::Commit | Step::Committed) {
            let this = plan.steps;
            plan.commits.push(this);
        }
        let is_there = match plan.break_at {
            Some((at, Break::Once)) => plan.steps != at,
            Some((at, Break::ForGood)) => plan.steps < at,
            None => true,
        };
        if !is_there && matches!(plan.break_at, Some((_, Break::ForGood))) {
            plan.broken.cancel();
        }
        let gate = plan.hold_at.take_if(|(held, _)| match (*held, step) {
            (Held::BeforeBegin, Step::Begin) => true,
            (Held::Before(part), Step::Statement(sql)) => sql.contains(part),
            (Held::BeforeBeginAfter(part), Step::Statement(sql)) if sql.contains(part) => {
                *held = Held::BeforeBegin;
                false
            }
            _ => false,
        });
        (is_there, gate.map(|(_, gate)| gate))
    }
}

impl FaultInjector for Meddler {
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        let (is_there, gate) = self.next(step);
        async move {
            if let Some(gate) = gate {
                gate.wait().await;
            }
            if is_there {
                return Ok(());
            }
            let lost = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "the test took it away");
            Err(Error::Database(sqlx::Error::Io(lost)))
        }
        .boxed()
    }
}
