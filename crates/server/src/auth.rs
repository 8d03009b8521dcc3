//! Authentication: a signed token names the caller.

pub mod agreement;
pub mod api_keys;
pub mod secret;
pub mod secret_file;
pub mod strength;
pub mod claims;
pub mod code_flow;
pub mod fetched;
pub mod jwks;
pub mod links;
pub mod provider;
pub mod sessions;
pub mod ticket;

use std::net::IpAddr;
use std::path::Path;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use landfall_core::caller::{Caller, KeyScope, Role};
use landfall_core::clock::Time;
use landfall_core::refusal::{Refusal, RefusalCode};
use landfall_store::Error;
use provider::{Provider, ProviderConfig};
use sessions::SessionConfig;

/// The maximum length of the name of a user or tenant.
const MAX_NAME_LENGTH: usize = 255;
/// The secret that a server generates in its data folder if none is configured.
const SECRET_FILE: &str = "jwt-secret";

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenClaims {
    pub sub: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    pub exp: i64,
}

#[derive(Clone)]
pub struct AuthConfig {
    pub jwt_secret: Option<String>,
    pub secret_key: Option<String>,
    pub secret_key_previous: Option<String>,
    /// The identity provider whose tokens are accepted, in place of those that are signed with a secret.
    pub provider: Option<ProviderConfig>,
    pub sessions: SessionConfig,
    pub default_tenant: DefaultTenant,
}

/// The tenant of a token that names none. It must never be the tenant of others by accident.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DefaultTenant {
    /// Such a token is refused.
    #[default]
    Refused,
    /// Each user is their own tenant. A token that names another tenant is refused, because that name may be a user's.
    User,
    Named(String),
}

impl DefaultTenant {
    /// What `DEFAULT_TENANT` says for [`Self::User`].
    pub const USER: &str = "{user}";

    /// The tenant of a user whose token names this one, or why there is none.
    fn tenant_of(&self, user: &str, named: Option<String>) -> Result<String, &'static str> {
        match (self, named) {
            (Self::User, Some(tenant)) if tenant != user => {
                Err("it names a tenant, and DEFAULT_TENANT={user} makes every user their own tenant")
            }
            (_, Some(tenant)) => Ok(tenant),
            (Self::Refused, None) => Err("it names no tenant; add the claim tenant, or set DEFAULT_TENANT"),
            (Self::User, None) => Ok(user.to_owned()),
            (Self::Named(tenant), None) => Ok(tenant.clone()),
        }
    }
}

/// What a role claim means. `admin` is what earlier versions called an operator.
fn role(claim: Option<&str>) -> Role {
    match claim {
        Some("operator" | "admin") => Role::Operator,
        Some("tenant_admin") => Role::TenantAdmin,
        _ => Role::Member,
    }
}

impl std::fmt::Debug for AuthConfig {
    /// Debug output must not contain the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthConfig").field("has_secret", &self.jwt_secret.is_some()).finish_non_exhaustive()
    }
}

/// A caller whose credential was verified.
#[derive(Debug, Clone)]
pub struct Identity {
    pub caller: Caller,
    pub until: Time,
    pub credential: Credential,
}

/// How a caller is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    Token,
    Session,
    Ticket,
    /// An API key, and what it may be used for.
    Key {
        id: Uuid,
        scopes: Vec<KeyScope>,
        expires_at: Option<Time>,
    },
}

impl Credential {
    pub fn allows(&self, scope: KeyScope) -> bool {
        match self {
            Self::Token | Self::Session | Self::Ticket => true,
            Self::Key { scopes, .. } => scopes.contains(&scope),
        }
    }

    /// What the audit log says.
    pub fn name(&self) -> String {
        match self {
            Self::Token => "token".to_owned(),
            Self::Session => "session".to_owned(),
            Self::Ticket => "ticket".to_owned(),
            Self::Key { id, .. } => id.to_string(),
        }
    }
}

pub struct Auth {
    keys: Keys,
    default_tenant: DefaultTenant,
    /// Whether the server generated the secret itself.
    own_secret: bool,
}

enum Keys {
    Secret(Vec<u8>),
    Provider(Box<Provider>),
}

impl Auth {
    pub fn new(config: &AuthConfig, data_dir: &Path, bind: IpAddr) -> Result<Self, Error> {
        let default_tenant = config.default_tenant.clone();
        if let Some(provider) = &config.provider {
            let keys = Keys::Provider(Box::new(Provider::new(provider.clone())));
            return Ok(Self { keys, default_tenant, own_secret: false });
        }
        if let Some(secret) = &config.jwt_secret {
            let keys = Keys::Secret(secret.clone().into_bytes());
            return Ok(Self { keys, default_tenant, own_secret: false });
        }
        if !bind.is_loopback() {
            return Err(Error::Internal(format!(
                "BIND_ADDRESS is {bind}, which other machines can reach: set JWT_SECRET, OIDC_ISSUER or JWT_JWKS_URL"
            )));
        }
        let secret = own_secret(data_dir, true)?;
        Ok(Self { keys: Keys::Secret(secret.into_bytes()), default_tenant, own_secret: true })
    }

    pub fn has_own_secret(&self) -> bool {
        self.own_secret
    }

    /// Issues a token, if this server has the secret to sign it.
    pub fn issue(&self, claims: &TokenClaims) -> Result<String, Error> {
        match &self.keys {
            Keys::Secret(secret) => sign(secret, claims),
            Keys::Provider(_) => Err(Error::Internal(
                "this server cannot issue tokens: it only has the public keys of the identity provider"
                    .to_owned(),
            )),
        }
    }

    /// The identity provider, if tokens come from one.
    pub fn provider(&self) -> Option<&Provider> {
        match &self.keys {
            Keys::Provider(provider) => Some(provider),
            Keys::Secret(_) => None,
        }
    }

    pub async fn verify(&self, token: &str, now: Time) -> Result<Caller, Refusal> {
        self.identify(token, now).await.map(|identity| identity.caller)
    }

    /// The caller, and until when the token is valid.
    pub async fn identify(&self, token: &str, now: Time) -> Result<Identity, Refusal> {
        let invalid =
            |why: &str| Refusal::new(RefusalCode::InvalidToken, format!("The token is not valid: {why}"));
        let secret = match &self.keys {
            Keys::Provider(provider) => return provider.identify(token, now).await,
            Keys::Secret(secret) => secret,
        };
        let header = jsonwebtoken::decode_header(token).map_err(|_| invalid("it is not a JSON Web Token"))?;
        if header.alg != Algorithm::HS256 {
            return Err(invalid("its algorithm is not accepted"));
        }
        let mut validation = Validation::new(header.alg);
        // The expiry is checked below, with our own clock.
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation.required_spec_claims.clear();
        let claims =
            jsonwebtoken::decode::<TokenClaims>(token, &DecodingKey::from_secret(secret), &validation)
                .map_err(|error| match error.kind() {
                    jsonwebtoken::errors::ErrorKind::Json(_) => invalid("it needs the claims sub and exp"),
                    _ => invalid("its signature is wrong"),
                })?
                .claims;
        if claims.exp <= now.timestamp() {
            return Err(Refusal::new(RefusalCode::TokenExpired, "The token has expired"));
        }
        for name in [Some(&claims.sub), claims.tenant.as_ref()].into_iter().flatten() {
            if !is_name(name) {
                return Err(invalid("its user or tenant is empty, too long, or has a NUL in it"));
            }
        }
        let tenant = self.default_tenant.tenant_of(&claims.sub, claims.tenant).map_err(invalid)?;
        Ok(Identity {
            // A date that the calendar cannot hold counts as never.
            until: Time::from_timestamp(claims.exp, 0).unwrap_or(Time::MAX_UTC),
            caller: Caller { tenant, user: claims.sub, role: role(claims.role.as_deref()) },
            credential: Credential::Token,
        })
    }
}

/// Whether a user or a tenant can be called this.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME_LENGTH && !text.contains('\0')
}

pub fn sign(secret: &[u8], claims: &TokenClaims) -> Result<String, Error> {
    jsonwebtoken::encode(&Header::new(Algorithm::HS256), claims, &EncodingKey::from_secret(secret))
        .map_err(|error| Error::Internal(format!("a token could not be signed: {error}")))
}

/// Reads the secret with which the server signs tokens if none is configured. With `create` it is generated if it is missing.
pub fn own_secret(data_dir: &Path, create: bool) -> Result<String, Error> {
    secret_file::read(data_dir, SECRET_FILE, create)
}
