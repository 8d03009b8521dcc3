//! The public keys of the identity provider, and its addresses where they are discovered.
//!
//! A token that is signed with a known key never waits for the provider. The keys are fetched again in the background
//! before they are old, and when a token names an unknown key: outside any lock that others need, one request at a time, at
//! a limited rate. While the provider is down the known keys stay in use, for a limited time.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use chrono::TimeDelta;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use reqwest::header::ACCEPT;
use serde::Deserialize;
use serde_json::Value;

use super::fetched::{Fetched, Limits};
use super::provider::is_trustworthy;
use crate::outbound::response;
use landfall_core::clock::{Clock, Time};
use landfall_core::refusal::{Refusal, RefusalCode};

/// How often the keys are fetched in the background. A key that the provider withdraws is trusted for so much longer.
pub const REFRESH_INTERVAL: Duration = Duration::from_mins(10);
/// The same while the keys could not be fetched.
const RETRY_INTERVAL: Duration = Duration::from_secs(15);
/// For how long keys are used while the provider cannot be reached.
pub const MAX_AGE: TimeDelta = TimeDelta::hours(4);
const LIMITS: Limits = Limits {
    max_age: MAX_AGE,
    // A token with an invented key id must not cause a request each time.
    interval: TimeDelta::seconds(10),
    interval_without: TimeDelta::seconds(2),
};
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_RESPONSE_BYTES: usize = 256 << 10;
const MAX_KEYS: usize = 100;
/// A shorter RSA key can be broken.
const MIN_RSA_BITS: usize = 2_048;

/// Where the keys are.
#[derive(Debug, Clone)]
pub enum Source {
    /// At this address.
    Keys(String),
    /// Where the provider with this name says in its description.
    Issuer(String),
}

/// The addresses of a provider that people sign in with.
#[derive(Debug, Clone, Deserialize)]
pub struct Endpoints {
    pub issuer: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub userinfo_endpoint: Option<String>,
    pub end_session_endpoint: Option<String>,
    jwks_uri: String,
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Whether the provider says its name when it sends a browser back.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Request(#[from] reqwest::Error),
    #[error("the response has more than {MAX_RESPONSE_BYTES} bytes")]
    TooLong,
    #[error("the response is not valid: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error(
        "the provider calls itself {found:?}, and OIDC_ISSUER is {expected:?}: they must be equal, up to the last slash"
    )]
    OtherIssuer { found: String, expected: String },
    #[error("the provider names the address {0:?}, which is not https")]
    NotHttps(String),
    #[error("none of the keys can be used to check signatures")]
    NoKeys,
}

pub struct Jwks {
    inner: Arc<Inner>,
}

struct Inner {
    source: Source,
    fetched: Fetched<Found>,
}

struct Found {
    keys: Vec<Key>,
    endpoints: Option<Endpoints>,
}

/// A key that signatures can be checked with.
struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

impl Jwks {
    pub fn new(source: Source) -> Self {
        Self { inner: Arc::new(Inner { source, fetched: Fetched::new(LIMITS) }) }
    }

    /// The key that a token names, if it fits the algorithm of the token.
    pub async fn key(
        &self,
        id: Option<&str>,
        algorithm: Algorithm,
        now: Time,
    ) -> Result<DecodingKey, Refusal> {
        let find = |found: Arc<Found>| found.key(id, algorithm);
        if let Some(key) = self.inner.fetched.usable(now).and_then(find) {
            return Ok(key);
        }
        self.fetch(now).await;
        let found = self.inner.fetched.usable(now).ok_or_else(unavailable)?;
        find(found).ok_or_else(|| {
            let message =
                "The token is signed with a key that its issuer does not publish for this algorithm";
            Refusal::new(RefusalCode::InvalidToken, message)
        })
    }

    /// The addresses of the provider.
    pub async fn endpoints(&self, now: Time) -> Result<Endpoints, Refusal> {
        if self.inner.fetched.usable(now).is_none() {
            self.fetch(now).await;
        }
        let found = self.inner.fetched.usable(now).ok_or_else(unavailable)?;
        found.endpoints.clone().ok_or_else(unavailable)
    }

    /// Fetches the keys again and again, so that no token has to wait for that.
    pub async fn run(&self, clock: Clock) {
        loop {
            self.fetch(clock.now()).await;
            clock.sleep(if self.inner.fetched.is_fresh() { REFRESH_INTERVAL } else { RETRY_INTERVAL }).await;
        }
    }

    /// In a task of its own: a client that disconnects must not interrupt a fetch that others wait for.
    async fn fetch(&self, now: Time) {
        let inner = self.inner.clone();
        // A panic in it has been reported, and leaves the keys as they were.
        drop(tokio::spawn(async move { inner.fetch(now).await }).await);
    }
}

fn unavailable() -> Refusal {
    let message = "Tokens cannot be checked at the moment: the identity provider does not answer";
    Refusal::new(RefusalCode::AuthUnavailable, message).retryable()
}

impl Inner {
    async fn fetch(&self, now: Time) {
        if let Err(error) = self.fetched.fetch(now, fetch_all(&self.source)).await {
            // Without the address, which may contain a key.
            let error = match error {
                FetchError::Request(error) => FetchError::Request(error.without_url()),
                other => other,
            };
            tracing::warn!(%error, "the keys for tokens could not be fetched");
        }
    }
}

#[derive(Deserialize)]
struct Published {
    keys: Vec<Value>,
}

async fn fetch_all(source: &Source) -> Result<Found, FetchError> {
    let (address, endpoints) = match source {
        Source::Keys(address) => (address.clone(), None),
        Source::Issuer(issuer) => {
            let endpoints = discover(issuer).await?;
            (endpoints.jwks_uri.clone(), Some(endpoints))
        }
    };
    let published: Published = serde_json::from_slice(&get(&address).await?)?;
    // A key that this program does not understand takes none of the others away.
    let keys: Vec<Key> = published.keys.into_iter().take(MAX_KEYS).filter_map(Key::read).collect();
    if keys.is_empty() {
        return Err(FetchError::NoKeys);
    }
    Ok(Found { keys, endpoints })
}

/// The description of a provider. It must be that of the one which is configured, and name no address that others can read
/// along with.
async fn discover(issuer: &str) -> Result<Endpoints, FetchError> {
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let found: Endpoints = serde_json::from_slice(&get(&address).await?)?;
    if found.issuer != issuer {
        return Err(FetchError::OtherIssuer { found: found.issuer, expected: issuer.to_owned() });
    }
    let optional = [
        &found.authorization_endpoint,
        &found.token_endpoint,
        &found.userinfo_endpoint,
        &found.end_session_endpoint,
    ];
    for address in optional.into_iter().flatten().chain([&found.jwks_uri]) {
        if !is_trustworthy(address) {
            return Err(FetchError::NotHttps(address.clone()));
        }
    }
    Ok(found)
}

async fn get(address: &str) -> Result<Vec<u8>, FetchError> {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(crate::outbound::client_without_redirects);
    let asked = CLIENT.get(address).header(ACCEPT, "application/json").timeout(TIMEOUT);
    let answer = asked.send().await?.error_for_status()?;
    match response::read(answer, MAX_RESPONSE_BYTES).await? {
        (bytes, true) => Ok(bytes),
        (_, false) => Err(FetchError::TooLong),
    }
}

impl Found {
    /// The key with this id; without an id, the only key for the algorithm.
    fn key(&self, id: Option<&str>, algorithm: Algorithm) -> Option<DecodingKey> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithms.contains(&algorithm));
        let found = match id {
            Some(id) => fitting.find(|key| key.id.as_deref() == Some(id)),
            None => fitting.next().filter(|_| fitting.next().is_none()),
        };
        found.map(|found| found.key.clone())
    }
}

impl Key {
    /// A public key that is meant for signatures, with the algorithms that fit it. Any other is left out.
    fn read(published: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(published).ok()?;
        let common = &jwk.common;
        let is_for_signatures = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature))
            && common.key_operations.as_ref().is_none_or(|all| all.contains(&KeyOperations::Verify));
        if !is_for_signatures {
            return None;
        }
        let mut algorithms = match &jwk.algorithm {
            AlgorithmParameters::RSA(key) if bits(&key.n)? >= MIN_RSA_BITS => vec![
                Algorithm::RS256,
                Algorithm::RS384,
                Algorithm::RS512,
                Algorithm::PS256,
                Algorithm::PS384,
                Algorithm::PS512,
            ],
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => vec![Algorithm::ES256],
                EllipticCurve::P384 => vec![Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                vec![Algorithm::EdDSA]
            }
            // Above all no key that is a secret: what is published is none.
            _ => return None,
        };
        if let Some(declared) = common.key_algorithm {
            algorithms.retain(|algorithm| KeyAlgorithm::from(*algorithm) == declared);
        }
        if algorithms.is_empty() {
            return None;
        }
        Some(Self { id: common.key_id.clone(), algorithms, key: DecodingKey::from_jwk(&jwk).ok()? })
    }
}

/// The length of a number in base64.
fn bits(number: &str) -> Option<usize> {
    use base64::Engine;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(number).ok()?;
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
    let first = bytes.get(zeros)?;
    Some((bytes.len() - zeros) * 8 - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn algorithms(key: Value) -> Vec<Algorithm> {
        Key::read(key).map_or_else(Vec::new, |key| key.algorithms)
    }

    fn rsa(bytes: usize) -> Value {
        use base64::Engine;
        let modulus = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(vec![0xff; bytes]);
        json!({ "kty": "RSA", "kid": "a", "n": modulus, "e": "AQAB" })
    }

    fn with(mut key: Value, name: &str, value: Value) -> Value {
        key[name] = value;
        key
    }

    #[test]
    fn a_key_is_used_only_for_signatures_that_fit_it() {
        assert_eq!(algorithms(rsa(256)).len(), 6);
        assert_eq!(algorithms(with(rsa(256), "alg", json!("PS256"))), [Algorithm::PS256]);
        assert_eq!(algorithms(with(rsa(256), "use", json!("sig"))).len(), 6);
        assert_eq!(algorithms(with(rsa(256), "key_ops", json!(["verify"]))).len(), 6);
        for (name, value) in [
            ("use", json!("enc")),
            ("use", json!("something")),
            ("key_ops", json!(["encrypt"])),
            ("key_ops", json!([])),
            ("alg", json!("RSA-OAEP")),
            ("alg", json!("HS256")),
            ("alg", json!("ES256")),
        ] {
            assert_eq!(algorithms(with(rsa(256), name, value.clone())), [], "{name} {value}");
        }
        assert_eq!(algorithms(rsa(128)), [], "too short");
        assert_eq!(algorithms(json!({ "kty": "oct", "kid": "a", "k": "c2VjcmV0" })), []);
        assert_eq!(algorithms(json!({ "kty": "new", "kid": "a" })), []);
    }
}
