//! The public keys of the token issuer. They are fetched when a token names an unknown key, at a limited rate.

use std::sync::LazyLock;
use std::time::Duration;

use chrono::TimeDelta;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::JwkSet;
use tokio::sync::Mutex;

use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};

/// A token with an invented key id must not cause a request each time.
const MIN_FETCH_INTERVAL: TimeDelta = TimeDelta::seconds(30);
/// A revoked key is trusted for no longer than this.
const MAX_AGE: TimeDelta = TimeDelta::hours(1);
const TIMEOUT: Duration = Duration::from_secs(10);

pub struct Jwks {
    url: String,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    keys: Option<JwkSet>,
    fetched_at: Option<Time>,
    asked_at: Option<Time>,
}

impl Jwks {
    pub fn new(url: String) -> Self {
        Self { url, known: Mutex::default() }
    }

    pub async fn key(&self, id: Option<&str>, now: Time) -> Result<DecodingKey, Refusal> {
        let mut known = self.known.lock().await;
        let fresh = known.fetched_at.is_some_and(|at| now - at < MAX_AGE);
        if let Some(key) = find(&known, id).filter(|_| fresh) {
            return Ok(key);
        }
        if known.asked_at.is_none_or(|at| now - at > MIN_FETCH_INTERVAL) {
            known.asked_at = Some(now);
            match fetch(&self.url).await {
                Ok(keys) => {
                    known.keys = Some(keys);
                    known.fetched_at = Some(now);
                }
                Err(error) => {
                    // Without the address, which may contain a key.
                    let error = error.without_url();
                    tracing::warn!(%error, "the keys for tokens could not be fetched");
                }
            }
        }
        let fresh = known.fetched_at.is_some_and(|at| now - at < MAX_AGE);
        find(&known, id).filter(|_| fresh).ok_or_else(|| match &known.keys {
            Some(_) if fresh => {
                Refusal::new(RefusalCode::InvalidToken, "The token is signed with a key that is not known")
            }
            _ => Refusal::new(RefusalCode::AuthUnavailable, "Tokens cannot be checked at the moment")
                .retryable(),
        })
    }
}

/// The key with this id; without an id, the only key there is.
fn find(known: &Known, id: Option<&str>) -> Option<DecodingKey> {
    let keys = known.keys.as_ref()?;
    let key = match id {
        Some(id) => keys.find(id),
        None if keys.keys.len() == 1 => keys.keys.first(),
        None => None,
    };
    key.and_then(|key| DecodingKey::from_jwk(key).ok())
}

async fn fetch(url: &str) -> Result<JwkSet, reqwest::Error> {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(crate::outbound::client);
    CLIENT.get(url).timeout(TIMEOUT).send().await?.error_for_status()?.json().await
}
