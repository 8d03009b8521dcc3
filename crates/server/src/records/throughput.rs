//! How many files of each user came to their end in the last day, and how long they took, in slots of five minutes: a day
//! is then a few hundred rows to add up, whatever went through.

use std::collections::BTreeMap;

use chrono::{DurationRound, TimeDelta};

use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

const SLOT: TimeDelta = TimeDelta::minutes(5);
const DAY: TimeDelta = TimeDelta::hours(24);
/// The name under which the counts of all users are kept. No user has it.
const ALL_USERS: &str = "";

/// What the slots of users grow by, or shrink by where a failed file is retried.
#[derive(Default)]
pub struct Ends(BTreeMap<(String, Time), Ended>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct Ended {
    pub completed: i64,
    pub failed: i64,
    /// From confirm to ready, of all that were completed.
    pub processing_ms: i64,
}

impl Ended {
    pub fn average_processing_ms(&self) -> i64 {
        if self.completed == 0 { 0 } else { (self.processing_ms + self.completed / 2) / self.completed }
    }

    /// In a hundred, to two decimals.
    pub fn failure_rate(&self) -> f64 {
        let all = self.completed + self.failed.max(0);
        if all == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "no user has so many files that it shows")]
        let rate = self.failed.max(0) as f64 * 10_000.0 / all as f64;
        rate.round() / 100.0
    }
}

impl Ends {
    pub fn completed(&mut self, user: &str, processing_ms: i64, now: Time) {
        self.change(user, now, |ended| {
            ended.completed += 1;
            ended.processing_ms += processing_ms;
        });
    }

    pub fn failed(&mut self, user: &str, now: Time) {
        self.change(user, now, |ended| ended.failed += 1);
    }

    /// A file that failed within the day is retried. It counts again with how it ends then, so that files are counted and not
    /// failures.
    pub fn not_failed_any_more(&mut self, user: &str, failed_at: Time, now: Time) {
        if failed_at >= oldest_kept(now) {
            self.change(user, failed_at, |ended| ended.failed -= 1);
        }
    }

    /// Changes the counts of the user, and of all users.
    fn change(&mut self, user: &str, at: Time, change: impl Fn(&mut Ended)) {
        for name in [ALL_USERS, user] {
            change(self.0.entry((name.to_owned(), slot(at))).or_default());
        }
    }

    /// In the order of their names, so that two processes never wait for one another.
    pub async fn write(self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        for ((user, slot), ended) in self.0 {
            rows.push(args![user, slot, ended.completed, ended.failed, ended.processing_ms]);
        }
        tx.insert(
            "throughput (user_id, slot, completed, failed, processing_ms)",
            rows,
            "ON CONFLICT (user_id, slot) DO UPDATE SET completed = throughput.completed + excluded.completed,
                 failed = throughput.failed + excluded.failed,
                 processing_ms = throughput.processing_ms + excluded.processing_ms",
        )
        .await
    }
}

fn slot(at: Time) -> Time {
    at.duration_trunc(SLOT).unwrap_or(at)
}

/// The slot before which nothing is kept.
pub fn oldest_kept(now: Time) -> Time {
    slot(now - DAY)
}

/// The last day, from the slot on that it began in: of one user, or of all.
pub async fn last_day(tx: &mut Tx, user: Option<&str>, now: Time) -> Result<Ended, Error> {
    let ended: Option<Ended> = tx
        .row(
            "SELECT CAST(COALESCE(SUM(completed), 0) AS BIGINT) AS completed,
                    CAST(COALESCE(SUM(failed), 0) AS BIGINT) AS failed,
                    CAST(COALESCE(SUM(processing_ms), 0) AS BIGINT) AS processing_ms
             FROM throughput WHERE user_id = $1 AND slot >= $2",
            args![user.unwrap_or(ALL_USERS), oldest_kept(now)],
        )
        .await?;
    Ok(ended.unwrap_or_default())
}

/// Removes up to `limit` slots before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM throughput WHERE (user_id, slot) IN (SELECT user_id, slot FROM throughput WHERE slot < $1 LIMIT $2)
         AND slot < $1",
        args![before, limit],
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_a_hundred_and_nothing_is_no_failure() {
        assert!((Ended::default().failure_rate()).abs() < f64::EPSILON);
        let ended = Ended { completed: 2, failed: 1, processing_ms: 301 };
        assert!((ended.failure_rate() - 33.33).abs() < 1e-9);
        assert_eq!(ended.average_processing_ms(), 151);
    }

    #[test]
    fn what_a_user_ends_counts_for_them_and_for_everybody() {
        let now = Time::from_timestamp(1_000_000_000, 0).unwrap();
        let mut ends = Ends::default();
        ends.completed("ada", 10, now);
        ends.failed("bob", now);
        let seen = |ends: &Ends| -> Vec<(String, i64, i64)> {
            ends.0.iter().map(|((user, _), e)| (user.clone(), e.completed, e.failed)).collect()
        };
        assert_eq!(seen(&ends), [(String::new(), 1, 1), ("ada".into(), 1, 0), ("bob".into(), 0, 1)]);
        ends.not_failed_any_more("bob", now, now);
        ends.failed("bob", now);
        assert_eq!(seen(&ends)[2].2, 1, "one file failed, however often");
    }
}
