//! What one document may cost.
//!
//! A document is a stranger's program for our parsers. Each limit is checked while the work goes on, against what was
//! really counted and never against what the document says of itself.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

pub const DEFAULT_MAX_PAGES: usize = 5_000;
pub const DEFAULT_MAX_CELLS: usize = 5_000_000;
pub const DEFAULT_MAX_TEXT_MB: usize = 64;

/// Parts of a packed document. The largest honest ones have some thousands, most of them pictures.
const ARCHIVE_ENTRIES: usize = 20_000;
/// All that is unpacked of one document, together.
const UNPACKED_BYTES: u64 = 256 << 20;
/// A part below this size may be packed as well as it likes: nothing is gained by blowing it up.
const SUSPICIOUS_BYTES: u64 = 16 << 20;
/// How many times larger than packed a part may be once it is suspicious. Text packs to a tenth, tables to a fiftieth.
const UNPACKED_RATIO: u64 = 200;
/// Elements, groups or messages inside one another.
const DEPTH: usize = 512;
/// Pictures of pages that are handed on to be read by OCR.
const PICTURES: usize = 500;
/// The same in bytes, encoded.
const PICTURE_BYTES: usize = 128 << 20;
/// The largest picture that is looked at. A page of A3 at 600 dots an inch has 70 million.
const PICTURE_PIXELS: u64 = 100_000_000;

/// Each is checked by the reader itself, so they travel to the sandbox with every document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    pub pages: usize,
    pub cells: usize,
    pub text_bytes: usize,
    pub archive_entries: usize,
    pub unpacked_bytes: u64,
    pub suspicious_bytes: u64,
    pub unpacked_ratio: u64,
    pub depth: usize,
    pub pictures: usize,
    pub picture_bytes: usize,
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
    pub fn too_much_text(&self) -> Error {
        let most = self.text_bytes >> 20;
        Error::new(
            ErrorKind::TooLarge,
            format!("There are more than {most} MB of text in this file, the limit"),
        )
    }

    pub fn too_many_pages(&self) -> Error {
        Error::new(ErrorKind::TooLarge, format!("This file has more than {} pages, the limit", self.pages))
    }

    pub fn too_many_cells(&self) -> Error {
        Error::new(ErrorKind::TooLarge, format!("This file has more than {} cells, the limit", self.cells))
    }

    pub fn too_deep(&self) -> Error {
        Error::new(
            ErrorKind::Invalid,
            format!("The parts of this file are nested more than {} levels deep", self.depth),
        )
    }
}

/// What a reader has to mind while it works.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    pub limits: &'a Limits,
    /// Called now and then while the work goes on. `Break` stops it.
    pub progress: &'a dyn Fn() -> ControlFlow<()>,
}

impl Bounds<'_> {
    /// Reports progress, and ends the reading if the caller asks for that.
    pub fn go_on(&self) -> Result<(), Error> {
        match (self.progress)() {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::new(ErrorKind::Stopped, "Extraction was stopped")),
        }
    }
}
