//! How long things are kept that are no longer needed.

use std::time::Duration;

use super::declared::group;
use super::reader::{Reader, days, milliseconds};
use super::recovery::{ABANDONED_UPLOAD_THRESHOLD_MS, ORPHAN_MIN_AGE_MS};
use crate::recovery::config::CleaningConfig;

group! { "Retention" {
    RETENTION_SCHEDULE = "30 3 * * *": "When to remove records at the end of their retention."
    FAILED_FILE_RETENTION_DAYS = "30": "How long a failed file is kept; its owner is warned 7 days before, and it is never deleted sooner than 7 days after that warning."
    TOMBSTONE_RETENTION_DAYS = "7": "How long the row of a deleted file is kept, with its history."
    EVENT_RETENTION_DAYS = "30": "How long events are kept; the history of a file is kept as long as the file."
    AUDIT_LOG_RETENTION_DAYS = "365": "How long the entries of the audit log are kept."
    NOTIFICATION_RETENTION_DAYS = "90": "How long notifications are kept, read or not."
    WEBHOOK_DELIVERY_RETENTION_DAYS = "30": "How long webhook deliveries stay in the log after their end."
} }

const IDEMPOTENCY_KEYS: Duration = Duration::from_hours(7 * 24);
const JOB_RUNS: Duration = Duration::from_hours(30 * 24);
const OPERATIONS: Duration = Duration::from_hours(30 * 24);

pub(super) fn read(read: &mut Reader) -> CleaningConfig {
    CleaningConfig {
        orphan_min_age: read.with(ORPHAN_MIN_AGE_MS, milliseconds),
        abandoned_upload: read.with(ABANDONED_UPLOAD_THRESHOLD_MS, milliseconds),
        failed_files: read.with(FAILED_FILE_RETENTION_DAYS, days),
        tombstones: read.with(TOMBSTONE_RETENTION_DAYS, days),
        events: read.with(EVENT_RETENTION_DAYS, days),
        idempotency_keys: IDEMPOTENCY_KEYS,
        job_runs: JOB_RUNS,
        operations: OPERATIONS,
        audit_log: read.with(AUDIT_LOG_RETENTION_DAYS, days),
        notifications: read.with(NOTIFICATION_RETENTION_DAYS, days),
        deliveries: read.with(WEBHOOK_DELIVERY_RETENTION_DAYS, days),
    }
}
