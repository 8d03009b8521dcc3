//! Lines about what clients can cause at any rate: at most one a minute, with the number of times.

use std::sync::{Mutex, PoisonError};

use chrono::TimeDelta;

use landfall_core::clock::Time;

const INTERVAL: TimeDelta = TimeDelta::minutes(1);

#[derive(Debug, Default)]
pub struct Occasional(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last: Option<Time>,
    count: u64,
}

impl Occasional {
    /// Counts an occurrence. Returns how many there were since the last line, if a line is due.
    pub fn count(&self, now: Time) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.count += 1;
        if state.last.is_some_and(|last| now - last < INTERVAL) {
            return None;
        }
        state.last = Some(now);
        Some(std::mem::take(&mut state.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_at_most_one_line_a_minute_and_it_has_the_number() {
        let lines = Occasional::default();
        let start = Time::UNIX_EPOCH;
        assert_eq!(lines.count(start), Some(1));
        for second in 1..60 {
            assert_eq!(lines.count(start + TimeDelta::seconds(second)), None);
        }
        assert_eq!(lines.count(start + TimeDelta::seconds(60)), Some(60));
        assert_eq!(lines.count(start + TimeDelta::seconds(61)), None);
    }
}
