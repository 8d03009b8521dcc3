//! Who does the work, and when.
//!
//! A file's row is its place in the queue. A worker claims rows, works on them outside any transaction, and settles
//! each ending through one fenced door. Its process proves that it lives by holding a lock that dies with it; what a
//! dead one held is given back to the queue.

pub mod config;
// The worker takes files: which, in whose turn, and what holds them up.
pub mod worker;
pub mod claim;
pub mod fairness;
mod gates;
pub mod limits;
pub mod pause;
mod room;
// It carries each from stage to stage, and settles every ending.
mod carrier;
pub mod settle;
pub mod settler;
pub mod breaker;
// Files that come back to the queue without an ending.
mod reconcile;
pub mod release;
pub mod rescue;
// Files that failed, and how they are tried again.
pub mod dead_letter;
pub mod operations;
pub mod revive;
// What a file waits for.
pub mod waiting;
