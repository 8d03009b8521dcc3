//! A database that fails now and then, and at each of whose steps another task may run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use landfall_store::{Error, FaultInjector, Step};
use shuttle::rand::{Rng, thread_rng};

/// What the database did in one schedule.
#[derive(Debug, Default)]
pub struct Database {
    /// One of so many steps fails; 0: none.
    pub one_in: AtomicUsize,
    /// A commit was done and its answer was lost.
    pub lost_an_answer: AtomicBool,
    /// The changes of the transaction under way beside the first, and the most there were.
    more: AtomicUsize,
    pub most: AtomicUsize,
    /// How many steps failed.
    pub failed: AtomicUsize,
}

impl Database {
    pub fn failing(one_in: usize) -> Arc<Self> {
        Arc::new(Self { one_in: AtomicUsize::new(one_in), ..Self::default() })
    }

    /// From now on no step fails.
    pub fn recover(&self) {
        self.one_in.store(0, Ordering::Relaxed);
    }
}

impl FaultInjector for Database {
    fn inject<'a>(&'a self, step: Step<'a>) -> BoxFuture<'a, Result<(), Error>> {
        landfall_sync::point();
        match step {
            Step::Begin => self.more.store(0, Ordering::Relaxed),
            Step::Statement("SAVEPOINT change") => {
                let more = self.more.fetch_add(1, Ordering::Relaxed) + 1;
                self.most.fetch_max(more + 1, Ordering::Relaxed);
            }
            Step::Statement(_) | Step::Commit | Step::Committed => {}
        }
        let one_in = self.one_in.load(Ordering::Relaxed);
        let fails = one_in > 0 && thread_rng().gen_ratio(1, u32::try_from(one_in).unwrap_or(u32::MAX));
        if fails {
            self.failed.fetch_add(1, Ordering::Relaxed);
            if step == Step::Committed {
                self.lost_an_answer.store(true, Ordering::Relaxed);
            }
        }
        async move { if fails { Err(Error::GroupNotCommitted("the test broke it".into())) } else { Ok(()) } }
            .boxed()
    }
}
