//! A person signs in with the identity provider: authorization code with PKCE.
//!
//! What belongs to one attempt (`state`, `nonce` and the PKCE verifier) is kept by the browser that began it, in a cookie
//! that scripts cannot read. So a code that another person got cannot be redeemed in this browser (`state`), a code that
//! was stolen cannot be redeemed elsewhere (PKCE), and an ID token of another attempt is refused (`nonce`).
//!
//! This is written by hand, with the client and the checks of tokens that are here anyway. A library for it would bring a
//! second set of both, and the flow itself is one address and one request.

use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::claims::Claims;
use super::jwks::Endpoints;
use super::provider::Provider;
use crate::outbound::response;
use landfall_core::caller::Caller;
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};

/// How long a person may take to sign in.
pub const ATTEMPT_LIFETIME: TimeDelta = TimeDelta::minutes(10);
const TIMEOUT: Duration = Duration::from_secs(10);
const MAX_RESPONSE_BYTES: usize = 256 << 10;

/// This server as the provider knows it.
#[derive(Clone)]
pub struct ClientConfig {
    pub id: String,
    pub secret: Option<String>,
    pub scopes: String,
}

impl std::fmt::Debug for ClientConfig {
    /// Debug output must not contain the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientConfig").field("id", &self.id).finish_non_exhaustive()
    }
}

/// One attempt to sign in, as the browser keeps it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct Attempt {
    state: String,
    nonce: String,
    verifier: String,
    /// Where the person goes on: a path of this server.
    pub return_to: String,
    begun_at: i64,
}

/// What the provider sent back with the browser.
#[derive(Debug, Clone, Default)]
pub struct Returned {
    pub code: Option<String>,
    pub state: Option<String>,
    pub error: Option<String>,
    pub iss: Option<String>,
}

fn random() -> String {
    let bytes: [u8; 32] = landfall_core::random::random();
    URL_SAFE_NO_PAD.encode(bytes)
}

impl Attempt {
    pub fn new(return_to: &str, now: Time) -> Self {
        Self {
            state: random(),
            nonce: random(),
            verifier: random(),
            return_to: return_to.to_owned(),
            begun_at: now.timestamp(),
        }
    }

    /// For a cookie.
    pub fn to_text(&self) -> String {
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).expect("an attempt is plain JSON"))
    }

    pub fn from_text(text: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok()
    }

    /// Whether the browser returns from this attempt, and in time.
    fn is_answered_by(&self, returned: &Returned, now: Time) -> bool {
        let age = now.timestamp().saturating_sub(self.begun_at);
        returned.state.as_ref() == Some(&self.state) && (0..ATTEMPT_LIFETIME.num_seconds()).contains(&age)
    }
}

impl Provider {
    /// Where the browser goes to sign in.
    pub async fn sign_in_url(&self, attempt: &Attempt, redirect: &str, now: Time) -> Result<Url, Refusal> {
        let client = self.client()?;
        let endpoints = self.endpoints(now).await?;
        let address = endpoints.authorization_endpoint.as_deref().map(Url::parse);
        let mut url = address.and_then(Result::ok).ok_or_else(|| unusable("authorization endpoint"))?;
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(attempt.verifier.as_bytes()));
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &client.id)
            .append_pair("redirect_uri", redirect)
            .append_pair("scope", &client.scopes)
            .append_pair("state", &attempt.state)
            .append_pair("nonce", &attempt.nonce)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256");
        Ok(url)
    }

    /// Where the browser goes to sign out of the provider too, if the provider has such a place.
    pub async fn sign_out_url(&self, return_to: &str, now: Time) -> Option<Url> {
        let endpoints = self.endpoints(now).await.ok()?;
        let mut url = Url::parse(endpoints.end_session_endpoint.as_deref()?).ok()?;
        url.query_pairs_mut()
            .append_pair("client_id", &self.config.client.as_ref()?.id)
            .append_pair("post_logout_redirect_uri", return_to);
        Some(url)
    }

    /// Who signed in.
    pub async fn signed_in(
        &self,
        attempt: Option<&Attempt>,
        returned: &Returned,
        redirect: &str,
        now: Time,
    ) -> Result<Caller, Refusal> {
        let client = self.client()?;
        let attempt = attempt.filter(|attempt| attempt.is_answered_by(returned, now)).ok_or_else(|| {
            let message = "This sign-in was not begun in this browser, or it took too long: sign in again";
            Refusal::new(RefusalCode::SignInExpired, message)
        })?;
        let endpoints = self.endpoints(now).await?;
        let issuer = returned.iss.as_ref();
        if issuer.is_some_and(|issuer| *issuer != endpoints.issuer)
            || (issuer.is_none() && endpoints.authorization_response_iss_parameter_supported)
        {
            return Err(refused("another identity provider answered"));
        }
        if let Some(error) = &returned.error {
            return Err(refused(&format!("the identity provider says {}", plain(error))));
        }
        let code = returned.code.as_deref().ok_or_else(|| refused("the identity provider sent no code"))?;
        let tokens = exchange(redemption(client, &endpoints, code, &attempt.verifier, redirect)?).await?;
        let mut claims =
            self.id_token(&tokens.id_token, &client.id, &attempt.nonce, now).await.map_err(in_sign_in)?;
        if !self.config.claims.are_complete(&claims)
            && let (Some(address), Some(token)) = (&endpoints.userinfo_endpoint, &tokens.access_token)
        {
            add_user_info(&mut claims, address, token).await?;
        }
        self.config.claims.caller(&claims).map_err(in_sign_in)
    }

    fn client(&self) -> Result<&ClientConfig, Refusal> {
        self.config.client.as_ref().ok_or_else(|| {
            let message =
                "This server does not sign people in with an identity provider: OIDC_CLIENT_ID is not set";
            Refusal::new(RefusalCode::SignInUnavailable, message)
        })
    }
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: Option<String>,
}

/// The request that redeems a code.
fn redemption(
    client: &ClientConfig,
    endpoints: &Endpoints,
    code: &str,
    verifier: &str,
    redirect: &str,
) -> Result<reqwest::RequestBuilder, Refusal> {
    let address = endpoints.token_endpoint.as_deref().ok_or_else(|| unusable("token endpoint"))?;
    let mut form = Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", code)
        .append_pair("redirect_uri", redirect)
        .append_pair("code_verifier", verifier);
    let methods = endpoints.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
    let only_in_body = !methods.is_empty() && !methods.iter().any(|method| method == "client_secret_basic");
    let mut request = http().post(address);
    match &client.secret {
        Some(secret) if !only_in_body => {
            let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
            let pair = format!("{}:{}", encoded(&client.id), encoded(secret));
            request = request.header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(pair)));
        }
        Some(secret) => {
            form.append_pair("client_id", &client.id).append_pair("client_secret", secret);
        }
        None => {
            form.append_pair("client_id", &client.id);
        }
    }
    Ok(request
        .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
        .header(ACCEPT, "application/json")
        .body(form.finish()))
}

async fn exchange(redemption: reqwest::RequestBuilder) -> Result<Tokens, Refusal> {
    let (status, body) = answer(redemption).await?;
    if !status.is_success() {
        let error = body["error"].as_str().map_or_else(|| status.to_string(), plain);
        tracing::warn!(error, "the identity provider did not accept a sign-in");
        return Err(refused(&format!("the identity provider did not accept it ({error})")));
    }
    serde_json::from_value(body).map_err(|_| refused("the identity provider sent no ID token"))
}

/// Adds the claims that an ID token does not have. Many providers keep them for this request.
async fn add_user_info(claims: &mut Claims, address: &str, token: &str) -> Result<(), Refusal> {
    let (status, body) =
        answer(http().get(address).bearer_auth(token).header(ACCEPT, "application/json")).await?;
    let Value::Object(more) = body else {
        tracing::warn!(%status, "the identity provider did not say more about a person who signed in");
        return Err(refused("the identity provider did not say who signed in"));
    };
    // Otherwise these are the claims of another person.
    if !status.is_success() || more.get("sub").is_none() || more.get("sub") != claims.get("sub") {
        return Err(refused("the identity provider did not say who signed in"));
    }
    for (name, value) in more {
        claims.entry(name).or_insert(value);
    }
    Ok(())
}

fn http() -> &'static reqwest::Client {
    static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(crate::outbound::client_without_redirects);
    &CLIENT
}

/// The response, whose body is null if it is not JSON.
async fn answer(request: reqwest::RequestBuilder) -> Result<(reqwest::StatusCode, Value), Refusal> {
    let unavailable = |error: reqwest::Error| {
        let error = error.without_url();
        tracing::warn!(%error, "the identity provider could not be reached");
        let message = "The identity provider does not answer; try again in a moment";
        Refusal::new(RefusalCode::AuthUnavailable, message).retryable()
    };
    let response = request.timeout(TIMEOUT).send().await.map_err(unavailable)?;
    let status = response.status();
    let (bytes, is_whole) = response::read(response, MAX_RESPONSE_BYTES).await.map_err(unavailable)?;
    let body = if is_whole { serde_json::from_slice(&bytes).unwrap_or_default() } else { Value::Null };
    Ok((status, body))
}

/// The code of an error, as a person may read it.
fn plain(error: &str) -> String {
    error.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').take(64).collect()
}

fn refused(why: &str) -> Refusal {
    Refusal::new(RefusalCode::SignInRefused, format!("The sign-in failed: {why}"))
}

fn unusable(what: &str) -> Refusal {
    refused(&format!("the identity provider has no {what}"))
}

/// A token that is not valid was not sent by the caller but by the provider.
fn in_sign_in(refusal: Refusal) -> Refusal {
    if refusal.retryable { refusal } else { Refusal { code: RefusalCode::SignInRefused, ..refusal } }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_answered_once_with_its_own_state_and_in_time() {
        let now: Time = "2026-01-02T03:04:05Z".parse().unwrap();
        let attempt = Attempt::new("/", now);
        assert_eq!(Attempt::from_text(&attempt.to_text()).as_ref(), Some(&attempt));
        let own = Returned { state: Some(attempt.state.clone()), ..Returned::default() };
        assert!(attempt.is_answered_by(&own, now));
        assert!(!attempt.is_answered_by(&own, now + ATTEMPT_LIFETIME));
        assert!(!attempt.is_answered_by(&own, now - TimeDelta::seconds(1)), "it has not begun");
        let other = Returned { state: Some(Attempt::new("/", now).state), ..Returned::default() };
        assert!(!attempt.is_answered_by(&other, now));
        assert!(!attempt.is_answered_by(&Returned::default(), now));
    }
}
