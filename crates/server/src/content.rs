//! What the stages made of a file: its text and chunks, and the index that searches use.

pub mod artifacts;
pub mod chunks;
pub mod codes;
pub mod fusion;
pub mod index;
pub mod indexed_files;
pub mod language;
pub mod narrowing;
pub mod passages;
pub mod search;
pub mod snippet;
pub mod terms;
pub mod words;
