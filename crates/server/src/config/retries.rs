//! How often and when a failed attempt is repeated, and when a service counts as down.

use landfall_core::retry::RetryPolicy;

use super::declared::group;
use super::reader::{Reader, milliseconds};
use crate::queue::breaker::BreakerConfig;

group! { "Retries and circuits" {
    RETRY_MAX_ATTEMPTS = "3": "Attempts at a stage before the file fails."
    RETRY_BASE_DELAY_MS = "5000": "The delay before the second attempt at scan and extract; each further delay is twice as long."
    RETRY_LATE_BASE_DELAY_MS = "3000": "The delay before the second attempt at chunk and embed; each further delay is twice as long."
    RETRY_MAX_DELAY_MS = "60000": "The longest delay between two attempts."
    CIRCUIT_THRESHOLD = "5": "How many files a service fails in a row, over all processes, until its circuit opens: files then wait for the service, and no attempt is counted."
    CIRCUIT_TIMEOUT_MS = "60000": "How long a circuit stays open before a few files try the service again."
    CIRCUIT_HALF_OPEN_REQUESTS = "3": "How many files may try a service when its circuit is half open; as many successes close the circuit."
    OUTAGE_PATIENCE_MS = "86400000": "How long a file waits for a service that fails it, when nothing shows that the file is the cause; then it fails, and can be retried."
} }

pub(super) fn read_policy(read: &mut Reader) -> RetryPolicy {
    RetryPolicy {
        max_attempts: read.at_least(RETRY_MAX_ATTEMPTS, 1),
        base_delay: read.with(RETRY_BASE_DELAY_MS, milliseconds),
        late_base_delay: read.with(RETRY_LATE_BASE_DELAY_MS, milliseconds),
        max_delay: read.with(RETRY_MAX_DELAY_MS, milliseconds),
    }
}

pub(super) fn read_breaker(read: &mut Reader) -> BreakerConfig {
    BreakerConfig {
        threshold: read.at_least(CIRCUIT_THRESHOLD, 1),
        timeout: read.with(CIRCUIT_TIMEOUT_MS, milliseconds),
        probes: read.at_least(CIRCUIT_HALF_OPEN_REQUESTS, 1),
        patience: read.with(OUTAGE_PATIENCE_MS, milliseconds),
    }
}
