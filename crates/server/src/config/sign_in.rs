//! How the tokens of callers are checked.

use super::declared::group;
use super::identity_provider;
use super::reader::{Reader, milliseconds};
use crate::auth::sessions::SessionConfig;
use crate::auth::{AuthConfig, DefaultTenant};

const MIN_SECRET_LENGTH: usize = 32;

group! { "Sign-in" {
    JWT_SECRET = "": "The secret of HS256 tokens, at least 32 characters; without it the server creates one and keeps it in `DATA_DIR`."
    DEFAULT_TENANT = "": "The tenant of tokens without the claim `tenant`; `{user}` makes every user their own tenant, and then no token may name another; without it such tokens are refused."
    SESSION_LIFETIME_MS = "43200000": "How long a person stays signed in on the page, whatever they do."
    SESSION_IDLE_MS = "7200000": "How long a person stays signed in on the page without doing anything."
} }

pub(super) fn read(read: &mut Reader) -> AuthConfig {
    let jwt_secret = read.secret(JWT_SECRET);
    if jwt_secret.as_ref().is_some_and(|secret| secret.len() < MIN_SECRET_LENGTH) {
        read.complain(JWT_SECRET, &format!("at least {MIN_SECRET_LENGTH} characters long"));
    }
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
    AuthConfig { jwt_secret, provider, sessions, default_tenant }
}
