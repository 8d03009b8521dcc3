//! The beginning of a Word 97–2003 document, which says where everything else is.

use crate::error::{Error, ErrorKind};
use crate::protected;

/// The number of the first version that is read, of Word 97.
const WORD_97: u16 = 0xC1;
/// Where the list of places begins, each with a position and a length.
const PLACES: usize = 154;

/// The places that are needed, by their number in the list.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    Styles = 1,
    FootnoteReferences = 2,
    FootnoteTexts = 3,
    CommentReferences = 4,
    CommentTexts = 5,
    Headers = 11,
    Characters = 12,
    Paragraphs = 13,
    Pieces = 33,
    EndnoteReferences = 46,
    EndnoteTexts = 47,
    Lists = 73,
    ListInstances = 74,
}

/// How many characters each of the texts has. They follow one another.
#[derive(Debug, Default, Clone, Copy)]
pub struct Lengths {
    pub body: u32,
    pub footnotes: u32,
    pub headers: u32,
    pub comments: u32,
    pub endnotes: u32,
    pub text_boxes: u32,
}

impl Lengths {
    pub fn before_headers(self) -> u32 {
        self.body.saturating_add(self.footnotes)
    }

    pub fn before_comments(self) -> u32 {
        self.before_headers().saturating_add(self.headers)
    }

    pub fn before_endnotes(self) -> u32 {
        self.before_comments().saturating_add(self.comments)
    }

    pub fn before_text_boxes(self) -> u32 {
        self.before_endnotes().saturating_add(self.endnotes)
    }
}

pub struct Fib<'a> {
    document: &'a [u8],
    pub lengths: Lengths,
    /// Whether the second of the two streams for tables is used.
    pub second_table: bool,
}

impl<'a> Fib<'a> {
    pub fn read(document: &'a [u8]) -> Result<Self, Error> {
        let flags = u16_at(document, 10).ok_or_else(damaged)?;
        let is_encrypted = flags & 0x0100 != 0;
        if is_encrypted {
            return Err(protected());
        }
        let length = |at: usize| u32_at(document, at).filter(|length| *length < 1 << 31).unwrap_or(0);
        let lengths = Lengths {
            body: length(76),
            footnotes: length(80),
            headers: length(84),
            comments: length(92),
            endnotes: length(96),
            text_boxes: length(100),
        };
        Ok(Self { document, lengths, second_table: flags & 0x0200 != 0 })
    }

    /// Whether the document is older than Word 97 and has another structure.
    pub fn is_older(&self) -> bool {
        u16_at(self.document, 2).is_none_or(|version| version < WORD_97)
    }

    /// The text of an older document that was not saved in pieces.
    pub fn plain_text(&self) -> &'a [u8] {
        let at = |at: usize| u32_at(self.document, at).and_then(|at| usize::try_from(at).ok()).unwrap_or(0);
        self.document.get(at(24)..at(28)).unwrap_or_default()
    }

    /// A part in the stream for tables; empty if it is not there.
    pub fn part<'t>(&self, part: Part, tables: &'t [u8]) -> &'t [u8] {
        self.part_and_rest(part, tables).0
    }

    /// The same with what follows it.
    pub fn part_and_rest<'t>(&self, part: Part, tables: &'t [u8]) -> (&'t [u8], &'t [u8]) {
        let at = PLACES + 8 * part as usize;
        let number = |at: usize| u32_at(self.document, at).and_then(|number| usize::try_from(number).ok());
        let (Some(start), Some(length)) = (number(at), number(at + 4)) else { return (&[], &[]) };
        if length == 0 {
            return (&[], &[]);
        }
        let rest = tables.get(start..).unwrap_or_default();
        rest.split_at(length.min(rest.len()))
    }
}

pub fn damaged() -> Error {
    Error::new(
        ErrorKind::Damaged,
        "This file is damaged: it is a Word document whose parts cannot be found. Save it as DOCX and upload it again",
    )
}

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

/// The positions at the beginning of a table of positions and values of this size, with the values.
pub fn positions(table: &[u8], value_size: usize) -> (Vec<u32>, &[u8]) {
    let number = table.len().saturating_sub(4) / (4 + value_size);
    if number == 0 {
        return (Vec::new(), &[]);
    }
    let (positions, values) = table.split_at(4 * (number + 1));
    (positions.as_chunks().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect(), values)
}
