//! Finds the nearest vectors of an owner without comparing all of them.
//!
//! Every vector has a code of one bit for each dimension (`landfall_models::bits`). The codes of an owner and model are packed into
//! segments of up to a few thousand (`segments`). A search scans all codes of its scope, reads the vectors of the best
//! ones from the index, and ranks these exactly (`nearest`). A process keeps the segments that it used last in memory
//! (`cache`).
//!
//! - The codes of a file are written and removed in the transaction that writes or removes its vectors (`changes`). What
//!   a search returns comes from the index itself, so a code can never find what was deleted.
//! - A file is either coded, with a code for each of its vectors, or listed as uncoded (`uncoded`). A search compares all
//!   vectors of uncoded files, so a missing code never hides a chunk.
//! - The audit compares all codes with the vectors ([`check`]).

mod cache;
mod changes;
pub mod check;
mod nearest;
mod packed;
mod scan;
mod segments;
pub mod uncoded;
mod vectors;

use landfall_core::caller::TenantUser;

pub use cache::Cache;
pub use changes::{Changes, add, remove};
pub use nearest::{Narrow, nearest};

/// Vectors that can be compared with one another.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Scope {
    pub tenant: String,
    pub user: String,
    pub model: String,
}

impl Scope {
    pub fn new(owner: &TenantUser, model: &str) -> Self {
        Self { tenant: owner.tenant.clone(), user: owner.user.clone(), model: model.to_owned() }
    }
}
