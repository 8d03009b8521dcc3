//! One process that reads documents: each within its limits, and each with a reading or an error.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

use super::archive_response::Unpacking;
use super::child::Arguments;
use super::confine::{Protections, total_cpu_seconds};
use super::process::{Exit, Process};
use super::protocol::{EXIT_OUT_OF_MEMORY, FromArchive, Header};
use super::response::{NoResponse, read_hello, read_response};
use super::stderr::{drain_available, drain_forever};
use super::usage::Usage;
use super::{Content, MIB, Program, READ_COMMAND, SandboxConfig};
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use landfall_core::clock::Clock;

/// How long a process may take to confine itself and send its hello.
const START_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a process that has closed its standard output may take to exit.
const EXIT_GRACE: Duration = Duration::from_secs(2);
/// How much of a document is sent at once.
const BATCH_SIZE: usize = 256 * 1024;
/// How many times the limit of a document the files of an archive may take: most of that time the process waits until they
/// are stored.
const UNPACKING_TIMEOUTS: u32 = 12;
/// A process that uses at least this part of the time is busy.
const BUSY_DIVISOR: u32 = 5;
/// A process is replaced when it has grown by this part of its memory limit: one eighth.
const MAX_GROWTH_DIVISOR: u64 = 8;

/// A document to be read in the sandbox. Its bytes come from a stream, so that the parent never holds all of them.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// What the log calls this document.
    pub label: &'a str,
    /// Whose document it is: a user, a tenant, a customer. A process reads documents of one owner only.
    pub owner: &'a str,
    /// The name of the file. It decides only between kinds of text, such as Markdown and CSV.
    pub name: &'a str,
    /// The declared media type, which counts as the name does.
    pub content_type: Option<&'a str>,
    /// The number of bytes.
    pub size: u64,
}

/// A process that reads documents.
pub struct Worker {
    process: Process,
    config: SandboxConfig,
    pub protections: Protections,
    /// The owner of its documents, from the first document on.
    owner: Option<String>,
    documents: u64,
    resident_at_start: u64,
}

/// Why there is no response to a document.
enum ExchangeError {
    Source(io::Error),
    Closed,
    Violation(&'static str),
    Stalled,
    TimedOut,
}

impl From<NoResponse> for ExchangeError {
    fn from(no_response: NoResponse) -> Self {
        match no_response {
            NoResponse::Closed => Self::Closed,
            NoResponse::Violation(what) => Self::Violation(what),
        }
    }
}

impl Worker {
    pub async fn start(program: &Program, config: &SandboxConfig) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command
            .arg(READ_COMMAND)
            .args(Arguments::to_command_line(config))
            .args(&program.arguments)
            .env_clear();
        let mut process = Process::start(command).await?;
        let hello = tokio::select! {
            hello = read_hello(&mut process.stdout) => hello,
            () = Clock::System.sleep(START_TIMEOUT) => Err(NoResponse::Violation("no hello in time")),
        };
        let protections = match hello {
            Ok(protections) => protections,
            Err(why) => {
                process.handle.kill();
                let exit = process.handle.exited().await;
                let mut stderr = Vec::new();
                drain_available(&process.stderr, &mut stderr);
                let stderr = String::from_utf8_lossy(&stderr);
                return Err(io::Error::other(format!("{why:?}, {exit:?}, {stderr:?}")));
            }
        };
        let usage = process.handle.with_pid(Usage::of).flatten();
        Ok(Self {
            process,
            config: config.clone(),
            protections,
            owner: None,
            documents: 0,
            resident_at_start: usage.map_or(0, |usage| usage.resident_bytes),
        })
    }

    /// `None` as long as it has read no document.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    pub fn has_exited(&self) -> bool {
        self.process.handle.has_exited()
    }

    /// Whether it has read its share of documents or has grown too much.
    pub fn must_be_replaced(&self) -> bool {
        let usage = self.process.handle.with_pid(Usage::of).flatten();
        self.documents >= self.config.documents
            || usage.is_none_or(|usage| {
                let grown = usage.resident_bytes.saturating_sub(self.resident_at_start);
                grown > self.config.memory_mb * MIB / MAX_GROWTH_DIVISOR
            })
    }

    /// Reads one document. After an error, or if this future is dropped, the process is in an unknown state: drop it.
    ///
    /// Of an archive of files it returns what `unpacking` says; without that, its text.
    pub async fn read(
        &mut self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
        unpacking: Option<Unpacking<'_>>,
    ) -> Result<Content, Error> {
        self.owner = Some(document.owner.to_owned());
        self.documents += 1;
        self.raise_cpu_limit();
        let before = self.cpu_time();
        let mut stderr = Vec::new();
        let outcome = match self.exchange(document, bytes, unpacking, &mut stderr).await {
            Ok(response) => response,
            Err(ExchangeError::Stalled) if is_computing(self.cpu_time(), before, self.config.stall) => {
                Err(Error::new(
                    ErrorKind::ComputingLimit,
                    format!(
                        "Reading this file computed for {} s without any progress",
                        self.config.stall.as_secs_f64()
                    ),
                ))
            }
            Err(error) => Err(self.explain(error, document).await),
        };
        drain_available(&self.process.stderr, &mut stderr);
        if !stderr.is_empty() {
            let stderr = String::from_utf8_lossy(&stderr);
            tracing::debug!(
                fileId = document.label,
                ?stderr,
                "the process that reads documents wrote to stderr"
            );
        }
        outcome
    }

    /// The processor time that the process has used since its start.
    fn cpu_time(&self) -> Duration {
        let usage = self.process.handle.with_pid(Usage::of).flatten();
        usage.map_or(Duration::ZERO, |usage| usage.cpu)
    }

    /// The limit counts from the start of the process, so each document raises it.
    fn raise_cpu_limit(&self) {
        self.process.handle.with_pid(|pid| {
            let used = Usage::of(pid).map_or(0, |usage| usage.cpu.as_secs() + 1);
            let total = total_cpu_seconds(self.config.cpu_seconds, self.config.documents);
            let current = Some((used + self.config.cpu_seconds).min(total));
            let limit = Rlimit { current, maximum: Some(total) };
            // If this fails, the limit for all documents and the timeout still hold.
            if let Err(error) = rustix::process::prlimit(Some(pid), Resource::Cpu, limit) {
                tracing::debug!(%error, "the limit on processor time could not be raised");
            }
        });
    }

    /// Sends a document and reads the response.
    async fn exchange(
        &mut self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
        unpacking: Option<Unpacking<'_>>,
        kept_stderr: &mut Vec<u8>,
    ) -> Result<Result<Content, Error>, ExchangeError> {
        let steps = AtomicU64::new(0);
        let progress = || _ = steps.fetch_add(1, Ordering::Relaxed);
        let Process { stdin, stdout, stderr, .. } = &mut self.process;
        let wanted = unpacking.as_ref().map(Unpacking::wanted);
        let mut config = self.config.clone();
        if wanted.is_some_and(|wanted| wanted.with_content) {
            config.timeout *= UNPACKING_TIMEOUTS;
        }
        let sending = send_document(stdin, document, &config.limits, wanted, bytes, &progress);
        let responding = read_response(stdout, &config, unpacking, &progress);
        let exchange = async {
            tokio::pin!(sending, responding);
            tokio::select! {
                // Polled first: the response may arrive as soon as the last bytes are sent.
                biased;
                sent = &mut sending => match sent {
                    // If the pipe is closed, the exit of the process says why.
                    Ok(()) | Err(SendError::PipeClosed) => {}
                    Err(SendError::Source(error)) => return Err(ExchangeError::Source(error)),
                },
                response = &mut responding => return Err(match response {
                    Ok(_) => ExchangeError::Violation("a response before the end of the document"),
                    Err(no_response) => no_response.into(),
                }),
            }
            Ok(responding.await?)
        };
        tokio::select! {
            outcome = exchange => outcome,
            () = drain_forever(stderr, kept_stderr) => Err(ExchangeError::Closed),
            () = stalled(&steps, config.stall) => Err(ExchangeError::Stalled),
            () = Clock::System.sleep(config.timeout) => Err(ExchangeError::TimedOut),
        }
    }

    async fn explain(&mut self, error: ExchangeError, document: &Document<'_>) -> Error {
        let violation = |what: &str| {
            tracing::warn!(
                fileId = document.label,
                what,
                "the process that read a document violated the protocol"
            );
            unreadable("the process that reads it sent an invalid response")
        };
        match error {
            ExchangeError::Closed => {
                let grace = Clock::System.sleep(EXIT_GRACE);
                tokio::select! {
                    exit = self.process.handle.exited() => self.explain_exit(exit, document),
                    () = grace => violation("it closed its standard output and did not exit"),
                }
            }
            ExchangeError::Violation(what) => violation(what),
            ExchangeError::Stalled => Error::new(
                ErrorKind::TimedOut,
                format!("Reading this file made no progress for {} s", self.config.stall.as_secs_f64()),
            ),
            ExchangeError::TimedOut => Error::new(
                ErrorKind::TimedOut,
                format!(
                    "Reading this file took longer than its limit of {} s",
                    self.config.timeout.as_secs_f64()
                ),
            ),
            ExchangeError::Source(error) => Error::new(ErrorKind::Source, error.to_string()),
        }
    }

    /// Decides whether a process that exited without a response did so because of the document.
    fn explain_exit(&self, exit: Exit, document: &Document<'_>) -> Error {
        tracing::warn!(
            fileId = document.label,
            ?exit,
            "the process that read a document exited without a response"
        );
        match exit {
            Exit::Code(EXIT_OUT_OF_MEMORY) => Error::new(
                ErrorKind::OutOfMemory,
                format!(
                    "Reading this file needs more than the {} MB of memory that a document may use",
                    self.config.memory_mb
                ),
            ),
            // Processor time does not depend on how busy the machine is: another attempt would use as much.
            Exit::Signal(libc::SIGXCPU) => Error::new(
                ErrorKind::ComputingLimit,
                format!(
                    "Reading this file took more than its limit of {} s of computing",
                    self.config.cpu_seconds
                ),
            ),
            Exit::Signal(libc::SIGSYS) => unreadable("reading it tried what no document needs"),
            Exit::Signal(
                libc::SIGSEGV
                | libc::SIGABRT
                | libc::SIGILL
                | libc::SIGBUS
                | libc::SIGFPE
                | libc::SIGTRAP
                | libc::SIGXFSZ,
            ) => unreadable("reading it crashed the process that reads it"),
            Exit::Code(_) => unreadable("the process that reads it ended without a response"),
            // Another process killed it, or the kernel did because the machine ran out of memory. The document's own
            // limits are lower than that, so another attempt may succeed.
            Exit::Signal(_) | Exit::Unknown => {
                Error::new(ErrorKind::Killed, "The process that read this file was killed from outside")
            }
        }
    }
}

/// Whether a process that made no progress for so long was busy, and did not only wait: then another attempt would be as busy
/// for as long. A busy machine gives each process a part of its time.
fn is_computing(now: Duration, before: Duration, stall: Duration) -> bool {
    now.saturating_sub(before) >= stall / BUSY_DIVISOR
}

fn unreadable(why: &str) -> Error {
    Error::new(ErrorKind::Damaged, format!("This file cannot be read: {why}; it may be damaged"))
}

/// Why a document was not sent to the process.
enum SendError {
    /// Its bytes could not be read from their source.
    Source(io::Error),
    /// The process has closed its standard input.
    PipeClosed,
}

async fn send_document(
    to: &mut pipe::Sender,
    document: &Document<'_>,
    limits: &Limits,
    archive: Option<FromArchive>,
    mut bytes: impl AsyncRead + Unpin,
    progress: &impl Fn(),
) -> Result<(), SendError> {
    let header = Header {
        name: document.name.to_owned(),
        content_type: document.content_type.map(str::to_owned),
        size: document.size,
        limits: *limits,
        archive,
    };
    // A short document is sent together with its header.
    let mut batch = header.encode().map_err(SendError::Source)?;
    batch.reserve(BATCH_SIZE.min(usize::try_from(document.size).unwrap_or(BATCH_SIZE)));
    let mut left = document.size;
    loop {
        while batch.len() < BATCH_SIZE && left > 0 {
            let read = (&mut bytes).take(left).read_buf(&mut batch).await.map_err(SendError::Source)?;
            if read == 0 {
                return Err(SendError::Source(io::ErrorKind::UnexpectedEof.into()));
            }
            left -= read as u64;
        }
        to.write_all(&batch).await.map_err(|_| SendError::PipeClosed)?;
        progress();
        if left == 0 {
            return Ok(());
        }
        batch.clear();
    }
}

/// Resolves when there was no progress for this long. Polls ten times in that time.
async fn stalled(steps: &AtomicU64, stall: Duration) {
    let (mut last, mut polls_without) = (0, 0);
    while polls_without < 10 {
        Clock::System.sleep(stall / 10).await;
        let now = steps.load(Ordering::Relaxed);
        polls_without = if now == last { polls_without + 1 } else { 0 };
        last = now;
    }
}
