//! Counts what each client address does within a minute, for a limited number of addresses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::TimeDelta;

use super::per_address::client_of;
use landfall_core::clock::{Clock, Time};

const WINDOW: TimeDelta = TimeDelta::minutes(1);
/// How many addresses are remembered. Beyond it the ones whose minute began first are forgotten.
const MAX_ADDRESSES: usize = 10_000;

#[derive(Clone)]
pub struct PerMinute {
    clock: Clock,
    limit: u32,
    addresses: Arc<Mutex<HashMap<IpAddr, Count>>>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    since: Time,
    count: u32,
}

impl PerMinute {
    pub fn new(clock: Clock, limit: u32) -> Self {
        Self { clock, limit, addresses: Arc::default() }
    }

    /// Counts one more. Returns for how long the address is over its limit.
    pub fn count(&self, address: IpAddr) -> Option<TimeDelta> {
        let now = self.clock.now();
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let client = client_of(address);
        if addresses.len() >= MAX_ADDRESSES && !addresses.contains_key(&client) {
            make_room(&mut addresses, now);
        }
        let counted = addresses.entry(client).or_insert(Count { since: now, count: 0 });
        if now - counted.since >= WINDOW || now < counted.since {
            *counted = Count { since: now, count: 0 };
        }
        counted.count = counted.count.saturating_add(1);
        (counted.count > self.limit).then_some(WINDOW - (now - counted.since))
    }
}

/// Removes the addresses whose minute is over, or else the oldest half.
fn make_room(addresses: &mut HashMap<IpAddr, Count>, now: Time) {
    addresses.retain(|_, counted| now - counted.since < WINDOW);
    if addresses.len() >= MAX_ADDRESSES {
        let mut begun: Vec<Time> = addresses.values().map(|counted| counted.since).collect();
        begun.sort_unstable();
        let median = begun[begun.len() / 2];
        addresses.retain(|_, counted| counted.since > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::clock::ManualClock;
    use std::time::Duration;

    fn limited(limit: u32) -> (PerMinute, ManualClock) {
        let clock = ManualClock::starting_at(Time::UNIX_EPOCH);
        (PerMinute::new(Clock::Manual(clock.clone()), limit), clock)
    }

    #[test]
    fn an_address_is_over_its_limit_until_its_minute_ends() {
        let (limited, clock) = limited(2);
        let address: IpAddr = "192.0.2.1".parse().unwrap();
        assert_eq!((limited.count(address), limited.count(address)), (None, None));
        clock.advance(Duration::from_secs(20));
        assert_eq!(limited.count(address), Some(TimeDelta::seconds(40)));
        assert_eq!(limited.count("192.0.2.2".parse().unwrap()), None, "another address is not affected");
        clock.advance(Duration::from_secs(40));
        assert_eq!(limited.count(address), None);
    }

    #[test]
    fn the_number_of_addresses_is_limited() {
        let (limited, clock) = limited(20);
        for number in 0..3 * u32::try_from(MAX_ADDRESSES).unwrap() {
            clock.advance(Duration::from_micros(1));
            limited.count(IpAddr::V4(number.into()));
        }
        assert!(limited.addresses.lock().unwrap().len() <= MAX_ADDRESSES);
    }
}
