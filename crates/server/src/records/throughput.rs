//! How many files of each user came to their end in the last day, and how long they took, in slots of five minutes: a day
//! is then a few hundred rows to add up, whatever went through.

use std::collections::BTreeMap;

use chrono::{DurationRound, TimeDelta};

use super::reach;
use landfall_core::caller::Reach;
use landfall_core::clock::Time;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

const SLOT: TimeDelta = TimeDelta::minutes(5);
const DAY: TimeDelta = TimeDelta::hours(24);
/// What the slots of users, of their tenants and of all grow by, or shrink by where a failed file is retried.
#[derive(Default)]
pub struct Ends(BTreeMap<(String, String, Time), Ended>);

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, landfall_store::FromRow)]
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
    pub fn completed(&mut self, tenant: &str, user: &str, processing_ms: i64, now: Time) {
        self.change(tenant, user, now, |ended| {
            ended.completed += 1;
            ended.processing_ms += processing_ms;
        });
    }

    pub fn failed(&mut self, tenant: &str, user: &str, now: Time) {
        self.change(tenant, user, now, |ended| ended.failed += 1);
    }

    /// A file that failed within the day is retried. It counts again with how it ends then, so that files are counted and not
    /// failures.
    pub fn not_failed_any_more(&mut self, tenant: &str, user: &str, failed_at: Time, now: Time) {
        if failed_at >= oldest_kept(now) {
            self.change(tenant, user, failed_at, |ended| ended.failed -= 1);
        }
    }

    /// Changes the counts of the user, of the tenant, and of all.
    fn change(&mut self, tenant: &str, user: &str, at: Time, change: impl Fn(&mut Ended)) {
        for (tenant, user) in [("", ""), (tenant, ""), (tenant, user)] {
            change(self.0.entry((tenant.to_owned(), user.to_owned(), slot(at))).or_default());
        }
    }

    /// In the order of their names, so that two processes never wait for one another.
    pub async fn write(self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        for ((tenant, user, slot), ended) in self.0 {
            rows.push(args![tenant, user, slot, ended.completed, ended.failed, ended.processing_ms]);
        }
        tx.insert(
            "throughput (tenant_id, user_id, slot, completed, failed, processing_ms)",
            rows,
            "ON CONFLICT (tenant_id, user_id, slot) DO UPDATE SET completed = throughput.completed + excluded.completed,
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

/// The last day, from the slot on that it began in, of these owners.
pub async fn last_day(tx: &mut Tx, reach: &Reach, now: Time) -> Result<Ended, Error> {
    let (tenant, user) = reach::names(reach);
    let ended: Option<Ended> = tx
        .row(
            "SELECT CAST(COALESCE(SUM(completed), 0) AS BIGINT) AS completed,
                    CAST(COALESCE(SUM(failed), 0) AS BIGINT) AS failed,
                    CAST(COALESCE(SUM(processing_ms), 0) AS BIGINT) AS processing_ms
             FROM throughput WHERE tenant_id = $1 AND user_id = $2 AND slot >= $3",
            args![tenant, user, oldest_kept(now)],
        )
        .await?;
    Ok(ended.unwrap_or_default())
}

/// Removes up to `limit` slots before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM throughput WHERE (tenant_id, user_id, slot) IN
             (SELECT tenant_id, user_id, slot FROM throughput WHERE slot < $1 LIMIT $2)
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
    fn what_a_user_ends_counts_for_them_for_their_tenant_and_for_all() {
        let now = Time::from_timestamp(1_000_000_000, 0).unwrap();
        let mut ends = Ends::default();
        ends.completed("acme", "ada", 10, now);
        ends.failed("acme", "bob", now);
        let seen = |ends: &Ends| -> Vec<(String, i64, i64)> {
            let name = |tenant: &str, user: &str| format!("{tenant}/{user}");
            ends.0.iter().map(|((tenant, user, _), e)| (name(tenant, user), e.completed, e.failed)).collect()
        };
        let expected = [("/", 1, 1), ("acme/", 1, 1), ("acme/ada", 1, 0), ("acme/bob", 0, 1)];
        assert_eq!(
            seen(&ends),
            expected.map(|(name, completed, failed)| (name.to_owned(), completed, failed))
        );
        ends.not_failed_any_more("acme", "bob", now, now);
        ends.failed("acme", "bob", now);
        assert_eq!(seen(&ends)[3].2, 1, "one file failed, however often");
    }
}
