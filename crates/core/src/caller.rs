//! The caller of the API, as its token names it.

use crate::names::named_enum;

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

/// The caller: the owner of files, and the tenant whose quota they count against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: String,
    pub tenant: String,
    pub admin: bool,
}
