//! How large uploads may be, how long they may take, and how much a tenant may store.

use landfall_core::lifecycle::Stage;

use super::declared::group;
use super::rate_limits;
use super::reader::{Reader, bytes, milliseconds};
use crate::intake::IntakeConfig;
use crate::records::quota::Limits;

group! { "Uploads and quotas" {
    MAX_FILE_BYTES = "50MB": "The size of the largest file that is accepted."
    UPLOAD_MIN_RATE = "1KB": "How many bytes a second an upload must bring, on the average of `UPLOAD_STALL_MS`; a slower one is ended."
    UPLOAD_URL_TTL_MS = "900000": "How long an upload URL is valid; while the registration lives, a client can ask for a fresh one."
    UPLOAD_CONFIRM_WINDOW_MS = "3600000": "How long a registration lives after its last sign of life: a fresh URL, bytes that arrive, an upload of the same batch."
    RESUMABLE_UPLOAD_WINDOW_MS = "86400000": "How long an unfinished resumable upload lives after its last bytes."
    BATCH_TIMEOUT_MS = "86400000": "How long after its opening a batch expires."
    MAX_ACTIVE_BATCHES = "10000": "How many batches of one tenant may be active at the same time; one more is refused with `TOO_MANY_BATCHES`."
    DEFAULT_TENANT_QUOTA_BYTES = "10GB": "How much a tenant may store, unless an administrator sets another limit."
    DEFAULT_TENANT_QUOTA_FILES = "1000000": "How many files a tenant may store, unless an administrator sets another limit."
} }

pub(super) fn read(read: &mut Reader, first_stage: Stage, is_direct: bool) -> IntakeConfig {
    IntakeConfig {
        max_file_bytes: read.with(MAX_FILE_BYTES, bytes),
        min_rate: read.with(UPLOAD_MIN_RATE, bytes),
        url_ttl: read.with(UPLOAD_URL_TTL_MS, milliseconds),
        confirm_window: read.with(UPLOAD_CONFIRM_WINDOW_MS, milliseconds),
        resumable_window: read.with(RESUMABLE_UPLOAD_WINDOW_MS, milliseconds),
        batch_timeout: read.with(BATCH_TIMEOUT_MS, milliseconds),
        quota: Limits {
            bytes: i64::try_from(read.with(DEFAULT_TENANT_QUOTA_BYTES, bytes)).unwrap_or(i64::MAX),
            files: read.at_least(DEFAULT_TENANT_QUOTA_FILES, 1),
        },
        registrations: rate_limits::read_registrations(read),
        max_active_batches: read.at_least(MAX_ACTIVE_BATCHES, 1),
        first_stage,
        is_direct,
    }
}
