//! When the sweeps run, and how long files may stand still before they are helped.

use std::time::Duration;

use super::reader::{Reader, milliseconds, one_of};
use crate::recovery::config::{HealingConfig, Schedules, StuckConfig, Unconfirmed};
use crate::recovery::schedule::Schedule;

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
