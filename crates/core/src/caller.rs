//! The caller of the API, and whose files it may see.

use std::fmt;

use crate::names::named_enum;
use crate::refusal::{Refusal, RefusalCode};
use crate::states::Scope;

/// A user of a tenant: the owner of files. The same name in another tenant is another user.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantUser {
    pub tenant: String,
    pub user: String,
}

impl TenantUser {
    pub fn new(tenant: impl Into<String>, user: impl Into<String>) -> Self {
        Self { tenant: tenant.into(), user: user.into() }
    }
}

/// In quotes, so that no two users have the same text.
impl fmt::Display for TenantUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}/{:?}", self.tenant, self.user)
    }
}

named_enum! {
    /// What a caller may do beyond their own files.
    #[derive(Default)]
    pub enum Role {
        #[default]
        Member = "member",
        /// Also the files of all users of their tenant.
        TenantAdmin = "tenant_admin",
        /// Also the files of all tenants, and the server itself.
        Operator = "operator",
    }
}

named_enum! {
    /// What a credential may be used for. API keys have some of them; tokens and sessions have all.
    pub enum KeyScope {
        /// See files, their content, events and reports.
        Read = "read",
        /// Register, upload and confirm files.
        Upload = "upload",
        /// Change and delete what is there: files, webhooks, notifications, keys.
        Manage = "manage",
        /// Use the role: without it a key sees and changes only its user's own.
        Admin = "admin",
    }
}

/// The caller: the owner of files, and the tenant whose quota they count against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub tenant: String,
    pub user: String,
    pub role: Role,
}

impl Caller {
    pub fn owner(&self) -> TenantUser {
        TenantUser::new(self.tenant.clone(), self.user.clone())
    }

    pub const fn is_operator(&self) -> bool {
        matches!(self.role, Role::Operator)
    }

    /// Whether the caller is this user.
    pub fn is(&self, tenant: &str, user: &str) -> bool {
        self.tenant == tenant && self.user == user
    }

    /// Whether the caller may see and change all that belongs to a tenant.
    pub fn administers(&self, tenant: &str) -> bool {
        match self.role {
            Role::Member => false,
            Role::TenantAdmin => self.tenant == tenant,
            Role::Operator => true,
        }
    }

    /// Whether the caller may see and change what belongs to a user.
    pub fn may_access(&self, tenant: &str, user: &str) -> bool {
        self.is(tenant, user) || self.administers(tenant)
    }

    /// Whose items a list has with this scope, if the caller's role allows it.
    pub fn reach(&self, scope: Scope) -> Result<Reach, Refusal> {
        match scope {
            Scope::Own => Ok(Reach::User(self.owner())),
            Scope::Tenant if self.administers(&self.tenant) => Ok(Reach::Tenant(self.tenant.clone())),
            Scope::All if self.is_operator() => Ok(Reach::All),
            Scope::Tenant => Err(forbidden("scope=tenant is for administrators of the tenant")),
            Scope::All if self.role == Role::TenantAdmin => Err(forbidden(
                "scope=all is for operators of the server; scope=tenant has what belongs to your tenant",
            )),
            Scope::All => Err(forbidden("scope=all is for operators of the server")),
        }
    }
}

fn forbidden(message: &str) -> Refusal {
    Refusal::new(RefusalCode::Forbidden, message)
}

/// Whose items a request is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reach {
    User(TenantUser),
    /// Those of all users of a tenant.
    Tenant(String),
    /// Those of all tenants, and those of the server itself.
    All,
}

impl Reach {
    /// Whether an item of this owner is included. An item of the server itself has neither.
    pub fn includes(&self, tenant: &str, user: &str) -> bool {
        match self {
            Self::User(owner) => owner.tenant == tenant && owner.user == user,
            Self::Tenant(name) => name == tenant,
            Self::All => true,
        }
    }

    pub const fn scope(&self) -> Scope {
        match self {
            Self::User(_) => Scope::Own,
            Self::Tenant(_) => Scope::Tenant,
            Self::All => Scope::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(tenant: &str, user: &str, role: Role) -> Caller {
        Caller { tenant: tenant.to_owned(), user: user.to_owned(), role }
    }

    #[test]
    fn each_role_reaches_its_own_and_no_further() {
        let (member, admin, operator) = (
            caller("acme", "ada", Role::Member),
            caller("acme", "ada", Role::TenantAdmin),
            caller("acme", "ada", Role::Operator),
        );
        for (tenant, user, seen_by) in [
            ("acme", "ada", [true, true, true]),
            ("acme", "bob", [false, true, true]),
            ("evilcorp", "ada", [false, false, true]),
        ] {
            let sees = [&member, &admin, &operator].map(|caller| caller.may_access(tenant, user));
            assert_eq!(sees, seen_by, "{tenant}/{user}");
        }
        for (scope, allowed) in [
            (Scope::Own, [true, true, true]),
            (Scope::Tenant, [false, true, true]),
            (Scope::All, [false, false, true]),
        ] {
            let may = [&member, &admin, &operator].map(|caller| caller.reach(scope).is_ok());
            assert_eq!(may, allowed, "{scope:?}");
        }
    }

    #[test]
    fn a_reach_includes_the_tenant_and_the_user() {
        let own = Reach::User(TenantUser::new("acme", "ada"));
        assert!(own.includes("acme", "ada"));
        assert!(!own.includes("evilcorp", "ada") && !own.includes("acme", "bob"));
        assert!(Reach::Tenant("acme".to_owned()).includes("acme", "bob"));
        assert!(!Reach::Tenant("acme".to_owned()).includes("", ""), "events of the server are for operators");
    }
}
