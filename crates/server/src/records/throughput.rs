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

/// What a user's slot grows by.
#[derive(Default)]
pub struct Throughput(BTreeMap<String, Ended>);

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
        let all = self.completed + self.failed;
        if all == 0 {
            return 0.0;
        }
        #[expect(clippy::cast_precision_loss, reason = "no user has so many files that it shows")]
        let rate = self.failed as f64 * 10_000.0 / all as f64;
        rate.round() / 100.0
    }
}

impl Throughput {
    pub fn completed(&mut self, user: &str, processing_ms: i64) {
        for ended in self.both(user) {
            ended.completed += 1;
            ended.processing_ms += processing_ms;
        }
    }

    pub fn failed(&mut self, user: &str) {
        for ended in self.both(user) {
            ended.failed += 1;
        }
    }

    /// The counts of the user, and of all users.
    fn both(&mut self, user: &str) -> impl Iterator<Item = &mut Ended> {
        for name in [ALL_USERS, user] {
            if !self.0.contains_key(name) {
                self.0.insert(name.to_owned(), Ended::default());
            }
        }
        self.0.iter_mut().filter(move |(name, _)| *name == ALL_USERS || *name == user).map(|(_, ended)| ended)
    }

    /// In the order of their names, so that two processes never wait for one another.
    pub async fn write(self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        let mut rows = Rows::default();
        for (user, ended) in self.0 {
            rows.push(args![user, slot(now), ended.completed, ended.failed, ended.processing_ms]);
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
    // What a portion picked and then finds changed stays, so the condition is there twice.
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
        let mut throughput = Throughput::default();
        throughput.completed("ada", 10);
        throughput.failed("bob");
        let seen: Vec<_> =
            throughput.0.iter().map(|(user, e)| (user.as_str(), e.completed, e.failed)).collect();
        assert_eq!(seen, [("", 1, 1), ("ada", 1, 0), ("bob", 0, 1)]);
    }
}
