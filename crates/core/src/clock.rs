//! The only module that reads the time. Other code receives a [`Clock`], so that a test can stop the time.

mod shared;

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use tokio::sync::watch;
use uuid::Uuid;

use crate::random;

pub use shared::{Reading, SharedClock};

pub type Time = DateTime<Utc>;

/// How long a sleep until a time may last before the time is read again, on a clock that may be corrected.
const BETWEEN_CORRECTIONS: Duration = Duration::from_secs(10);

#[derive(Debug, Clone)]
pub enum Clock {
    /// The clock of this machine.
    System,
    /// The time of the database that several machines share.
    Shared(SharedClock),
    /// The clock of a machine that is ahead by this much (behind, if negative), for tests.
    Skewed(TimeDelta),
    Manual(ManualClock),
}

impl Clock {
    /// Now, cut to microseconds: what PostgreSQL keeps, so that a value read back equals the one written.
    pub fn now(&self) -> Time {
        match self {
            Self::System => system_now(),
            Self::Shared(clock) => clock.now(),
            Self::Skewed(ahead) => system_now() + *ahead,
            Self::Manual(clock) => *clock.now.borrow(),
        }
    }

    /// Resolves when `duration` has passed, counted from this call and not from the first poll of the future.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        let clock = self.clone();
        let deadline = self.now() + to_delta(duration);
        #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
        let timer = (!matches!(self, Self::Manual(_))).then(|| {
            let timer = tokio::time::sleep(duration);
            SIMULATED.with_borrow(|time| time.iter().for_each(|time| time.expect(timer.deadline())));
            timer
        });
        async move {
            match (clock, timer) {
                (Self::Manual(clock), _) => clock.wait_until(deadline).await,
                (_, Some(timer)) => timer.await,
                (_, None) => unreachable!("a clock that runs by itself has a timer"),
            }
        }
    }

    /// Resolves when the clock has reached `at`.
    pub async fn sleep_until(&self, at: Time) {
        match self {
            Self::Manual(clock) => clock.wait_until(at).await,
            Self::System | Self::Skewed(_) => {
                self.sleep((at - self.now()).to_std().unwrap_or_default()).await;
            }
            // The clock may be corrected meanwhile.
            Self::Shared(_) => {
                while let Ok(left) = (at - self.now()).to_std()
                    && !left.is_zero()
                {
                    self.sleep(left.min(BETWEEN_CORRECTIONS)).await;
                }
            }
        }
    }

    /// A new id; ids of one process ascend with the time.
    pub fn new_id(&self) -> Uuid {
        new_id_at(self.now())
    }
}

/// A new id for that time, for code that receives the time and not the clock.
pub fn new_id_at(now: Time) -> Uuid {
    static CONTEXT: LazyLock<Mutex<uuid::ContextV7>> = LazyLock::new(|| Mutex::new(uuid::ContextV7::new()));
    if let Some(id) = random::seeded_id_at(u64::try_from(now.timestamp_millis()).unwrap_or_default()) {
        return id;
    }
    let context = CONTEXT.lock().unwrap_or_else(PoisonError::into_inner);
    let time = uuid::Timestamp::from_unix(
        &*context,
        u64::try_from(now.timestamp()).unwrap_or_default(),
        now.timestamp_subsec_nanos(),
    );
    #[expect(clippy::disallowed_methods, reason = "this is where ids come from")]
    Uuid::new_v7(time)
}

/// Measures how long something takes in real time, also under a manual clock. In a simulation it is the simulated time.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch(tokio::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn start() -> Self {
        Self(tokio::time::Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

thread_local! {
    static SIMULATED: RefCell<Option<SimulatedTime>> = const { RefCell::new(None) };
}

/// By how many milliseconds the clock of a simulated machine is ahead (behind, if negative). All who hold a copy see a change.
#[derive(Debug, Clone, Default)]
pub struct Ahead(Arc<AtomicI64>);

impl Ahead {
    pub fn of(milliseconds: i64) -> Self {
        Self(Arc::new(AtomicI64::new(milliseconds)))
    }

    pub fn delta(&self) -> TimeDelta {
        TimeDelta::milliseconds(self.0.load(Ordering::Relaxed))
    }

    /// The clock is set to another time.
    pub fn jump(&self, milliseconds: i64) {
        self.0.fetch_add(milliseconds, Ordering::Relaxed);
    }
}

/// The clock of a simulated machine: it goes with the time of its runtime, which only the simulation moves.
#[derive(Debug, Clone)]
pub struct SimulatedTime {
    start: Time,
    since: tokio::time::Instant,
    ahead: Ahead,
    /// When its sleeps end, also those that were given up.
    ends: Arc<Mutex<BinaryHeap<Reverse<tokio::time::Instant>>>>,
}

impl SimulatedTime {
    /// A clock at a moment of the current runtime at which it is `now`, and that is ahead of this time.
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    pub fn starting_at(now: Time, ahead: Ahead) -> Self {
        Self { start: now, since: tokio::time::Instant::now(), ahead, ends: Arc::default() }
    }

    /// From now on this is the clock of the machine, as this thread sees it.
    pub fn enter(&self) {
        SIMULATED.set(Some(self.clone()));
    }

    fn expect(&self, end: tokio::time::Instant) {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(end));
    }

    /// Whether a sleep ends at this moment of its runtime or before. Those that do are forgotten.
    pub fn ends_by(&self, now: tokio::time::Instant) -> bool {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let before = ends.len();
        while ends.peek().is_some_and(|Reverse(end)| *end <= now) {
            ends.pop();
        }
        ends.len() < before
    }

    /// When the next of its sleeps ends.
    pub fn next_end(&self) -> Option<tokio::time::Instant> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner).peek().map(|Reverse(end)| *end)
    }

    /// The moment of its runtime at which it began.
    pub fn origin(&self) -> tokio::time::Instant {
        self.since
    }
}

fn system_now() -> Time {
    let simulated = SIMULATED.with_borrow(|time| {
        time.as_ref().map(|time| time.start + time.ahead.delta() + to_delta(time.since.elapsed()))
    });
    if let Some(now) = simulated {
        return now;
    }
    #[expect(clippy::disallowed_methods, reason = "this is where the time comes from")]
    let now = DateTime::<Utc>::from(std::time::SystemTime::now());
    now.duration_trunc(TimeDelta::microseconds(1)).unwrap_or(now)
}

/// A clock that only moves when a test advances it. A sleep ends when the clock has reached its deadline.
#[derive(Debug, Clone)]
pub struct ManualClock {
    now: Arc<watch::Sender<Time>>,
}

impl ManualClock {
    pub fn starting_at(now: Time) -> Self {
        Self { now: Arc::new(watch::Sender::new(now)) }
    }

    pub fn advance(&self, duration: Duration) {
        self.now.send_modify(|now| *now += to_delta(duration));
    }

    async fn wait_until(&self, deadline: Time) {
        self.now
            .subscribe()
            .wait_for(|now| *now >= deadline)
            .await
            .expect("the sender lives as long as this clock");
    }
}

/// A duration in words for people: `45 seconds`, `3 minutes`, `2 hours`.
pub fn spoken(duration: TimeDelta) -> String {
    let seconds = duration.num_seconds().max(1);
    let (number, unit) = match seconds {
        ..120 => (seconds, "second"),
        120..7_200 => (seconds / 60, "minute"),
        7_200..172_800 => (seconds / 3_600, "hour"),
        _ => (seconds / 86_400, "day"),
    };
    if number == 1 { format!("1 {unit}") } else { format!("{number} {unit}s") }
}

/// A duration that the calendar can hold, cut to microseconds. A longer one is capped at a thousand years.
pub fn to_delta(duration: Duration) -> TimeDelta {
    let microseconds = i64::try_from(duration.as_micros()).unwrap_or(i64::MAX);
    TimeDelta::microseconds(microseconds).min(TimeDelta::days(365_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_in_words_is_never_zero() {
        let words =
            [0, 1, 45, 119, 180, 7_199, 7_200, 200_000].map(|seconds| spoken(TimeDelta::seconds(seconds)));
        let expected = [
            "1 second",
            "1 second",
            "45 seconds",
            "119 seconds",
            "3 minutes",
            "119 minutes",
            "2 hours",
            "2 days",
        ];
        assert_eq!(words, expected);
    }
}
