//! When a failed delivery is retried.
//!
//! | attempt that failed | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 and later |
//! |---|---|---|---|---|---|---|---|---|
//! | next one after | 5 s | 30 s | 2 min | 10 min | 30 min | 1 h | 2 h | 4 h |
//!
//! Each delay varies by a tenth, so that deliveries that failed together are not retried together, and a
//! `Retry-After` of the endpoint may make it longer. No attempt is made later than a day after the first: then the
//! delivery is exhausted. That is about thirteen attempts.
//!
//! An endpoint that fails for every delivery gets a back-off as a whole, so that a long queue of deliveries does
//! not keep calling it: after the fifth failure in a row for 5 s, then for twice as long each time, up to 5 min. An
//! endpoint that accepts some of its deliveries gets none.

use std::time::Duration;

use landfall_core::clock::{Time, to_delta};

const DELAYS: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(1),
    Duration::from_hours(2),
    Duration::from_hours(4),
];
const MAX_AGE: Duration = Duration::from_hours(24);
const FAILURES_BEFORE_BACKOFF: i64 = 5;
const FIRST_BACKOFF: Duration = Duration::from_secs(5);
const MAX_BACKOFF: Duration = Duration::from_mins(5);

/// When to retry after so many failed attempts; `None` when the day is over. `chance` is from 0 to 1.
pub fn next_attempt(
    attempts: i64,
    first_at: Time,
    now: Time,
    retry_after: Option<Duration>,
    chance: f64,
) -> Option<Time> {
    let step = usize::try_from(attempts - 1).unwrap_or_default().min(DELAYS.len() - 1);
    let wait = DELAYS[step].mul_f64(0.9 + 0.2 * chance.clamp(0.0, 1.0));
    let next_at = now + to_delta(wait.max(retry_after.unwrap_or_default()));
    (next_at <= first_at + to_delta(MAX_AGE)).then_some(next_at)
}

/// Until when an endpoint gets no requests after so many failures in a row.
pub fn backoff_until(failures: i64, now: Time, retry_after: Option<Duration>) -> Option<Time> {
    let doublings = u32::try_from(failures - FAILURES_BEFORE_BACKOFF).ok();
    let own = doublings.map(|doublings| MAX_BACKOFF.min(FIRST_BACKOFF * 2_u32.pow(doublings.min(10))));
    own.max(retry_after).map(|rest| now + to_delta(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Time {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn attempts_are_made_for_a_day() {
        for chance in [0.0, 0.5, 1.0] {
            let (mut now, mut attempts) = (start(), 1);
            while let Some(next) = next_attempt(attempts, start(), now, None, chance) {
                assert!(next > now);
                (now, attempts) = (next, attempts + 1);
            }
            assert!((12..=14).contains(&attempts), "{attempts}");
            assert!(
                now <= start() + to_delta(MAX_AGE) && now > start() + to_delta(Duration::from_hours(19)),
                "{now}"
            );
        }
    }

    #[test]
    fn delays_grow_and_vary_by_a_tenth() {
        let wait = |attempts, chance| {
            (next_attempt(attempts, start(), start(), None, chance).unwrap() - start()).num_milliseconds()
        };
        assert_eq!([wait(1, 0.0), wait(1, 0.5), wait(1, 1.0)], [4_500, 5_000, 5_500]);
        assert_eq!([wait(2, 0.5), wait(8, 0.5), wait(50, 0.5)], [30_000, 14_400_000, 14_400_000]);
    }

    #[test]
    fn an_endpoint_may_ask_for_a_longer_delay_up_to_a_day() {
        let hour = Duration::from_hours(1);
        assert_eq!(next_attempt(1, start(), start(), Some(hour), 0.5), Some(start() + to_delta(hour)));
        let late = start() + to_delta(Duration::from_mins(23 * 60 + 30));
        assert_eq!(next_attempt(3, start(), late, Some(hour), 0.5), None);
    }

    #[test]
    fn an_endpoint_gets_a_backoff_only_after_failures_in_a_row() {
        let seconds =
            |failures| backoff_until(failures, start(), None).map(|until| (until - start()).num_seconds());
        assert_eq!([seconds(1), seconds(4), seconds(5), seconds(6)], [None, None, Some(5), Some(10)]);
        assert_eq!([seconds(11), seconds(12), seconds(1_000_000)], [Some(300); 3]);
        let asked = backoff_until(1, start(), Some(Duration::from_secs(7)));
        assert_eq!(asked, Some(start() + to_delta(Duration::from_secs(7))));
    }
}
