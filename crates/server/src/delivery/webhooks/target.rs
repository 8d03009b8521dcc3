//! Which addresses a webhook may have: public `http` and `https` addresses, unless the operator allows more.
//!
//! A user who may register a webhook must not reach what only this machine or its network can reach. So an address
//! is checked when the webhook is registered, to give the user an error, and again for each connection, for safety:
//! by then a name may resolve to another address. The client connects only to addresses that [`TargetCheck`] has
//! resolved, and numeric addresses, which clients do not resolve, are checked before each request.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use landfall_core::refusal::{Refusal, RefusalCode};

const MAX_URL_LENGTH: usize = 2_000;
/// How long the registration waits for the resolution of a name.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// Resolves a name to its addresses.
pub type Names = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// Uses the system's resolver.
pub fn system_names() -> Names {
    Arc::new(|name| {
        async move { Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect()) }
            .boxed()
    })
}

/// Decides which addresses may be connected to.
#[derive(Clone)]
pub struct TargetCheck {
    pub names: Names,
    pub allow_private: bool,
}

/// Why an address is rejected.
#[derive(Debug, thiserror::Error)]
pub enum Unreachable {
    /// The message does not say which address a name has: that of a name inside the network is not for users.
    #[error("the address of {host} is not public, and webhooks may reach no other")]
    Private { host: String },
    #[error("the name {host} cannot be resolved: {reason}")]
    Unknown { host: String, reason: String },
}

impl TargetCheck {
    /// Checks a webhook's address as far as that is possible without a lookup.
    pub fn parse(text: &str) -> Result<Url, Refusal> {
        let refuse = |message: &str| Err(Refusal::new(RefusalCode::InvalidWebhookUrl, message));
        if text.len() > MAX_URL_LENGTH {
            return refuse("The URL is longer than 2000 characters");
        }
        let Ok(url) = Url::parse(text) else {
            return refuse("The URL is not valid; it must look like https://example.com/hook");
        };
        if !matches!(url.scheme(), "http" | "https") {
            return refuse("The URL must begin with https:// or http://");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return refuse(
                "The URL must not contain a user name or a password; receivers verify the signature instead",
            );
        }
        if url.fragment().is_some() {
            return refuse("The URL must not have a fragment (#…), which is never sent");
        }
        if url.host().is_none() {
            return refuse("The URL must name a host");
        }
        Ok(url)
    }

    /// Whether a webhook may be registered there.
    pub async fn check(&self, url: &Url) -> Result<(), Refusal> {
        if self.allow_private {
            return Ok(());
        }
        let checked = match url.host() {
            Some(Host::Domain(name)) => {
                match tokio::time::timeout(LOOKUP_TIMEOUT, self.addresses(name.to_owned())).await {
                    Ok(found) => found.map(drop),
                    Err(_) => Err(Unreachable::Unknown {
                        host: name.to_owned(),
                        reason: "the lookup timed out".to_owned(),
                    }),
                }
            }
            _ => self.check_number(url),
        };
        checked.map_err(|error| match &error {
            Unreachable::Private { .. } => Refusal::new(RefusalCode::PrivateWebhookAddress, sentence(&error)),
            Unreachable::Unknown { .. } => {
                Refusal::new(RefusalCode::UnknownWebhookHost, sentence(&error)).retryable()
            }
        })
    }

    /// Whether a request may be made to a URL whose host is a number, which clients do not resolve.
    pub fn check_number(&self, url: &Url) -> Result<(), Unreachable> {
        // `Url` has already parsed all notations of the number (decimal, octal, hexadecimal, shortened).
        let address = match url.host() {
            Some(Host::Ipv4(address)) => IpAddr::V4(address),
            Some(Host::Ipv6(address)) => IpAddr::V6(address),
            _ => return Ok(()),
        };
        if self.allow_private || is_public(address) {
            return Ok(());
        }
        Err(Unreachable::Private { host: url.host_str().unwrap_or_default().to_owned() })
    }

    /// The addresses of a name. If one of them is private, all are rejected: the owner of the name controls all of
    /// them.
    async fn addresses(&self, host: String) -> Result<Vec<IpAddr>, Unreachable> {
        let found = match (self.names)(host.clone()).await {
            Ok(found) => found,
            Err(error) => return Err(Unreachable::Unknown { host, reason: error.to_string() }),
        };
        if found.is_empty() {
            return Err(Unreachable::Unknown { host, reason: "it has no address".to_owned() });
        }
        match found.iter().find(|address| !self.allow_private && !is_public(**address)) {
            Some(address) => {
                tracing::info!(host, %address, "a webhook's host has an address that is not public");
                Err(Unreachable::Private { host })
            }
            None => Ok(found),
        }
    }
}

impl Resolve for TargetCheck {
    fn resolve(&self, name: Name) -> Resolving {
        let (checked, name) = (self.clone(), name.as_str().to_owned());
        async move {
            let found = checked.addresses(name).await?;
            // Port 0: the client uses that of the URL.
            let found: Addrs = Box::new(found.into_iter().map(|address| SocketAddr::new(address, 0)));
            Ok(found)
        }
        .boxed()
    }
}

fn sentence(error: &Unreachable) -> String {
    let text = error.to_string();
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Whether an address is public.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// All except the special ranges in IANA's registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    match first {
        0 | 10 | 127 | 224..=255 => false,
        100 => !(64..=127).contains(&second),
        169 => second != 254,
        172 => !(16..=31).contains(&second),
        192 => match second {
            168 => false,
            0 => third != 0 && third != 2,
            31 => third != 196,
            52 => third != 193,
            88 => third != 99,
            175 => third != 48,
            _ => true,
        },
        198 => second != 18 && second != 19 && (second, third) != (51, 100),
        203 => (second, third) != (0, 113),
        _ => true,
    }
}

/// Only the ranges for the public internet, without those that map to another address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    if let Some(inner) = address.to_ipv4_mapped() {
        return is_public_v4(inner);
    }
    match address.segments() {
        // NAT64: an IPv6-only network reaches IPv4 addresses this way.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Protocol assignments (such as Teredo), documentation, 6to4, documentation again.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => false,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(names: &'static [&'static str]) -> TargetCheck {
        let names: Names =
            Arc::new(|_| async { Ok(names.iter().map(|text| text.parse().unwrap()).collect()) }.boxed());
        TargetCheck { names, allow_private: false }
    }

    async fn code(checked: &TargetCheck, url: &str) -> &'static str {
        match TargetCheck::parse(url) {
            Ok(url) => checked.check(&url).await.map_or_else(|refusal| refusal.code.code(), |()| "good"),
            Err(refusal) => refusal.code.code(),
        }
    }

    #[tokio::test]
    async fn a_private_number_is_rejected_in_every_notation() {
        for host in [
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f000001",
            "0x7f.0.0.1",
            "0177.0.0.1",
            "017700000001",
            "127.0.0.1.",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "0.0.0.0",
            "0",
            "10.1.2.3",
            "100.64.0.1",
            "100.127.255.255",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "239.255.255.250",
            "240.0.0.1",
            "255.255.255.255",
            "[::]",
            "[::1]",
            "[::7f00:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:169.254.169.254]",
            "[64:ff9b::10.0.0.1]",
            "[64:ff9b:1::808:808]",
            "[fc00::1]",
            "[fd12:3456::1]",
            "[fe80::1]",
            "[fec0::1]",
            "[ff02::1]",
            "[2001:db8::1]",
            "[2001::1]",
            "[2002:7f00:1::]",
            "[3fff::1]",
            "[100::1]",
        ] {
            assert_eq!(
                code(&checked(&[]), &format!("http://{host}/")).await,
                "PRIVATE_WEBHOOK_ADDRESS",
                "{host}"
            );
            let url = TargetCheck::parse(&format!("https://{host}:8443/hook")).unwrap();
            assert!(checked(&[]).check_number(&url).is_err(), "{host}");
            let anything = TargetCheck { allow_private: true, ..checked(&[]) };
            assert!(anything.check_number(&url).is_ok() && anything.check(&url).await.is_ok(), "{host}");
        }
    }

    #[tokio::test]
    async fn a_public_address_is_accepted() {
        for host in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.0.1",
            "223.255.255.255",
            "[2606:4700::1111]",
            "[2a00::1]",
            "[::ffff:1.1.1.1]",
            "[64:ff9b::8.8.8.8]",
        ] {
            assert_eq!(code(&checked(&[]), &format!("http://{host}/")).await, "good", "{host}");
        }
    }

    #[tokio::test]
    async fn one_private_address_makes_a_name_rejected() {
        let name = "https://example.com/hook";
        assert_eq!(code(&checked(&["1.1.1.1", "2606:4700::1111"]), name).await, "good");
        assert_eq!(code(&checked(&["1.1.1.1", "10.0.0.1"]), name).await, "PRIVATE_WEBHOOK_ADDRESS");
        assert_eq!(code(&checked(&["::ffff:10.0.0.1"]), name).await, "PRIVATE_WEBHOOK_ADDRESS");
        assert_eq!(code(&checked(&[]), name).await, "UNKNOWN_WEBHOOK_HOST");
    }

    #[tokio::test]
    async fn a_refusal_does_not_say_which_address_a_name_has() {
        let url = TargetCheck::parse("https://database.internal/hook").unwrap();
        let refusal = checked(&["10.20.30.40"]).check(&url).await.unwrap_err();
        assert!(refusal.message.contains("database.internal"), "{}", refusal.message);
        assert!(!refusal.message.contains("10.20"), "{}", refusal.message);
        let resolved = checked(&["10.20.30.40"]).resolve("database.internal".parse().unwrap()).await;
        let error = resolved.err().unwrap().to_string();
        assert!(!error.contains("10.20"), "{error}");
    }

    #[tokio::test]
    async fn an_invalid_address_is_refused() {
        let long = format!("https://example.com/{}", "x".repeat(2_000));
        for url in [
            "",
            "example.com",
            "/hook",
            "ftp://example.com",
            "file:///etc/passwd",
            "gopher://example.com",
            "javascript:alert(1)",
            "https://",
            "https://user@example.com",
            "https://user:word@example.com",
            "https://example.com/#part",
            "http://1.2.3.4.5/",
            "http://exa mple.com/",
            &long,
        ] {
            assert_eq!(code(&checked(&["1.1.1.1"]), url).await, "INVALID_WEBHOOK_URL", "{url}");
        }
    }
}
