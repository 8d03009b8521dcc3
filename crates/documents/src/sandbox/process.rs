//! A process and the thread that keeps it.
//!
//! The kernel kills the process when the thread that started it ends, so that thread must not be one of a pool's that
//! come and go. It has one thing to do: wait for the end, take the whole group along, and tell how it was.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

/// The name of the command, which no list of commands shows.
pub const COMMAND: &str = "extract-child";

/// How much of an answer is read at once.
const READ_AT_ONCE: usize = 256 * 1024;
/// How much fits into a pipe, so that long documents do not go from hand to hand in crumbs.
const PIPE: usize = 1 << 20;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    Code(i32),
    Signal(i32),
    /// Somebody else was told, and we were not.
    Unknown,
}

/// A running process and the ways to it.
pub struct Process {
    pub requests: pipe::Sender,
    pub answers: BufReader<pipe::Receiver>,
    pub complaints: pipe::Receiver,
    pub life: Life,
}

/// What a process has one of; dropped, it is killed with all that it started.
pub struct Life {
    hold: Hold,
    ended: watch::Receiver<Option<Ended>>,
}

/// The process's number, for as long as it cannot have become another's.
#[derive(Clone, Default)]
struct Hold(Arc<Mutex<Option<Pid>>>);

impl Process {
    /// What the command's environment is, its caller says.
    pub async fn start(mut command: Command) -> io::Result<Self> {
        command
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let hold = Hold::default();
        let (started, starting) = oneshot::channel();
        let (tell, ended) = watch::channel(None);
        let held = hold.clone();
        std::thread::Builder::new()
            .name("extract-keeper".to_owned())
            .spawn(move || keep(command, &held, started, &tell))?;
        let pipes = starting.await.map_err(io::Error::other)??;
        for pipe in [&pipes.requests, &pipes.answers] {
            // A user has only so much of it; a small pipe does as well, and slower.
            _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE);
        }
        Ok(Self {
            requests: pipe::Sender::from_owned_fd(pipes.requests)?,
            answers: BufReader::with_capacity(READ_AT_ONCE, pipe::Receiver::from_owned_fd(pipes.answers)?),
            complaints: pipe::Receiver::from_owned_fd(pipes.complaints)?,
            life: Life { hold, ended },
        })
    }
}

impl Life {
    pub fn kill(&self) {
        self.hold.kill();
    }

    /// Does something with the process's number while it has one.
    pub fn with_pid<T>(&self, act: impl FnOnce(Pid) -> T) -> Option<T> {
        self.hold.with(act)
    }

    /// As the kernel knows it, which may be before its keeper does.
    pub fn has_ended(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.with_pid(|pid| !matches!(rustix::process::waitid(WaitId::Pid(pid), look), Ok(None)))
            .unwrap_or(true)
    }

    /// Resolves when the process and its group are gone.
    pub async fn ended(&mut self) -> Ended {
        let ended = self.ended.wait_for(Option::is_some).await.map(|ended| *ended);
        ended.ok().flatten().unwrap_or(Ended::Unknown)
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Hold {
    fn with<T>(&self, act: impl FnOnce(Pid) -> T) -> Option<T> {
        let held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.map(act)
    }

    fn kill(&self) {
        // Fails only where nobody is left to be killed.
        self.with(|pid| _ = rustix::process::kill_process_group(pid, Signal::KILL));
    }

    fn set(&self, pid: Option<Pid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    }
}

struct Pipes {
    requests: OwnedFd,
    answers: OwnedFd,
    complaints: OwnedFd,
}

/// The life of the thread that keeps a process.
fn keep(
    mut command: Command,
    hold: &Hold,
    started: oneshot::Sender<io::Result<Pipes>>,
    tell: &watch::Sender<Option<Ended>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        // Nobody may be waiting any more, and then nobody needs to know.
        Err(error) => return drop(started.send(Err(error))),
    };
    hold.set(Some(Pid::from_child(&child)));
    if started.send(pipes(&mut child)).is_err() {
        hold.kill();
    }
    tell.send_replace(Some(wait(&mut child, hold)));
}

fn pipes(child: &mut Child) -> io::Result<Pipes> {
    let missing = || io::Error::other("a pipe is missing");
    Ok(Pipes {
        requests: child.stdin.take().ok_or_else(missing)?.into(),
        answers: child.stdout.take().ok_or_else(missing)?.into(),
        complaints: child.stderr.take().ok_or_else(missing)?.into(),
    })
}

/// Waits for the end of the process. Its number stays its own until the group is killed too.
fn wait(child: &mut Child, hold: &Hold) -> Ended {
    let its_end = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), its_end) {
        if error != rustix::io::Errno::INTR {
            break;
        }
    }
    hold.kill();
    // Nobody may use the number from here on, for the next line gives it free.
    hold.set(None);
    child.wait().map_or(Ended::Unknown, |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => Ended::Code(code),
        (None, Some(signal)) => Ended::Signal(signal),
        (None, None) => Ended::Unknown,
    })
}
