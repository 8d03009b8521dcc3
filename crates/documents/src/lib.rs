//! Reads the text of documents: bytes in, text with its pages and headings out.
//!
//! PDF, DOCX, DOC, PPTX, PPT, XLSX, XLSB, XLS, ODT, ODS, ODP, RTF, EML, MSG, MBOX, EPUB, HTML, XML, Markdown, LaTeX,
//! Jupyter notebooks, subtitles, source code, plain text in any common encoding, CSV, TSV, JSON and ZIP archives of
//! these are read. Pictures, and the pages of a PDF that are scans, are passed on to OCR.
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use landfall_documents::{Document, Limits, Recognised, read};
//!
//! let page = b"<html><h1>Tides</h1><p>High water at <b>noon</b>.</p><script>alert(1)</script></html>";
//! let document = Document { bytes: page, name: "tides.html", content_type: None };
//! let reading = read(document, &Limits::default(), &|| ControlFlow::Continue(()))?;
//!
//! let extracted = reading.finish(Recognised::NotInstalled)?;
//! assert_eq!(extracted.text, "# Tides\n\nHigh water at noon.");
//! assert_eq!(extracted.places[0].heading.as_deref(), Some("Tides"));
//! # Ok::<(), landfall_documents::Error>(())
//! ```
//!
//! # Two steps
//!
//! Reading has two steps, because the first may run where no other program can be started:
//!
//! 1. [`read()`] computes on the calling thread and returns a [`Reading`]: the text, and the pictures that only OCR
//!    can read. [`sandbox`] does the same in a confined process.
//! 2. [`Reading::finish`] puts the words that OCR found where the pictures are, or returns an error if there is no
//!    text. [`ocr`] runs tesseract; a caller without it passes [`Recognised::NotInstalled`].
//!
//! # Untrusted documents
//!
//! A document is input to complex parsers, and may be made to crash or exhaust them. The readers of this crate build
//! no tree of untrusted markup, expand no entity, and check each of the [`Limits`] while they work, against what they
//! have counted. But PDF and spreadsheets are read by other libraries, in which a document may find a bug, an endless
//! loop or more memory than the machine has. Read documents of people you do not know in the [`sandbox`].
//!
//! # Features
//!
//! - `sandbox` (default): the modules [`sandbox`] and [`ocr`]. Linux only; needs tokio.
//!
//! Without it the crate has no asynchronous code and starts no process.

#![warn(missing_docs)]

/// Compiles the examples of the README.
#[cfg(all(doctest, feature = "sandbox"))]
#[doc = include_str!("../README.md")]
struct Readme;

// What a caller needs: a document, its limits, its text or an error.
mod error;
pub mod limits;
mod read;
mod reading;

// Reading in another process.
#[cfg(feature = "sandbox")]
pub mod sandbox;
#[cfg(feature = "sandbox")]
pub mod ocr;

// How a format is recognised, and a reader for each format.
mod kind;
mod formats;
// What the readers share.
mod archive;
mod elements;
mod embedded;
mod flow;
mod missing;

// The files in an archive, each a document of its own.
mod members;

pub use error::{Error, ErrorKind};
pub use landfall_core::text::{Extracted, Markup, Place};
pub use landfall_core::warning::{Warning, WarningCode};
pub use limits::Limits;
pub use members::{
    ArchiveLimits, Contents, LeftOut, ListedMember, Member, Unpacked, WhyLeftOut, archive_members, is_archive,
};
pub use missing::PageCount;
pub use read::{Document, read, read_unless_archive};
pub use reading::{Picture, Reading, Recognised};

use read::{has_words, protected};
