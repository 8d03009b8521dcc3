//! Shows the progress of an upload on stderr: a bar on a terminal, otherwise a line from time to time.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;
use indicatif::{ProgressBar, ProgressStyle};

use super::candidates::Candidate;
use super::{FileResult, Problem, problem_line};
use crate::format::{count, printable};
use landfall_core::clock::{Clock, Time};

/// The minimum time between two lines without a bar.
const LINE_INTERVAL: TimeDelta = TimeDelta::seconds(5);

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

    /// Switches to the progress of sending.
    pub fn show_sending(&mut self, files: &[Candidate]) {
        self.lines().total = files.len();
        let bytes = files.iter().map(|file| file.size).sum();
        self.show(ProgressBar::new(bytes), "sending {bar:30} {bytes}/{total_bytes}  {bytes_per_sec}  {msg}");
    }

    /// Switches to the progress of processing.
    pub fn show_processing(&mut self, files: u64) {
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

    /// Takes back bytes of an attempt that failed.
    pub fn take_back(&self, bytes: u64) {
        self.bar.dec(bytes);
    }

    /// Leaves out a file that will not be sent.
    pub fn skip(&self, bytes: u64) {
        self.bar.dec_length(bytes);
        self.file_done();
    }

    pub fn file_done(&self) {
        let line = {
            let mut lines = self.lines();
            lines.done += 1;
            format!("{} of {} files", lines.done, lines.total)
        };
        self.note(&line);
    }

    /// Sets how many files the server has finished.
    pub fn set_done(&self, done: u64, message: &str) {
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
        if now - lines.last >= LINE_INTERVAL {
            lines.last = now;
            eprintln!("{message}");
        }
    }

    pub fn report(&self, path: &str, problem: &Problem) {
        let line = problem_line(path, problem);
        self.bar.suspend(|| eprintln!("{line}"));
    }

    /// Says that something is missing of a file that is ready.
    pub fn report_warnings(&self, result: &FileResult) {
        if let (Ok(warnings @ 1..), Some(id)) = (usize::try_from(result.warning_count), result.file_id) {
            let line = format!(
                "{}: ready, with {}: see `landfall status {id}`",
                printable(&result.path),
                count(warnings, "warning")
            );
            self.bar.suspend(|| eprintln!("{line}"));
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
