//! One process and the documents that it is given: each within its limits, and each with an answer or a reason.

use std::io;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use uuid::Uuid;

use super::answer::{NoAnswer, read_answer, read_hello};
use super::child::Arguments;
use super::complaints::{listen, take_complaints};
use super::confine::{Protections, computing_in_all};
use super::process::{COMMAND, Ended, Process};
use super::protocol::{EXIT_OUT_OF_MEMORY, Header};
use super::usage::Usage;
use super::{MIB, Program, SandboxConfig};
use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::reading::Reading;
use landfall_core::clock::Clock;

/// How long a process may take to confine itself and say so.
const START: Duration = Duration::from_secs(20);
/// How long a process that has closed its mouth may take to end.
const LAST_BREATH: Duration = Duration::from_secs(2);
/// How much of a document is handed over at once.
const PIECE: usize = 256 * 1024;
/// A process is replaced when it keeps this share of the memory it may have: one in so many.
const GROWN: u64 = 8;

/// A document to be read. Its bytes come beside it.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    pub file: Uuid,
    /// Documents of different tenants do not meet in one process.
    pub tenant: &'a str,
    pub name: &'a str,
    pub content_type: Option<&'a str>,
    pub size: u64,
}

/// A process that reads documents.
pub struct Reader {
    process: Process,
    config: SandboxConfig,
    pub protections: Protections,
    /// Whose documents it reads, from the first on.
    tenant: Option<String>,
    documents: u64,
    resident_at_start: u64,
}

/// Why there is no answer to a document.
enum Broken {
    Source(io::Error),
    Ended,
    Nonsense(&'static str),
    Stalled,
    TooLong,
}

impl From<NoAnswer> for Broken {
    fn from(no_answer: NoAnswer) -> Self {
        match no_answer {
            NoAnswer::Ended => Self::Ended,
            NoAnswer::Nonsense(what) => Self::Nonsense(what),
        }
    }
}

impl Reader {
    pub async fn start(program: &Program, config: &SandboxConfig) -> io::Result<Self> {
        let mut command = Command::new(&program.path);
        command.arg(COMMAND).args(Arguments::to_command_line(config)).args(&program.arguments).env_clear();
        let mut process = Process::start(command).await?;
        let hello = tokio::select! {
            hello = read_hello(&mut process.answers) => hello,
            () = Clock::System.sleep(START) => Err(NoAnswer::Nonsense("it did not greet in time")),
        };
        let protections = match hello {
            Ok(protections) => protections,
            Err(why) => {
                process.life.kill();
                let ended = process.life.ended().await;
                let mut said = Vec::new();
                take_complaints(&process.complaints, &mut said);
                let said = String::from_utf8_lossy(&said);
                return Err(io::Error::other(format!("{why:?}, {ended:?}, {said:?}")));
            }
        };
        let usage = process.life.with_pid(Usage::of).flatten();
        Ok(Self {
            process,
            config: config.clone(),
            protections,
            tenant: None,
            documents: 0,
            resident_at_start: usage.map_or(0, |usage| usage.resident_bytes),
        })
    }

    pub fn tenant(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    pub fn has_ended(&self) -> bool {
        self.process.life.has_ended()
    }

    /// Whether it has read enough or grown too large.
    pub fn is_spent(&self) -> bool {
        let usage = self.process.life.with_pid(Usage::of).flatten();
        self.documents >= self.config.documents
            || usage.is_none_or(|usage| {
                let grown = usage.resident_bytes.saturating_sub(self.resident_at_start);
                grown > self.config.memory_mb * MIB / GROWN
            })
    }

    /// Reads one document. After a failure the process is not to be used again. Dropped before its end, this leaves a
    /// process that is in the middle of something: drop that as well.
    pub async fn read(
        &mut self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
    ) -> Result<Reading, Error> {
        self.tenant = Some(document.tenant.to_owned());
        self.documents += 1;
        self.allow_computing();
        let mut said = Vec::new();
        let outcome = self.converse(document, bytes, &mut said).await;
        let answer = match outcome {
            Ok(answer) => answer,
            Err(broken) => Err(self.explain(broken, document).await),
        };
        take_complaints(&self.process.complaints, &mut said);
        if !said.is_empty() {
            let said = String::from_utf8_lossy(&said);
            tracing::debug!(fileId = %document.file, said = ?said, "the process that reads documents complained");
        }
        answer
    }

    /// The limit counts from the beginning of the process, so it moves on with each document.
    fn allow_computing(&self) {
        self.process.life.with_pid(|pid| {
            let used = Usage::of(pid).map_or(0, |usage| usage.cpu.as_secs() + 1);
            let in_all = computing_in_all(self.config.cpu_seconds, self.config.documents);
            let current = Some((used + self.config.cpu_seconds).min(in_all));
            let limit = Rlimit { current, maximum: Some(in_all) };
            // The limit for all documents stays, and that of the time.
            if let Err(error) = rustix::process::prlimit(Some(pid), Resource::Cpu, limit) {
                tracing::debug!(%error, "the computing of a process could not be limited anew");
            }
        });
    }

    async fn converse(
        &mut self,
        document: &Document<'_>,
        bytes: impl AsyncRead + Unpin,
        said: &mut Vec<u8>,
    ) -> Result<Result<Reading, Error>, Broken> {
        let signs = AtomicU64::new(0);
        let progress = || _ = signs.fetch_add(1, Ordering::Relaxed);
        let Process { requests, answers, complaints, .. } = &mut self.process;
        let handing_over = hand_over(requests, document, &self.config.limits, bytes, &progress);
        let answering = read_answer(answers, &self.config, &progress);
        let conversation = async {
            tokio::pin!(handing_over, answering);
            tokio::select! {
                // Asked first: an answer to the last piece may be there as soon as that piece is gone.
                biased;
                handed_over = &mut handing_over => match handed_over {
                    Ok(()) | Err(NotHandedOver::Deaf) => {}
                    Err(NotHandedOver::Source(error)) => return Err(Broken::Source(error)),
                },
                answer = &mut answering => return Err(match answer {
                    Ok(_) => Broken::Nonsense("it answered before it had read the document"),
                    Err(no_answer) => no_answer.into(),
                }),
            }
            Ok(answering.await?)
        };
        tokio::select! {
            outcome = conversation => outcome,
            () = listen(complaints, said) => Err(Broken::Ended),
            () = stalled(&signs, self.config.stall) => Err(Broken::Stalled),
            () = Clock::System.sleep(self.config.timeout) => Err(Broken::TooLong),
        }
    }

    async fn explain(&mut self, broken: Broken, document: &Document<'_>) -> Error {
        let nonsense = |what: &str| {
            tracing::warn!(fileId = %document.file, what, "the process that read a document talked nonsense");
            unreadable("what came out of it made no sense")
        };
        match broken {
            Broken::Ended => {
                let last_breath = Clock::System.sleep(LAST_BREATH);
                tokio::select! {
                    ended = self.process.life.ended() => self.explain_end(ended, document),
                    () = last_breath => nonsense("it closed its answers and went on"),
                }
            }
            Broken::Nonsense(what) => nonsense(what),
            Broken::Stalled => Error::new(
                ErrorKind::TimedOut,
                format!("Reading this file made no progress for {} s", self.config.stall.as_secs_f64()),
            ),
            Broken::TooLong => Error::new(
                ErrorKind::TimedOut,
                format!(
                    "Reading this file took longer than its limit of {} s",
                    self.config.timeout.as_secs_f64()
                ),
            ),
            Broken::Source(error) => Error::new(ErrorKind::Source, error.to_string()),
        }
    }

    /// A process that ended without an answer: what of it is the document's doing.
    fn explain_end(&self, ended: Ended, document: &Document<'_>) -> Error {
        tracing::warn!(fileId = %document.file, ?ended, "the process that read a document ended");
        match ended {
            Ended::Code(EXIT_OUT_OF_MEMORY) => Error::new(
                ErrorKind::OutOfMemory,
                format!(
                    "Reading this file needs more than the {} MB of memory that a document may use",
                    self.config.memory_mb
                ),
            ),
            // Unlike the clock, computing does not depend on what else the machine does: it would take as much again.
            Ended::Signal(libc::SIGXCPU) => Error::new(
                ErrorKind::ComputingLimit,
                format!(
                    "Reading this file took more than its limit of {} s of computing",
                    self.config.cpu_seconds
                ),
            ),
            Ended::Signal(libc::SIGSYS) => unreadable("reading it tried what no document needs"),
            Ended::Signal(
                libc::SIGSEGV
                | libc::SIGABRT
                | libc::SIGILL
                | libc::SIGBUS
                | libc::SIGFPE
                | libc::SIGTRAP
                | libc::SIGXFSZ,
            ) => unreadable("reading it crashed the process that reads it"),
            Ended::Code(_) => unreadable("the process that reads it ended without an answer"),
            // Not its own doing: somebody killed it, or the kernel for want of memory on the whole machine. What the
            // document itself may use is limited before that, so another attempt may go well.
            Ended::Signal(_) | Ended::Unknown => {
                Error::new(ErrorKind::Killed, "The process that read this file was killed from outside")
            }
        }
    }
}

fn unreadable(why: &str) -> Error {
    Error::new(ErrorKind::Damaged, format!("This file cannot be read: {why}. It may be damaged"))
}

/// Why a document did not reach the process.
enum NotHandedOver {
    /// Its bytes could not be got.
    Source(io::Error),
    /// The process does not listen; its end will say why.
    Deaf,
}

async fn hand_over(
    to: &mut pipe::Sender,
    document: &Document<'_>,
    limits: &Limits,
    mut bytes: impl AsyncRead + Unpin,
    progress: &impl Fn(),
) -> Result<(), NotHandedOver> {
    let header = Header {
        name: document.name.to_owned(),
        content_type: document.content_type.map(str::to_owned),
        size: document.size,
        limits: *limits,
    };
    let source = |error: serde_json::Error| NotHandedOver::Source(error.into());
    let header = serde_json::to_vec(&header).map_err(source)?;
    let length = u32::try_from(header.len())
        .map_err(|_| NotHandedOver::Source(io::Error::other("the name of a document is too long")))?;
    // What is short goes in one piece.
    let mut piece =
        Vec::with_capacity(PIECE.min(usize::try_from(document.size).unwrap_or(PIECE)) + header.len() + 4);
    piece.extend(length.to_le_bytes());
    piece.extend(header);
    let mut left = document.size;
    loop {
        while piece.len() < PIECE && left > 0 {
            let read = (&mut bytes).take(left).read_buf(&mut piece).await.map_err(NotHandedOver::Source)?;
            if read == 0 {
                return Err(NotHandedOver::Source(io::ErrorKind::UnexpectedEof.into()));
            }
            left -= read as u64;
        }
        to.write_all(&piece).await.map_err(|_| NotHandedOver::Deaf)?;
        progress();
        if left == 0 {
            return Ok(());
        }
        piece.clear();
    }
}

/// Resolves when there was no sign for so long. Looks ten times in that time.
async fn stalled(signs: &AtomicU64, stall: Duration) {
    let (mut seen, mut looks_without) = (0, 0);
    while looks_without < 10 {
        Clock::System.sleep(stall / 10).await;
        let now = signs.load(Ordering::Relaxed);
        looks_without = if now == seen { looks_without + 1 } else { 0 };
        seen = now;
    }
}
