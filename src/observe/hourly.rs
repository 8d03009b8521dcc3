//! What was finished and what failed, hour by hour.

use std::collections::BTreeMap;

use chrono::{DateTime, DurationRound, TimeDelta, Utc};
use serde::Serialize;

use crate::clock::Time;
use crate::db::{Tx, args};
use crate::error::Error;

/// Hours that are kept.
const HOURS: i64 = 48;

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hour {
    pub hour: DateTime<Utc>,
    pub completed: i64,
    /// All that failed, those that took too long among them.
    pub failed: i64,
    pub timed_out: i64,
    pub by_class: BTreeMap<String, i64>,
    /// From confirm to ready, to the next power of two.
    pub p50_ms: Option<i64>,
    pub p95_ms: Option<i64>,
    #[serde(skip)]
    durations: BTreeMap<i64, i64>,
}

/// The hour before which nothing is kept.
pub fn oldest_kept(now: Time) -> Time {
    now.duration_trunc(TimeDelta::hours(1)).unwrap_or(now) - TimeDelta::hours(HOURS - 1)
}

/// The last two days, newest first; hours in which nothing came to an end are left out.
pub async fn recent(tx: &mut Tx, now: Time) -> Result<Vec<Hour>, Error> {
    let counters: Vec<(Time, String, i64)> =
        tx.rows("SELECT hour, name, count FROM hourly WHERE hour >= $1", args![oldest_kept(now)]).await?;
    let mut hours: BTreeMap<Time, Hour> = BTreeMap::new();
    for (at, name, count) in counters {
        let hour = hours.entry(at).or_insert_with(|| Hour { hour: at, ..Hour::default() });
        match name.split_once(':') {
            None if name == "completed" => hour.completed += count,
            None if name == "failed" => hour.failed += count,
            None if name == "timed_out" => hour.timed_out += count,
            Some(("class", class)) => *hour.by_class.entry(class.to_owned()).or_default() += count,
            Some(("ms", ms)) => {
                if let Ok(ms) = ms.parse() {
                    *hour.durations.entry(ms).or_default() += count;
                }
            }
            _ => {}
        }
    }
    let with_percentiles = |mut hour: Hour| {
        hour.p50_ms = percentile(&hour.durations, 50);
        hour.p95_ms = percentile(&hour.durations, 95);
        hour
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
