//! The protocol between the parent and the process that reads documents.
//!
//! For each document the parent sends the length of a header (four bytes, little-endian), the header in JSON, and the
//! document's bytes. The process sends frames: one byte for the kind, four for the length, the content. First comes
//! [`HELLO`], once. Then, for each document, any number of [`PROGRESS`]; and at the end either [`TEXT`], any number
//! of [`PICTURE`], at most one [`MISSING`] and one [`PLACES`], or [`REFUSAL`]. Of an archive of files, if the header asks for
//! that, come any number of [`MEMBER`] and then [`CONTENTS`] instead.

use std::io;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};
use crate::limits::Limits;
use crate::members::ArchiveLimits;
use crate::missing::PageCount;
use landfall_core::text::{Extracted, Markup, Place, TextBox};
use landfall_core::warning::Warning;

/// The process is ready. The content is [`super::confine::Protections`] in JSON.
pub const HELLO: u8 = b'H';
/// A part of the work is done. No content.
pub const PROGRESS: u8 = b'P';
/// The text of the document.
pub const TEXT: u8 = b'T';
/// A picture for OCR: the offset of its words in the text (eight bytes), its page (eight), the picture.
pub const PICTURE: u8 = b'I';
/// What is missing of the document: [`Missing`] in JSON. Only if something is.
pub const MISSING: u8 = b'M';
/// The markup of the text and the places in it; see [`encode_places`].
pub const PLACES: u8 = b'L';
/// The document cannot be read: [`Refusal`] in JSON.
pub const REFUSAL: u8 = b'R';

/// A file of an archive: the length of its path (four bytes), the path, the content.
pub const MEMBER: u8 = b'F';
/// The files of an archive: [`crate::Contents`] in JSON.
pub const CONTENTS: u8 = b'C';

/// The most bytes of the path of a file in an archive.
pub const MAX_PATH: usize = 64 * 1024;
/// The most bytes of the list of the files in an archive.
pub const MAX_CONTENTS: u32 = 64 << 20;

/// The most bytes of a hello, of a refusal, or of what is missing.
pub const MAX_JSON: u32 = 64 * 1024;

/// The shortest time between two [`PROGRESS`] frames.
pub const PROGRESS_EVERY_MS: u64 = 100;

/// The exit code of a process that ran out of memory.
pub const EXIT_OUT_OF_MEMORY: i32 = 71;
/// The exit code of a process that could not be confined.
pub const EXIT_NOT_CONFINED: i32 = 72;

/// Precedes a document's bytes.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    pub name: String,
    pub content_type: Option<String>,
    pub size: u64,
    pub limits: Limits,
    /// What is wanted of the document if it is an archive of files. Without it, it is read as one text.
    #[serde(default)]
    pub archive: Option<FromArchive>,
}

/// What is wanted of an archive of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FromArchive {
    pub limits: ArchiveLimits,
    /// The content of the files beside their list.
    pub with_content: bool,
}

impl Header {
    /// With its length before it.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let header = serde_json::to_vec(self)?;
        let length = u32::try_from(header.len())
            .map_err(|_| io::Error::other("the name of the document is too long"))?;
        Ok([&length.to_le_bytes()[..], &header].concat())
    }

    /// Without its length.
    pub fn decode(header: &[u8]) -> io::Result<Self> {
        Ok(serde_json::from_slice(header)?)
    }
}

/// What is missing of a document that could be read otherwise.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub warnings: Vec<Warning>,
    pub pages: PageCount,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Refusal {
    pub kind: String,
    pub message: String,
    #[serde(default)]
    pub detail: Option<String>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let (kind, detail) = (error.kind().name().to_owned(), error.detail().map(str::to_owned));
        Self { kind, message: error.into_message(), detail }
    }
}

/// The errors that a process may report. The others are for the parent to determine.
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

/// The length of a heading where there is none.
pub const NO_HEADING: u32 = u32::MAX;
/// The level of a heading where there is none.
pub const NO_LEVEL: u8 = 0;
/// The number of a page where there is none.
pub const NO_PAGE: i64 = i64::MIN;

/// The markup in one byte; the number of places; for each place its start, its page, its level, the length of its heading,
/// and the heading; then for each box its start, its end, its page and the four sides of its area.
pub fn encode_places(extracted: &Extracted) -> Vec<u8> {
    let mut bytes = vec![match extracted.markup {
        Markup::Plain => PLAIN,
        Markup::Markdown => MARKDOWN,
    }];
    let number = u32::try_from(extracted.places.len()).unwrap_or(u32::MAX);
    bytes.extend(number.to_le_bytes());
    for Place { start, page, heading, level } in &extracted.places {
        bytes.extend((*start as u64).to_le_bytes());
        bytes.extend(page.unwrap_or(NO_PAGE).to_le_bytes());
        bytes.push(level.unwrap_or(NO_LEVEL));
        let length = heading.as_ref().map_or(NO_HEADING, |heading| {
            // The parent rejects one that is too long.
            u32::try_from(heading.len()).unwrap_or(NO_HEADING - 1)
        });
        bytes.extend(length.to_le_bytes());
        bytes.extend(heading.iter().flat_map(|heading| heading.bytes()));
    }
    for TextBox { start, end, page, area } in &extracted.boxes {
        bytes.extend((*start as u64).to_le_bytes());
        bytes.extend((*end as u64).to_le_bytes());
        bytes.extend(page.to_le_bytes());
        for side in [area.left, area.top, area.right, area.bottom] {
            bytes.extend(side.to_le_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_carries_every_limit() {
        // Written out, so that a new limit does not compile here until it has a value that is not its default.
        let limits = Limits {
            pages: 1,
            cells: 2,
            text_bytes: 3,
            archive_entries: 4,
            unpacked_bytes: 5,
            suspicious_bytes: 6,
            unpacked_ratio: 7,
            depth: 8,
            pictures: 9,
            picture_bytes: 10,
            picture_pixels: 11,
        };
        let archive = Some(FromArchive { limits: ArchiveLimits::default(), with_content: true });
        let header = Header { name: "ä.txt".to_owned(), content_type: None, size: 12, limits, archive };
        let encoded = header.encode().unwrap();
        let (length, content) = encoded.split_first_chunk().unwrap();
        assert_eq!(u32::from_le_bytes(*length) as usize, content.len());
        assert_eq!(Header::decode(content).unwrap(), header);
    }
}
