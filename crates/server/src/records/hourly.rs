//! What was finished and what failed, hour by hour.

use std::collections::BTreeMap;

use chrono::{DurationRound, TimeDelta};

use super::throughput::Throughput;
use landfall_api::queues::Hour;
use landfall_core::clock::Time;
use landfall_core::failure::{Class, Failure};
use landfall_core::lifecycle::Status;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

/// Hours that are kept.
const HOURS: i64 = 48;

/// What came to an end in a transaction: the hour's counters grow by it, and its owners' throughput.
#[derive(Default)]
pub struct Counters {
    hour: BTreeMap<String, i64>,
    users: Throughput,
}

impl Counters {
    pub fn count(
        &mut self,
        user: &str,
        to: Status,
        failure: Option<&Failure>,
        confirmed_at: Option<Time>,
        now: Time,
    ) {
        match to {
            Status::Ready => {
                self.add("completed");
                let took = confirmed_at.map_or(0, |at| (now - at).num_milliseconds().max(0));
                if confirmed_at.is_some() {
                    // Durations by powers of two: the hour's percentiles come from these.
                    self.add(&format!("ms:{}", took.max(1).unsigned_abs().next_power_of_two()));
                }
                self.users.completed(user, took);
            }
            Status::Failed => {
                self.add("failed");
                if let Some(failure) = failure {
                    self.add(&format!("class:{}", failure.code.class().name()));
                    if failure.code.class() == Class::Timeout {
                        self.add("timed_out");
                    }
                }
                self.users.failed(user);
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str) {
        *self.hour.entry(name.to_owned()).or_default() += 1;
    }

    pub async fn write(self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        let hour = now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now);
        let mut rows = Rows::default();
        for (name, count) in self.hour {
            rows.push(args![hour, name, count]);
        }
        tx.insert(
            "hourly (hour, name, count)",
            rows,
            "ON CONFLICT (hour, name) DO UPDATE SET count = hourly.count + excluded.count",
        )
        .await?;
        self.users.write(tx, now).await
    }
}

/// The hour before which nothing is kept.
pub fn oldest_kept(now: Time) -> Time {
    now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now) - TimeDelta::hours(HOURS - 1)
}

/// The last two days, newest first; hours in which nothing came to an end are left out.
pub async fn recent(tx: &mut Tx, now: Time) -> Result<Vec<Hour>, Error> {
    let counters: Vec<(Time, String, i64)> =
        tx.rows("SELECT hour, name, count FROM hourly WHERE hour >= $1", args![oldest_kept(now)]).await?;
    // Each hour with the number of files for each duration, from which its percentiles are computed.
    let mut hours: BTreeMap<Time, (Hour, BTreeMap<i64, i64>)> = BTreeMap::new();
    for (at, name, count) in counters {
        let (hour, durations) =
            hours.entry(at).or_insert_with(|| (Hour { hour: at, ..Hour::default() }, BTreeMap::new()));
        match name.split_once(':') {
            None if name == "completed" => hour.completed += count,
            None if name == "failed" => hour.failed += count,
            None if name == "timed_out" => hour.timed_out += count,
            Some(("class", class)) => *hour.by_class.entry(class.to_owned()).or_default() += count,
            Some(("ms", ms)) => {
                if let Ok(ms) = ms.parse() {
                    *durations.entry(ms).or_default() += count;
                }
            }
            _ => {}
        }
    }
    let with_percentiles = |(hour, durations): (Hour, BTreeMap<i64, i64>)| Hour {
        p50_ms: percentile(&durations, 50),
        p95_ms: percentile(&durations, 95),
        ..hour
    };
    Ok(hours.into_values().rev().map(with_percentiles).collect())
}

/// The duration that so many in a hundred did not exceed.
fn percentile(durations: &BTreeMap<i64, i64>, percent: i64) -> Option<i64> {
    let all: i64 = durations.values().sum();
    let mut left = (all * percent + 99) / 100;
    durations.iter().find_map(|(ms, count)| {
        left -= count;
        (left <= 0).then_some(*ms)
    })
}

/// Removes up to `limit` counters of hours before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a portion picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM hourly WHERE (hour, name) IN (SELECT hour, name FROM hourly WHERE hour < $1 LIMIT $2)
         AND hour < $1",
        args![before, limit],
    )
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_duration_that_so_many_did_not_exceed() {
        let durations = BTreeMap::from([(16, 90), (1024, 9), (65_536, 1)]);
        assert_eq!(percentile(&durations, 50), Some(16));
        assert_eq!(percentile(&durations, 90), Some(16));
        assert_eq!(percentile(&durations, 95), Some(1024));
        assert_eq!(percentile(&durations, 100), Some(65_536));
        assert_eq!(percentile(&BTreeMap::new(), 50), None);
    }
}
