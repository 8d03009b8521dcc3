//! How many may listen to events, and how long they may take about it.

use std::time::Duration;

use super::reader::{Reader, milliseconds};

#[derive(Debug, Clone)]
pub struct EventsConfig {
    /// Open streams of this process.
    pub streams: usize,
    pub streams_per_user: usize,
    /// Events that wait for one client before it is cut off.
    pub buffer: usize,
    pub heartbeat: Duration,
    /// How long a client may take nothing of what is written to it.
    pub stall: Duration,
}

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
