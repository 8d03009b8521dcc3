//! What happened is delivered: to open event streams, and to webhooks.

pub mod fan_out;
pub mod progress;
pub mod tail;
pub mod webhooks;

use std::time::Duration;

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
