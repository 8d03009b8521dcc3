//! When the sweeps run, how long files may stand still before they are recovered, and how long things are kept.

use std::time::Duration;

use super::blob_scrub::ScrubConfig;
use super::schedule::Schedule;

#[derive(Debug, Clone)]
pub struct HealingConfig {
    pub schedules: Schedules,
    pub stuck: StuckConfig,
    pub unconfirmed: Unconfirmed,
    pub scrub: ScrubConfig,
}

#[derive(Debug, Clone)]
pub struct Schedules {
    pub stuck_recovery: Schedule,
    pub orphan_cleanup: Schedule,
    pub batch_timeout: Schedule,
    pub upload_expiry: Schedule,
    pub retention: Schedule,
    pub blob_scrub: Schedule,
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

/// What happens to an upload that is complete, and that its owner did not confirm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unconfirmed {
    Adopt,
    Delete,
}

#[derive(Debug, Clone)]
pub struct CleaningConfig {
    /// A blob that no row knows is left alone until it is so old: it may belong to an upload that is just arriving.
    pub orphan_min_age: Duration,
    /// After so long a file whose bytes never came is given up.
    pub abandoned_upload: Duration,
    pub failed_files: Duration,
    pub tombstones: Duration,
    pub events: Duration,
    pub idempotency_keys: Duration,
    pub job_runs: Duration,
    pub operations: Duration,
    pub audit_log: Duration,
    pub notifications: Duration,
    pub deliveries: Duration,
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
