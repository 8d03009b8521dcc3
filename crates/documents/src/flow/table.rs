//! A table while it is read, and its lines in Markdown.

use super::Gap;

/// A table is written as wide as its widest row. Wider tables are cut into several cells on the last column.
const MAX_COLUMNS: usize = 1_000;
/// What already parts two words, so that nothing is added.
const MARKS: [char; 6] = [',', ';', ':', '.', '!', '?'];
/// A table may get this many empty cells for each of its cells, and this many at least, to be as wide everywhere.
const EMPTY_PER_CELL: usize = 8;
const EMPTY_AT_LEAST: usize = 20_000;

#[derive(Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Tables in the open cell, and whether the last one has no words so far.
    inner: usize,
    is_inner_empty: bool,
    gap: Gap,
    /// What stands before the next word of the open cell: the end of a cell or a row of a table in it.
    end: Option<InnerEnd>,
    bytes: usize,
    cells: usize,
}

/// What ends in a table that is in a cell. Its rows are parted by semicolons there, its cells by slashes, which
/// stand by themselves: the words stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InnerEnd {
    Cell,
    Row,
}

impl Table {
    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn begin_row(&mut self) {
        if self.inner > 0 {
            return self.end_of_inner(InnerEnd::Row);
        }
        self.rows.push(Vec::new());
        self.gap = Gap::None;
        self.end = None;
    }

    pub fn begin_cell(&mut self) {
        if self.inner > 0 {
            return self.end_of_inner(InnerEnd::Cell);
        }
        self.gap = Gap::None;
        self.end = None;
        if self.rows.is_empty() {
            self.rows.push(Vec::new());
        }
        if let Some(row) = self.rows.last_mut()
            && row.len() < MAX_COLUMNS
        {
            row.push(String::new());
            // Its bar and its spaces.
            self.bytes += 3;
            self.cells += 1;
        } else {
            self.gap = Gap::Space;
        }
    }

    pub fn empty_cells(&mut self, number: usize, limit: usize) {
        if self.inner == 0 {
            for _ in 0..number.min(MAX_COLUMNS).min(limit.saturating_sub(self.cells)) {
                self.begin_cell();
            }
        }
    }

    pub fn begin_inner(&mut self) {
        // Damaged documents have tables that are in no cell of their table.
        self.cell();
        self.inner += 1;
        self.is_inner_empty = true;
        self.widen(Gap::Space);
    }

    /// A cell or a row of a table in the open cell has ended.
    pub fn end_of_inner(&mut self, end: InnerEnd) {
        self.widen(Gap::Space);
        if !self.is_inner_empty {
            self.end = self.end.max(Some(end));
        }
    }

    /// Returns whether it was a table in a cell that ended.
    pub fn end_inner(&mut self) -> bool {
        self.widen(Gap::Space);
        self.inner = match self.inner.checked_sub(1) {
            None => return false,
            Some(left) => left,
        };
        self.end_of_inner(InnerEnd::Row);
        self.is_inner_empty = false;
        true
    }

    pub fn widen(&mut self, gap: Gap) {
        self.gap = self.gap.max(gap);
    }

    /// The open cell.
    pub fn cell(&mut self) -> &mut String {
        if self.rows.last().is_none_or(Vec::is_empty) {
            self.begin_cell();
        }
        let row = self.rows.last_mut().expect("a row was added");
        row.last_mut().expect("a cell was added")
    }

    /// Adds a word to the open cell. Returns where it begins there.
    pub fn write(&mut self, word: &str) -> usize {
        let gap = std::mem::take(&mut self.gap);
        let end = self.end.take();
        self.is_inner_empty = false;
        let cell = self.cell();
        let before = cell.len();
        if let Some(end) = end.filter(|_| !cell.is_empty() && !cell.ends_with(MARKS)) {
            cell.push_str(if end == InnerEnd::Row { " ;" } else { " /" });
        }
        if gap > Gap::None && !cell.is_empty() {
            cell.push(' ');
        }
        let start = cell.len();
        // A cell is on one line, and a bar would end it.
        for character in word.chars() {
            match character {
                '|' => cell.push_str("\\|"),
                '\n' | '\r' | '\t' => cell.push(' '),
                character => cell.push(character),
            }
        }
        let added = cell.len() - before;
        self.bytes += added;
        start
    }

    /// The lines of the table. A table of one cell is a paragraph.
    pub fn lines(mut self) -> Vec<String> {
        let is_empty = |cell: &String| cell.trim().is_empty();
        self.rows.retain(|row| !row.iter().all(is_empty));
        let columns = self
            .rows
            .iter()
            .map(|row| row.len() - row.iter().rev().take_while(|cell| is_empty(cell)).count());
        let columns = columns.max().unwrap_or(0);
        if columns == 0 {
            return Vec::new();
        }
        if columns == 1 && self.rows.len() == 1 {
            return vec![self.rows[0][0].trim().to_owned()];
        }
        // In Markdown only the first row must have all cells. One wide row would make millions of others as wide.
        let is_sparse =
            columns.saturating_mul(self.rows.len()) > EMPTY_PER_CELL * self.cells + EMPTY_AT_LEAST;
        let line = |(number, row): (usize, &Vec<String>)| {
            let mut line = String::from("|");
            let columns = if is_sparse && number > 0 { row.len().min(columns) } else { columns };
            for column in 0..columns {
                let cell = row.get(column).map_or("", |cell| cell.trim());
                line.push(' ');
                line.push_str(cell);
                line.push_str(if cell.is_empty() { "|" } else { " |" });
            }
            line
        };
        let mut lines: Vec<String> = self.rows.iter().enumerate().map(line).collect();
        lines.insert(1, format!("|{}", " --- |".repeat(columns)));
        lines
    }
}
