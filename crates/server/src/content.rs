//! What the stages made of a file: its text and chunks, and the index in which they are found.

pub mod artifacts;
pub mod index;
pub mod search;
pub mod snippet;
pub mod terms;
