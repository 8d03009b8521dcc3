//! Runs histories in processes of their own.
//!
//! A history leaves traces in its process: the counters of libraries, what was computed once. So each one runs in a copy of a process
//! that has only prepared the ground, and that is the same whichever histories ran before. A copy that panics, or never ends, takes
//! no other with it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use crate::history::{self, Verdict};
use crate::plan::Without;
use crate::trace::Detail;
use crate::world::Ground;

/// What the first histories of a run ask the database is prepared for those that follow, which are copies of this process.
const LEARNING: usize = 200;

/// After so many seconds of computing a history that does not end is killed by the system.
const MOST_SECONDS: libc::rlim_t = 120;

/// A history that runs.
struct Running {
    seed: u64,
    answer: File,
}

/// Runs histories, as many at once as asked for, and passes each verdict on in the order in which they end.
pub fn run_all(
    seeds: impl Iterator<Item = u64>,
    without: &Without,
    detail: Detail,
    at_once: usize,
    ground: &Arc<Ground>,
    mut each: impl FnMut(Verdict) -> bool,
) {
    let mut seeds = seeds.fuse();
    let mut running: BTreeMap<i32, Running> = BTreeMap::new();
    let (mut goes_on, mut begun) = (true, 0);
    loop {
        while goes_on
            && running.len() < at_once
            && let Some(seed) = seeds.next()
        {
            let detail = if begun < LEARNING { detail.max(Detail::Statements) } else { detail };
            begun += 1;
            let (pid, answer) = fork(seed, without, detail, ground);
            running.insert(pid, Running { seed, answer });
        }
        let Some((&pid, _)) = running.iter().next() else { return };
        let first = running.remove(&pid).expect("it is there");
        let verdict = first.verdict(pid);
        if begun <= LEARNING {
            ground.prepare(verdict.made.iter().chain(&verdict.judged_with));
        }
        goes_on &= each(verdict);
    }
}

/// Runs one history.
pub fn run_one(seed: u64, without: &Without, detail: Detail, ground: &Arc<Ground>) -> Verdict {
    let (pid, answer) = fork(seed, without, detail, ground);
    Running { seed, answer }.verdict(pid)
}

impl Running {
    fn verdict(mut self, pid: i32) -> Verdict {
        let mut text = Vec::new();
        let read = self.answer.read_to_end(&mut text);
        let mut status = 0;
        // SAFETY: `pid` is a child of this process that was not waited for yet, and `status` lives during the call.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        let verdict = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
        verdict.unwrap_or_else(|| no_verdict(self.seed, &format!("status {status}")))
    }
}

/// A panic of the simulator itself is a verdict as well. (One in a task of a process ends this task, as it would in production.)
fn run_caught(seed: u64, without: &Without, detail: Detail, ground: &Arc<Ground>) -> Verdict {
    let said = Arc::new(Mutex::new(String::new()));
    let note = said.clone();
    std::panic::set_hook(Box::new(move |panic| {
        *note.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let run = AssertUnwindSafe(|| history::run(seed, without, detail, ground.clone()));
    std::panic::catch_unwind(run)
        .unwrap_or_else(|_| no_verdict(seed, &said.lock().unwrap_or_else(PoisonError::into_inner)))
}

fn no_verdict(seed: u64, why: &str) -> Verdict {
    Verdict {
        seed,
        hash: 0,
        steps: 0,
        lasted: 0,
        violations: vec![format!("the history did not come to its end: {why}")],
        story: Vec::new(),
        most_often: Vec::new(),
        reached: Vec::new(),
        made: Vec::new(),
        died_before: Vec::new(),
        judged_with: Vec::new(),
    }
}

fn fork(seed: u64, without: &Without, detail: Detail, ground: &Arc<Ground>) -> (i32, File) {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors that the call writes.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0, "a pipe");
    // SAFETY: both descriptors were just opened, and nothing else owns them.
    let [answer, question] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    // SAFETY: this process has one thread, so no lock is held by a thread that the copy would lack.
    match unsafe { libc::fork() } {
        -1 => panic!("this machine has no room for another process"),
        0 => {
            drop(answer);
            let most = libc::rlimit { rlim_cur: MOST_SECONDS, rlim_max: MOST_SECONDS };
            // SAFETY: it only reads `most`, which lives during the call, and limits this process.
            unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const most) };
            let verdict = run_caught(seed, without, detail, ground);
            let text = serde_json::to_vec(&verdict).unwrap_or_default();
            // If the parent is gone, no one waits for the verdict.
            drop(File::from(question).write_all(&text));
            // SAFETY: it ends the process without running anything else, which is what a copy must do.
            unsafe { libc::_exit(0) }
        }
        pid => {
            drop(question);
            (pid, File::from(answer))
        }
    }
}
