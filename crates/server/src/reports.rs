//! Reports on the whole system, for people and for Prometheus, from what the files' own transactions wrote.

pub mod alerts;
pub mod blockers;
pub mod dashboard;
pub mod probes;
pub mod queue_status;
pub mod scrape;
