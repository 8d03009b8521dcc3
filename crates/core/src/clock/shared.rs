//! The time of a database that several machines share.
//!
//! Every machine has a clock of its own, and they differ. What one machine writes and another compares must be one time,
//! so all of them follow the database's. A process reads it now and then, and in between counts on with its monotonic
//! clock, which no change of the machine's time moves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;

use super::{Stopwatch, Time, to_delta};

/// What the database's clock showed, and how long it took to ask.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    pub time: Time,
    pub round_trip: Duration,
}

impl Reading {
    /// The time at which the answer arrived, if the way there and the way back took equally long. The error is at most
    /// half of the round trip.
    pub fn at_arrival(&self) -> Time {
        self.time + to_delta(self.round_trip / 2)
    }

    /// Whether `shown` may have been the database's time when the answer arrived.
    fn allows(&self, shown: Time) -> bool {
        shown >= self.time && shown <= self.time + to_delta(self.round_trip)
    }
}

/// Shows the database's time. It never goes back: if it is ahead, it runs at half speed until the database has caught up.
#[derive(Debug, Clone)]
pub struct SharedClock {
    face: Arc<Mutex<Face>>,
}

#[derive(Debug, Clone, Copy)]
struct Face {
    /// What it showed at the last correction.
    shown: Time,
    /// By how much that was ahead of the database.
    ahead: TimeDelta,
    since: Stopwatch,
}

impl Face {
    fn now(&self) -> Time {
        self.after(self.since.elapsed())
    }

    fn after(&self, elapsed: Duration) -> Time {
        let made_up = self.ahead.min(to_delta(elapsed / 2));
        self.shown + to_delta(elapsed) - made_up
    }

    fn corrected(shown: Time, reading: &Reading) -> Self {
        let database = if reading.allows(shown) { shown } else { reading.at_arrival() };
        Self { shown: shown.max(database), ahead: shown.max(database) - database, since: Stopwatch::start() }
    }
}

impl SharedClock {
    pub fn starting_at(reading: &Reading) -> Self {
        let face = Face::corrected(reading.at_arrival(), reading);
        Self { face: Arc::new(Mutex::new(face)) }
    }

    /// Follows what the database's clock shows. A reading that agrees with this clock, as far as its round trip allows to
    /// tell, changes nothing.
    pub fn correct(&self, reading: &Reading) {
        let mut face = self.face.lock().unwrap_or_else(PoisonError::into_inner);
        *face = Face::corrected(face.now(), reading);
    }

    pub fn now(&self) -> Time {
        self.face.lock().unwrap_or_else(PoisonError::into_inner).now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noon() -> Time {
        "2026-01-02T12:00:00Z".parse().expect("a time")
    }

    fn reading(seconds_after_noon: i64, round_trip_ms: u64) -> Reading {
        Reading {
            time: noon() + TimeDelta::seconds(seconds_after_noon),
            round_trip: Duration::from_millis(round_trip_ms),
        }
    }

    #[test]
    fn a_clock_that_is_behind_is_put_forward_at_once() {
        let face = Face::corrected(noon(), &reading(25, 2));
        assert_eq!(face.after(Duration::ZERO), noon() + TimeDelta::milliseconds(25_001));
        assert_eq!(face.after(Duration::from_secs(1)), noon() + TimeDelta::milliseconds(26_001));
    }

    #[test]
    fn a_clock_that_is_ahead_never_goes_back_and_is_caught_up_with() {
        let face = Face::corrected(noon(), &reading(-10, 0));
        let shown = |seconds| face.after(Duration::from_secs(seconds)) - noon();
        assert_eq!(shown(0), TimeDelta::zero());
        assert_eq!(shown(2), TimeDelta::seconds(1), "it runs at half speed");
        // After 20 s the database shows noon and 10 s, and so does the clock.
        assert_eq!(shown(20), TimeDelta::seconds(10));
        assert_eq!(shown(30), TimeDelta::seconds(20), "from then on both run alike");
    }

    #[test]
    fn a_reading_that_took_long_changes_nothing_that_it_cannot_disprove() {
        for slow in [reading(0, 4_000), reading(-4, 4_000), reading(-2, 4_000)] {
            assert_eq!(Face::corrected(noon(), &slow).after(Duration::ZERO), noon());
        }
        assert!(Face::corrected(noon(), &reading(1, 4_000)).after(Duration::ZERO) > noon());
    }

    #[test]
    fn what_it_shows_only_ascends() {
        let clock = SharedClock::starting_at(&reading(0, 0));
        let mut last = clock.now();
        for seconds in [5, -3, 100, -7_200, 1, 7_200] {
            clock.correct(&reading(seconds, 0));
            assert!(clock.now() >= last);
            last = clock.now();
        }
    }
}
