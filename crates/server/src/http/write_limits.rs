//! How often each caller may change something.
//!
//! Each process counts for itself and in memory: a caller whose requests reach several processes may send as many to
//! each. What a caller stores is limited in the database, by the quota and by `intake::registrations`. This limits how
//! busy one caller keeps the process.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::http::Method;
use axum::http::request::Parts;

use crate::queue::limits::RateLimit;
use landfall_core::caller::{Caller, TenantUser};
use landfall_core::clock::{Clock, Time};
use landfall_core::refusal::{Refusal, RefusalCode};

/// How many callers are remembered. Beyond it those that have used least of their limit are forgotten.
const MAX_CALLERS: usize = 10_000;
/// A request that sends its question in a body, and changes nothing.
const SEARCH: &str = "/api/v2/search";

/// The limit of all callers. It is in the extensions of every request.
#[derive(Clone)]
pub struct WriteLimits {
    clock: Clock,
    limit: RateLimit,
    /// When each caller may send the next request, as in a [`RateLimit`].
    next: Arc<Mutex<HashMap<TenantUser, Time>>>,
}

/// The request is counted.
#[derive(Clone, Copy)]
struct Counted;

impl WriteLimits {
    pub fn new(clock: Clock, limit: RateLimit) -> Self {
        Self { clock, limit, next: Arc::default() }
    }

    /// Counts a request, or refuses it.
    fn admit(&self, caller: TenantUser) -> Result<(), Refusal> {
        let now = self.clock.now();
        let mut all = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_CALLERS && !all.contains_key(&caller) {
            self.make_room(&mut all, now);
        }
        let next = all.entry(caller).or_insert(Time::UNIX_EPOCH);
        if self.limit.allows(*next, now) > 0 {
            *next = self.limit.next_after(*next, 1, now);
            return Ok(());
        }
        let wait = self.limit.wait_for(*next, 1, now).unwrap_or_default();
        drop(all);
        let message = format!(
            "You may send {} requests that change something, and have sent that many: try again in {} s",
            self.limit,
            wait.as_secs() + 1
        );
        Err(Refusal::new(RefusalCode::TooManyWrites, message).retry_after(wait))
    }

    /// Forgets the callers that have all of their limit left, or else the half that has the most of it left.
    fn make_room(&self, all: &mut HashMap<TenantUser, Time>, now: Time) {
        all.retain(|_, next| !self.limit.is_unused(*next, now));
        if all.len() >= MAX_CALLERS {
            let mut times: Vec<Time> = all.values().copied().collect();
            times.sort_unstable();
            let median = times[times.len() / 2];
            all.retain(|_, next| *next > median);
        }
    }
}

/// Counts a request that changes something for its caller, once. Refuses it if the caller has sent too many.
pub fn admit(parts: &mut Parts, caller: &Caller) -> Result<(), Refusal> {
    let changes = !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS);
    if !changes || parts.uri.path() == SEARCH || parts.extensions.get::<Counted>().is_some() {
        return Ok(());
    }
    let Some(limits) = parts.extensions.get::<WriteLimits>().cloned() else { return Ok(()) };
    parts.extensions.insert(Counted);
    limits.admit(caller.owner())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use landfall_core::clock::ManualClock;

    fn limits(limit: &str) -> (WriteLimits, ManualClock) {
        let clock = ManualClock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
        (WriteLimits::new(Clock::Manual(clock.clone()), limit.parse().unwrap()), clock)
    }

    fn caller(tenant: &str, user: &str) -> TenantUser {
        TenantUser::new(tenant, user)
    }

    #[test]
    fn a_caller_over_the_limit_is_told_when_to_come_back_and_delays_no_other() {
        let (limits, clock) = limits("3/30s");
        let alice = || limits.admit(caller("acme", "alice"));
        for _ in 0..3 {
            assert!(alice().is_ok());
        }
        let refusal = alice().unwrap_err();
        assert_eq!(refusal.code, RefusalCode::TooManyWrites);
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(10)));
        assert!(limits.admit(caller("other", "alice")).is_ok(), "another user of the same name");
        clock.advance(Duration::from_secs(10));
        assert!(alice().is_ok());
        assert!(alice().is_err());
    }

    #[test]
    fn the_table_of_callers_is_bounded_and_keeps_those_that_used_the_most() {
        let (limits, _clock) = limits("2/1h");
        let busy = caller("acme", "busy");
        limits.admit(busy.clone()).unwrap();
        limits.admit(busy.clone()).unwrap();
        for number in 0..3 * MAX_CALLERS {
            limits.admit(caller("acme", &number.to_string())).unwrap();
            assert!(limits.next.lock().unwrap().len() <= MAX_CALLERS);
        }
        assert!(limits.admit(busy).is_err(), "it was not forgotten");
    }

    #[test]
    fn callers_that_have_all_of_their_limit_left_are_forgotten_first() {
        let (limits, clock) = limits("2/10s");
        for number in 0..MAX_CALLERS {
            limits.admit(caller("acme", &number.to_string())).unwrap();
        }
        clock.advance(Duration::from_mins(1));
        limits.admit(caller("acme", "new")).unwrap();
        assert_eq!(limits.next.lock().unwrap().len(), 1);
    }
}
