//! How the whole of it is doing, from what the files' own transactions wrote.

pub mod alerts;
pub mod hourly;
pub mod logs;
pub mod queue_status;
pub mod spans;
pub mod traces;
