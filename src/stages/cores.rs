//! The cores of this machine: computing on more threads than there are of them only makes everything else wait.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::clock::Clock;
use crate::failure::{Code, Failure};

/// How often work that waits for a core says so.
const SIGN_OF_WAITING: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Cores {
    free: Arc<Semaphore>,
}

impl Cores {
    pub fn of_this_machine() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { free: Arc::new(Semaphore::new(cores)) }
    }

    /// Waits for a core, and keeps it until the answer is dropped: for work that another process does on it. Calls
    /// `waiting` now and then until there is one, and once when there is.
    pub async fn turn(&self, waiting: impl Fn()) -> OwnedSemaphorePermit {
        let mut turn = Box::pin(self.free.clone().acquire_owned());
        let permit = loop {
            tokio::select! {
                permit = &mut turn => break permit.expect("never closed"),
                // To wait for one's turn is not to take too long.
                () = Clock::System.sleep(SIGN_OF_WAITING) => waiting(),
            }
        };
        waiting();
        permit
    }

    /// Runs what keeps a core busy on a thread of its own, as many at once as there are cores. Calls `waiting` now and
    /// then until it begins, and once when it does.
    pub async fn run<T: Send + 'static>(
        &self,
        waiting: impl Fn(),
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let permit = self.turn(waiting).await;
        tokio::task::spawn_blocking(move || {
            // Held until the work really ends, also when nobody waits for it any more.
            let _permit = permit;
            work()
        })
        .await
        .unwrap_or_else(|_| Err(Failure::new(Code::Unknown, "The stage met an unexpected error")))
    }
}
