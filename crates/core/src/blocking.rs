//! Work that blocks its thread: calls of the file system, of SQLite, long computations.
//!
//! It runs on a thread for blocking work, so that it delays no other task. In a simulation, which has one thread and decides
//! itself what happens when, it runs where it is called.

use std::cell::Cell;

thread_local! {
    static RUNS_HERE: Cell<bool> = const { Cell::new(false) };
}

/// The work panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it panicked")]
pub struct Panicked;

/// Runs work that blocks. It comes to its end also if the caller stops waiting.
pub async fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Panicked> {
    if RUNS_HERE.get() {
        return Ok(work());
    }
    #[expect(clippy::disallowed_methods, reason = "this is where blocking work goes to its thread")]
    let done = tokio::task::spawn_blocking(work);
    done.await.map_err(|_| Panicked)
}

/// Whether this thread simulates, so that no work may leave it.
pub fn stays_on_this_thread() -> bool {
    RUNS_HERE.get()
}

/// From now on, what this thread is asked to run runs on it. For a simulation.
pub fn stay_on_this_thread() {
    RUNS_HERE.set(true);
}
