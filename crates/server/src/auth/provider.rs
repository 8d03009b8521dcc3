//! An identity provider: it issues the tokens of callers, and people sign in with it.
//!
//! A token is accepted if and only if all of this holds: the provider signed it with a key that it publishes for
//! signatures, with an algorithm that fits the key; it names this provider as its issuer and this server as its audience; it
//! is valid now; it has no extension that must be understood; it is of the right kind (an ID token is no token for the API);
//! and its claims name a user and a tenant.

use chrono::TimeDelta;
use jsonwebtoken::{Algorithm, Header, Validation};
use serde_json::Value;

use super::claims::{ClaimConfig, Claims};
use super::code_flow::ClientConfig;
use super::jwks::{Endpoints, Jwks, Source};
use super::{Credential, Identity};
use landfall_core::clock::{Clock, Time};
use landfall_core::refusal::{Refusal, RefusalCode};

/// How far the clocks of the provider and of this machine may differ.
pub const LEEWAY: TimeDelta = TimeDelta::seconds(60);

#[derive(Debug, Clone)]
pub struct ProviderConfig {
    pub source: Source,
    pub issuer: String,
    /// Who a token for the API must be meant for. With none, only people sign in, and no token is accepted.
    pub audiences: Vec<String>,
    pub claims: ClaimConfig,
    /// With which people sign in on the page.
    pub client: Option<ClientConfig>,
}

pub struct Provider {
    pub config: ProviderConfig,
    jwks: Jwks,
}

/// What a token is for.
#[derive(Debug, Clone, Copy)]
enum Kind<'a> {
    /// To call the API.
    Access,
    /// To say who signed in, to this client, in answer to the attempt with this nonce.
    Id { client: &'a str, nonce: &'a str },
}

impl Provider {
    pub fn new(config: ProviderConfig) -> Self {
        Self { jwks: Jwks::new(config.source.clone()), config }
    }

    /// Keeps the keys fresh.
    pub async fn run(&self, clock: Clock) {
        self.jwks.run(clock).await;
    }

    pub async fn endpoints(&self, now: Time) -> Result<Endpoints, Refusal> {
        self.jwks.endpoints(now).await
    }

    /// The caller that a token for the API names.
    pub async fn identify(&self, token: &str, now: Time) -> Result<Identity, Refusal> {
        let (claims, until) = self.check(token, Kind::Access, now).await?;
        Ok(Identity { caller: self.config.claims.caller(&claims)?, until, credential: Credential::Token })
    }

    /// The claims of an ID token.
    pub async fn id_token(
        &self,
        token: &str,
        client: &str,
        nonce: &str,
        now: Time,
    ) -> Result<Claims, Refusal> {
        Ok(self.check(token, Kind::Id { client, nonce }, now).await?.0)
    }

    async fn check(&self, token: &str, kind: Kind<'_>, now: Time) -> Result<(Claims, Time), Refusal> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid("it is not a JSON Web Token"))?;
        check_header(&header, kind)?;
        let key = self.jwks.key(header.kid.as_deref(), header.alg, now).await?;
        let mut validation = Validation::new(header.alg);
        // All claims are checked below, with our own clock.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let claims = jsonwebtoken::decode::<Claims>(token, &key, &validation)
            .map_err(|error| match error.kind() {
                jsonwebtoken::errors::ErrorKind::Json(_) => invalid("its claims are not an object"),
                _ => invalid("its signature is wrong"),
            })?
            .claims;
        if claims.get("iss").and_then(Value::as_str) != Some(&self.config.issuer) {
            return Err(invalid("another issuer issued it"));
        }
        let until = check_times(&claims, now)?;
        match kind {
            Kind::Access => self.check_access(&claims)?,
            Kind::Id { client, nonce } => check_id(&claims, client, nonce)?,
        }
        Ok((claims, until))
    }

    fn check_access(&self, claims: &Claims) -> Result<(), Refusal> {
        if self.config.audiences.is_empty() {
            return Err(invalid("this server accepts no tokens of the identity provider; set JWT_AUDIENCE"));
        }
        if !self.config.audiences.iter().any(|audience| is_for(claims, audience)) {
            return Err(invalid("it is meant for another program (its audience)"));
        }
        // Keycloak says the kind in a claim; the hashes and `events` are in ID tokens and logout tokens only.
        let kind = claims.get("typ").and_then(Value::as_str);
        let is_other =
            kind.is_some_and(|kind| !["bearer", "jwt", "at+jwt"].contains(&kind.to_lowercase().as_str()));
        if is_other || ["at_hash", "c_hash", "s_hash", "events"].iter().any(|name| claims.contains_key(*name))
        {
            return Err(invalid("it says who signed in and is not for an API; send an access token"));
        }
        Ok(())
    }
}

fn check_header(header: &Header, kind: Kind<'_>) -> Result<(), Refusal> {
    let accepted = [
        Algorithm::RS256,
        Algorithm::RS384,
        Algorithm::RS512,
        Algorithm::PS256,
        Algorithm::PS384,
        Algorithm::PS512,
        Algorithm::ES256,
        Algorithm::ES384,
        Algorithm::EdDSA,
    ];
    if !accepted.contains(&header.alg) {
        return Err(invalid("its algorithm is not accepted"));
    }
    if header.crit.is_some() {
        return Err(invalid("it has an extension that this server does not know (crit)"));
    }
    let kind_in_header = header.typ.as_deref().map(|kind| {
        let kind = kind.to_ascii_lowercase();
        kind.strip_prefix("application/").unwrap_or(&kind).to_owned()
    });
    match (kind_in_header.as_deref(), kind) {
        (None | Some("jwt"), _) | (Some("at+jwt"), Kind::Access) => Ok(()),
        _ => Err(invalid("it is of another kind (typ)")),
    }
}

/// Until when the token is valid, if it is now.
fn check_times(claims: &Claims, now: Time) -> Result<Time, Refusal> {
    let Some(exp) = moment(claims, "exp")? else { return Err(invalid("it has no claim exp")) };
    if exp.checked_add_signed(LEEWAY).is_some_and(|exp| exp <= now) {
        return Err(Refusal::new(RefusalCode::TokenExpired, "The token has expired"));
    }
    for (name, why) in [("nbf", "it is not valid yet"), ("iat", "it was issued in the future")] {
        if moment(claims, name)?.is_some_and(|at| at > now + LEEWAY) {
            return Err(invalid(why));
        }
    }
    Ok(exp.checked_add_signed(LEEWAY).unwrap_or(exp))
}

/// A claim with a number of seconds, which may have a fraction.
fn moment(claims: &Claims, name: &str) -> Result<Option<Time>, Refusal> {
    let wrong = || invalid(&format!("its claim {name} is not a time"));
    let Some(value) = claims.get(name) else { return Ok(None) };
    #[expect(clippy::cast_possible_truncation, reason = "a number outside the range becomes its end")]
    let seconds = value.as_i64().or_else(|| value.as_f64().map(|number| number as i64)).ok_or_else(wrong)?;
    // A date that the calendar cannot hold counts as never.
    let beyond = if seconds < 0 { Time::MIN_UTC } else { Time::MAX_UTC };
    Ok(Some(Time::from_timestamp(seconds, 0).unwrap_or(beyond)))
}

fn check_id(claims: &Claims, client: &str, nonce: &str) -> Result<(), Refusal> {
    if !is_for(claims, client) {
        return Err(invalid("it is meant for another client"));
    }
    let several = claims.get("aud").and_then(Value::as_array).is_some_and(|all| all.len() > 1);
    match claims.get("azp").map(Value::as_str) {
        None if several => return Err(invalid("it is meant for several clients and does not say for which")),
        Some(party) if party != Some(client) => return Err(invalid("another client asked for it")),
        _ => {}
    }
    if claims.get("nonce").and_then(Value::as_str) != Some(nonce) {
        return Err(invalid("it answers another sign-in (nonce)"));
    }
    Ok(())
}

fn is_for(claims: &Claims, audience: &str) -> bool {
    match claims.get("aud") {
        Some(Value::String(one)) => one == audience,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(audience)),
        _ => false,
    }
}

fn invalid(why: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidToken, format!("The token is not valid: {why}"))
}

/// Whether no other machine can read along or answer in place of this address: https, or this machine.
pub fn is_trustworthy(address: &str) -> bool {
    let Ok(url) = url::Url::parse(address) else { return false };
    let is_this_machine = match url.host() {
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        Some(url::Host::Domain(name)) => name == "localhost",
        None => false,
    };
    url.scheme() == "https" || (url.scheme() == "http" && is_this_machine)
}
