//! The cores of this machine: computing on more threads than there are of them only makes everything else wait.
//!
//! There is one exception. Who computes nothing yet begins at once, though all cores are busy with somebody else's: a
//! document may take minutes, and another user's small one must not wait for it. The slots of the stages bound how many
//! users that can be.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use landfall_core::clock::Clock;
use landfall_core::failure::{Code, Failure};

/// How often work that waits for a core says so.
const SIGN_OF_WAITING: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Cores {
    free: Arc<Semaphore>,
    /// How many turns each user has now.
    had: Arc<Mutex<HashMap<String, usize>>>,
    /// Somebody has none any more.
    ended: Arc<Notify>,
}

/// The cores as one user gets at them.
#[derive(Clone)]
pub struct UserCores {
    cores: Cores,
    user: String,
}

/// A core is taken until this is dropped.
pub struct Turn {
    cores: UserCores,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Cores {
    pub fn of_this_machine() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }

    fn new(cores: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(cores)), had: Arc::default(), ended: Arc::default() }
    }

    pub fn of_user(&self, user: &str) -> UserCores {
        UserCores { cores: self.clone(), user: user.to_owned() }
    }

    fn had(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.had.lock().expect("nothing panics while it holds this")
    }
}

impl UserCores {
    /// Waits for a core, and keeps it until the answer is dropped: for work that another process does on it. Calls
    /// `waiting` now and then until there is one, and once when there is.
    pub async fn turn(&self, waiting: impl Fn()) -> Turn {
        let turn = self.in_line(&waiting).await;
        waiting();
        turn
    }

    /// A core that is free, or one too many for a user who has none.
    fn at_once(&self) -> Option<Turn> {
        let mut had = self.cores.had();
        let permit = self.cores.free.clone().try_acquire_owned().ok();
        let turns = had.entry(self.user.clone()).or_default();
        (permit.is_some() || *turns == 0).then(|| {
            *turns += 1;
            Turn { cores: self.clone(), _permit: permit }
        })
    }

    async fn in_line(&self, waiting: impl Fn()) -> Turn {
        let mut core = Box::pin(self.cores.free.clone().acquire_owned());
        let permit = loop {
            let ended = self.cores.ended.notified();
            if let Some(turn) = self.at_once() {
                return turn;
            }
            tokio::select! {
                permit = &mut core => break permit.expect("never closed"),
                // Perhaps it was this user's only turn.
                () = ended => {}
                // To wait for one's turn is not to take too long.
                () = Clock::System.sleep(SIGN_OF_WAITING) => waiting(),
            }
        };
        *self.cores.had().entry(self.user.clone()).or_default() += 1;
        Turn { cores: self.clone(), _permit: Some(permit) }
    }

    /// Runs what keeps a core busy on a thread of its own. Calls `waiting` now and then until it begins, and once when it
    /// does.
    pub async fn run<T: Send + 'static>(
        &self,
        waiting: impl Fn(),
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self.turn(waiting).await;
        let span = tracing::Span::current();
        tokio::task::spawn_blocking(move || {
            let _span = span.entered();
            // Held until the work really ends, also when nobody waits for it any more.
            let _turn = turn;
            work()
        })
        .await
        .unwrap_or_else(|_| Err(Failure::new(Code::Unknown, "The stage met an unexpected error")))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut had = self.cores.cores.had();
        if let Some(turns) = had.get_mut(&self.cores.user) {
            *turns -= 1;
            if *turns == 0 {
                had.remove(&self.cores.user);
                self.cores.cores.ended.notify_waiters();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn one_users_work_does_not_keep_another_from_beginning() {
        let cores = Cores::new(2);
        let (mallory, alice) = (cores.of_user("mallory"), cores.of_user("alice"));
        let first = mallory.turn(|| ()).await;
        let _second = mallory.turn(|| ()).await;
        assert!(mallory.turn(|| ()).now_or_never().is_none(), "all cores are hers already");
        let _hers = alice.turn(|| ()).now_or_never().expect("alice has none");
        assert!(alice.turn(|| ()).now_or_never().is_none(), "and one is enough");
        drop(first);
        assert!(mallory.turn(|| ()).now_or_never().is_some());
    }

    #[tokio::test]
    async fn who_waits_for_a_second_turn_begins_when_the_first_is_over() {
        let cores = Cores::new(1);
        let (mallory, alice) = (cores.of_user("mallory"), cores.of_user("alice"));
        let _slow = mallory.turn(|| ()).await;
        let first = alice.turn(|| ()).await;
        let mut second = Box::pin(alice.turn(|| ()));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[tokio::test]
    async fn nobody_is_remembered_who_has_no_turn() {
        let cores = Cores::new(1);
        drop(cores.of_user("alice").turn(|| ()).await);
        assert!(cores.of_user("bob").turn(|| ()).await.cores.cores.had().len() == 1);
        assert!(cores.had().is_empty());
    }
}
