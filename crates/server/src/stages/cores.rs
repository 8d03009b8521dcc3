//! Limits computation to the cores of this machine: more threads than cores only slow everything else down.
//!
//! There is one exception. A user who has no turn yet gets one at once, even if all cores are busy with other
//! users' work: a document may take minutes, and another user's small one must not wait for it. The slots of the
//! stages limit how many users that can be.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, oneshot};

use landfall_core::caller::TenantUser;
use landfall_core::clock::Clock;
use landfall_core::failure::{Code, Failure};

/// How often work that waits for a core reports that it waits.
const WAITING_INTERVAL: Duration = Duration::from_millis(500);
/// How much nicer threads that compute are than the others: they get about a tenth of the time where both want it.
#[cfg(target_os = "linux")]
const COMPUTE_NICENESS: i32 = 10;
#[cfg(target_os = "linux")]
const MAX_NICENESS: i32 = 19;

#[derive(Clone)]
pub struct Cores {
    free: Arc<Semaphore>,
    /// How many turns each user has now.
    turns_by_user: Arc<Mutex<HashMap<TenantUser, usize>>>,
    /// Signalled when a user's last turn ends.
    ended: Arc<Notify>,
}

/// The cores for the work of one user.
#[derive(Clone)]
pub struct UserCores {
    cores: Cores,
    user: TenantUser,
}

/// A core, taken until this is dropped.
pub struct Turn {
    cores: UserCores,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Cores {
    pub fn of_this_machine() -> Self {
        // The system is asked once: its answer takes several files of its own.
        static CORES: LazyLock<usize> =
            LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
        Self::new(*CORES)
    }

    fn new(cores: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(cores)), turns_by_user: Arc::default(), ended: Arc::default() }
    }

    pub fn of_user(&self, user: TenantUser) -> UserCores {
        UserCores { cores: self.clone(), user }
    }

    fn turns_by_user(&self) -> MutexGuard<'_, HashMap<TenantUser, usize>> {
        self.turns_by_user.lock().expect("nothing panics while it holds this")
    }
}

impl UserCores {
    /// Waits for a core, and keeps it until the returned turn is dropped: for work that another process does. Calls
    /// `waiting` now and then until there is one, and once when there is.
    pub async fn turn(&self, waiting: impl Fn()) -> Turn {
        let turn = self.in_line(&waiting).await;
        waiting();
        turn
    }

    /// A free core, or an extra turn for a user who has none.
    fn at_once(&self) -> Option<Turn> {
        let mut turns_by_user = self.cores.turns_by_user();
        let permit = self.cores.free.clone().try_acquire_owned().ok();
        let turns = turns_by_user.entry(self.user.clone()).or_default();
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
                // Waiting for a core must not count as a timeout.
                () = Clock::System.sleep(WAITING_INTERVAL) => waiting(),
            }
        };
        *self.cores.turns_by_user().entry(self.user.clone()).or_default() += 1;
        Turn { cores: self.clone(), _permit: Some(permit) }
    }

    /// Runs computation on a thread of its own, at a low priority. Calls `waiting` now and then until it begins, and
    /// once when it does.
    pub async fn run<T: Send + 'static>(
        &self,
        waiting: impl Fn(),
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let turn = self.turn(waiting).await;
        let span = tracing::Span::current();
        let (done, result) = oneshot::channel();
        // A new thread each time: without privileges a thread cannot take its priority back, so that a thread of a pool
        // would keep the low one for requests.
        std::thread::Builder::new()
            .name("compute".to_owned())
            .spawn(move || {
                lower_priority();
                let ended = span.in_scope(|| catch_unwind(AssertUnwindSafe(work)));
                // Held until the work really ended, also when the caller stopped waiting.
                drop(turn);
                // Without a result the caller is told of the panic; without a caller the result is of no use.
                if let Ok(result) = ended {
                    let _ = done.send(result);
                }
            })
            .map_err(|error| Failure::new(Code::IoError, format!("No thread could be started: {error}")))?;
        result.await.unwrap_or_else(|_| Err(Failure::new(Code::Unknown, "The stage failed unexpectedly")))
    }
}

/// Requests come before computation wherever both want the same core.
fn lower_priority() {
    // On Linux this is the priority of the calling thread alone; elsewhere it would be that of the process.
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{getpriority_process, setpriority_process};
        // It fails where a sandbox forbids it; the work is then done all the same.
        let _ = getpriority_process(None)
            .and_then(|niceness| setpriority_process(None, (niceness + COMPUTE_NICENESS).min(MAX_NICENESS)));
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut turns_by_user = self.cores.cores.turns_by_user();
        if let Some(turns) = turns_by_user.get_mut(&self.cores.user) {
            *turns -= 1;
            if *turns == 0 {
                turns_by_user.remove(&self.cores.user);
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
    async fn one_users_work_does_not_delay_the_first_turn_of_another() {
        let cores = Cores::new(2);
        let (mallory, alice) = (
            cores.of_user(TenantUser::new("acme", "mallory")),
            cores.of_user(TenantUser::new("acme", "alice")),
        );
        let first = mallory.turn(|| ()).await;
        let _second = mallory.turn(|| ()).await;
        assert!(mallory.turn(|| ()).now_or_never().is_none(), "all cores are already hers");
        let _hers = alice.turn(|| ()).now_or_never().expect("alice has none");
        assert!(alice.turn(|| ()).now_or_never().is_none(), "and one is enough");
        drop(first);
        assert!(mallory.turn(|| ()).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_second_turn_begins_when_the_first_is_over() {
        let cores = Cores::new(1);
        let (mallory, alice) = (
            cores.of_user(TenantUser::new("acme", "mallory")),
            cores.of_user(TenantUser::new("acme", "alice")),
        );
        let _slow = mallory.turn(|| ()).await;
        let first = alice.turn(|| ()).await;
        let mut second = Box::pin(alice.turn(|| ()));
        assert!(second.as_mut().now_or_never().is_none());
        drop(first);
        assert!(second.now_or_never().is_some());
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn computation_has_a_lower_priority_than_requests() {
        let niceness =
            || rustix::process::getpriority_process(None).map_err(|_| Failure::new(Code::Unknown, ""));
        let cores = Cores::new(1).of_user(TenantUser::new("acme", "alice"));
        let before = niceness().expect("a priority");
        let expected = (before + COMPUTE_NICENESS).min(MAX_NICENESS);
        assert_eq!(cores.run(|| (), niceness).await.expect("a priority"), expected);
        assert_eq!(niceness().expect("a priority"), before, "other threads keep theirs");
    }

    #[tokio::test]
    async fn work_that_panics_is_a_failure_and_ends_its_turn() {
        let cores = Cores::new(1);
        let alice = cores.of_user(TenantUser::new("acme", "alice"));
        let failure = alice.run::<()>(|| (), || panic!("on purpose")).await.unwrap_err();
        assert_eq!(failure.code, Code::Unknown);
        assert!(alice.turn(|| ()).now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_user_without_a_turn_is_not_remembered() {
        let cores = Cores::new(1);
        drop(cores.of_user(TenantUser::new("acme", "alice")).turn(|| ()).await);
        assert!(
            cores.of_user(TenantUser::new("acme", "bob")).turn(|| ()).await.cores.cores.turns_by_user().len()
                == 1
        );
        assert!(cores.turns_by_user().is_empty());
    }
}
