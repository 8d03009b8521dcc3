//! Which connections are accepted, and what each of them may do.
//!
//! A connection gets one of `MAX_CONNECTIONS` slots. If all are taken it gets a place in a small reserve, where it may
//! ask how this process is, and nothing else. If the reserve is full too, its oldest connection makes way. So health and
//! metrics are available whatever clients do with the slots.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::config::{HttpConfig, Networks};
use crate::http::per_address::{Admitted, PerAddress};

/// How many connections there may be beyond the slots.
const RESERVE: usize = 32;

pub struct Places {
    slots: Arc<Semaphore>,
    reserve: Reserve,
    addresses: PerAddress,
    proxies: Networks,
}

/// The connections in the reserve, oldest first, each with the token that ends it.
type Reserve = Arc<Mutex<VecDeque<CancellationToken>>>;

/// The place of a connection, until it is dropped.
pub struct Place {
    slots: Arc<Semaphore>,
    reserve: Reserve,
    slot: Option<OwnedSemaphorePermit>,
    make_way: CancellationToken,
    _address: Option<Admitted>,
}

impl Places {
    pub fn new(config: &HttpConfig) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(config.max_connections)),
            reserve: Reserve::default(),
            addresses: PerAddress::new(config.max_connections_per_address),
            proxies: config.trusted_proxies.clone(),
        }
    }

    /// `None` where this address has the maximum of connections open. A proxy has those of many clients.
    pub fn admit(&self, peer: IpAddr) -> Option<Place> {
        let address = if self.proxies.contains(peer) { None } else { Some(self.addresses.admit(peer)?) };
        let mut place = Place {
            slots: self.slots.clone(),
            reserve: self.reserve.clone(),
            slot: None,
            make_way: CancellationToken::new(),
            _address: address,
        };
        if !place.take_slot() {
            let mut reserve = lock(&self.reserve);
            if reserve.len() >= RESERVE
                && let Some(oldest) = reserve.pop_front()
            {
                oldest.cancel();
            }
            reserve.push_back(place.make_way.clone());
        }
        Some(place)
    }
}

impl Place {
    /// Whether the connection has a slot, or gets one now.
    pub fn take_slot(&mut self) -> bool {
        if self.slot.is_none() {
            self.slot = self.slots.clone().try_acquire_owned().ok();
            if self.slot.is_some() {
                self.leave_reserve();
            }
        }
        self.slot.is_some()
    }

    pub fn has_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// Cancelled when the connection must make way for a newer one.
    pub fn make_way(&self) -> CancellationToken {
        self.make_way.clone()
    }

    fn leave_reserve(&self) {
        // Two clones of a token are the same token, and no other is: a token is compared by where it is.
        lock(&self.reserve).retain(|token| *token != self.make_way);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.slot.is_none() {
            self.leave_reserve();
        }
    }
}

fn lock(reserve: &Reserve) -> MutexGuard<'_, VecDeque<CancellationToken>> {
    reserve.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Variables};

    fn places() -> Places {
        let mut variables = Variables::default();
        variables.set("MAX_CONNECTIONS", "1");
        Places::new(&Config::from_variables(variables).expect("the settings are valid").http)
    }

    fn admit(places: &Places) -> Place {
        places.admit("192.0.2.1".parse().expect("an address")).expect("it has few open")
    }

    #[test]
    fn the_oldest_in_the_reserve_makes_way_for_the_newest() {
        let places = places();
        let slot = admit(&places);
        let reserved: Vec<Place> = (0..RESERVE).map(|_| admit(&places)).collect();
        assert!(slot.has_slot() && reserved.iter().all(|place| !place.has_slot()));
        assert!(reserved.iter().all(|place| !place.make_way().is_cancelled()));
        let _newest = admit(&places);
        let ended: Vec<bool> = reserved.iter().map(|place| place.make_way().is_cancelled()).collect();
        assert!(ended[0] && !ended[1..].contains(&true), "{ended:?}");
        assert!(!slot.make_way().is_cancelled());
        assert_eq!(lock(&places.reserve).len(), RESERVE);
    }

    #[test]
    fn a_connection_in_the_reserve_takes_a_slot_that_is_free_again() {
        let places = places();
        let slot = admit(&places);
        let mut waiting = admit(&places);
        assert!(!waiting.take_slot());
        drop(slot);
        assert!(waiting.take_slot() && waiting.take_slot());
        assert!(lock(&places.reserve).is_empty());
        drop(waiting);
        assert!(admit(&places).has_slot());
    }
}
