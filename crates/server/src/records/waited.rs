//! For how long a file has waited at its stage, for each service that failed it.
//!
//! The time between two failures belongs to the service that failed first: it is what the file waited for. Times are
//! differences and may be negative, because the clocks of two processes differ. Their sum is right all the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use landfall_core::clock::Time;
use landfall_core::failure::Code;
use landfall_core::service::Service;

/// The last failure of a file: with what, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed {
    pub code: Code,
    pub at: Time,
}

/// Microseconds, by the name of the service. What is not a service of its own, like the database, has the name of its code.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Waited(BTreeMap<Cow<'static, str>, i64>);

impl Waited {
    /// For how long the file has waited for the service of this code.
    pub fn for_service_of(&self, code: Code) -> TimeDelta {
        TimeDelta::microseconds(self.0.get(name(code)).copied().unwrap_or(0))
    }

    /// The first wait: the service of `code` fails the file since `since`.
    pub fn first(code: Code, since: Time, now: Time) -> Self {
        let mut waited = Self::default();
        waited.add(code, now - since);
        waited
    }

    /// The file waited since `waiting_since`, failed with `last`, and fails now with `code`, whose service fails it since
    /// `failing_since`.
    #[must_use]
    pub fn until(
        mut self,
        waiting_since: Time,
        last: Failed,
        code: Code,
        failing_since: Time,
        now: Time,
    ) -> Self {
        if self.0.is_empty() {
            self.add(last.code, last.at - waiting_since);
        }
        if name(last.code) == name(code) {
            self.add(code, now - last.at);
        } else {
            let turn = failing_since.max(last.at).min(now);
            self.add(last.code, turn - last.at);
            self.add(code, now - turn);
        }
        self
    }

    fn add(&mut self, code: Code, time: TimeDelta) {
        let waited = self.0.entry(Cow::Borrowed(name(code))).or_default();
        *waited = waited.saturating_add(time.num_microseconds().unwrap_or(0));
    }
}

fn name(code: Code) -> &'static str {
    code.service().map_or(code.name(), Service::name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn at(second: i64) -> Time {
        DateTime::from_timestamp(1_000_000 + second, 0).unwrap()
    }

    fn failed(code: Code, second: i64) -> Failed {
        Failed { code, at: at(second) }
    }

    fn seconds(waited: &Waited, code: Code) -> i64 {
        waited.for_service_of(code).num_seconds()
    }

    #[test]
    fn the_wait_for_one_service_lasts_from_its_first_failure_whatever_its_code() {
        let waited = Waited::first(Code::GatewayUnavailable, at(5), at(10));
        let waited =
            waited.until(at(5), failed(Code::GatewayUnavailable, 10), Code::Gateway5xx, at(20), at(20));
        let waited = waited.until(at(5), failed(Code::Gateway5xx, 20), Code::GatewayTimeout, at(0), at(65));
        assert_eq!(seconds(&waited, Code::GatewayUnavailable), 60);
    }

    #[test]
    fn time_belongs_to_the_service_that_failed_before_it() {
        let waited = Waited::first(Code::EmbedError, at(0), at(0));
        let waited = waited.until(at(0), failed(Code::EmbedError, 0), Code::DbError, at(100), at(100));
        assert_eq!((seconds(&waited, Code::EmbedError), seconds(&waited, Code::DbError)), (100, 0));
        let waited = waited.until(at(0), failed(Code::DbError, 100), Code::EmbedError, at(103), at(103));
        assert_eq!((seconds(&waited, Code::EmbedError), seconds(&waited, Code::DbError)), (100, 3));
        let waited = waited.until(at(0), failed(Code::EmbedError, 103), Code::EmbedError, at(103), at(203));
        assert_eq!((seconds(&waited, Code::EmbedError), seconds(&waited, Code::DbError)), (200, 3));
    }

    #[test]
    fn a_service_that_is_down_for_all_files_counts_from_when_the_file_was_due() {
        let waited = Waited::first(Code::EmbedError, at(0), at(0));
        let waited = waited.until(at(0), failed(Code::EmbedError, 0), Code::IoError, at(40), at(100));
        assert_eq!((seconds(&waited, Code::EmbedError), seconds(&waited, Code::IoError)), (40, 60));
    }

    /// Rows of an older version, and files that an outage gives their attempt back, have only `waiting_since`.
    #[test]
    fn a_wait_without_parts_was_for_the_service_that_failed_last() {
        let waited = Waited::default();
        let waited = waited.until(at(0), failed(Code::EmbedError, 50), Code::DbError, at(60), at(60));
        assert_eq!((seconds(&waited, Code::EmbedError), seconds(&waited, Code::DbError)), (60, 0));
    }

    #[test]
    fn clocks_that_differ_do_not_make_a_wait_longer() {
        let mut waited = Waited::first(Code::EmbedError, at(0), at(0));
        // Every other failure is told by a process whose clock is ten seconds ahead.
        let mut last = 0;
        for turn in 1..=100 {
            let now = turn + if turn % 2 == 1 { 10 } else { 0 };
            waited = waited.until(at(0), failed(Code::EmbedError, last), Code::EmbedError, at(now), at(now));
            last = now;
        }
        assert_eq!(seconds(&waited, Code::EmbedError), 100);
    }
}
