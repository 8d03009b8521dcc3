//! Shows the progress of an upload on stderr: a bar on a terminal, otherwise a line from time to time.

use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::sources::Total;
use super::{FileResult, Problem, problem_line};
use crate::client::ClientError;
use crate::format::{count, printable, size, span};
use landfall_core::clock::{Clock, Time};

/// The minimum time between two lines without a bar.
const LINE_INTERVAL: TimeDelta = TimeDelta::seconds(5);
/// A request that is repeated after less than this is not worth a line.
const SHORT_WAIT: Duration = Duration::from_secs(1);

const SENDING: &str = "sending {bar:15} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left  {wide_msg}";
const PROCESSING: &str = "working {bar:15} {pos}/{len} files  {wide_msg}";

#[derive(Clone)]
pub struct Screen {
    state: Arc<Mutex<State>>,
    terminal: bool,
}

struct State {
    bar: ProgressBar,
    /// When the last line was printed.
    last: Time,
    files: usize,
    done: usize,
    is_sending: bool,
}

impl Screen {
    pub fn new() -> Self {
        let state = State {
            bar: ProgressBar::hidden(),
            last: Clock::System.now(),
            files: 0,
            done: 0,
            is_sending: false,
        };
        Self { state: Arc::new(Mutex::new(state)), terminal: std::io::stderr().is_terminal() }
    }

    /// Switches to the progress of sending.
    pub fn show_sending(&self, total: Total) {
        let mut state = self.state();
        (state.files, state.is_sending) = (total.files, true);
        self.show(&mut state, total.bytes, SENDING);
    }

    /// Switches to the progress of processing.
    pub fn show_processing(&self, files: u64) {
        let mut state = self.state();
        state.is_sending = false;
        self.show(&mut state, files, PROCESSING);
    }

    fn show(&self, state: &mut State, length: u64, template: &str) {
        state.bar.finish_and_clear();
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸─");
        let target = if self.terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        // Without a terminal it still measures the speed.
        state.bar = ProgressBar::with_draw_target(Some(length), target).with_style(style);
        state.bar.tick();
    }

    pub fn advance(&self, bytes: u64) {
        let mut state = self.state();
        state.bar.inc(bytes);
        if !self.terminal {
            state.line_of_sending();
        }
    }

    /// Takes back bytes of an attempt that failed.
    pub fn take_back(&self, bytes: u64) {
        self.state().bar.dec(bytes);
    }

    /// Bytes that need not be sent. They are left out, so that they do not count for the speed.
    pub fn leave_out(&self, bytes: u64) {
        self.state().bar.dec_length(bytes);
    }

    pub fn file_done(&self) {
        let mut state = self.state();
        state.done += 1;
        if self.terminal {
            state.bar.set_message(state.files_done());
        } else {
            state.line_of_sending();
        }
    }

    /// Sets how many files the server has finished.
    pub fn set_done(&self, done: u64, message: &str) {
        let mut state = self.state();
        state.bar.set_position(done);
        if self.terminal {
            state.bar.set_message(message.to_owned());
        } else if state.is_time_for_a_line() {
            print_line(message);
        }
    }

    /// Says that a request failed and is repeated.
    pub fn waiting(&self, error: &ClientError, delay: Duration) {
        if delay < SHORT_WAIT {
            return;
        }
        let ms = i64::try_from(delay.as_millis()).unwrap_or(i64::MAX);
        let line = format!("{}; trying again in {}", printable(&error.to_string()), span(ms));
        let mut state = self.state();
        if self.terminal {
            state.bar.set_message(line);
        } else if state.is_time_for_a_line() {
            print_line(&line);
        }
    }

    pub fn report(&self, path: &str, problem: &Problem) {
        self.print(&problem_line(path, problem));
    }

    /// Says that something is missing of a file that is ready.
    pub fn report_warnings(&self, result: &FileResult) {
        if let (Ok(warnings @ 1..), Some(id)) = (usize::try_from(result.warning_count), result.file_id) {
            self.print(&format!(
                "{}: ready, with {}: see `landfall status {id}`",
                printable(&result.path),
                count(warnings, "warning")
            ));
        }
    }

    /// Prints a line above the bar.
    pub fn print(&self, line: &str) {
        self.state().bar.suspend(|| print_line(line));
    }

    pub fn finish(&self) {
        self.state().bar.finish_and_clear();
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn files_done(&self) -> String {
        format!("{} of {}", self.done, count(self.files, "file"))
    }

    fn is_time_for_a_line(&mut self) -> bool {
        let now = Clock::System.now();
        let is_time = now - self.last >= LINE_INTERVAL;
        if is_time {
            self.last = now;
        }
        is_time
    }

    fn line_of_sending(&mut self) {
        if !self.is_sending || !self.is_time_for_a_line() {
            return;
        }
        let (sent, all) = (self.bar.position(), self.bar.length().unwrap_or_default());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a speed is positive, and far below the limit"
        )]
        let speed = self.bar.per_sec() as u64;
        let left = i64::try_from(self.bar.eta().as_millis()).unwrap_or(i64::MAX);
        let (sent, all, speed) = (size(sent), size(all), size(speed));
        print_line(&format!("{}, {sent} of {all}, {speed}/s, {} left", self.files_done(), span(left)));
    }
}

/// A closed stderr does not end an upload.
fn print_line(line: &str) {
    drop(writeln!(std::io::stderr(), "{line}"));
}
