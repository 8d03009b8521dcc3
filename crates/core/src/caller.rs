//! The caller of the API, as its token names it.

/// The caller: the owner of files, and the tenant whose quota they count against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: String,
    pub tenant: String,
    pub admin: bool,
}
