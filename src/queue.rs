//! Who does the work, and when.
//!
//! A file's row is its place in the queue. A worker claims rows, works on them outside any transaction, and settles
//! each ending through one fenced door. Its process proves that it lives by holding a lock that dies with it; what a
//! dead one held is given back to the queue.

pub mod breaker;
mod carrier;
pub mod claim;
pub mod dead_letter;
pub mod fairness;
mod gates;
pub mod give_back;
pub mod limits;
pub mod liveness;
pub mod locks;
pub mod operations;
pub mod pause;
pub mod rescue;
pub mod retry;
mod room;
pub mod settle;
pub mod settler;
mod taken_away;
pub mod waiting;
pub mod wake;
pub mod worker;
