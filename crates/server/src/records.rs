//! The rows of the database, a module for each table, with all SQL that reads and changes it.

// A file, the one way in which it changes state, and all else that is asked of its table.
pub mod file;
pub mod moves;
pub mod files;
pub mod waited;
pub mod resumable;
pub mod audit_log;
pub mod batch;
pub mod quota;
pub mod reach;
// What happened to it, as history and as an outbox.
pub mod epochs;
pub mod events;
pub mod fingerprint;
pub mod notifications;
// A position in a list of any of them.
pub mod cursor;
// What could not be cleaned.
pub mod cleanup_failures;
// What is counted in the transactions that move files.
pub mod effects;
pub mod hourly;
pub mod lines;
pub mod throughput;
pub mod totals;
