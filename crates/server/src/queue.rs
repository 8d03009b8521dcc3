//! Which worker processes a file, and when.
//!
//! A file's row is its place in the queue. A worker claims rows, works on them outside any transaction, and settles
//! each ending through one fenced write. Its process proves that it is alive by holding a lock that ends with it.
//! Files that a dead worker held are released to the queue.

pub mod config;
// The worker claims files: which ones, in which order, and what blocks them.
pub mod worker;
pub mod claim;
pub mod fairness;
mod gates;
pub mod isolation;
pub mod limits;
pub mod pause;
mod room;
// The worker carries each file from stage to stage, and settles every ending.
mod carrier;
pub mod settle;
pub mod settler;
pub mod tenant_share;
pub mod breaker;
pub mod circuits;
mod others;
pub mod patience;
pub mod probe;
// Files that are released to the queue without an ending.
mod reconcile;
pub mod release;
pub mod rescue;
// How files that failed are retried.
pub mod revive;
// What a file waits for.
pub mod waiting;
