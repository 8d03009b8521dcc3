//! The parts where threads and tasks of one process meet, run in many orders that shuttle chooses.
//!
//! The sources are those of the server and of the store, compiled once more with `crates/schedules-sync` in place of
//! `crates/sync`. So the tests run the code itself and no copy of it. The database is SQLite in memory.
//!
//! A schedule that fails is printed; `shuttle::replay` runs it again.
//!
//! This crate may use all other crates of ours but the command line.

pub mod auth;
pub mod delivery;
pub mod queue;
pub mod records;
pub mod world;
