//! The cells of a sheet, its links, and its header and footer.

use std::collections::HashMap;

use super::super::grid::{Count, Position};
use super::super::strings::{Strings, unescaped};
use super::super::styles::{Styles, truth};
use super::super::{Sheet, cell_position, header_footer};
use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::limits::Bounds;

pub struct Reader<'r, 'a> {
    pub styles: &'r Styles,
    pub strings: &'r Strings,
    /// The addresses of links, by the ids that the sheet uses.
    pub links: &'r HashMap<String, String>,
    pub count: &'r mut Count<'a>,
    pub bounds: Bounds<'a>,
}

/// The cell that is being read.
struct Cell {
    at: Option<Position>,
    kind: String,
    style: usize,
    value: String,
}

/// What the words that follow belong to.
#[derive(PartialEq, Eq)]
enum Inside {
    Nothing,
    Value,
    Header,
    Footer,
}

impl Reader<'_, '_> {
    pub fn read(&mut self, source: &str, sheet: &mut Sheet) -> Result<(), Error> {
        let mut next: Position = (0, 0);
        let mut cell: Option<Cell> = None;
        let mut inside = Inside::Nothing;
        let mut running = String::new();
        let mut elements = Elements::new(source, self.bounds);
        while let Some(piece) = elements.next()? {
            match piece {
                Piece::Open(element) => match element.name() {
                    "row" => {
                        let row = element.attribute("r").and_then(|row| row.parse::<u32>().ok());
                        next = (row.and_then(|row| row.checked_sub(1)).unwrap_or(next.0), 0);
                    }
                    "c" => {
                        self.count.cell()?;
                        cell = Some(open_cell(&element, next));
                    }
                    "v" | "t" if cell.is_some() => inside = Inside::Value,
                    "f" | "rPh" => elements.skip()?,
                    "oddHeader" | "evenHeader" | "firstHeader" => inside = Inside::Header,
                    "oddFooter" | "evenFooter" | "firstFooter" => inside = Inside::Footer,
                    "hyperlink" => self.link(&element, sheet),
                    _ => {}
                },
                Piece::Close(name) => match name.as_str() {
                    "row" => next = (next.0.saturating_add(1), 0),
                    "c" => {
                        if let Some(cell) = cell.take() {
                            if let Some(at) = cell.at {
                                next = (at.0, at.1 + 1);
                            }
                            self.write(&cell, sheet)?;
                        }
                    }
                    "v" | "t" => inside = Inside::Nothing,
                    _ if matches!(inside, Inside::Header | Inside::Footer) => {
                        let words = header_footer::words(&std::mem::take(&mut running));
                        match inside {
                            Inside::Header => sheet.headers.extend(words),
                            _ => sheet.footers.extend(words),
                        }
                        inside = Inside::Nothing;
                    }
                    _ => {}
                },
                Piece::Words(words) => match (&inside, &mut cell) {
                    (Inside::Value, Some(cell)) => cell.value.push_str(&words),
                    (Inside::Header | Inside::Footer, _) => running.push_str(&words),
                    _ => {}
                },
            }
        }
        Ok(())
    }

    fn write(&self, cell: &Cell, sheet: &mut Sheet) -> Result<(), Error> {
        let Some(at) = cell.at else { return Ok(()) };
        let value = cell.value.as_str();
        let grid = &mut sheet.grid;
        match cell.kind.as_str() {
            "s" => {
                let words = value.trim().parse().ok().and_then(|index| self.strings.get(index));
                grid.add(at, &self.styles.words(cell.style, words.unwrap_or_default()), self.bounds)
            }
            "inlineStr" | "str" => {
                grid.add(at, &self.styles.words(cell.style, &unescaped(value)), self.bounds)
            }
            "b" => grid.add(at, truth(matches!(value.trim(), "1" | "true")), self.bounds),
            "e" | "d" => grid.add(at, value, self.bounds),
            _ => match value.trim().parse::<f64>() {
                Ok(number) => grid.add(at, &self.styles.number(cell.style, number), self.bounds),
                Err(_) => grid.add(at, value, self.bounds),
            },
        }
    }

    fn link(&self, element: &Element<'_>, sheet: &mut Sheet) {
        let range = element.attribute("ref").unwrap_or_default();
        let at = range.split(':').next().and_then(cell_position);
        let target = element.prefixed_attribute("id").and_then(|id| self.links.get(&id));
        if let Some((at, target)) = at.zip(target) {
            sheet.grid.link(at, target);
        }
    }
}

/// A cell without a name follows the one before it.
fn open_cell(element: &Element<'_>, next: Position) -> Cell {
    let at = match element.attribute("r") {
        Some(name) => cell_position(&name),
        None => Some(next).filter(|(row, column)| *row < 1 << 20 && *column < 1 << 14),
    };
    let style = element.attribute("s").and_then(|style| style.parse().ok()).unwrap_or(0);
    Cell { at, kind: element.attribute("t").unwrap_or_default(), style, value: String::new() }
}
