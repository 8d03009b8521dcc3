//! When the sweeps run, and how long files may make no progress before they are recovered.

use std::time::Duration;

use super::declared::group;
use super::reader::{Reader, bytes, days, milliseconds, one_of};
use super::retention::RETENTION_SCHEDULE;
use crate::recovery::blob_scrub::ScrubConfig;
use crate::recovery::config::{HealingConfig, Schedules, StuckConfig, Unconfirmed};
use crate::recovery::schedule::Schedule;

group! { "Recovery" {
    STUCK_RECOVERY_SCHEDULE = "*/5 * * * *": "When to look for stuck files."
    ORPHAN_CLEANUP_SCHEDULE = "0 3 * * *": "When to clean up leftovers: blobs without a file, abandoned uploads, old failed files."
    BATCH_TIMEOUT_SCHEDULE = "0 * * * *": "When to look for batches that have waited too long for their files."
    UPLOAD_EXPIRY_SCHEDULE = "*/5 * * * *": "When to look for uploads that were not confirmed in time, besides the moment at which each expires."
    STUCK_FILE_THRESHOLD_MS = "1800000": "How long a file must make no progress before it can count as stuck."
    MAX_STUCK_RETRIES = "3": "How often a stuck file is put back into the queue before it fails with `STUCK_EXHAUSTED`."
    STUCK_RETRY_WINDOWS_MS = "180000,600000,1800000": "How long a file may make no progress after it was put back once, twice, and so on; the last value is used for all further times."
    UNCONFIRMED_UPLOADS = "adopt": "What happens to an upload that is complete but was not confirmed in time: `adopt` treats it as confirmed, `delete` deletes it."
    ORPHAN_MIN_AGE_MS = "86400000": "The minimum age of a blob without a file before it is removed."
    BLOB_SCRUB_SCHEDULE = "20 * * * *": "When to compare stored bytes with their checksums; a run goes on where the last one ended."
    BLOB_SCRUB_DAYS = "30": "How many days after its last comparison a blob is compared again."
    BLOB_SCRUB_RATE = "20MB": "How many bytes a second the comparison reads; one run takes at most 50 minutes."
    ABANDONED_UPLOAD_THRESHOLD_MS = "86400000": "How long after its registration a file is deleted whose bytes never arrived."
} }

pub(super) fn read(read: &mut Reader) -> HealingConfig {
    let schedule = str::parse::<Schedule>;
    HealingConfig {
        schedules: Schedules {
            stuck_recovery: read.with(STUCK_RECOVERY_SCHEDULE, schedule),
            orphan_cleanup: read.with(ORPHAN_CLEANUP_SCHEDULE, schedule),
            batch_timeout: read.with(BATCH_TIMEOUT_SCHEDULE, schedule),
            upload_expiry: read.with(UPLOAD_EXPIRY_SCHEDULE, schedule),
            retention: read.with(RETENTION_SCHEDULE, schedule),
            blob_scrub: read.with(BLOB_SCRUB_SCHEDULE, schedule),
        },
        stuck: StuckConfig {
            threshold: read.with(STUCK_FILE_THRESHOLD_MS, milliseconds),
            max_retries: read.between(MAX_STUCK_RETRIES, 0, 1_000),
            windows: read.with(STUCK_RETRY_WINDOWS_MS, windows),
        },
        unconfirmed: read.with(UNCONFIRMED_UPLOADS, |text| {
            one_of(text, &[("adopt", Unconfirmed::Adopt), ("delete", Unconfirmed::Delete)])
        }),
        scrub: read_scrub(read),
    }
}

/// So that a run ends before the next is due.
const SCRUB_SECONDS: u64 = 50 * 60;

fn read_scrub(read: &mut Reader) -> ScrubConfig {
    let rate = read.with(BLOB_SCRUB_RATE, bytes);
    ScrubConfig { interval: read.with(BLOB_SCRUB_DAYS, days), rate, most: rate.saturating_mul(SCRUB_SECONDS) }
}

fn windows(text: &str) -> Result<Vec<Duration>, String> {
    text.split(',')
        .map(|part| milliseconds(part.trim()).ok())
        .collect::<Option<_>>()
        .ok_or_else(|| "a list of milliseconds, each above 0, like 180000,600000,1800000".to_owned())
}
