//! How the tokens of callers are checked.

use super::declared::group;
use super::reader::Reader;
use super::secrets;
use crate::auth::AuthConfig;

group! { "Sign-in" {
    JWT_SECRET = "": "The secret of HS256 tokens, at least 32 characters that are hard to guess (`openssl rand -hex 32`); without it the server creates one and keeps it in `DATA_DIR`."
    JWT_JWKS_URL = "": "The URL of the public keys of RS256 and ES256 tokens, instead of a secret."
} }

pub(super) fn read(read: &mut Reader) -> AuthConfig {
    let jwt_secret = secrets::read_strong(read, JWT_SECRET);
    let (secret_key, secret_key_previous) = secrets::read(read);
    let jwks_url = read.url(JWT_JWKS_URL);
    if jwt_secret.is_some() && jwks_url.is_some() {
        read.complain(JWT_JWKS_URL, "set only where JWT_SECRET is not");
    }
    AuthConfig { jwt_secret, jwks_url, secret_key, secret_key_previous }
}
