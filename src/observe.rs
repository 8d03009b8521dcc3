//! How the whole of it is doing, from what the files' own transactions wrote.

pub mod aftermath;
pub mod alerts;
pub mod dashboard;
pub mod hourly;
pub mod logs;
pub mod metrics;
pub mod queue_status;
pub mod scrape;
pub mod spans;
pub mod throughput;
pub mod totals;
pub mod traces;
