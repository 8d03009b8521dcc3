//! How often a stage may begin a file, over all processes, and how often a user's files may begin.
//!
//! A limit of 2/10s lets two files begin at once, and one more every five seconds. It is one timestamp in the database:
//! when the next file may begin. How far that lies in the past is how many may begin at once. Nothing is dropped: a
//! file that may not begin yet waits.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use chrono::TimeDelta;

use landfall_core::caller::TenantUser;
use landfall_core::clock::{Time, to_delta};
use landfall_core::lifecycle::Stage;
use landfall_store::Error;
use landfall_store::{Rows, Tx, args};

/// How late a claim may come without losing its turn, also where no two files may begin at once.
const SLACK: TimeDelta = TimeDelta::milliseconds(100);
/// The clocks of two processes differ by less than this.
const SKEW: TimeDelta = TimeDelta::seconds(10);
/// How often an event reports that a limit blocks files.
const BETWEEN_REPORTS: TimeDelta = TimeDelta::minutes(1);

/// At most `max` files in the time `per`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    max: u32,
    per: Duration,
}

impl FromStr for RateLimit {
    type Err = String;

    /// `100/60s`: a number, and a time in ms, s, m or h.
    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (max, per) = text.split_once('/')?;
            let (max, per) = (max.trim().parse().ok()?, per.trim());
            let digits = per.find(|c: char| !c.is_ascii_digit()).unwrap_or(per.len());
            let (number, unit) = per.split_at(digits);
            let unit = match unit {
                "ms" => Duration::from_millis(1),
                "s" => Duration::from_secs(1),
                "m" => Duration::from_mins(1),
                "h" => Duration::from_hours(1),
                _ => return None,
            };
            let per = unit.checked_mul(number.parse().ok()?)?;
            (1..=1_000_000).contains(&max).then_some(())?;
            (Duration::from_millis(1)..=Duration::from_hours(24)).contains(&per).then_some(())?;
            Some(Self { max, per })
        };
        parse().ok_or_else(|| {
            "a number and a time like 100/60s (1 to 1000000 in 1ms to 24h; ms, s, m or h)".to_owned()
        })
    }
}

/// As a sentence has it: `100 in 60 s`.
impl fmt::Display for RateLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {} s", self.max, self.per.as_secs_f64())
    }
}

impl RateLimit {
    /// The time from one file to the next.
    fn interval(self) -> TimeDelta {
        // Not shorter than the time resolution of the databases.
        to_delta(self.per / self.max).max(TimeDelta::microseconds(1))
    }

    /// How many files may begin now, if the next may begin at `next`.
    pub fn allows(self, next: Time, now: Time) -> usize {
        let waited = now - self.within_reach(next, now);
        if waited < TimeDelta::zero() {
            return 0;
        }
        let intervals = waited.num_microseconds().unwrap_or(i64::MAX)
            / self.interval().num_microseconds().unwrap_or(1).max(1);
        usize::try_from(intervals).unwrap_or(usize::MAX).saturating_add(1)
    }

    /// When the next file may begin after `taken` did now.
    pub fn next_after(self, next: Time, taken: usize, now: Time) -> Time {
        let taken = i32::try_from(taken).unwrap_or(i32::MAX);
        self.within_reach(next, now) + self.interval() * taken
    }

    /// How long it takes until `count` may begin at once, if the next may begin at `next`. `None` if so many never may.
    pub fn wait_for(self, next: Time, count: usize, now: Time) -> Option<Duration> {
        if count > usize::try_from(self.max).unwrap_or(usize::MAX) {
            return None;
        }
        let others = i32::try_from(count.saturating_sub(1)).unwrap_or(i32::MAX);
        let ready = self.within_reach(next, now) + self.interval() * others;
        Some((ready - now).to_std().unwrap_or_default())
    }

    /// Whether all of the limit is available, if the next may begin at `next`: one that was never used is the same.
    pub fn is_unused(self, next: Time, now: Time) -> bool {
        next <= now - self.burst()
    }

    /// `next`, clamped to the times that this limit can have set. After a change of the settings or of a clock, the
    /// stored time may be outside them.
    fn within_reach(self, next: Time, now: Time) -> Time {
        // The time was stored under another limit, or by a clock that has been set back since. It would be stored until
        // it comes, because a limit that lets nothing begin writes nothing.
        let foreign = next > now + to_delta(self.per).max(SKEW);
        let unused = now - self.burst();
        if foreign { unused } else { next.clamp(unused, now + self.interval()) }
    }

    /// How long the limit must have been unused so that `max` files may begin at once.
    fn burst(self) -> TimeDelta {
        let others = i32::try_from(self.max.saturating_sub(1)).unwrap_or(i32::MAX);
        (self.interval() * others).max(SLACK)
    }
}

/// The limits that are set.
#[derive(Debug, Clone, Default)]
pub struct RateLimits {
    pub stages: Vec<(Stage, RateLimit)>,
    pub user: Option<RateLimit>,
    /// The stage where a user's files begin. The user's limit applies there.
    pub first_stage: Option<Stage>,
}

impl RateLimits {
    pub fn of_stage(&self, stage: Stage) -> Option<RateLimit> {
        self.stages.iter().find(|(limited, _)| *limited == stage).map(|(_, limit)| *limit)
    }

    pub fn of_users_at(&self, stage: Stage) -> Option<RateLimit> {
        self.user.filter(|_| self.first_stage == Some(stage))
    }
}

pub fn bucket_of_stage(stage: Stage) -> String {
    format!("stage:{stage}")
}

pub fn bucket_of_user(user: &TenantUser) -> String {
    format!("user:{user}")
}

pub fn bucket_of_registrations(tenant: &str) -> String {
    format!("registrations:{tenant}")
}

/// The buckets that let no file begin before a later time, of all stages and of one user, each with that time.
pub async fn blocked_for(tx: &mut Tx, user: &TenantUser, now: Time) -> Result<Vec<(String, Time)>, Error> {
    tx.rows(
        "SELECT name, next_at FROM rate_buckets WHERE name IN ($1, $2, $3, $4, $5) AND next_at > $6",
        args![
            bucket_of_user(user),
            bucket_of_stage(Stage::Scan),
            bucket_of_stage(Stage::Extract),
            bucket_of_stage(Stage::Chunk),
            bucket_of_stage(Stage::Embed),
            now
        ],
    )
    .await
}

/// The same of the stages only.
pub async fn blocked_stages(tx: &mut Tx, now: Time) -> Result<Vec<(String, Time)>, Error> {
    let buckets = Stage::ALL.map(bucket_of_stage);
    tx.rows(
        "SELECT name, next_at FROM rate_buckets WHERE name IN ($1, $2, $3, $4) AND next_at > $5",
        args![&buckets[0], &buckets[1], &buckets[2], &buckets[3], now],
    )
    .await
}

/// When the next file of each of these users may begin, where that is after `now`.
pub async fn blocked_users(
    tx: &mut Tx,
    users: &[TenantUser],
    now: Time,
) -> Result<HashMap<TenantUser, Time>, Error> {
    let mut blocked = HashMap::new();
    for batch in users.chunks(Rows::MAX) {
        let names: HashMap<String, &TenantUser> =
            batch.iter().map(|user| (bucket_of_user(user), user)).collect();
        let mut rows = Rows::default();
        for name in names.keys() {
            rows.push(args![name]);
        }
        let (values, arguments) = rows.into_values(tx);
        let sql =
            format!("SELECT name, next_at FROM rate_buckets WHERE name IN (SELECT * FROM ({values}) AS v)");
        let found: Vec<(String, Time)> = tx.rows(sql, arguments).await?;
        let later = found.into_iter().filter(|(_, next)| *next > now);
        blocked.extend(later.filter_map(|(name, next)| Some(((*names.get(&name)?).clone(), next))));
    }
    Ok(blocked)
}

/// Removes up to `limit` buckets whose next turn came before a time: a new one would be the same. Returns how many.
pub async fn remove_unused(tx: &mut Tx, before: Time, limit: i64) -> Result<u64, Error> {
    // What a batch picked and then finds changed stays, so the condition is there twice.
    tx.execute(
        "DELETE FROM rate_buckets WHERE (name) IN (SELECT name FROM rate_buckets
             WHERE next_at < $1 AND (reported_at IS NULL OR reported_at < $1) LIMIT $2)
         AND next_at < $1 AND (reported_at IS NULL OR reported_at < $1)",
        args![before, limit],
    )
    .await
}

/// The limits that a claim must respect, locked against other processes until its transaction ends.
#[derive(Default)]
pub struct Buckets {
    found: HashMap<String, (Time, Option<Time>)>,
    /// Sorted, so that two processes that write them never deadlock.
    changed: BTreeMap<String, (Time, Option<Time>)>,
}

impl Buckets {
    pub async fn hold(&mut self, tx: &mut Tx, names: Vec<String>) -> Result<(), Error> {
        let lock = tx.for_update();
        for batch in names.chunks(Rows::MAX) {
            let mut rows = Rows::default();
            for name in batch {
                rows.push(args![name]);
            }
            let (values, arguments) = rows.into_values(tx);
            let found: Vec<(String, Time, Option<Time>)> = tx
                .rows(
                    // Always in the same order, so that two processes never deadlock.
                    format!(
                        "SELECT name, next_at, reported_at FROM rate_buckets WHERE name IN (SELECT * FROM ({values}) AS v)
                         ORDER BY name {lock}"
                    ),
                    arguments,
                )
                .await?;
            self.found.extend(found.into_iter().map(|(name, next, reported)| (name, (next, reported))));
        }
        Ok(())
    }

    fn get(&self, name: &str) -> (Time, Option<Time>) {
        let state = self.changed.get(name).or_else(|| self.found.get(name)).copied();
        state.unwrap_or((Time::UNIX_EPOCH, None))
    }

    pub fn allows(&self, limit: RateLimit, name: &str, now: Time) -> usize {
        limit.allows(self.get(name).0, now)
    }

    pub fn wait_for(&self, limit: RateLimit, name: &str, count: usize, now: Time) -> Option<Duration> {
        limit.wait_for(self.get(name).0, count, now)
    }

    pub fn next_at(&self, name: &str) -> Time {
        self.get(name).0
    }

    pub fn take(&mut self, limit: RateLimit, name: &str, taken: usize, now: Time) {
        if taken > 0 {
            let (next, reported) = self.get(name);
            self.changed.insert(name.to_owned(), (limit.next_after(next, taken, now), reported));
        }
    }

    /// Whether it is time to report that a limit blocks files.
    pub fn report(&mut self, name: &str, now: Time) -> bool {
        let (next, reported) = self.get(name);
        let due = reported.is_none_or(|at| now - at >= BETWEEN_REPORTS);
        if due {
            self.changed.insert(name.to_owned(), (next, Some(now)));
        }
        due
    }

    pub async fn write(self, tx: &mut Tx) -> Result<(), Error> {
        let mut rows = Rows::default();
        for (name, (next, reported)) in self.changed {
            rows.push(args![name, next, reported]);
        }
        if rows.is_empty() {
            return Ok(());
        }
        tx.insert(
            "rate_buckets (name, next_at, reported_at)",
            rows,
            "ON CONFLICT (name) DO UPDATE SET next_at = excluded.next_at, reported_at = excluded.reported_at",
        )
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::from_timestamp_millis(1_000_000_000 + ms).unwrap()
    }

    /// Begins as many files as allowed at each of these moments. Returns how many began.
    fn begin(limit: RateLimit, moments: impl Iterator<Item = i64>) -> usize {
        let (mut next, mut begun) = (Time::UNIX_EPOCH, 0);
        for now in moments.map(at) {
            let allowed = limit.allows(next, now);
            next = limit.next_after(next, allowed, now);
            begun += allowed;
        }
        begun
    }

    #[test]
    fn a_limit_is_a_number_and_a_time() {
        let limit = |text: &str| text.parse::<RateLimit>();
        assert_eq!(limit("100/60s"), Ok(RateLimit { max: 100, per: Duration::from_mins(1) }));
        assert_eq!(limit("5 / 1m"), Ok(RateLimit { max: 5, per: Duration::from_mins(1) }));
        for bad in
            ["", "100", "0/1s", "-1/1s", "5/0s", "5/s", "5/1", "5/1d", "5/99999999h", "x/1s", "2000000/1s"]
        {
            assert!(limit(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_rate_is_kept_however_the_moments_fall() {
        let limit: RateLimit = "5/1s".parse().unwrap();
        for step in [1, 7, 50, 130] {
            let begun = begin(limit, (0..20_000).step_by(step));
            // Five at once, and then one every 200 ms.
            assert!((103..=105).contains(&begun), "{begun} with a poll every {step} ms");
        }
    }

    #[test]
    fn as_many_begin_at_once_as_the_limit_says_and_a_long_silence_saves_no_more_up() {
        for (limit, burst) in [("2/10s", 2), ("5/1s", 5), ("1/1h", 1), ("1000/1s", 1_000)] {
            let limit: RateLimit = limit.parse().unwrap();
            assert_eq!(begin(limit, [0].into_iter()), burst);
            assert_eq!(begin(limit, [0, 36_000_000].into_iter()), 2 * burst);
        }
    }

    #[test]
    fn after_a_burst_files_begin_evenly_spaced() {
        let limit: RateLimit = "2/10s".parse().unwrap();
        assert_eq!(begin(limit, [0, 4_999].into_iter()), 2);
        assert_eq!(begin(limit, [0, 5_000, 9_999].into_iter()), 3);
        assert_eq!(begin(limit, [0, 5_000, 10_000].into_iter()), 4);
    }

    #[test]
    fn a_limit_that_was_raised_is_not_held_up_by_what_the_old_one_left() {
        let (slow, fast): (RateLimit, RateLimit) = ("1/24h".parse().unwrap(), "10/1s".parse().unwrap());
        let next = slow.next_after(Time::UNIX_EPOCH, 1, at(0));
        let next = fast.next_after(next, fast.allows(next, at(0)), at(0));
        assert_eq!(fast.allows(next, at(0)), 0);
        assert!(fast.allows(next, at(100)) > 0);
    }

    /// As the database has it: nothing is written if nothing may begin.
    #[test]
    fn a_clock_that_was_set_back_stops_no_one() {
        for limit in ["10/1s", "1000000/1m", "1/1h"] {
            let limit: RateLimit = limit.parse().unwrap();
            let ahead = at(86_400_000);
            let next = limit.next_after(Time::UNIX_EPOCH, limit.allows(Time::UNIX_EPOCH, ahead), ahead);
            let allowed = limit.allows(next, at(0));
            assert_eq!(allowed, usize::try_from(limit.max).unwrap());
            assert_eq!(limit.wait_for(next, 1, at(0)), Some(Duration::ZERO));
            assert_eq!(limit.allows(limit.next_after(next, allowed, at(0)), at(0)), 0, "only once");
        }
    }

    #[test]
    fn processes_whose_clocks_differ_a_little_share_a_limit() {
        let limit: RateLimit = "1000/1s".parse().unwrap();
        let next = limit.next_after(Time::UNIX_EPOCH, 1_000, at(500));
        assert_eq!(limit.allows(next, at(0)), 0);
    }
}
