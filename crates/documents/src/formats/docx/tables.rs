//! The open tables, and how many columns their cells cover.

use crate::elements::{Element, Elements, Piece};
use crate::error::Error;
use crate::flow::Flow;
use crate::limits::Bounds;

/// How far is looked ahead for a second cell, in bytes.
const MAX_LOOK_AHEAD: usize = 256 << 10;
/// Frames inside one another.
const MAX_FRAMES: usize = 8;

/// A table with one cell is a frame around paragraphs, which are written as such.
#[derive(Default)]
pub struct Tables {
    open: Vec<Open>,
}

enum Open {
    Frame,
    /// With the number of columns that the open cell covers.
    Table(usize),
}

impl Tables {
    /// Whether what is written is in a cell.
    pub fn is_in_cell(&self) -> bool {
        self.open.iter().any(|open| matches!(open, Open::Table(_)))
    }

    /// Whether the table that begins here is a frame.
    pub fn is_frame(&self, elements: &Elements<'_>, bounds: Bounds<'_>) -> bool {
        if self.is_in_cell() || self.open.len() >= MAX_FRAMES {
            return false;
        }
        let rest = elements.rest();
        let rest = &rest[..rest.floor_char_boundary(MAX_LOOK_AHEAD)];
        let mut ahead = Elements::new(rest, bounds).allow_any_close();
        let (mut depth, mut cells) = (0_usize, 0);
        // What cannot be read here is read, or found to be damaged, with the table.
        while let Ok(Some(piece)) = ahead.next() {
            match piece {
                Piece::Open(element) => match element.name() {
                    "tbl" => depth += 1,
                    "tc" if depth == 0 => {
                        cells += 1;
                        if cells > 1 {
                            return false;
                        }
                    }
                    _ => {}
                },
                Piece::Close(name) if name == "tbl" => {
                    if depth == 0 {
                        return cells == 1;
                    }
                    depth -= 1;
                }
                _ => {}
            }
        }
        false
    }

    pub fn begin(&mut self, is_frame: bool, flow: &mut Flow) {
        if is_frame {
            self.open.push(Open::Frame);
        } else {
            self.open.push(Open::Table(1));
            flow.begin_table();
        }
    }

    pub fn end(&mut self, flow: &mut Flow) {
        if let Some(Open::Table(_)) = self.open.pop() {
            flow.end_table();
        }
    }

    /// What is said about the open row or cell.
    pub fn set(&mut self, element: &Element<'_>, flow: &mut Flow) {
        let Some(Open::Table(covered)) = self.open.last_mut() else { return };
        let number = || element.attribute("val").and_then(|number| number.parse::<usize>().ok());
        match element.name() {
            "tr" => flow.begin_row(),
            "gridBefore" => flow.empty_cells(number().unwrap_or(0)),
            "tc" => {
                *covered = 1;
                flow.begin_cell();
            }
            "gridSpan" => *covered = number().unwrap_or(1),
            _ => {}
        }
    }

    /// A cell over several columns is followed by empty ones, so that the columns stay aligned.
    pub fn end_cell(&mut self, flow: &mut Flow) -> Result<(), Error> {
        if let Some(Open::Table(covered)) = self.open.last_mut() {
            flow.empty_cells(covered.saturating_sub(1));
        }
        flow.check()
    }
}
