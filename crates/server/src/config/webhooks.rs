//! Where events may be sent to, and how.

use super::cleaning::days;
use super::reader::{Reader, milliseconds, one_of};
use crate::delivery::webhooks::WebhookConfig;

impl WebhookConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        Self {
            per_user: read.between("WEBHOOKS_PER_USER", 20, 1, 1_000),
            allow_private: read.with("WEBHOOK_ALLOW_PRIVATE", "false", |text| {
                one_of(text, &[("true", true), ("false", false)])
            }),
            timeout: read.with("WEBHOOK_TIMEOUT_MS", "10000", milliseconds),
            concurrency: read.between("WEBHOOK_CONCURRENCY", 16, 2, 1_000),
            disable_after: read.with("WEBHOOK_DISABLE_AFTER_DAYS", "5", days),
        }
    }
}
