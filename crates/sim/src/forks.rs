//! Runs histories in processes of their own.
//!
//! A history leaves traces in its process: the counters of libraries, the keys of the next hash map, what was computed once. So a
//! history must always find the same traces. Seeds come in blocks; a copy of a process that has only prepared the ground runs the
//! histories of one block, from its first seed on. A history that is run alone comes after those before it in its block, too. A copy
//! that panics, or never ends, takes no other with it, and its block goes on without the history that ended it.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::history::{self, Verdict};
use crate::plan::{Plan, Without};
use crate::trace::Detail;
use crate::world::Ground;

/// How many seeds a block has. The copy of the process costs as much as a third of a history, and a history that is repeated alone
/// costs as much as half a block.
const BLOCK: u64 = 32;

/// What the first histories of a run ask the database is prepared for those that follow, which are copies of this process.
const LEARNING: u64 = 200;

/// After so many seconds of computing a history that does not end is killed by the system.
const MOST_SECONDS: libc::rlim_t = 120;

/// How a copy ends whose last history panicked, so that it cannot go on.
const BROKEN: i32 = 3;

/// Histories of one block that are run in one copy.
#[derive(Clone)]
struct Task {
    /// Those that are asked for. The ones before them in their block are run first, and not told.
    seeds: Range<u64>,
    without: Without,
    detail: Detail,
    /// Those of the block that came to no end.
    left_out: BTreeSet<u64>,
}

impl Task {
    fn all(&self) -> impl Iterator<Item = u64> {
        let first = self.seeds.start - self.seeds.start % BLOCK;
        (first..self.seeds.end).filter(|seed| !self.left_out.contains(seed))
    }
}

/// What a copy says of each history.
#[derive(Serialize, Deserialize)]
struct Ended {
    seed: u64,
    is_broken: bool,
    /// Of one that was asked for.
    verdict: Option<Verdict>,
}

/// A copy that runs histories.
struct Running {
    task: Task,
    pid: i32,
    answer: File,
    /// What it said, as far as it is not understood yet.
    said: Vec<u8>,
    /// How many of its histories have ended.
    ended: usize,
    is_broken: bool,
}

/// Runs histories, as many at once as asked for, and passes each verdict on in the order in which they end, until it is told to stop.
/// One that fails is repeated, and must fail again in the same way.
pub fn run_all(
    seeds: Range<u64>,
    without: &Without,
    detail: Detail,
    at_once: usize,
    ground: &Arc<Ground>,
    mut each: impl FnMut(Verdict) -> bool,
) {
    // What is left out is left out of the histories that are asked for, and of none before them.
    let size = if *without == Without::default() { BLOCK } else { 1 };
    let (mut first, mut begun, mut learned) = (seeds.start, 0, 0);
    let next = || {
        let end = seeds.end.min(first - first % size + size);
        let of_block = std::mem::replace(&mut first, end)..end;
        let detail = if begun < LEARNING { detail.max(Detail::Statements) } else { detail };
        begun += of_block.end - of_block.start;
        let task = Task { seeds: of_block, without: without.clone(), detail, left_out: BTreeSet::new() };
        (!task.seeds.is_empty()).then_some(task)
    };
    run(next, at_once, ground, |mut verdict| {
        if learned < LEARNING {
            learned += 1;
            ground.prepare(verdict.made.iter().chain(&verdict.judged_with));
        }
        if !verdict.violations.is_empty() {
            let again = run_one(verdict.seed, without, Detail::Nothing, ground);
            if again.hash != verdict.hash || again.violations.is_empty() {
                let (one, other) = (verdict.hash, again.hash);
                verdict.violations.push(format!("when it was repeated, {one:016x} became {other:016x}"));
            }
        }
        each(verdict)
    });
}

/// Runs one history.
pub fn run_one(seed: u64, without: &Without, detail: Detail, ground: &Arc<Ground>) -> Verdict {
    let seeds = seed..seed + 1;
    let mut task = Some(Task { seeds, without: without.clone(), detail, left_out: BTreeSet::new() });
    let mut found = None;
    run(
        || task.take(),
        1,
        ground,
        |verdict| {
            found = Some(verdict);
            true
        },
    );
    found.expect("each history that is asked for has a verdict")
}

/// Runs the histories of these tasks, until it is told to stop.
fn run(
    mut next: impl FnMut() -> Option<Task>,
    at_once: usize,
    ground: &Arc<Ground>,
    mut each: impl FnMut(Verdict) -> bool,
) {
    let (mut running, mut unfinished) = (Vec::<Running>::new(), VecDeque::new());
    loop {
        while running.len() < at_once
            && let Some(task) = unfinished.pop_front().or_else(&mut next)
        {
            running.push(Running::start(task, ground));
        }
        if running.is_empty() {
            return;
        }
        let place = wait_for_one(&running);
        let (verdicts, rest) = if running[place].hear() {
            (running[place].verdicts(), None)
        } else {
            running.swap_remove(place).end()
        };
        unfinished.extend(rest);
        if !verdicts.into_iter().all(&mut each) {
            running.into_iter().for_each(Running::kill);
            return;
        }
    }
}

/// The place of one that has said something, or ended.
fn wait_for_one(running: &[Running]) -> usize {
    let of_one =
        |one: &Running| libc::pollfd { fd: one.answer.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = running.iter().map(of_one).collect();
    loop {
        // SAFETY: the pointer and the number are those of a list that lives during the call.
        unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
        if let Some(place) = polled.iter().position(|one| one.revents != 0) {
            return place;
        }
    }
}

impl Running {
    fn start(task: Task, ground: &Arc<Ground>) -> Self {
        let (pid, answer) = fork(|answer| run_block(&task, answer, ground));
        Self { task, pid, answer, said: Vec::new(), ended: 0, is_broken: false }
    }

    /// Takes what it says. Returns whether it may say more.
    fn hear(&mut self) -> bool {
        let mut part = [0; 1 << 14];
        let length = self.answer.read(&mut part).unwrap_or(0);
        self.said.extend_from_slice(&part[..length]);
        length > 0
    }

    /// The verdicts in what it said, of which each history has a line.
    fn verdicts(&mut self) -> Vec<Verdict> {
        let complete = self.said.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let lines: Vec<u8> = self.said.drain(..complete).collect();
        let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let ended: Vec<Ended> =
            lines.map(|line| serde_json::from_slice(line).expect("a copy writes what it should")).collect();
        self.ended += ended.len();
        self.is_broken |= ended.iter().any(|one| one.is_broken);
        ended.into_iter().filter_map(|one| one.verdict).collect()
    }

    /// It has ended: its last verdicts, and what is left to do without the history that ended it.
    fn end(mut self) -> (Vec<Verdict>, Option<Task>) {
        let mut verdicts = self.verdicts();
        let status = wait(self.pid);
        let last = if self.is_broken { self.ended.checked_sub(1) } else { Some(self.ended) };
        let Some(lost) = last.and_then(|place| self.task.all().nth(place)) else { return (verdicts, None) };
        let Task { mut seeds, without, detail, mut left_out } = self.task;
        if seeds.contains(&lost) && !self.is_broken {
            verdicts.push(no_verdict(lost, &format!("status {status}")));
        }
        left_out.insert(lost);
        seeds.start = seeds.start.max(lost + 1);
        (verdicts, (!seeds.is_empty()).then_some(Task { seeds, without, detail, left_out }))
    }

    fn kill(self) {
        // SAFETY: `pid` is a child of this process that was not waited for yet, so it is the number of no other.
        unsafe { libc::kill(self.pid, libc::SIGKILL) };
        wait(self.pid);
    }
}

/// Waits for the end of a copy.
fn wait(pid: i32) -> i32 {
    let mut status = 0;
    // SAFETY: `pid` is a child of this process that was not waited for yet, and `status` lives during the call.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    status
}

/// Runs the histories of a task and tells each. Returns how the copy ends.
fn run_block(task: &Task, mut answer: File, ground: &Arc<Ground>) -> i32 {
    let nothing = Without::default();
    for seed in task.all() {
        let is_told = task.seeds.contains(&seed);
        let (without, detail) =
            if is_told { (&task.without, task.detail) } else { (&nothing, Detail::Nothing) };
        let is_apart = Plan::draw(seed, without).has_new_database;
        let (verdict, is_broken) = match (is_apart, is_told) {
            (true, false) => (None, false),
            (true, true) => (Some(run_apart(seed, without, detail, ground)), false),
            (false, _) => {
                let (verdict, is_broken) = run_caught(seed, without, detail, ground);
                (Some(verdict), is_broken)
            }
        };
        let ended = Ended { seed, is_broken, verdict: verdict.filter(|_| is_told) };
        let mut text = serde_json::to_vec(&ended).unwrap_or_default();
        text.push(b'\n');
        // If the parent is gone, no one waits for the verdicts.
        if answer.write_all(&text).is_err() {
            return 1;
        }
        if is_broken {
            return BROKEN;
        }
    }
    0
}

/// A history whose database can be used only once runs in a copy of its own.
fn run_apart(seed: u64, without: &Without, detail: Detail, ground: &Arc<Ground>) -> Verdict {
    let (pid, mut answer) = fork(|mut answer| {
        let (verdict, _) = run_caught(seed, without, detail, ground);
        i32::from(answer.write_all(&serde_json::to_vec(&verdict).unwrap_or_default()).is_err())
    });
    let mut text = Vec::new();
    let read = answer.read_to_end(&mut text);
    let status = wait(pid);
    let verdict = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
    verdict.unwrap_or_else(|| no_verdict(seed, &format!("status {status}")))
}

/// A panic of the simulator itself is a verdict as well. (One in a task of a process ends this task, as it would in production.)
/// Returns whether there was one: what it left is in no order.
fn run_caught(seed: u64, without: &Without, detail: Detail, ground: &Arc<Ground>) -> (Verdict, bool) {
    limit_time();
    let said = Arc::new(Mutex::new(String::new()));
    let note = said.clone();
    std::panic::set_hook(Box::new(move |panic| {
        *note.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
    }));
    let run = AssertUnwindSafe(|| history::run(seed, without, detail, ground.clone()));
    match std::panic::catch_unwind(run) {
        Ok(verdict) => (verdict, false),
        Err(_) => (no_verdict(seed, &said.lock().unwrap_or_else(PoisonError::into_inner)), true),
    }
}

/// Lets the system end this process if its next history takes too long.
fn limit_time() {
    let mut used = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    let mut most = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the calls write to `used` and `most`, which live during them; all bytes of both are set, and zeros are valid for both.
    let used = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, used.as_mut_ptr());
        libc::getrlimit(libc::RLIMIT_CPU, &raw mut most);
        used.assume_init()
    };
    let seconds = used.ru_utime.tv_sec + used.ru_stime.tv_sec;
    most.rlim_cur = most.rlim_max.min(libc::rlim_t::try_from(seconds).unwrap_or(0) + MOST_SECONDS);
    // SAFETY: it only reads `most`, which lives during the call, and limits this process.
    unsafe { libc::setrlimit(libc::RLIMIT_CPU, &raw const most) };
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

/// Makes a copy of this process that runs this and ends as it says. What it writes can be read from the file.
fn fork(run: impl FnOnce(File) -> i32) -> (i32, File) {
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
            let status = run(File::from(question));
            // SAFETY: it ends the process without running anything else, which is what a copy must do.
            unsafe { libc::_exit(status) }
        }
        pid => {
            drop(question);
            (pid, File::from(answer))
        }
    }
}
