//! What was finished, what failed and what was retried, hour by hour: files, and attempts at them.

use std::collections::BTreeMap;

use chrono::{DurationRound, TimeDelta};

use super::file::Owner;
use super::throughput::Ends;
use crate::telemetry::durations;
use landfall_api::queues::{Hour, MAX_HOURS, Throughput};
use landfall_core::clock::Time;
use landfall_core::failure::{Class, Failure};
use landfall_core::lifecycle::Status;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

/// Hours that are kept: as many as can be asked for.
const HOURS_KEPT: i64 = MAX_HOURS;
/// Hours that are shown if no number is asked for.
const HOURS_SHOWN: i64 = 48;

/// What came to an end in a transaction: the hour's counters grow by it, and its owners' throughput.
#[derive(Default)]
pub struct Counters {
    hour: BTreeMap<String, i64>,
    users: Ends,
}

/// A move of a file, as far as it is counted.
pub struct Step<'a> {
    pub owner: &'a Owner,
    pub from: Status,
    pub to: Status,
    pub failure: Option<&'a Failure>,
    /// When a file had failed that is retried now.
    pub had_failed_at: Option<Time>,
}

impl Counters {
    pub fn count(&mut self, step: &Step<'_>, now: Time) {
        let Owner { tenant, user, .. } = step.owner;
        if let Some(failure) = step.failure.filter(|_| step.from.is_running() && step.to != Status::Cancelled)
        {
            self.add_failure("attempts", failure);
        }
        match (step.from, step.to) {
            (_, Status::Ready) => self.count_ready(step.owner, now),
            (_, Status::Failed) => {
                if let Some(failure) = step.failure {
                    self.add_failure("files", failure);
                }
                self.add("failed");
                self.users.failed(tenant, user, now);
            }
            (Status::Failed | Status::Cancelled, Status::Queued) => {
                self.add("retried");
                if let Some(failed_at) = step.had_failed_at {
                    self.users.not_failed_any_more(tenant, user, failed_at, now);
                }
            }
            _ => {}
        }
    }

    fn count_ready(&mut self, owner: &Owner, now: Time) {
        self.add("completed");
        if owner.retried_at.is_some() {
            self.add("retried_ready");
        }
        let took = owner.confirmed_at.map(|at| (now - at).max(TimeDelta::zero()));
        if let Some(took) = took.and_then(|took| took.to_std().ok()) {
            self.add(&format!("took:{}", durations::bucket_of(took.as_secs_f64())));
        }
        let took_ms = took.map_or(0, |took| took.num_milliseconds());
        self.users.completed(&owner.tenant, &owner.user, took_ms, now);
    }

    /// Counts a failure by its class, of `files` that ended or of `attempts`.
    fn add_failure(&mut self, of: &str, failure: &Failure) {
        let class = failure.code.class();
        self.add(&format!("{of}:class:{}", class.name()));
        if of == "attempts" {
            self.add("attempts:failed");
        }
        if class == Class::Timeout {
            self.add(&format!("{of}:timed_out"));
        }
    }

    fn add(&mut self, name: &str) {
        *self.hour.entry(name.to_owned()).or_default() += 1;
    }

    pub async fn write(self, tx: &mut Tx, now: Time) -> Result<(), Error> {
        let hour = hour_of(now);
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
        self.users.write(tx).await
    }
}

/// The beginning of the hour of a time.
fn hour_of(time: Time) -> Time {
    time.duration_trunc(TimeDelta::hours(1)).unwrap_or(time)
}

/// The hour before which nothing is kept.
pub fn oldest_kept(now: Time) -> Time {
    hour_of(now) - TimeDelta::hours(HOURS_KEPT - 1)
}

/// The last hours, newest first, and all of them together. Without a number it is the last two days, and hours in which
/// nothing was counted are left out.
pub async fn recent(tx: &mut Tx, wanted: Option<i64>, now: Time) -> Result<(Vec<Hour>, Throughput), Error> {
    let ago = |hours: i64| hour_of(now) - TimeDelta::hours(hours);
    let oldest = ago(wanted.unwrap_or(HOURS_SHOWN) - 1);
    let counters: Vec<(Time, String, i64)> =
        tx.rows("SELECT hour, name, count FROM hourly WHERE hour >= $1", args![oldest]).await?;
    // Each hour with the number of files for each bucket of durations, from which its percentiles are computed.
    let mut hours: BTreeMap<Time, (Hour, Buckets)> = BTreeMap::new();
    for at in (0..wanted.unwrap_or_default()).map(ago) {
        hours.insert(at, (Hour { hour: at, ..Hour::default() }, Buckets::new()));
    }
    let (mut total, mut all_buckets) = (Hour::default(), Buckets::new());
    for (at, name, count) in counters {
        let (hour, buckets) =
            hours.entry(at).or_insert_with(|| (Hour { hour: at, ..Hour::default() }, Buckets::new()));
        put(hour, buckets, &name, count);
        put(&mut total, &mut all_buckets, &name, count);
    }
    let all = Throughput {
        total_completed: total.completed,
        total_failed: total.failed,
        total_timed_out: total.timed_out,
        total_failed_attempts: total.failed_attempts,
        total_attempts_timed_out: total.attempts_timed_out,
        total_retried: total.retried,
        total_retried_ready: total.retried_ready,
        retry_success_rate: success_rate(total.retried_ready, total.retried),
        p50_ms: quantile_ms(&all_buckets, 0.5),
        p95_ms: quantile_ms(&all_buckets, 0.95),
    };
    let with_percentiles = |(hour, buckets): (Hour, Buckets)| Hour {
        p50_ms: quantile_ms(&buckets, 0.5),
        p95_ms: quantile_ms(&buckets, 0.95),
        ..hour
    };
    Ok((hours.into_values().rev().map(with_percentiles).collect(), all))
}

/// How many files there are in each bucket of [`durations`].
type Buckets = BTreeMap<usize, i64>;

fn put(hour: &mut Hour, buckets: &mut Buckets, name: &str, count: i64) {
    let field = match name {
        "completed" => &mut hour.completed,
        "failed" => &mut hour.failed,
        // Without a prefix as earlier versions wrote it.
        "files:timed_out" | "timed_out" => &mut hour.timed_out,
        "attempts:failed" => &mut hour.failed_attempts,
        "attempts:timed_out" => &mut hour.attempts_timed_out,
        "retried" => &mut hour.retried,
        "retried_ready" => &mut hour.retried_ready,
        _ => return put_part(hour, buckets, name, count),
    };
    *field += count;
}

fn put_part(hour: &mut Hour, buckets: &mut Buckets, name: &str, count: i64) {
    let Some((of, part)) = name.rsplit_once(':') else { return };
    match of {
        "files:class" | "class" => *hour.by_class.entry(part.to_owned()).or_default() += count,
        "attempts:class" => *hour.attempts_by_class.entry(part.to_owned()).or_default() += count,
        "took" => {
            if let Ok(bucket) = part.parse() {
                *buckets.entry(bucket).or_default() += count;
            }
        }
        _ => {}
    }
}

fn quantile_ms(buckets: &Buckets, share: f64) -> Option<i64> {
    #[expect(clippy::cast_possible_truncation, reason = "the largest bound is far below that")]
    let ms = |seconds: f64| (seconds * 1_000.0).round() as i64;
    durations::quantile(buckets.iter(), share).map(ms)
}

/// In a hundred, to two decimals; `None` of nothing.
fn success_rate(ready: i64, retried: i64) -> Option<f64> {
    #[expect(clippy::cast_precision_loss, reason = "no server has so many files that it shows")]
    let rate = || (ready as f64 * 10_000.0 / retried as f64).round() / 100.0;
    (retried > 0).then(rate)
}

/// Removes up to `limit` counters of hours before a time. Returns how many.
pub async fn remove_old(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM hourly WHERE (hour, name) IN (SELECT hour, name FROM hourly WHERE hour < $1 LIMIT $2)
         AND hour < $1",
        args![before, limit],
    )
    .await
}
