//! The identity provider: where its keys are, whose tokens are accepted, and what their claims mean.

use super::declared::{Declaration, group};
use super::reader::Reader;
use super::{HttpConfig, server};
use crate::auth::claims::{ClaimConfig, ClaimPath};
use crate::auth::code_flow::ClientConfig;
use crate::auth::jwks::Source;
use crate::auth::provider::{ProviderConfig, is_trustworthy};
use crate::auth::{AuthConfig, DefaultTenant};

group! { "Identity provider" {
    OIDC_ISSUER = "": "The issuer of an OpenID provider, exactly as it calls itself; its addresses and keys are discovered; instead of `JWT_SECRET`."
    OIDC_CLIENT_ID = "": "The id under which the provider knows this server; with it people sign in on the page, and the provider needs the redirect URI `PUBLIC_URL` + `/auth/callback`."
    OIDC_CLIENT_SECRET = "": "The secret of the client, if the provider gave it one."
    OIDC_SCOPES = "openid": "The scopes that the page asks for, separated by spaces; those that bring the claims for user, tenant and role."
    JWT_JWKS_URL = "": "The URL of the public keys of an issuer of tokens, where it is not an OpenID provider; needs `JWT_ISSUER` and `JWT_AUDIENCE`."
    JWT_ISSUER = "": "The issuer that tokens must name (`iss`), beside `JWT_JWKS_URL`."
    JWT_AUDIENCE = "": "Who tokens must be meant for (`aud`): one name or several, separated by commas; with `OIDC_ISSUER` and without this, no tokens of the provider are accepted, and people only sign in on the page."
    JWT_USER_CLAIM = "sub": "The claim with the user, also inside of objects: `a.b`."
    JWT_TENANT_CLAIM = "tenant": "The claim with the tenant; a token without it is refused unless `DEFAULT_TENANT` is set."
    JWT_ROLE_CLAIM = "role": "The claim with the role or a list of roles, like `realm_access.roles`."
    JWT_OPERATOR_ROLES = "": "The roles, separated by commas, whose holders are operators of this server; none by default."
    JWT_ADMIN_ROLES = "": "The roles, separated by commas, whose holders administer their tenant; none by default."
} }

const HTTPS: &str = "a URL that begins with https:// (or with http:// on this machine)";

pub(super) fn read(
    read: &mut Reader,
    has_secret: bool,
    default_tenant: &DefaultTenant,
) -> Option<ProviderConfig> {
    let url = |text: &str| if is_trustworthy(text) { Ok(text.to_owned()) } else { Err(HTTPS.to_owned()) };
    let text = |text: &str| Ok(text.to_owned());
    let issuer = read.optional(OIDC_ISSUER, url);
    let client_id = read.optional(OIDC_CLIENT_ID, text);
    let secret = read.secret(OIDC_CLIENT_SECRET);
    let scopes = read.with(OIDC_SCOPES, scopes);
    let jwks_url = read.url(JWT_JWKS_URL);
    let jwt_issuer = read.optional(JWT_ISSUER, text);
    let audiences = list(&read.text(JWT_AUDIENCE));
    let claims = ClaimConfig {
        user: ClaimPath::new(&read.text(JWT_USER_CLAIM)),
        tenant: ClaimPath::new(&read.text(JWT_TENANT_CLAIM)),
        role: ClaimPath::new(&read.text(JWT_ROLE_CLAIM)),
        default_tenant: default_tenant.clone(),
        operator_roles: list(&read.text(JWT_OPERATOR_ROLES)),
        admin_roles: list(&read.text(JWT_ADMIN_ROLES)),
    };
    let mut complain = |is_wrong: bool, setting: Declaration, allowed: &str| {
        if is_wrong {
            read.complain(setting, allowed);
        }
    };
    complain(has_secret && issuer.is_some(), OIDC_ISSUER, "set only where JWT_SECRET is not");
    complain(has_secret && jwks_url.is_some(), JWT_JWKS_URL, "set only where JWT_SECRET is not");
    complain(issuer.is_some() && jwks_url.is_some(), JWT_JWKS_URL, "set only where OIDC_ISSUER is not");
    complain(
        jwt_issuer.is_some() && jwks_url.is_none(),
        JWT_ISSUER,
        "set only beside JWT_JWKS_URL; OIDC_ISSUER is the issuer of an OpenID provider",
    );
    complain(issuer.is_none() && client_id.is_some(), OIDC_CLIENT_ID, "set only beside OIDC_ISSUER");
    complain(client_id.is_none() && secret.is_some(), OIDC_CLIENT_SECRET, "set only beside OIDC_CLIENT_ID");
    if let Some(url) = &jwks_url {
        complain(!is_trustworthy(url), JWT_JWKS_URL, HTTPS);
        complain(
            jwt_issuer.is_none(),
            JWT_ISSUER,
            "the issuer of the tokens (their claim iss) where JWT_JWKS_URL is set: without it the tokens of any \
             issuer with these keys would be accepted",
        );
        complain(
            audiences.is_empty(),
            JWT_AUDIENCE,
            "the name of this server in the tokens (their claim aud) where JWT_JWKS_URL is set: without it the tokens \
             of any other program would be accepted",
        );
    }
    let (source, issuer) = match (issuer, jwks_url) {
        (Some(issuer), _) => (Source::Issuer(issuer.clone()), issuer),
        (None, Some(url)) => (Source::Keys(url), jwt_issuer.unwrap_or_default()),
        (None, None) => return None,
    };
    let client = client_id.map(|id| ClientConfig { id, secret, scopes });
    Some(ProviderConfig { source, issuer, audiences, claims, client })
}

/// A provider sends people back to an address that it knows. Where other machines reach the server, that cannot be whatever
/// address a request names.
pub(super) fn check_address(read: &mut Reader, http: &HttpConfig, auth: &AuthConfig) {
    let signs_in = auth.provider.as_ref().is_some_and(|provider| provider.client.is_some());
    if signs_in && http.public_url.is_none() && !http.bind_address.is_loopback() {
        read.complain(
            server::PUBLIC_URL,
            "the URL at which people reach the server where OIDC_CLIENT_ID is set: the identity provider sends them back to it",
        );
    }
}

fn list(text: &str) -> Vec<String> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items.map(str::to_owned).collect()
}

fn scopes(text: &str) -> Result<String, String> {
    let names: Vec<&str> = text.split_whitespace().collect();
    if names.contains(&"openid") {
        Ok(names.join(" "))
    } else {
        Err("a list of scopes with openid among them".to_owned())
    }
}
