//! A child process and the thread that supervises it.
//!
//! The kernel kills the child when the thread that started it ends, so it must not be started on a thread of a pool,
//! which may end at any time. Each child has a thread of its own, which waits for its exit, kills the rest of its
//! process group, and reports how it exited.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::BufReader;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

/// How much of the standard output is read at once.
const READ_BUFFER: usize = 256 * 1024;
/// The size of the pipes: larger than the default, so that a long document needs fewer switches between the
/// processes.
const PIPE_SIZE: usize = 1 << 20;

/// How a process exited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Its status could not be read.
    Unknown,
}

/// A running process and its pipes.
pub struct Process {
    pub stdin: pipe::Sender,
    pub stdout: BufReader<pipe::Receiver>,
    pub stderr: pipe::Receiver,
    pub handle: ProcessHandle,
}

/// Controls a process. Dropping it kills the process and all that it started.
pub struct ProcessHandle {
    pid: SharedPid,
    exit: watch::Receiver<Option<Exit>>,
}

/// The id of a process until it is reaped. Afterwards the kernel may give the id to another process.
#[derive(Clone, Default)]
struct SharedPid(Arc<Mutex<Option<Pid>>>);

impl Process {
    /// Starts a command in a process group of its own. The caller sets its environment.
    pub async fn start(mut command: Command) -> io::Result<Self> {
        command
            .current_dir("/")
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let pid = SharedPid::default();
        let (started, starting) = oneshot::channel();
        let (report, exit) = watch::channel(None);
        let shared_pid = pid.clone();
        std::thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn(move || supervise(command, &shared_pid, started, &report))?;
        let pipes = starting.await.map_err(io::Error::other)??;
        for pipe in [&pipes.stdin, &pipes.stdout] {
            // The kernel limits the pipe memory of a user. A small pipe works too, only slower.
            _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_SIZE);
        }
        Ok(Self {
            stdin: pipe::Sender::from_owned_fd(pipes.stdin)?,
            stdout: BufReader::with_capacity(READ_BUFFER, pipe::Receiver::from_owned_fd(pipes.stdout)?),
            stderr: pipe::Receiver::from_owned_fd(pipes.stderr)?,
            handle: ProcessHandle { pid, exit },
        })
    }
}

impl ProcessHandle {
    pub fn kill(&self) {
        self.pid.kill();
    }

    /// Calls `act` with the process's id, unless the process has been reaped.
    pub fn with_pid<T>(&self, act: impl FnOnce(Pid) -> T) -> Option<T> {
        self.pid.with(act)
    }

    /// Asks the kernel, which knows it before the supervisor does.
    pub fn has_exited(&self) -> bool {
        let poll = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.with_pid(|pid| !matches!(rustix::process::waitid(WaitId::Pid(pid), poll), Ok(None)))
            .unwrap_or(true)
    }

    /// Resolves when the process has exited and its group is killed.
    pub async fn exited(&mut self) -> Exit {
        let exit = self.exit.wait_for(Option::is_some).await.map(|exit| *exit);
        exit.ok().flatten().unwrap_or(Exit::Unknown)
    }
}

impl Drop for ProcessHandle {
    fn drop(&mut self) {
        self.kill();
    }
}

impl SharedPid {
    fn with<T>(&self, act: impl FnOnce(Pid) -> T) -> Option<T> {
        let pid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pid.map(act)
    }

    fn kill(&self) {
        // Fails only if the group is empty.
        self.with(|pid| _ = rustix::process::kill_process_group(pid, Signal::KILL));
    }

    fn set(&self, pid: Option<Pid>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = pid;
    }
}

struct Pipes {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// Runs on the process's own thread, from its start to its exit.
fn supervise(
    mut command: Command,
    pid: &SharedPid,
    started: oneshot::Sender<io::Result<Pipes>>,
    report: &watch::Sender<Option<Exit>>,
) {
    let mut child = match command.spawn() {
        Ok(child) => child,
        // If the caller has stopped waiting, it does not need the error.
        Err(error) => return drop(started.send(Err(error))),
    };
    pid.set(Some(Pid::from_child(&child)));
    if started.send(pipes(&mut child)).is_err() {
        pid.kill();
    }
    report.send_replace(Some(wait(&mut child, pid)));
}

fn pipes(child: &mut Child) -> io::Result<Pipes> {
    let missing = || io::Error::other("a pipe is missing");
    Ok(Pipes {
        stdin: child.stdin.take().ok_or_else(missing)?.into(),
        stdout: child.stdout.take().ok_or_else(missing)?.into(),
        stderr: child.stderr.take().ok_or_else(missing)?.into(),
    })
}

/// Waits for the exit and kills the group before the process is reaped, so that the group's id is still its own.
fn wait(child: &mut Child, pid: &SharedPid) -> Exit {
    let without_reaping = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(error) = rustix::process::waitid(WaitId::Pid(Pid::from_child(child)), without_reaping) {
        if error != rustix::io::Errno::INTR {
            break;
        }
    }
    pid.kill();
    // The next line frees the id, so it must not be used from here on.
    pid.set(None);
    child.wait().map_or(Exit::Unknown, |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    })
}
