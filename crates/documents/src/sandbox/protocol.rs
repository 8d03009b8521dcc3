//! What the server and the process that reads documents say to each other.
//!
//! To the process goes, for each document, the length of a header (four bytes, the least significant first), the header
//! in JSON, and the document's bytes. Back come frames: one byte for the kind, four for the length, the content. First
//! of all [`HELLO`], once; then for each document any number of [`PROGRESS`], and at the end [`TEXT`], any number of
//! [`PICTURE`] and [`PLACES`], or [`REFUSAL`].

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use landfall_core::text::{Extracted, Markup, Place};

/// The process is ready. Its content is what protects from it: [`super::confine::Protections`] in JSON.
pub const HELLO: u8 = b'H';
/// A part of the work is done. Without content.
pub const PROGRESS: u8 = b'P';
/// The text of the document.
pub const TEXT: u8 = b'T';
/// A picture that only OCR can read: where its words belong in the text (eight bytes), its page (eight), the picture.
pub const PICTURE: u8 = b'I';
/// The markup of that text and the places in it; see [`encode_places`].
pub const PLACES: u8 = b'L';
/// The document cannot be read: [`Refusal`] in JSON.
pub const REFUSAL: u8 = b'R';

/// The most bytes of a header, a greeting or a refusal.
pub const MAX_JSON: u32 = 64 * 1024;

/// How often a process says that it is getting on, at most.
pub const PROGRESS_EVERY_MS: u64 = 100;

/// The process ends with this when it was refused memory.
pub const EXIT_OUT_OF_MEMORY: i32 = 71;
/// The process ends with this when it could not be confined.
pub const EXIT_NOT_CONFINED: i32 = 72;

/// What comes before a document's bytes.
#[derive(Debug, Serialize, Deserialize)]
pub struct Header {
    pub name: String,
    pub content_type: Option<String>,
    pub size: u64,
    pub limits: Limits,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: String,
    pub message: String,
}

impl From<Error> for Refusal {
    fn from(failure: Error) -> Self {
        Self { kind: failure.kind.name().to_owned(), message: failure.message }
    }
}

/// What a process may say of a document. The other codes are for others to say: that a file is infected removes it.
pub const REFUSALS: &[ErrorKind] = &[
    ErrorKind::UnsupportedType,
    ErrorKind::NotPdf,
    ErrorKind::TooLarge,
    ErrorKind::OutOfMemory,
    ErrorKind::Damaged,
    ErrorKind::Invalid,
    ErrorKind::NoText,
];

pub fn frame_header(kind: u8, length: u32) -> [u8; 5] {
    let [a, b, c, d] = length.to_le_bytes();
    [kind, a, b, c, d]
}

pub const PLAIN: u8 = 0;
pub const MARKDOWN: u8 = 1;

/// What stands for a heading's length where there is no heading.
pub const NO_HEADING: u32 = u32::MAX;
/// What stands for a page's number where there is no page.
pub const NO_PAGE: i64 = i64::MIN;

/// The markup in one byte; then of each place its start, its page, the length of its heading and the heading.
pub fn encode_places(extracted: &Extracted) -> Vec<u8> {
    let mut bytes = vec![match extracted.markup {
        Markup::Plain => PLAIN,
        Markup::Markdown => MARKDOWN,
    }];
    for Place { start, page, heading } in &extracted.places {
        bytes.extend((*start as u64).to_le_bytes());
        bytes.extend(page.unwrap_or(NO_PAGE).to_le_bytes());
        let length = heading.as_ref().map_or(NO_HEADING, |heading| {
            // One that is too long is refused by whoever reads it.
            u32::try_from(heading.len()).unwrap_or(NO_HEADING - 1)
        });
        bytes.extend(length.to_le_bytes());
        bytes.extend(heading.iter().flat_map(|heading| heading.bytes()));
    }
    bytes
}
