//! What another server publishes, fetched and kept: one request at a time, at a limited rate. While the other server is down,
//! its last answer stays in use for a limited time.

use std::sync::{Arc, PoisonError};

use chrono::TimeDelta;
use landfall_core::clock::Time;
use landfall_sync::{AsyncMutex, RwLock};

/// How often to ask, and for how long to use the answer.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// For how long an answer is used.
    pub max_age: TimeDelta,
    /// The minimum time between two requests.
    pub interval: TimeDelta,
    /// The same while there is no answer to use.
    pub interval_without: TimeDelta,
}

pub struct Fetched<T> {
    limits: Limits,
    known: RwLock<Known<T>>,
    /// Held during a request. Only those wait for it who need its answer.
    turn: AsyncMutex<()>,
}

struct Known<T> {
    found: Option<Arc<T>>,
    fetched_at: Option<Time>,
    asked_at: Option<Time>,
}

impl<T> Fetched<T> {
    pub fn new(limits: Limits) -> Self {
        let known = Known { found: None, fetched_at: None, asked_at: None };
        Self { limits, known: RwLock::new(known), turn: AsyncMutex::new(()) }
    }

    /// The last answer, unless it is too old.
    pub fn usable(&self, now: Time) -> Option<Arc<T>> {
        self.read(|known| {
            let is_young = known.fetched_at.is_some_and(|at| now - at < self.limits.max_age);
            known.found.clone().filter(|_| is_young)
        })
    }

    /// Whether the last request was answered.
    pub fn is_fresh(&self) -> bool {
        self.read(|known| known.fetched_at.is_some() && known.fetched_at == known.asked_at)
    }

    /// Makes the request, unless there was one a moment ago. When this returns, no request that began before is under way.
    pub async fn fetch<E>(&self, now: Time, request: impl Future<Output = Result<T, E>>) -> Result<(), E> {
        let _turn = self.turn.lock().await;
        let Limits { interval, interval_without, .. } = self.limits;
        let interval = if self.usable(now).is_some() { interval } else { interval_without };
        // Also if it was made while this call waited for its turn.
        if self.read(|known| known.asked_at.is_some_and(|at| now - at < interval)) {
            return Ok(());
        }
        self.change(|known| known.asked_at = Some(now));
        let found = request.await?;
        self.change(|known| {
            known.found = Some(Arc::new(found));
            known.fetched_at = Some(now);
        });
        Ok(())
    }

    fn read<R>(&self, read: impl FnOnce(&Known<T>) -> R) -> R {
        read(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change(&self, change: impl FnOnce(&mut Known<T>)) {
        change(&mut self.known.write().unwrap_or_else(PoisonError::into_inner));
    }
}
