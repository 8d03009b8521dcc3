//! How long things are kept that nobody needs any more, and who is told when something is wrong.

use std::time::Duration;

use super::reader::{Reader, milliseconds};
use crate::recovery::config::CleaningConfig;
use crate::reports::alerts::AlertConfig;

const DAY: Duration = Duration::from_hours(24);

impl CleaningConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        Self {
            orphan_min_age: read.with("ORPHAN_MIN_AGE_MS", "86400000", milliseconds),
            abandoned_upload: read.with("ABANDONED_UPLOAD_THRESHOLD_MS", "86400000", milliseconds),
            failed_files: read_failed_files(read),
            tombstones: read.with("TOMBSTONE_RETENTION_DAYS", "7", days),
            events: read.with("EVENT_RETENTION_DAYS", "30", days),
            idempotency_keys: read.with("IDEMPOTENCY_RETENTION_DAYS", "7", days),
            job_runs: read.with("JOB_RUN_RETENTION_DAYS", "30", days),
            operations: read.with("OPERATION_RETENTION_DAYS", "30", days),
            notifications: read.with("NOTIFICATION_RETENTION_DAYS", "90", days),
            deliveries: read.with("WEBHOOK_DELIVERY_RETENTION_DAYS", "30", days),
        }
    }
}

/// Dead letters are failed files, so there are two names for one time.
fn read_failed_files(read: &mut Reader) -> Duration {
    const DEFAULT: &str = "30";
    let failed = read.with("FAILED_FILE_RETENTION_DAYS", DEFAULT, days);
    let Some(letters) = read.optional("DLQ_RETENTION_DAYS", days) else { return failed };
    if failed != letters && days(DEFAULT) != Ok(failed) {
        read.complain("DLQ_RETENTION_DAYS", "the same as FAILED_FILE_RETENTION_DAYS, or not set");
    }
    letters
}

pub(super) fn days(text: &str) -> Result<Duration, String> {
    let number = text.parse::<u32>().ok().filter(|days| (1..=3_650).contains(days));
    number.map(|days| DAY * days).ok_or_else(|| "a number of days from 1 to 3650".to_owned())
}

impl AlertConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        let address = read.secret("ALERT_WEBHOOK_URL");
        let webhook = address.as_deref().and_then(|address| {
            url::Url::parse(address).ok().filter(|url| ["http", "https"].contains(&url.scheme()))
        });
        if address.is_some() && webhook.is_none() {
            read.complain("ALERT_WEBHOOK_URL", "a URL that begins with http:// or https://");
        }
        Self { webhook, dead_letters: read.between("ALERT_DEAD_LETTERS", 100, 1, 1_000_000) }
    }
}
