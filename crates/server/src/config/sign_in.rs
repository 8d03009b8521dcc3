//! How the tokens of callers are checked.

use super::declared::group;
use super::reader::Reader;
use crate::auth::{AuthConfig, DefaultTenant};

const MIN_SECRET_LENGTH: usize = 32;

group! { "Sign-in" {
    JWT_SECRET = "": "The secret of HS256 tokens, at least 32 characters; without it the server creates one and keeps it in `DATA_DIR`."
    DEFAULT_TENANT = "": "The tenant of tokens without the claim `tenant`. `{user}` makes every user their own tenant; then no token may name another. Without it such tokens are refused."
    JWT_JWKS_URL = "": "The URL of the public keys of RS256 and ES256 tokens, instead of a secret."
} }

pub(super) fn read(read: &mut Reader) -> AuthConfig {
    let jwt_secret = read.secret(JWT_SECRET);
    let jwks_url = read.url(JWT_JWKS_URL);
    if jwt_secret.as_ref().is_some_and(|secret| secret.len() < MIN_SECRET_LENGTH) {
        read.complain(JWT_SECRET, &format!("at least {MIN_SECRET_LENGTH} characters long"));
    }
    if jwt_secret.is_some() && jwks_url.is_some() {
        read.complain(JWT_JWKS_URL, "set only where JWT_SECRET is not");
    }
    let default_tenant = match read.text(DEFAULT_TENANT) {
        none if none.is_empty() => DefaultTenant::Refused,
        name if name == DefaultTenant::USER => DefaultTenant::User,
        name => DefaultTenant::Named(name),
    };
    AuthConfig { jwt_secret, jwks_url, default_tenant }
}
