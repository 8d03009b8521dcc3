//! How long things are kept that nobody needs any more, and who is told when something is wrong.

use std::time::Duration;

use super::reader::{Reader, milliseconds};

const DAY: Duration = Duration::from_hours(24);

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
    pub notifications: Duration,
    pub deliveries: Duration,
}

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

#[derive(Clone)]
pub struct AlertConfig {
    pub webhook: Option<url::Url>,
    /// Files that fail within an hour before somebody is told.
    pub dead_letters: i64,
}

impl std::fmt::Debug for AlertConfig {
    /// Without the address: whoever knows it may write to the channel.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_webhook = self.webhook.is_some();
        f.debug_struct("AlertConfig").field("has_webhook", &has_webhook).finish_non_exhaustive()
    }
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
