//! When the sweeps run, and how long files may stand still before they are helped.

use std::time::Duration;

use super::reader::{Reader, milliseconds, one_of};
use crate::recovery::schedule::Schedule;

#[derive(Debug, Clone)]
pub struct HealingConfig {
    pub schedules: Schedules,
    pub stuck: StuckConfig,
    pub unconfirmed: Unconfirmed,
}

#[derive(Debug, Clone)]
pub struct Schedules {
    pub stuck_recovery: Schedule,
    pub orphan_cleanup: Schedule,
    pub batch_timeout: Schedule,
    pub retention: Schedule,
}

#[derive(Debug, Clone)]
pub struct StuckConfig {
    /// How long a file that was never recovered may stand still.
    pub threshold: Duration,
    /// How often a file is recovered before it fails.
    pub max_retries: i64,
    /// How long one may stand still that was recovered once, twice, and so on.
    pub windows: Vec<Duration>,
}

impl StuckConfig {
    /// How long a file may stand still that was recovered so many times.
    pub fn patience(&self, recovered: i64) -> Duration {
        let last = self.windows.len().saturating_sub(1);
        let window = usize::try_from(recovered - 1).ok().and_then(|n| self.windows.get(n.min(last)));
        window.copied().unwrap_or(self.threshold)
    }
}

/// What becomes of an upload that is whole, and that nobody confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfirmed {
    Adopt,
    Delete,
}

impl HealingConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        let schedule = str::parse::<Schedule>;
        Self {
            schedules: Schedules {
                stuck_recovery: read.with("STUCK_RECOVERY_SCHEDULE", "*/5 * * * *", schedule),
                orphan_cleanup: read.with("ORPHAN_CLEANUP_SCHEDULE", "0 3 * * *", schedule),
                batch_timeout: read.with("BATCH_TIMEOUT_SCHEDULE", "0 * * * *", schedule),
                retention: read.with("RETENTION_SCHEDULE", "30 3 * * *", schedule),
            },
            stuck: StuckConfig {
                threshold: read.with("STUCK_FILE_THRESHOLD_MS", "1800000", milliseconds),
                max_retries: read.between("MAX_STUCK_RETRIES", 3, 0, 1_000),
                windows: read.with("STUCK_RETRY_WINDOWS", "180,600,1800", windows),
            },
            unconfirmed: read.with("UNCONFIRMED_UPLOADS", "adopt", |text| {
                one_of(text, &[("adopt", Unconfirmed::Adopt), ("delete", Unconfirmed::Delete)])
            }),
        }
    }
}

fn windows(text: &str) -> Result<Vec<Duration>, String> {
    let seconds = |part: &str| part.trim().parse().ok().filter(|seconds| (1..=31_536_000).contains(seconds));
    text.split(',')
        .map(|part| seconds(part).map(Duration::from_secs))
        .collect::<Option<_>>()
        .ok_or_else(|| "a list of seconds, each above 0 and at most a year, like 180,600,1800".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_is_the_threshold_first_and_then_a_window_for_each_recovery() {
        let minutes = Duration::from_mins;
        let config = StuckConfig {
            threshold: minutes(30),
            max_retries: 5,
            windows: vec![minutes(3), minutes(10), minutes(30)],
        };
        let patience = [0, 1, 2, 3, 4].map(|recovered| config.patience(recovered));
        assert_eq!(patience, [30, 3, 10, 30, 30].map(minutes));
    }
}
