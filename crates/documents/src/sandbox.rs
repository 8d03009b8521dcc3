//! The process in which a document is read: one that a hostile document can kill without hurting anybody else.
//!
//! Landfall starts its own program again (`landfall extract-child`). That process first takes away from itself all
//! that reading a document does not need (`confine`), and then reads one document after another from its standard
//! input ([`child`]). The server hands the documents out and keeps the processes ([`pool`]), holds each to its time and
//! finds out how it ended (`reader`), and believes nothing that it says (`answer`).
//!
//! The pictures in a document are for tesseract, a program that is not ours: [`ocr_child`] confines it.

pub mod child;
pub mod memory;
pub mod ocr_child;
pub mod pool;

pub(super) mod complaints;
pub(super) mod process;

mod answer;
mod confine;
mod reader;
#[cfg(debug_assertions)]
mod misbehaviour;
mod protocol;
mod syscalls;
mod usage;

pub use process::COMMAND;

use std::path::PathBuf;
use std::time::Duration;

use crate::limits::Limits;

/// What reading one document may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The most memory that a process may map, in MiB.
    pub memory_mb: u64,
    /// The most computing for one document, in seconds.
    pub cpu_seconds: u64,
    /// The most time for one document, from when it is handed over.
    pub timeout: Duration,
    /// The most time without any sign of progress.
    pub stall: Duration,
    /// What is in the document. The most text is also the most that is listened to, text and places together.
    pub limits: Limits,
    /// After so many documents a process is replaced.
    pub documents: u64,
    /// Processes that are kept while nobody needs them.
    pub idle: usize,
}

const MIB: u64 = 1 << 20;

/// The program that reads documents: this one, unless a test stands in for it.
#[derive(Debug, Clone)]
pub struct Program {
    pub path: PathBuf,
    /// What it is told beside its limits.
    pub arguments: Vec<String>,
}

impl Default for Program {
    fn default() -> Self {
        // The file that is running, also when another version has taken its name since.
        Self { path: "/proc/self/exe".into(), arguments: Vec::new() }
    }
}
