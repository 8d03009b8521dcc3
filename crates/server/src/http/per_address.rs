//! How much each client address has open at the same time.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts what is open for each address, up to a limit. Only addresses that have something open take memory.
#[derive(Debug, Clone)]
pub struct PerAddress {
    limit: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One of those that are open, until it is dropped.
#[derive(Debug)]
pub struct Admitted {
    counted: PerAddress,
    address: IpAddr,
}

impl PerAddress {
    pub fn new(limit: usize) -> Self {
        Self { limit, open: Arc::default() }
    }

    /// `None` where the address has the maximum open.
    pub fn admit(&self, address: IpAddr) -> Option<Admitted> {
        let address = client_of(address);
        let mut open = self.lock();
        let count = open.entry(address).or_default();
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(Admitted { counted: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut open = self.counted.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}

/// What counts as one client: an IPv4 address, or a /64 network, because one machine may use any address of that.
pub fn client_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) >> 64 << 64;
            IpAddr::V6(Ipv6Addr::from(network))
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gets_its_limit_and_takes_nothing_from_another() {
        let open = PerAddress::new(2);
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let first = open.admit(address("192.0.2.1")).unwrap();
        let _second = open.admit(address("::ffff:192.0.2.1")).unwrap();
        assert!(open.admit(address("192.0.2.1")).is_none());
        assert!(open.admit(address("192.0.2.2")).is_some());
        drop(first);
        assert!(open.admit(address("192.0.2.1")).is_some());
    }

    #[test]
    fn the_addresses_of_one_network_are_one_client() {
        let open = PerAddress::new(1);
        let first = open.admit("2001:db8::1".parse().unwrap());
        assert!(first.is_some() && open.admit("2001:db8::ffff".parse().unwrap()).is_none());
        assert!(open.admit("2001:db8:0:1::1".parse().unwrap()).is_some());
        drop(first);
        assert!(open.lock().is_empty(), "an address that has nothing open takes no memory");
    }
}
