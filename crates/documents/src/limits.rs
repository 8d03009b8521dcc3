//! What one document may cost.
//!
//! Each limit is checked while the reader works, against what it has counted, never against what the document says
//! about itself.

use std::cell::Cell;
use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

/// The default of [`Limits::pages`].
pub const DEFAULT_MAX_PAGES: usize = 5_000;
/// The default of [`Limits::cells`].
pub const DEFAULT_MAX_CELLS: usize = 5_000_000;
/// The default of [`Limits::text_bytes`], in MiB.
pub const DEFAULT_MAX_TEXT_MB: usize = 64;

/// The largest usual documents have some thousands of parts, most of them pictures.
const ARCHIVE_ENTRIES: usize = 20_000;
const UNPACKED_BYTES: u64 = 256 << 20;
const SUSPICIOUS_BYTES: u64 = 16 << 20;
/// Text packs to a tenth of its size, tables to a fiftieth.
const UNPACKED_RATIO: u64 = 200;
const DEPTH: usize = 512;
/// Documents inside one another, the outermost not counted.
const MAX_NESTING: usize = 3;
/// Documents inside one document, at all depths together.
const MAX_EMBEDDED: usize = 500;
const PICTURES: usize = 500;
const PICTURE_BYTES: usize = 128 << 20;
/// A page of A3 at 600 dots per inch has 70 million pixels.
const PICTURE_PIXELS: u64 = 100_000_000;

/// What one document may cost. The reader checks these itself, so they are sent to the sandbox with each document.
///
/// ```
/// use landfall_documents::Limits;
///
/// let limits = Limits { pages: 100, ..Limits::default() };
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Pages of a PDF, slides of a presentation.
    pub pages: usize,
    /// Cells of a spreadsheet.
    pub cells: usize,
    /// Bytes of text.
    pub text_bytes: usize,
    /// Parts of a packed document: DOCX, PPTX, XLSX and OpenDocument files are ZIP archives.
    pub archive_entries: usize,
    /// Bytes that are unpacked from one document, all parts together.
    pub unpacked_bytes: u64,
    /// A part that unpacks to more than this many bytes must not exceed `unpacked_ratio`.
    pub suspicious_bytes: u64,
    /// How many times larger than packed a part may be.
    pub unpacked_ratio: u64,
    /// Elements, groups or messages nested in one another.
    pub depth: usize,
    /// Pictures that are passed on to OCR. Further ones are left out.
    pub pictures: usize,
    /// Bytes of those pictures together, encoded. Further ones are left out.
    pub picture_bytes: usize,
    /// Pixels of one picture. Larger ones are left out.
    pub picture_pixels: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pages: DEFAULT_MAX_PAGES,
            cells: DEFAULT_MAX_CELLS,
            text_bytes: DEFAULT_MAX_TEXT_MB << 20,
            archive_entries: ARCHIVE_ENTRIES,
            unpacked_bytes: UNPACKED_BYTES,
            suspicious_bytes: SUSPICIOUS_BYTES,
            unpacked_ratio: UNPACKED_RATIO,
            depth: DEPTH,
            pictures: PICTURES,
            picture_bytes: PICTURE_BYTES,
            picture_pixels: PICTURE_PIXELS,
        }
    }
}

impl Limits {
    pub(crate) fn too_much_text(&self) -> Error {
        let limit = self.text_bytes >> 20;
        Error::new(
            ErrorKind::TooLarge,
            format!("There are more than {limit} MB of text in this file, the limit"),
        )
    }

    pub(crate) fn too_many_pages(&self) -> Error {
        Error::new(ErrorKind::TooLarge, format!("This file has more than {} pages, the limit", self.pages))
    }

    pub(crate) fn too_many_cells(&self) -> Error {
        Error::new(ErrorKind::TooLarge, format!("This file has more than {} cells, the limit", self.cells))
    }

    pub(crate) fn too_deep(&self) -> Error {
        Error::new(
            ErrorKind::Invalid,
            format!("The parts of this file are nested more than {} levels deep", self.depth),
        )
    }
}

/// What a reader checks while it works.
#[derive(Clone, Copy)]
pub(crate) struct Bounds<'a> {
    pub limits: &'a Limits,
    /// Called regularly during the work. `Break` stops it.
    pub progress: &'a dyn Fn() -> ControlFlow<()>,
    /// How many documents this one is inside of.
    pub nesting: usize,
    /// The documents inside the outermost one that were read so far; without it none is read.
    pub embedded: Option<&'a Cell<usize>>,
}

impl<'a> Bounds<'a> {
    pub fn new(limits: &'a Limits, progress: &'a dyn Fn() -> ControlFlow<()>) -> Self {
        Self { limits, progress, nesting: 0, embedded: None }
    }

    /// The bounds of one more document inside this one; `None` if it is too deep inside, or one too many.
    pub fn of_embedded(self) -> Option<Self> {
        let read = self.embedded?;
        if self.nesting >= MAX_NESTING || read.get() >= MAX_EMBEDDED {
            return None;
        }
        read.set(read.get() + 1);
        Some(Self { nesting: self.nesting + 1, ..self })
    }

    /// Reports progress, and returns an error if the caller wants to stop.
    pub fn report_progress(&self) -> Result<(), Error> {
        match (self.progress)() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(ErrorKind::Stopped, "Extraction was stopped")),
        }
    }
}
