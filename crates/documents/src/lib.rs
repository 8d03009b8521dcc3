//! Gets the text out of documents: bytes in, text with places out.
//!
//! [`read()`] computes on the calling thread. [`sandbox`] runs it in a process of its own, because a document is a stranger's
//! program for the parsers. [`ocr`] has tesseract read the pictures in it.
//!
//! This crate may use `landfall-core` (for the types of text and the clock) and no other crate of ours.

pub mod error;

pub mod limits;
pub mod reading;
pub mod sandbox;
pub mod ocr;

mod read;
mod formats;
// What the readers share.
mod archive;
mod elements;
mod flow;
mod kind;

pub use error::{Error, ErrorKind};
pub use limits::Limits;
pub use read::{Document, read};
pub use reading::{Picture, Reading, Recognised};

use read::{has_words, protected};
