//! Wrong tokens and tickets: counted, limited for each client address, and named in the log.
//!
//! A credential is checked first, and only a wrong one is counted. So an attacker behind the same address as others locks
//! none of them out: a valid token is accepted at any time. The limit does not make a token harder to guess, which is
//! impossible anyway; it makes attempts cheap to refuse and visible.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::TimeDelta;

use super::client_address::ClientAddress;
use super::error::ApiError;
use super::per_address::client_of;
use crate::telemetry::metrics as counted;
use crate::telemetry::occasional::Occasional;
use landfall_core::clock::{Clock, Time};
use landfall_core::refusal::{Refusal, RefusalCode};

const WINDOW: TimeDelta = TimeDelta::minutes(1);
/// How many addresses are remembered. Beyond it the ones whose minute began first are forgotten.
const MAX_ADDRESSES: usize = 10_000;

#[derive(Clone)]
pub struct AuthFailures {
    clock: Clock,
    limit: u32,
    addresses: Arc<Mutex<HashMap<IpAddr, Failures>>>,
    lines: Arc<Occasional>,
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    since: Time,
    count: u32,
}

impl AuthFailures {
    pub fn new(clock: Clock, limit: u32) -> Self {
        Self { clock, limit, addresses: Arc::default(), lines: Arc::default() }
    }

    /// Counts a failure. Returns for how long the address is over its limit.
    fn count(&self, address: IpAddr) -> Option<TimeDelta> {
        let now = self.clock.now();
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let client = client_of(address);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&client) {
            make_room(&mut addresses, now);
        }
        let failures = addresses.entry(client).or_insert(Failures { since: now, count: 0 });
        if now - failures.since >= WINDOW || now < failures.since {
            *failures = Failures { since: now, count: 0 };
        }
        failures.count = failures.count.saturating_add(1);
        (failures.count > self.limit).then_some(WINDOW - (now - failures.since))
    }
}

/// Removes the addresses whose minute is over, or else the oldest half.
fn make_room(addresses: &mut HashMap<IpAddr, Failures>, now: Time) {
    addresses.retain(|_, failures| now - failures.since < WINDOW);
    if addresses.len() >= MAX_ADDRESSES {
        let mut begun: Vec<Time> = addresses.values().map(|failures| failures.since).collect();
        begun.sort_unstable();
        let median = begun[begun.len() / 2];
        addresses.retain(|_, failures| failures.since > median);
    }
}

/// Counts the responses that refuse a credential, and replaces those that are too many for their address.
pub async fn limit(State(failures): State<AuthFailures>, request: Request, next: Next) -> Response {
    let address = request.extensions().get::<ClientAddress>().copied();
    let response = next.run(request).await;
    let Some(code) = response.extensions().get::<RefusalCode>().copied().filter(|code| code.status() == 401)
    else {
        return response;
    };
    counted::authentication_failed(code);
    // An expired credential was a valid one, and a request without any is no attempt.
    let is_wrong = matches!(code, RefusalCode::InvalidToken | RefusalCode::InvalidTicket);
    let (Some(ClientAddress(address)), true) = (address, is_wrong) else { return response };
    let Some(left) = failures.count(address) else { return response };
    if let Some(count) = failures.lines.count(failures.clock.now()) {
        tracing::warn!(%address, count, "an address sends wrong tokens, more than AUTH_FAILURES_PER_MINUTE");
    }
    let message = "Too many wrong tokens came from this address. A valid one is accepted at any time";
    let mut refused = ApiError(Refusal::new(RefusalCode::TooManyAuthFailures, message)).into_response();
    let seconds = left.num_seconds().max(0) + 1;
    refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::clock::ManualClock;
    use std::time::Duration;

    fn failures(limit: u32) -> (AuthFailures, ManualClock) {
        let clock = ManualClock::starting_at(Time::UNIX_EPOCH);
        (AuthFailures::new(Clock::Manual(clock.clone()), limit), clock)
    }

    #[test]
    fn an_address_is_over_its_limit_until_its_minute_ends() {
        let (failures, clock) = failures(2);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!((failures.count(address), failures.count(address)), (None, None));
        clock.advance(Duration::from_secs(20));
        assert_eq!(failures.count(address), Some(TimeDelta::seconds(40)));
        assert_eq!(failures.count("192.0.2.2".parse().unwrap()), None, "another address is not affected");
        clock.advance(Duration::from_secs(40));
        assert_eq!(failures.count(address), None);
    }

    #[test]
    fn the_number_of_addresses_is_limited() {
        let (failures, clock) = failures(20);
        for number in 0..3 * u32::try_from(MAX_ADDRESSES).unwrap() {
            clock.advance(Duration::from_micros(1));
            failures.count(IpAddr::V4(number.into()));
        }
        assert!(failures.addresses.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
