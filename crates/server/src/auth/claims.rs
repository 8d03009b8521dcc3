//! What the claims of an identity provider's token mean here: which of them name the user, the tenant and the role.

use serde_json::{Map, Value};

use super::{DefaultTenant, is_name};
use landfall_core::caller::{Caller, Role};
use landfall_core::refusal::{Refusal, RefusalCode};

pub type Claims = Map<String, Value>;

/// How the claims are read.
#[derive(Debug, Clone)]
pub struct ClaimConfig {
    pub user: ClaimPath,
    pub tenant: ClaimPath,
    pub role: ClaimPath,
    pub default_tenant: DefaultTenant,
    /// The roles whose holders are operators of the server. None by default: a provider serves many programs, and their
    /// administrators are not ours.
    pub operator_roles: Vec<String>,
    /// The roles whose holders administer their tenant.
    pub admin_roles: Vec<String>,
}

/// The name of a claim, or the way to one inside of objects: `realm_access.roles`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimPath(String);

impl ClaimPath {
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// A claim whose name has dots in it (`https://example.org/roles`) goes before a way with the same text.
    pub fn find<'a>(&self, claims: &'a Claims) -> Option<&'a Value> {
        let found = claims.get(&self.0).or_else(|| {
            let mut names = self.0.split('.');
            let first = claims.get(names.next()?)?;
            names.try_fold(first, |value, name| value.as_object()?.get(name))
        });
        found.filter(|value| !value.is_null())
    }
}

impl std::fmt::Display for ClaimPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl ClaimConfig {
    /// Whether the claims have all that is looked for.
    pub fn are_complete(&self, claims: &Claims) -> bool {
        let asks_for_roles = !self.operator_roles.is_empty() || !self.admin_roles.is_empty();
        self.user.find(claims).is_some()
            && (self.tenant.find(claims).is_some() || self.default_tenant != DefaultTenant::Refused)
            && (self.role.find(claims).is_some() || !asks_for_roles)
    }

    pub fn caller(&self, claims: &Claims) -> Result<Caller, Refusal> {
        let user = name(self.user.find(claims), &self.user)?
            .ok_or_else(|| invalid(&format!("it has no claim {} with the user", self.user)))?;
        let named = name(self.tenant.find(claims), &self.tenant)?;
        let tenant = self.default_tenant.tenant_of(&user, named).map_err(invalid)?;
        Ok(Caller { tenant, user, role: self.role(claims) })
    }

    /// A text, or a list of texts. Every other value is no role.
    fn role(&self, claims: &Claims) -> Role {
        let held: Vec<&str> = match self.role.find(claims) {
            Some(Value::String(role)) => vec![role],
            Some(Value::Array(roles)) => roles.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let holds = |wanted: &[String]| wanted.iter().any(|role| held.contains(&role.as_str()));
        if holds(&self.operator_roles) {
            Role::Operator
        } else if holds(&self.admin_roles) {
            Role::TenantAdmin
        } else {
            Role::Member
        }
    }
}

/// A name, also as the only item of a list. Several are refused: which of them is meant would be a guess.
fn name(value: Option<&Value>, path: &ClaimPath) -> Result<Option<String>, Refusal> {
    let text = match value {
        None => return Ok(None),
        Some(Value::String(text)) => text,
        Some(Value::Array(items)) => match items.as_slice() {
            [Value::String(text)] => text,
            _ => return Err(invalid(&format!("its claim {path} is a list that does not have one name"))),
        },
        Some(_) => return Err(invalid(&format!("its claim {path} is not a text"))),
    };
    if !is_name(text) {
        return Err(invalid(&format!("its claim {path} is empty, too long, or has a NUL in it")));
    }
    Ok(Some(text.clone()))
}

fn invalid(why: &str) -> Refusal {
    Refusal::new(RefusalCode::InvalidToken, format!("The token is not valid: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config() -> ClaimConfig {
        ClaimConfig {
            user: ClaimPath::new("sub"),
            tenant: ClaimPath::new("tenant"),
            role: ClaimPath::new("role"),
            default_tenant: DefaultTenant::Refused,
            operator_roles: Vec::new(),
            admin_roles: Vec::new(),
        }
    }

    fn claims(value: Value) -> Claims {
        value.as_object().expect("an object").clone()
    }

    #[test]
    fn a_claim_may_be_inside_of_objects_and_its_name_may_have_dots() {
        let given = claims(json!({ "a": { "b": { "c": 1 } }, "https://x.example/roles": 2, "n": null }));
        let find = |path: &str| ClaimPath::new(path).find(&given).cloned();
        assert_eq!(find("a.b.c"), Some(json!(1)));
        assert_eq!(find("https://x.example/roles"), Some(json!(2)));
        for missing in ["a.b.d", "a.b.c.d", "b", "", "n", "a..b"] {
            assert_eq!(find(missing), None, "{missing}");
        }
    }

    #[test]
    fn a_token_without_a_tenant_gets_the_configured_one_or_is_refused() {
        let acme = claims(json!({ "sub": "acme" }));
        assert!(config().caller(&acme).unwrap_err().message.contains("DEFAULT_TENANT"));
        let one = ClaimConfig { default_tenant: DefaultTenant::Named("shared".to_owned()), ..config() };
        assert_eq!(one.caller(&acme).unwrap().tenant, "shared");
        // What is there and cannot be used is not replaced.
        for tenant in [
            json!(""),
            json!(7),
            json!(["a", "b"]),
            json!([]),
            json!({}),
            json!("a\0b"),
            json!("x".repeat(256)),
        ] {
            let given = claims(json!({ "sub": "ada", "tenant": tenant }));
            assert!(one.caller(&given).is_err(), "{tenant}");
        }
        let listed = claims(json!({ "sub": "ada", "tenant": ["acme"] }));
        assert_eq!(one.caller(&listed).unwrap().tenant, "acme");
    }

    #[test]
    fn only_roles_that_are_configured_mean_something() {
        let role = |config: &ClaimConfig, role: Value| {
            config.role(&claims(json!({ "sub": "ada", "tenant": "acme", "role": role })))
        };
        for given in ["admin", "operator", "tenant_admin", ""] {
            assert_eq!(role(&config(), json!(given)), Role::Member, "{given}");
        }
        let named = ClaimConfig {
            operator_roles: vec!["landfall-operator".to_owned()],
            admin_roles: vec!["landfall-admin".to_owned(), "boss".to_owned()],
            ..config()
        };
        assert_eq!(role(&named, json!("boss")), Role::TenantAdmin);
        assert_eq!(role(&named, json!(["x", "boss", "landfall-operator"])), Role::Operator);
        assert_eq!(role(&named, json!(["x", 7, null])), Role::Member);
        assert_eq!(role(&named, json!("landfall-operator boss")), Role::Member);
    }
}
