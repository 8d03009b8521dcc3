//! How the tokens of callers are checked.

use super::declared::group;
use super::reader::Reader;
use super::secrets;
use crate::auth::{AuthConfig, DefaultTenant};

group! { "Sign-in" {
    JWT_SECRET = "": "The secret of HS256 tokens, at least 32 characters that are hard to guess (`openssl rand -hex 32`); without it the server creates one and keeps it in `DATA_DIR`."
    DEFAULT_TENANT = "": "The tenant of tokens without the claim `tenant`. `{user}` makes every user their own tenant; then no token may name another. Without it such tokens are refused."
    JWT_JWKS_URL = "": "The URL of the public keys of RS256 and ES256 tokens, instead of a secret."
} }

pub(super) fn read(read: &mut Reader) -> AuthConfig {
    let jwt_secret = secrets::read_strong(read, JWT_SECRET);
    let (secret_key, secret_key_previous) = secrets::read(read);
    let jwks_url = read.url(JWT_JWKS_URL);
    if jwt_secret.is_some() && jwks_url.is_some() {
        read.complain(JWT_JWKS_URL, "set only where JWT_SECRET is not");
    }
    let default_tenant = match read.text(DEFAULT_TENANT) {
        none if none.is_empty() => DefaultTenant::Refused,
        name if name == DefaultTenant::USER => DefaultTenant::User,
        name => DefaultTenant::Named(name),
    };
    AuthConfig { jwt_secret, jwks_url, secret_key, secret_key_previous, default_tenant }
}
