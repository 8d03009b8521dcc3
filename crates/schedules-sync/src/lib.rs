//! The primitives of `landfall-sync` for the tests of `crates/schedules`.
//!
//! Locks and atomics are those of shuttle. Channels and signals are Tokio's own, so that their rules are the real ones; each
//! call is preceded by a point at which the scheduler may let another task run. All tasks of a schedule share one thread, so
//! what happens between two points is one step for all others. That is what Tokio promises of each of these calls.
//!
//! This crate may use no other crate of ours.

pub mod mpsc;
pub mod oneshot;
pub mod watch;

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};

pub use shuttle::future::spawn;
pub use shuttle::sync::{Mutex, MutexGuard, RwLock, atomic};
pub use tokio::sync::OwnedSemaphorePermit;

/// Here the scheduler may let another task run.
pub fn point() {
    // Every access to an atomic is such a point. A task that yields would be less likely to run next.
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// A lock that is held across `await`.
#[derive(Debug)]
pub struct AsyncMutex<T>(tokio::sync::Mutex<T>);

impl<T> AsyncMutex<T> {
    pub fn new(value: T) -> Self {
        Self(tokio::sync::Mutex::new(value))
    }

    pub async fn lock(&self) -> tokio::sync::MutexGuard<'_, T> {
        point();
        let guard = self.0.lock().await;
        point();
        guard
    }
}

#[derive(Debug, Default)]
pub struct Notify(tokio::sync::Notify);

impl Notify {
    pub fn notify_one(&self) {
        point();
        self.0.notify_one();
    }

    pub async fn notified(&self) {
        point();
        self.0.notified().await;
        point();
    }
}

#[derive(Debug)]
pub struct Semaphore(Arc<tokio::sync::Semaphore>);

impl Semaphore {
    pub fn new(permits: usize) -> Self {
        Self(Arc::new(tokio::sync::Semaphore::new(permits)))
    }

    pub fn available_permits(&self) -> usize {
        point();
        self.0.available_permits()
    }

    pub async fn acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, tokio::sync::AcquireError> {
        point();
        let permit = self.0.clone().acquire_owned().await;
        point();
        permit
    }
}
