//! When a sweep runs: a cron expression, in UTC.

use std::str::FromStr;

use chrono::{DateTime, SubsecRound};
use croner::Cron;

use landfall_core::clock::Time;

#[derive(Debug, Clone)]
pub struct Schedule {
    text: String,
    cron: Cron,
}

impl Schedule {
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The first time after `now`; `None` if there is no more.
    pub fn next_after(&self, now: Time) -> Option<Time> {
        self.cron.find_next_occurrence(&now.trunc_subsecs(0), false).ok()
    }
}

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let cron = Cron::from_str(text)
            .map_err(|_| "a cron expression of five fields, in UTC, like */5 * * * *".to_owned())?;
        let schedule = Self { text: text.to_owned(), cron };
        match schedule.next_after(DateTime::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err("a cron expression whose time comes, which the 30th of February does not".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(schedule: &str, after: &str) -> String {
        let schedule: Schedule = schedule.parse().expect("a schedule");
        let next = schedule.next_after(after.parse().expect("a time")).expect("a time that comes");
        next.to_rfc3339_opts(chrono::SecondsFormat::AutoSi, true)
    }

    #[test]
    fn the_next_time_is_always_later() {
        assert_eq!(next("*/5 * * * *", "2026-01-02T03:04:05.678Z"), "2026-01-02T03:05:00Z");
        assert_eq!(next("*/5 * * * *", "2026-01-02T03:05:00Z"), "2026-01-02T03:10:00Z");
        assert_eq!(next("*/5 * * * *", "2026-01-02T03:04:59.999999Z"), "2026-01-02T03:05:00Z");
        assert_eq!(next("0 3 * * *", "2026-12-31T03:00:00.000001Z"), "2027-01-01T03:00:00Z");
    }

    #[test]
    fn what_never_comes_or_is_no_expression_is_refused() {
        for text in ["", "often", "* * *", "61 * * * *", "0 0 30 2 *"] {
            assert!(text.parse::<Schedule>().is_err(), "{text}");
        }
    }
}
