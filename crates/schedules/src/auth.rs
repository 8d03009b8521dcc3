//! The keys of the identity provider.

#[path = "../../server/src/auth/fetched.rs"]
pub mod fetched;
