//! Where a request came from: the other end of the connection, or what a trusted proxy there says about it.
//!
//! A proxy appends the address of its own client to `X-Forwarded-For`. So the list is read from its end: what a trusted
//! proxy appended is believed, and the first address that is not a trusted proxy's is the client. What stands before it
//! was sent by that client and may say anything. `Forwarded` (RFC 7239) is not read: few proxies write it, and the others
//! pass on what the client sent.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use axum::extract::{Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName};
use axum::middleware::Next;
use axum::response::Response;

use super::connections::Peer;
use crate::config::Networks;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The headers by which a proxy shows itself.
const OF_PROXIES: [&str; 5] = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via"];

/// The peer of a request that came over no connection.
const NOWHERE: Peer = Peer { address: IpAddr::V4(Ipv4Addr::UNSPECIFIED), tls: false };

/// The address of the client, in every request's extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// How a request came, in every request's extensions.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The other end of the connection.
    pub peer: IpAddr,
    pub way: Way,
    /// Whether the client's own connection is encrypted, to this server or to the trusted proxy.
    pub https: bool,
}

impl Arrival {
    /// How this request came.
    pub fn of(request: &Request) -> Self {
        Self::in_extensions(request.extensions())
    }

    pub fn in_extensions(extensions: &Extensions) -> Self {
        // Only a request that came over no connection lacks it.
        let nowhere = Self { peer: NOWHERE.address, way: Way::Direct, https: false };
        extensions.get::<Self>().copied().unwrap_or(nowhere)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Direct,
    TrustedProxy,
    /// From the address of a trusted proxy, without its headers: from a program on that machine, or from a proxy that adds
    /// none.
    Silent,
    /// It has the headers of a proxy that `TRUSTED_PROXIES` does not name.
    UnknownProxy,
}

/// Adds [`ClientAddress`] and [`Arrival`] to a request.
pub async fn add(State(proxies): State<Networks>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied().unwrap_or(NOWHERE);
    let (client, arrival) = resolve(peer, request.headers(), &proxies);
    request.extensions_mut().insert(client);
    request.extensions_mut().insert(arrival);
    next.run(request).await
}

fn resolve(peer: Peer, headers: &HeaderMap, proxies: &Networks) -> (ClientAddress, Arrival) {
    let shows_proxy = OF_PROXIES.iter().any(|name| headers.contains_key(*name));
    let arrival = Arrival { peer: peer.address, way: Way::Direct, https: peer.tls };
    if !proxies.contains(peer.address) {
        let way = if shows_proxy { Way::UnknownProxy } else { Way::Direct };
        return (ClientAddress(peer.address), Arrival { way, ..arrival });
    }
    if !shows_proxy {
        return (ClientAddress(peer.address), Arrival { way: Way::Silent, ..arrival });
    }
    let mut client = peer.address;
    for text in parts(headers, &FORWARDED_FOR).rev() {
        // Only what came before the text can tell what is meant by it: the last known address is the client's.
        let Some(address) = address(text) else { break };
        client = address;
        if !proxies.contains(address) {
            break;
        }
    }
    // The nearest proxy speaks of its own client.
    let https = parts(headers, &FORWARDED_PROTO).next_back().map_or(arrival.https, |proto| proto == "https");
    (ClientAddress(client), Arrival { way: Way::TrustedProxy, https, ..arrival })
}

/// The parts of a header that is a list, which may come as several headers.
fn parts<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'a str> {
    let values: Vec<&str> = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?")).collect();
    values.into_iter().flat_map(|value| value.split(',')).map(str::trim)
}

/// An address, which some proxies write with a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn came(peer: &str, headers: &[(&str, &str)]) -> (String, Way, bool) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(HeaderName::try_from(*name).unwrap(), value.parse().unwrap());
        }
        let peer = Peer { address: peer.parse().unwrap(), tls: false };
        let proxies = Networks::parse("10.0.0.0/8,::1").unwrap();
        let (ClientAddress(client), arrival) = resolve(peer, &map, &proxies);
        (client.to_string(), arrival.way, arrival.https)
    }

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let headers: Vec<(&str, &str)> = forwarded.iter().map(|value| ("x-forwarded-for", *value)).collect();
        came(peer, &headers).0
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_a_trusted_proxys() {
        assert_eq!(client("10.0.0.1", &["198.51.100.7"]), "198.51.100.7");
        assert_eq!(client("10.0.0.1", &["198.51.100.7, 10.0.0.2"]), "198.51.100.7");
        assert_eq!(
            client("10.0.0.1", &["1.1.1.1, 198.51.100.7"]),
            "198.51.100.7",
            "the client wrote 1.1.1.1"
        );
        assert_eq!(
            client("10.0.0.1", &["1.1.1.1", "198.51.100.7"]),
            "198.51.100.7",
            "several headers are one"
        );
        assert_eq!(client("::1", &["2001:db8::5"]), "2001:db8::5");
        assert_eq!(client("10.0.0.1", &["[2001:db8::5]:4711"]), "2001:db8::5");
        assert_eq!(client("10.0.0.1", &["198.51.100.7:4711"]), "198.51.100.7");
        assert_eq!(client("10.0.0.1", &["::ffff:198.51.100.7"]), "198.51.100.7");
    }

    #[test]
    fn a_list_that_cannot_be_read_says_no_more_than_its_end() {
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["unknown"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["1.1.1.1, unknown"]), "10.0.0.1");
        assert_eq!(client("10.0.0.1", &["1.1.1.1, _hidden, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(
            client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]),
            "10.0.0.3",
            "a client in the proxies' own network"
        );
        assert_eq!(client("10.0.0.1", &[""]), "10.0.0.1");
    }

    #[test]
    fn a_stranger_is_not_believed() {
        let claims = [("x-forwarded-for", "10.0.0.9"), ("x-forwarded-proto", "https")];
        assert_eq!(came("198.51.100.7", &claims), ("198.51.100.7".to_owned(), Way::UnknownProxy, false));
        assert_eq!(came("198.51.100.7", &[]), ("198.51.100.7".to_owned(), Way::Direct, false));
    }

    #[test]
    fn the_nearest_proxy_says_whether_the_client_came_by_https() {
        let by = |protos: &str| {
            came("10.0.0.1", &[("x-forwarded-for", "198.51.100.7"), ("x-forwarded-proto", protos)]).2
        };
        assert!(by("https"));
        assert!(!by("http"));
        assert!(!by("https, http"), "the client wrote the first one");
    }
}
