//! Reads documents in separate, confined processes, so that a hostile document can kill only the process that reads
//! it.
//!
//! A [`Pool`] starts the running program again, from `/proc/self/exe`, with an argument of its own. So the program
//! must call [`run_if_child`] first of all in `main`: in such a process it gives up every right that reading does not
//! need, reads documents from the standard input until that is closed, and returns the exit code. In every other
//! process it returns `None` and does nothing.
//!
//! ```standalone_crate
//! use std::process::ExitCode;
//!
//! use landfall_documents::Recognised;
//! use landfall_documents::sandbox::{self, Document, Pool, Program, SandboxConfig};
//!
//! // Optional: tells a document that needs too much memory from one that crashes its reader.
//! #[global_allocator]
//! static ALLOCATOR: sandbox::Allocator = sandbox::Allocator;
//!
//! fn main() -> ExitCode {
//!     if let Some(code) = sandbox::run_if_child() {
//!         return code;
//!     }
//!     let runtime = tokio::runtime::Runtime::new().unwrap();
//!     let text = runtime.block_on(async {
//!         let pool = Pool::new(Program::default(), SandboxConfig::default());
//!         let bytes = b"# Tides\n\nThey come and go.";
//!         let document = Document {
//!             label: "upload 7",
//!             owner: "alice",
//!             name: "tides.md",
//!             content_type: None,
//!             size: bytes.len() as u64,
//!         };
//!         let reading = pool.read(&document, &bytes[..]).await?;
//!         reading.finish(Recognised::NotInstalled)
//!     });
//!     let text = text.unwrap();
//!     assert_eq!(text.text, "# Tides\n\nThey come and go.");
//!     assert_eq!(text.places[0].heading.as_deref(), Some("Tides"));
//!     ExitCode::SUCCESS
//! }
//! ```
//!
//! # What the process gives up
//!
//! - It has an empty environment, no capabilities and `no_new_privs`, is killed when its parent ends, and is the
//!   first process that the kernel kills when the machine runs out of memory.
//! - Resource limits: address space, processor time, no core dump, no bytes into any file, and no more descriptors
//!   than the three that are open, so that it can open nothing.
//! - Landlock: no file, no TCP port, no abstract socket, no signal to a process outside.
//! - Seccomp: only the system calls that computing needs. `exec`, `fork`, sockets and `ptrace` kill the process, and
//!   memory can never become executable.
//!
//! On a kernel without Landlock or seccomp, the pool logs a warning once and the other protections stay.
//!
//! The parent trusts no byte of the response: it checks each length, that text is UTF-8, that places are inside the
//! text and in order, and that the process reports only errors that a reader can have.
//!
//! What remains: a document that takes over its process can falsify its own text, and can see and falsify the
//! documents that the same process reads after it. So a process reads the documents of one [`Document::owner`] only,
//! and [`SandboxConfig::documents`]` = 1` gives each document its own process.

mod archive_response;
mod arguments;
mod child;
mod confine;
mod memory;
#[cfg(debug_assertions)]
mod misbehaviour;
mod ocr_child;
mod pool;
mod protocol;
mod response;
mod syscalls;
mod usage;
mod worker;

#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub(crate) mod process;
pub(crate) mod stderr;

pub use memory::Allocator;
pub use pool::Pool;
pub use worker::Document;

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use crate::limits::Limits;
use crate::members::Contents;
use crate::reading::Reading;

/// The first argument of a process that reads documents.
pub(crate) const READ_COMMAND: &str = "extract-child";
/// The first argument of a process that runs tesseract.
pub(crate) const OCR_COMMAND: &str = "ocr-child";

const MIB: u64 = 1 << 20;

/// What a document is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A document with a text.
    Document(Box<Reading>),
    /// An archive of files, of which each is a document.
    Archive(Contents),
}

impl Content {
    fn of(reading: Reading) -> Self {
        Self::Document(Box::new(reading))
    }
}

/// If this process was started by a [`Pool`] or by [`Ocr`](crate::ocr::Ocr), does its work and returns its exit code;
/// otherwise returns `None`.
///
/// Call it first in `main`, while the process has one thread and no open files: a process can only be confined as a
/// whole before it starts threads.
pub fn run_if_child() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next()?;
    let exit_code = if command == OsStr::new(READ_COMMAND) {
        child::Arguments::parse(arguments).map(|arguments| child::run(&arguments))
    } else if command == OsStr::new(OCR_COMMAND) {
        ocr_child::Arguments::parse(arguments).map(|arguments| ocr_child::run(&arguments))
    } else {
        return None;
    };
    Some(exit_code.unwrap_or_else(|error| {
        eprintln!("{}: {error}", command.display());
        ExitCode::from(2)
    }))
}

/// What reading one document may cost, and how processes are reused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The most memory that a process may map, in MiB.
    pub memory_mb: u64,
    /// The most processor time for one document, in seconds.
    pub cpu_seconds: u64,
    /// The most time for one document, from the moment that it is sent to a process.
    pub timeout: Duration,
    /// The most time without progress: no byte of the document taken, no byte of the response, no report of progress.
    pub stall: Duration,
    /// The limits that the reader itself checks. `text_bytes` also limits the whole response, text and places
    /// together.
    pub limits: Limits,
    /// A process is replaced after this many documents.
    pub documents: u64,
    /// The most processes that are kept while they have nothing to read.
    pub idle: usize,
}

impl Default for SandboxConfig {
    /// 1 GiB, two minutes of processor time, five minutes in all, one minute without progress, 50 documents a
    /// process, two idle processes for each core.
    fn default() -> Self {
        Self {
            memory_mb: 1_024,
            cpu_seconds: 120,
            timeout: Duration::from_mins(5),
            stall: Duration::from_mins(1),
            limits: Limits::default(),
            documents: 50,
            idle: 2 * std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// The program that is started to read documents. It must call [`run_if_child`].
#[derive(Debug, Clone)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// Arguments beside those that the pool gives it. A production program needs none.
    pub arguments: Vec<String>,
}

impl Default for Program {
    /// The program that is running, also if its file was replaced since.
    fn default() -> Self {
        Self { path: "/proc/self/exe".into(), arguments: Vec::new() }
    }
}
