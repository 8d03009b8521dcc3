//! The statements about the table `files`, by topic. All other modules call these functions, so that what is asked of
//! the table, and along which of its indexes, is seen in one place.
//!
//! [`super::file`] is the row itself, and [`super::moves`] is the one statement that changes the state of files.

// What waits for a worker, and what a worker holds.
pub mod held;
pub mod queue;
