//! How the tokens of callers are checked.

use super::declared::group;
use super::identity_provider;
use super::reader::{Reader, milliseconds};
use super::secrets;
use crate::auth::sessions::SessionConfig;
use crate::auth::{AuthConfig, DefaultTenant};

group! { "Sign-in" {
    JWT_SECRET = "": "The secret of HS256 tokens, at least 32 characters that are hard to guess (`openssl rand -hex 32`); without it the server creates one and keeps it in `DATA_DIR`."
    DEFAULT_TENANT = "": "The tenant of tokens without the claim `tenant`; `{user}` makes every user their own tenant, and then no token may name another; without it such tokens are refused."
    SESSION_LIFETIME_MS = "43200000": "How long a person stays signed in on the page, whatever they do."
    SESSION_IDLE_MS = "7200000": "How long a person stays signed in on the page without doing anything."
} }

pub(super) fn read(read: &mut Reader) -> AuthConfig {
    let jwt_secret = secrets::read_strong(read, JWT_SECRET);
    let (secret_key, secret_key_previous) = secrets::read(read);
    let default_tenant = match read.text(DEFAULT_TENANT) {
        none if none.is_empty() => DefaultTenant::Refused,
        name if name == DefaultTenant::USER => DefaultTenant::User,
        name => DefaultTenant::Named(name),
    };
    let provider = identity_provider::read(read, jwt_secret.is_some(), &default_tenant);
    let sessions = SessionConfig {
        lifetime: read.with(SESSION_LIFETIME_MS, milliseconds),
        idle: read.with(SESSION_IDLE_MS, milliseconds),
    };
    AuthConfig { jwt_secret, secret_key, secret_key_previous, provider, sessions, default_tenant }
}
