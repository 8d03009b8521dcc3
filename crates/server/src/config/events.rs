//! Event streams and webhooks.

use std::time::Duration;

use super::declared::group;
use super::reader::{Reader, days, milliseconds, one_of};
use crate::delivery::EventsConfig;
use crate::delivery::webhooks::WebhookConfig;

group! { "Events and webhooks" {
    MAX_EVENT_STREAMS = "2000": "Open event streams of one process; the next one is refused with `EVENT_STREAMS_EXHAUSTED`."
    EVENT_STREAMS_PER_USER = "20": "Open event streams of one user; the next one is refused with `TOO_MANY_EVENT_STREAMS`."
    WEBHOOKS_PER_USER = "20": "Webhooks that one user may have, up to 1000."
    WEBHOOK_ALLOW_PRIVATE = "false": "`true` lets webhooks reach loopback, private and other addresses that are not public."
    WEBHOOK_TIMEOUT_MS = "10000": "How long a webhook's endpoint may take to answer."
    WEBHOOK_DISABLE_AFTER_DAYS = "5": "After so many days without a successful delivery a webhook is disabled, and its owner is notified."
} }

/// Events that may wait for one client. A client that falls further behind is disconnected, and can resume.
const STREAM_BUFFER: usize = 1_024;
/// How often a quiet stream sends a heartbeat. Proxies close connections that are quiet for longer, most after a minute.
const STREAM_HEARTBEAT: Duration = Duration::from_secs(15);
/// How long a client may read nothing before it is disconnected.
const STREAM_STALL: Duration = Duration::from_secs(10);
/// How many webhooks one process sends to at the same time; each gets one request at a time.
const WEBHOOK_CONCURRENCY: usize = 16;

pub(super) fn read_streams(read: &mut Reader) -> EventsConfig {
    EventsConfig {
        streams: read.at_least(MAX_EVENT_STREAMS, 1),
        streams_per_user: read.at_least(EVENT_STREAMS_PER_USER, 1),
        buffer: STREAM_BUFFER,
        heartbeat: STREAM_HEARTBEAT,
        stall: STREAM_STALL,
    }
}

pub(super) fn read_webhooks(read: &mut Reader) -> WebhookConfig {
    WebhookConfig {
        per_user: read.between(WEBHOOKS_PER_USER, 1, 1_000),
        allow_private: read
            .with(WEBHOOK_ALLOW_PRIVATE, |text| one_of(text, &[("true", true), ("false", false)])),
        timeout: read.with(WEBHOOK_TIMEOUT_MS, milliseconds),
        concurrency: WEBHOOK_CONCURRENCY,
        disable_after: read.with(WEBHOOK_DISABLE_AFTER_DAYS, days),
    }
}
