//! The number formats of the cells' styles.

use std::borrow::Cow;
use std::collections::HashMap;

use super::number_format::{Epoch, NumberFormat};
use crate::elements::{Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;

/// Excel allows this many styles of cells.
const MAX_STYLES: usize = 65_536;

/// The format of each style of cells, by its number.
#[derive(Default)]
pub struct Styles {
    /// The index of its format for each style.
    styles: Vec<usize>,
    formats: Vec<NumberFormat>,
    /// The index of each format by its id, while styles are added.
    by_id: HashMap<u32, usize>,
    pub epoch: Epoch,
}

impl Styles {
    pub fn read(source: &str, bounds: Bounds<'_>) -> Result<Self, Error> {
        let mut styles = Self::default();
        let mut is_in_cells = false;
        let mut elements = Elements::new(source, bounds);
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "numFmt" => {
                        let id = element.attribute("numFmtId").and_then(|id| id.parse().ok());
                        if let Some((id, code)) = id.zip(element.attribute("formatCode")) {
                            styles.define(id, &code);
                        }
                    }
                    "cellXfs" => is_in_cells = true,
                    "xf" if is_in_cells => {
                        let id = element.attribute("numFmtId").and_then(|id| id.parse().ok()).unwrap_or(0);
                        styles.add(id);
                    }
                    _ => {}
                },
                Piece::Close(name) if name == "cellXfs" => is_in_cells = false,
                Piece::Close(_) | Piece::Words(_) => {}
            }
        }
        Ok(styles)
    }

    /// A format that the workbook spells out.
    pub fn define(&mut self, id: u32, code: &str) {
        if self.by_id.len() < MAX_STYLES {
            self.by_id.insert(id, self.formats.len());
            self.formats.push(NumberFormat::new(code));
        }
    }

    /// The next style, with the format of this id.
    pub fn add(&mut self, id: u32) {
        if self.styles.len() < MAX_STYLES {
            let formats = &mut self.formats;
            let index = *self.by_id.entry(id).or_insert_with(|| {
                formats.push(NumberFormat::built_in(id));
                formats.len() - 1
            });
            self.styles.push(index);
        }
    }

    /// A number as a cell of this style shows it.
    pub fn number(&self, style: usize, value: f64) -> String {
        match self.format(style) {
            Some(format) => format.number(value, self.epoch),
            None => NumberFormat::general().number(value, self.epoch),
        }
    }

    /// Words as a cell of this style shows them.
    pub fn words<'w>(&self, style: usize, words: &'w str) -> Cow<'w, str> {
        match self.format(style).and_then(|format| format.words(words)) {
            Some(shown) => Cow::Owned(shown),
            None => Cow::Borrowed(words),
        }
    }

    fn format(&self, style: usize) -> Option<&NumberFormat> {
        self.styles.get(style).and_then(|index| self.formats.get(*index))
    }
}

/// A truth value as a cell shows it.
pub fn truth(value: bool) -> &'static str {
    if value { "TRUE" } else { "FALSE" }
}

/// The error of a formula by its number in binary workbooks, as a cell shows it.
pub fn error(code: u8) -> &'static str {
    match code {
        0x00 => "#NULL!",
        0x07 => "#DIV/0!",
        0x0F => "#VALUE!",
        0x17 => "#REF!",
        0x1D => "#NAME?",
        0x24 => "#NUM!",
        0x2B => "#GETTING_DATA",
        _ => "#N/A",
    }
}
