//! Fuzz targets: functions that take any bytes and must neither panic, nor hang, nor use memory without bound.
//!
//! - `make fuzz` searches for inputs with libFuzzer, see `crates/fuzz/run`.
//! - `tests/replay.rs` runs every target on its corpus and on mutations of it, in each run of the tests.
//! - `corpus/TARGET` has the inputs that a search begins with, and those that once failed.
//!
//! This crate may use all other crates of ours but the command line.

mod documents;
mod requests;
mod server;

/// A function that takes any bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

/// All targets, each with its own corpus.
pub fn targets() -> impl Iterator<Item = Target> {
    documents::TARGETS.iter().chain(server::TARGETS).copied()
}

/// The target with this name.
pub fn target(name: &str) -> Option<Target> {
    targets().find(|target| target.name == name)
}
