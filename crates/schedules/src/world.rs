//! What a test runs in: a database that all its schedules share, a runtime whose time only the test moves, and a scheduler.

pub mod faults;

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Duration;

use landfall_core::clock::{Ahead, SimulatedTime};
use landfall_store::{Db, FaultInjector, SimulatedDatabase, Tx, Write};
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};
use tokio::runtime::Runtime;
use tokio::time::Instant;

thread_local! {
    static DATABASE: RefCell<Option<SimulatedDatabase>> = const { RefCell::new(None) };
    // It is never dropped: after a schedule that failed it would wake tasks that are gone.
    static RUNTIME: &'static Runtime = Box::leak(Box::new(
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime of one thread"),
    ));
}

/// More steps than any schedule needs that does not wait for something that never comes.
const MAX_STEPS: usize = 200_000;
const STACK_BYTES: usize = 1 << 20;
/// In how many places the second scheduler changes the order that it has drawn.
const PCT_DEPTH: usize = 3;

/// Runs a test in many orders: half of them with each step drawn by itself, half with few changes of who runs.
/// `LANDFALL_SCHEDULES` multiplies their number.
pub fn check(schedules: usize, test: impl Fn() + Send + Sync + Copy + 'static) {
    let times = std::env::var("LANDFALL_SCHEDULES").ok().and_then(|times| times.parse().ok()).unwrap_or(1);
    let schedules = schedules * times;
    landfall_core::blocking::stay_on_this_thread();
    // A sleep needs a runtime around it. No task of the runtime runs, and its time stands.
    RUNTIME.with(|runtime| {
        let _inside = runtime.enter();
        run(RandomScheduler::new(schedules / 2), test);
        run(PctScheduler::new(PCT_DEPTH, schedules / 2), test);
    });
}

fn run(scheduler: impl Scheduler + 'static, test: impl Fn() + Send + Sync + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.max_steps = MaxSteps::FailAfter(MAX_STEPS);
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(test);
}

/// Connects a process to the database of this thread, which the first schedule creates.
pub fn connect(faults: Option<Arc<dyn FaultInjector>>) -> Db {
    DATABASE.with_borrow_mut(|database| {
        let database =
            database.get_or_insert_with(|| SimulatedDatabase::create().expect("a database in memory"));
        database.connect(1, Ahead::default(), faults)
    })
}

/// Lets the time of the runtime pass until the next sleep ends, if that is soon.
#[expect(clippy::disallowed_methods, reason = "the time of this runtime moves here")]
pub fn end_sleep_within(time: &SimulatedTime, soon: Duration) {
    let now = Instant::now();
    let Some(wait) = time.next_end().map(|end| end.saturating_duration_since(now)) else { return };
    if wait < soon {
        let wait = wait + Duration::from_millis(1);
        RUNTIME.with(|runtime| runtime.block_on(tokio::time::advance(wait)));
        time.ends_by(now + wait);
    }
}

/// A change that a test writes in one line.
pub struct Run(pub Vec<&'static str>);

impl Write for Run {
    type Output = ();

    async fn apply(&self, tx: &mut Tx) -> Result<(), landfall_store::Error> {
        for sql in &self.0 {
            tx.execute(*sql, Vec::new()).await?;
        }
        Ok(())
    }
}
