//! What is fetched from the identity provider and kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use chrono::TimeDelta;
use landfall_core::clock::Time;
use landfall_schedules::auth::fetched::{Fetched, Limits};
use landfall_schedules::world;
use shuttle::future::{block_on, spawn, yield_now};
use shuttle::rand::{Rng, thread_rng};

const LIMITS: Limits = Limits {
    max_age: TimeDelta::hours(4),
    interval: TimeDelta::seconds(10),
    interval_without: TimeDelta::seconds(2),
};

/// The other server. It answers with the number of the request, or not at all.
#[derive(Default)]
struct Provider {
    requests: AtomicUsize,
    answers: AtomicUsize,
    under_way: AtomicUsize,
}

impl Provider {
    async fn answer(&self, is_down: bool) -> Result<usize, ()> {
        assert_eq!(self.under_way.fetch_add(1, Ordering::Relaxed), 0, "one request at a time");
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        yield_now().await;
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        if is_down {
            return Err(());
        }
        self.answers.store(number, Ordering::Relaxed);
        Ok(number)
    }
}

#[test]
fn callers_share_one_request_wait_for_its_answer_and_never_see_an_older_one() {
    world::check(1_000, || {
        let (fetched, provider) = (Arc::new(Fetched::new(LIMITS)), Arc::new(Provider::default()));
        block_on(async {
            // The second round comes when it is time to ask again, and the provider may be down.
            for (round, now) in [(1, Time::UNIX_EPOCH), (2, Time::UNIX_EPOCH + TimeDelta::minutes(1))] {
                let is_down = round == 2 && thread_rng().gen_bool(0.5);
                let callers = (0..4).map(|_| {
                    let (fetched, provider) = (fetched.clone(), provider.clone());
                    spawn(async move {
                        let before = fetched.usable(now).map(|found| *found);
                        let asked = fetched.fetch(now, provider.answer(is_down)).await;
                        assert!(asked.is_ok() || is_down);
                        let after = fetched.usable(now).map(|found| *found);
                        assert!(after >= before, "{after:?} after {before:?}");
                        assert_eq!(
                            after,
                            Some(provider.answers.load(Ordering::Relaxed)),
                            "the caller waited for it"
                        );
                    })
                });
                for caller in callers.collect::<Vec<_>>() {
                    caller.await.expect("the caller ends");
                }
                assert_eq!(provider.requests.load(Ordering::Relaxed), round, "one request for all");
                assert_eq!(fetched.is_fresh(), !is_down);
            }
        });
    });
}
