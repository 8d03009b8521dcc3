//! Delivers events: to open event streams, and to webhooks.

pub mod fan_out;
pub mod progress;
pub mod tail;
pub mod webhooks;

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct EventsConfig {
    /// The maximum number of open streams of this process.
    pub streams: usize,
    pub streams_per_user: usize,
    /// How many events may wait for one client before it is disconnected.
    pub buffer: usize,
    pub heartbeat: Duration,
    /// How long a client may accept nothing of what is written to it.
    pub stall: Duration,
}
