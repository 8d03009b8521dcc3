//! The caller of the API, as its token names it.

/// Who asks: the owner of files, the tenant that pays for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    pub user: String,
    pub tenant: String,
    pub admin: bool,
}
