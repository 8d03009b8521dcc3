//! When a delivery that did not arrive is tried again.
//!
//! | attempt that failed | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 and later |
//! |---|---|---|---|---|---|---|---|---|
//! | next one after | 5 s | 30 s | 2 min | 10 min | 30 min | 1 h | 2 h | 4 h |
//!
//! Each wait varies by a tenth, so that what failed together does not come back together, and an endpoint's own
//! `Retry-After` may make it longer. No attempt is made later than a day after the first: then the delivery is exhausted.
//! That is thirteen attempts or so.
//!
//! An endpoint that fails at everything is left in peace for a while as a whole, so that a long line of deliveries does
//! not knock at a closed door all day: after the fifth failure in a row for 5 s, then for twice as long each time, up to
//! 5 min. One that fails at some deliveries and takes others is not.

use std::time::Duration;

use landfall_core::clock::{Time, to_delta};

const WAITS: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(30),
    Duration::from_mins(2),
    Duration::from_mins(10),
    Duration::from_mins(30),
    Duration::from_hours(1),
    Duration::from_hours(2),
    Duration::from_hours(4),
];
const ALL: Duration = Duration::from_hours(24);
const FAILURES_BEFORE_REST: i64 = 5;
const FIRST_REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_mins(5);

/// When to try again after so many attempts, all of which failed; `None` when the day is over. `chance` is from 0 to 1.
pub fn next_attempt(
    attempts: i64,
    first_at: Time,
    now: Time,
    retry_after: Option<Duration>,
    chance: f64,
) -> Option<Time> {
    let step = usize::try_from(attempts - 1).unwrap_or_default().min(WAITS.len() - 1);
    let wait = WAITS[step].mul_f64(0.9 + 0.2 * chance.clamp(0.0, 1.0));
    let next_at = now + to_delta(wait.max(retry_after.unwrap_or_default()));
    (next_at <= first_at + to_delta(ALL)).then_some(next_at)
}

/// Until when an endpoint is left in peace after so many failures in a row.
pub fn rest(failures: i64, now: Time, retry_after: Option<Duration>) -> Option<Time> {
    let doublings = u32::try_from(failures - FAILURES_BEFORE_REST).ok();
    let own = doublings.map(|doublings| LONGEST_REST.min(FIRST_REST * 2_u32.pow(doublings.min(10))));
    own.max(retry_after).map(|rest| now + to_delta(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> Time {
        "2026-01-02T03:04:05Z".parse().unwrap()
    }

    #[test]
    fn attempts_are_made_for_a_day_and_then_no_more() {
        for chance in [0.0, 0.5, 1.0] {
            let (mut now, mut attempts) = (start(), 1);
            while let Some(next) = next_attempt(attempts, start(), now, None, chance) {
                assert!(next > now);
                (now, attempts) = (next, attempts + 1);
            }
            assert!((12..=14).contains(&attempts), "{attempts}");
            assert!(
                now <= start() + to_delta(ALL) && now > start() + to_delta(Duration::from_hours(19)),
                "{now}"
            );
        }
    }

    #[test]
    fn waits_grow_and_vary_by_a_tenth() {
        let wait = |attempts, chance| {
            (next_attempt(attempts, start(), start(), None, chance).unwrap() - start()).num_milliseconds()
        };
        assert_eq!([wait(1, 0.0), wait(1, 0.5), wait(1, 1.0)], [4_500, 5_000, 5_500]);
        assert_eq!([wait(2, 0.5), wait(8, 0.5), wait(50, 0.5)], [30_000, 14_400_000, 14_400_000]);
    }

    #[test]
    fn an_endpoint_may_ask_for_more_time_but_not_for_more_than_the_day() {
        let hour = Duration::from_hours(1);
        assert_eq!(next_attempt(1, start(), start(), Some(hour), 0.5), Some(start() + to_delta(hour)));
        let late = start() + to_delta(Duration::from_mins(23 * 60 + 30));
        assert_eq!(next_attempt(3, start(), late, Some(hour), 0.5), None);
    }

    #[test]
    fn an_endpoint_is_left_in_peace_only_when_it_fails_at_everything() {
        let seconds = |failures| rest(failures, start(), None).map(|until| (until - start()).num_seconds());
        assert_eq!([seconds(1), seconds(4), seconds(5), seconds(6)], [None, None, Some(5), Some(10)]);
        assert_eq!([seconds(11), seconds(12), seconds(1_000_000)], [Some(300); 3]);
        let asked = rest(1, start(), Some(Duration::from_secs(7)));
        assert_eq!(asked, Some(start() + to_delta(Duration::from_secs(7))));
    }
}
