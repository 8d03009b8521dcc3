//! How a process reports on itself: log, metrics, traces. The names that all three use are defined in one place
//! each.

pub mod durations;
pub mod logs;
pub mod metrics;
pub mod occasional;
pub mod secrets;
pub mod spans;
pub mod traces;
