//! How the tokens of callers are checked.

use super::declared::group;
use super::reader::Reader;
use crate::auth::AuthConfig;

const MIN_SECRET_LENGTH: usize = 32;

group! { "Sign-in" {
    JWT_SECRET = "": "The secret of HS256 tokens, at least 32 characters; without it the server creates one and keeps it in `DATA_DIR`."
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
    AuthConfig { jwt_secret, jwks_url }
}
