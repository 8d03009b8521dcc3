//! What a person sees while it goes on: a bar on a terminal, now and then a line elsewhere. All of it on stderr.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use indicatif::{ProgressBar, ProgressStyle};

use super::candidates::Candidate;
use super::{Problem, complaint};
use landfall_core::clock::{Clock, Time};

/// How far apart lines are where there is no bar.
const BETWEEN_LINES: TimeDelta = TimeDelta::seconds(5);

#[derive(Clone)]
pub struct Screen {
    bar: ProgressBar,
    terminal: bool,
    lines: Arc<Mutex<Lines>>,
}

struct Lines {
    last: Time,
    total: usize,
    done: usize,
}

impl Screen {
    pub fn new() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            terminal: std::io::stderr().is_terminal(),
            lines: Arc::new(Mutex::new(Lines { last: Clock::System.now(), total: 0, done: 0 })),
        }
    }

    /// From now on files are sent.
    pub fn sending(&mut self, files: &[Candidate]) {
        self.lines().total = files.len();
        let bytes = files.iter().map(|file| file.size).sum();
        self.show(ProgressBar::new(bytes), "sending {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {msg}");
    }

    /// From now on files are waited for.
    pub fn following(&mut self, files: u64) {
        self.show(ProgressBar::new(files), "working {bar:30} {pos}/{len} files  {msg}");
    }

    fn show(&mut self, bar: ProgressBar, template: &str) {
        self.bar.finish_and_clear();
        if self.terminal {
            let style = ProgressStyle::with_template(template)
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸─");
            self.bar = bar.with_style(style);
            self.bar.tick();
        }
    }

    pub fn advance(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// What was sent in vain.
    pub fn take_back(&self, bytes: u64) {
        self.bar.dec(bytes);
    }

    /// What will not be sent after all.
    pub fn skip(&self, bytes: u64) {
        self.bar.dec_length(bytes);
        self.one_done();
    }

    pub fn one_done(&self) {
        let line = {
            let mut lines = self.lines();
            lines.done += 1;
            format!("{} of {} files", lines.done, lines.total)
        };
        self.note(&line);
    }

    /// How far the work of the server is.
    pub fn at(&self, done: u64, message: &str) {
        self.bar.set_position(done);
        self.note(message);
    }

    fn note(&self, message: &str) {
        if self.terminal {
            self.bar.set_message(message.to_owned());
            return;
        }
        let now = Clock::System.now();
        let mut lines = self.lines();
        if now - lines.last >= BETWEEN_LINES {
            lines.last = now;
            eprintln!("{message}");
        }
    }

    pub fn complain(&self, path: &str, problem: &Problem) {
        let line = complaint(path, problem);
        self.bar.suspend(|| eprintln!("{line}"));
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
