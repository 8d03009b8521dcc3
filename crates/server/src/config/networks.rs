//! Networks of addresses, as in `10.0.0.0/8`.

use std::net::IpAddr;

use ipnet::IpNet;

/// The names that stand for several networks.
const NAMED: [(&str, &[&str]); 2] = [
    ("loopback", &["127.0.0.0/8", "::1/128"]),
    // What a network gives to its own machines and containers.
    (
        "private",
        &[
            "10.0.0.0/8",
            "100.64.0.0/10",
            "172.16.0.0/12",
            "192.168.0.0/16",
            "169.254.0.0/16",
            "fc00::/7",
            "fe80::/10",
        ],
    ),
];

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// A list of networks, addresses and names of networks, with commas or spaces between them.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut networks = Vec::new();
        for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
            if let Some((_, named)) = NAMED.iter().find(|(name, _)| *name == part) {
                networks.extend(named.iter().map(|text| text.parse::<IpNet>().expect("it is a network")));
                continue;
            }
            let network = part.parse::<IpNet>().or_else(|_| part.parse::<IpAddr>().map(IpNet::from));
            match network {
                // Then every client could claim any address.
                Ok(network) if network.prefix_len() == 0 => {
                    return Err("the networks of the proxies, and not all addresses".to_owned());
                }
                Ok(network) => networks.push(network.trunc()),
                Err(_) => {
                    return Err(
                        "a list of networks or addresses, like 10.0.0.0/8,192.168.1.5, or of the names \
                         loopback and private"
                            .to_owned(),
                    );
                }
            }
        }
        Ok(Self(networks))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        // A socket that serves both families shows an IPv4 address as an IPv6 one.
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_its_addresses_in_both_notations() {
        let networks = Networks::parse("10.1.0.0/16, 192.0.2.7 2001:db8::/32,loopback").unwrap();
        for inside in ["10.1.2.3", "::ffff:10.1.2.3", "192.0.2.7", "2001:db8::1", "127.0.0.5", "::1"] {
            assert!(networks.contains(inside.parse().unwrap()), "{inside}");
        }
        for outside in ["10.2.0.1", "192.0.2.8", "2001:db9::1", "::ffff:192.0.2.8"] {
            assert!(!networks.contains(outside.parse().unwrap()), "{outside}");
        }
        assert!(Networks::parse("private").unwrap().contains("172.31.0.9".parse().unwrap()));
        assert!(Networks::parse("").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_network_and_what_is_every_address_is_refused() {
        for text in ["proxy.example.com", "10.0.0.0/33", "none", "10.0.0.0/8;10.1.0.0/16"] {
            assert!(Networks::parse(text).unwrap_err().contains("a list of networks"), "{text}");
        }
        for text in ["0.0.0.0/0", "::/0"] {
            assert!(Networks::parse(text).unwrap_err().contains("not all addresses"), "{text}");
        }
    }
}
