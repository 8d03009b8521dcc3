//! The columns of a table: where the cells that span rows and columns leave none.

use super::Attributes;
use crate::flow::Flow;

/// As in the standard; and no table is written wider.
const MAX_COLUMNS: usize = 1_000;
const MAX_ROWS: i64 = 65_534;

/// An open table.
#[derive(Default)]
pub struct Grid {
    /// Whether there was a row. Before it, there is the caption.
    pub has_begun: bool,
    in_row: bool,
    /// The column after the cells of the open row.
    column: usize,
    /// For each column, how many of the next rows a cell above covers.
    covered: Vec<u32>,
    /// Columns that the open cell covers after its first one.
    wide: usize,
}

impl Grid {
    pub fn begin_row(&mut self, flow: &mut Flow) {
        self.end_row(flow);
        if !self.has_begun {
            self.has_begun = true;
            flow.begin_table();
        }
        self.in_row = true;
        flow.begin_row();
    }

    pub fn end_row(&mut self, flow: &mut Flow) {
        self.end_cell(flow);
        if self.in_row {
            for rows in self.covered.iter_mut().skip(self.column) {
                *rows = rows.saturating_sub(1);
            }
            while self.covered.last() == Some(&0) {
                self.covered.pop();
            }
        }
        self.in_row = false;
        self.column = 0;
    }

    /// Returns how many cells were added.
    pub fn begin_cell(&mut self, attributes: Attributes<'_>, flow: &mut Flow) -> usize {
        if !self.in_row {
            self.begin_row(flow);
        }
        let mut added = 1 + self.end_cell(flow);
        let from_above = self.skip_covered();
        flow.empty_cells(from_above);
        added += from_above;
        flow.begin_cell();
        let left = MAX_COLUMNS.saturating_sub(self.column);
        let columns = attributes.number("colspan").and_then(|span| usize::try_from(span).ok()).unwrap_or(1);
        let columns = columns.clamp(1, left.max(1));
        // 0 means all rows that follow.
        let rows = match attributes.number("rowspan") {
            Some(0) => MAX_ROWS,
            rows => rows.unwrap_or(1).clamp(1, MAX_ROWS),
        };
        let end = (self.column + columns).min(MAX_COLUMNS);
        if rows > 1 && end > self.column {
            if self.covered.len() < end {
                self.covered.resize(end, 0);
            }
            self.covered[self.column..end].fill(u32::try_from(rows - 1).unwrap_or(0));
        }
        self.column = end;
        self.wide = columns - 1;
        added
    }

    /// Adds the cells that the open one covers. Returns how many.
    fn end_cell(&mut self, flow: &mut Flow) -> usize {
        let covered = std::mem::take(&mut self.wide);
        flow.empty_cells(covered);
        covered
    }

    /// Goes to the next column that no cell above covers. Returns how many columns that is.
    fn skip_covered(&mut self) -> usize {
        let from = self.column;
        while let Some(rows) = self.covered.get_mut(self.column).filter(|rows| **rows > 0) {
            *rows -= 1;
            self.column += 1;
        }
        self.column - from
    }

    pub fn end(mut self, flow: &mut Flow) {
        self.end_row(flow);
        if self.has_begun {
            flow.end_table();
        }
    }
}
