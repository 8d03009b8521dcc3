//! The open tables, and cells that are repeated or covered.

use crate::elements::Element;
use crate::error::Error;
use crate::flow::Flow;
use crate::limits::Bounds;

/// A row or a cell with words that is repeated more often fills the rest of a sheet, and is written once.
const MAX_REPEATED: usize = 200;
/// A wider gap between two cells is written as one empty cell.
const MAX_GAP: usize = 256;

#[derive(Default)]
pub struct Tables {
    open: Vec<Table>,
    /// The cells of all tables.
    cells: usize,
}

#[derive(Default)]
struct Table {
    /// Cells without words, which are written when one with words follows.
    empty: usize,
    /// Whether the open cell has no words so far. It has this value then.
    new_cell: Option<String>,
}

/// How often a row or a cell is repeated.
pub fn repeated(element: &Element<'_>) -> usize {
    let name = if element.name() == "table-row" { "number-rows-repeated" } else { "number-columns-repeated" };
    element.attribute(name).and_then(|number| number.parse().ok()).unwrap_or(1).max(1)
}

/// How often something with words is written.
pub fn written(repeated: usize) -> usize {
    if repeated > MAX_REPEATED { 1 } else { repeated }
}

impl Tables {
    pub fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    pub fn begin(&mut self, flow: &mut Flow) {
        self.open.push(Table::default());
        flow.begin_table();
    }

    pub fn end(&mut self, flow: &mut Flow) {
        if self.open.pop().is_some() {
            flow.end_table();
        }
    }

    pub fn begin_row(&mut self, flow: &mut Flow) {
        if let Some(table) = self.open.last_mut() {
            table.empty = 0;
            flow.begin_row();
        }
    }

    pub fn empty_cells(&mut self, number: usize) {
        if let Some(table) = self.open.last_mut() {
            table.empty = table.empty.saturating_add(number);
        }
    }

    /// Counts a cell, or a row that is read again.
    pub fn count(&mut self, bounds: Bounds<'_>) -> Result<(), Error> {
        self.cells += 1;
        if self.cells > bounds.limits.cells { Err(bounds.limits.too_many_cells()) } else { Ok(()) }
    }

    /// A cell begins, with the value that it has if there are no words in it.
    pub fn begin_cell(&mut self, value: String, bounds: Bounds<'_>) -> Result<(), Error> {
        if let Some(table) = self.open.last_mut() {
            table.new_cell = Some(value);
        }
        self.count(bounds)
    }

    /// Words are about to be written.
    pub fn fill_cell(&mut self, flow: &mut Flow) {
        if let Some(table) = self.open.last_mut()
            && table.new_cell.take().is_some()
        {
            self.begin_filled(flow);
        }
    }

    pub fn end_cell(&mut self, flow: &mut Flow) -> Result<(), Error> {
        let value = self.open.last_mut().and_then(|table| table.new_cell.take());
        match value.as_deref() {
            None => {}
            Some("") => self.empty_cells(1),
            Some(value) => {
                self.begin_filled(flow);
                flow.words(value);
            }
        }
        flow.check()
    }

    fn begin_filled(&mut self, flow: &mut Flow) {
        if let Some(table) = self.open.last_mut() {
            let empty = std::mem::take(&mut table.empty);
            flow.empty_cells(if empty > MAX_GAP { 1 } else { empty });
            flow.begin_cell();
        }
    }
}

/// The value of a cell that has no words.
pub fn value(element: &Element<'_>) -> String {
    let names = ["string-value", "date-value", "time-value", "boolean-value", "value"];
    names.iter().find_map(|name| element.attribute(name)).unwrap_or_default()
}
