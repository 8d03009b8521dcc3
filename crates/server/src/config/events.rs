//! How many may listen to events, and how long they may take about it.

use super::reader::{Reader, milliseconds};
use crate::delivery::EventsConfig;

impl EventsConfig {
    pub(super) fn read(read: &mut Reader) -> Self {
        Self {
            streams: read.at_least("MAX_EVENT_STREAMS", 2_000, 1),
            streams_per_user: read.at_least("EVENT_STREAMS_PER_USER", 20, 1),
            buffer: read.between("EVENT_BUFFER", 1_024, 1, 1_000_000),
            heartbeat: read.with("EVENT_HEARTBEAT_MS", "15000", milliseconds),
            stall: read.with("EVENT_STALL_MS", "10000", milliseconds),
        }
    }
}
