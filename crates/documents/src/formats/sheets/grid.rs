//! The cells of a sheet, and the tables that they make in Markdown.
//!
//! A sheet may hold several tables. Rows belong to one table unless a gap says otherwise, and each cell stays in its
//! column. Cells are kept in one text, because a sheet may have millions of them.

use std::collections::HashMap;

use crate::error::Error;
use crate::flow::{Flow, Gap};
use crate::limits::Bounds;

/// Cells between two reports of progress.
const PROGRESS_EVERY: usize = 4_096;
/// A table may have this many empty cells for each cell with words, and this many at least. One with more is written
/// without them.
const EMPTY_PER_CELL: usize = 8;
const EMPTY_AT_LEAST: usize = 20_000;
/// More empty columns in a row are written as one.
const MAX_EMPTY_COLUMNS: u32 = 8;
/// How often a table is taken apart into tables side by side.
const MAX_SPLITS: usize = 3;

/// Counts the cells of all sheets together.
pub struct Count<'a> {
    bounds: Bounds<'a>,
    cells: usize,
}

impl<'a> Count<'a> {
    pub fn new(bounds: Bounds<'a>) -> Self {
        Self { bounds, cells: 0 }
    }

    /// Every cell counts, also one without words.
    pub fn cell(&mut self) -> Result<(), Error> {
        self.cells += 1;
        if self.cells > self.bounds.limits.cells {
            return Err(self.bounds.limits.too_many_cells());
        }
        if self.cells.is_multiple_of(PROGRESS_EVERY) { self.bounds.report_progress() } else { Ok(()) }
    }
}

/// Row and column, from 0.
pub type Position = (u32, u32);

#[derive(Debug, Clone, Copy)]
struct Cell {
    at: Position,
    /// Where its words are in the text of the grid.
    start: usize,
    end: usize,
}

#[derive(Default)]
pub struct Grid {
    cells: Vec<Cell>,
    text: String,
    is_unordered: bool,
    links: HashMap<Position, String>,
    /// The names of tables, at their first cells.
    names: Vec<(Position, String)>,
}

impl Grid {
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Adds the words of a cell. Of two cells in the same place the later one counts.
    pub fn add(&mut self, at: Position, words: &str, bounds: Bounds<'_>) -> Result<(), Error> {
        let start = self.text.len();
        for word in words.split_whitespace() {
            if self.text.len() > start {
                self.text.push(' ');
            }
            if word.contains('|') {
                self.text.push_str(&word.replace('|', "\\|"));
            } else {
                self.text.push_str(word);
            }
        }
        let end = self.text.len();
        if end > bounds.limits.text_bytes {
            return Err(bounds.limits.too_much_text());
        }
        if start < end {
            self.is_unordered |= self.cells.last().is_some_and(|last| last.at >= at);
            self.cells.push(Cell { at, start, end });
        }
        Ok(())
    }

    /// The cell in this place leads to an address.
    pub fn link(&mut self, at: Position, target: &str) {
        let is_address = target.contains(':') && !target.starts_with("javascript:");
        if is_address && !target.contains([' ', '(', ')', '<', '>', '|', '\n']) {
            self.links.insert(at, target.to_owned());
        }
    }

    /// A table with this name begins in this place.
    pub fn name(&mut self, at: Position, name: String) {
        self.names.push((at, name));
    }

    pub fn write(&mut self, flow: &mut Flow, bounds: Bounds<'_>) -> Result<(), Error> {
        if self.is_unordered {
            // The sort keeps the order of cells in the same place.
            self.cells.sort_by_key(|cell| cell.at);
            self.cells.dedup_by(|later, kept| {
                let is_same = later.at == kept.at;
                if is_same {
                    *kept = *later;
                }
                is_same
            });
        }
        let cells = std::mem::take(&mut self.cells);
        self.write_blocks(&cells, 0, flow, bounds)
    }

    /// Writes each block of rows, or the tables side by side in it.
    fn write_blocks(
        &self,
        cells: &[Cell],
        splits: usize,
        flow: &mut Flow,
        bounds: Bounds<'_>,
    ) -> Result<(), Error> {
        for block in blocks(cells) {
            let parts = if splits < MAX_SPLITS { side_by_side(block) } else { Vec::new() };
            if parts.len() > 1 {
                for part in parts {
                    self.write_blocks(&part, splits + 1, flow, bounds)?;
                }
            } else {
                self.write_table(block, flow, bounds)?;
            }
        }
        Ok(())
    }

    fn write_table(&self, cells: &[Cell], flow: &mut Flow, bounds: Bounds<'_>) -> Result<(), Error> {
        flow.widen(Gap::Paragraph);
        let columns = Columns::of(cells);
        let (first_row, last_row) = (cells[0].at.0, cells[cells.len() - 1].at.0);
        let is_inside = |(row, column): Position| {
            (first_row..=last_row).contains(&row) && (columns.first..=columns.last).contains(&column)
        };
        for (_, name) in self.names.iter().filter(|(at, _)| is_inside(*at)) {
            flow.words(name);
            flow.widen(Gap::Paragraph);
        }
        let mut line = String::new();
        if cells.len() == 1 {
            self.write_cell(&cells[0], &mut line);
            flow.words(&line.replace("\\|", "|"));
            flow.widen(Gap::Paragraph);
            return flow.check();
        }
        let rows = cells.chunk_by(|a, b| a.at.0 == b.at.0);
        let height = rows.clone().count();
        let is_sparse = columns.shown() * height > EMPTY_PER_CELL * cells.len() + EMPTY_AT_LEAST;
        let width =
            if is_sparse { rows.clone().map(<[Cell]>::len).max().unwrap_or(1) } else { columns.shown() };
        for (number, row) in rows.enumerate() {
            if number.is_multiple_of(PROGRESS_EVERY) {
                bounds.report_progress()?;
            }
            line.clear();
            line.push('|');
            let mut written = 0;
            for cell in row {
                let column = if is_sparse { written } else { columns.position(cell.at.1) };
                while written < column {
                    line.push_str(" |");
                    written += 1;
                }
                line.push(' ');
                self.write_cell(cell, &mut line);
                line.push_str(" |");
                written += 1;
            }
            // In Markdown the first row says how wide the table is; in a sparse one the others may be shorter.
            while written < width && (!is_sparse || number == 0) {
                line.push_str(" |");
                written += 1;
            }
            flow.widen(if number == 0 { Gap::Paragraph } else { Gap::Line });
            flow.verbatim(&line);
            if number == 0 {
                flow.widen(Gap::Line);
                flow.verbatim(&format!("|{}", " --- |".repeat(width)));
            }
            flow.check()?;
        }
        flow.widen(Gap::Paragraph);
        Ok(())
    }

    fn write_cell(&self, cell: &Cell, line: &mut String) {
        let words = &self.text[cell.start..cell.end];
        match self.links.get(&cell.at).filter(|target| target.as_str() != words) {
            Some(target) => {
                line.push('[');
                line.push_str(words);
                line.push_str("](");
                line.push_str(target);
                line.push(')');
            }
            None => line.push_str(words),
        }
    }
}

/// The blocks of rows. One empty row does not end a table if what follows has the same columns. Without an empty row a
/// table ends where a row of several cells has none in its columns.
fn blocks(cells: &[Cell]) -> Vec<&[Cell]> {
    let mut blocks: Vec<&[Cell]> = Vec::new();
    let mut start = 0;
    let mut end = 0;
    // The rows since the last empty one: the last row, and the columns.
    let mut band: Option<(u32, (u32, u32))> = None;
    let bands: Vec<(u32, u32)> = cells.chunk_by(|a, b| b.at.0 <= a.at.0 + 1).map(extent).collect();
    let mut next_band = bands.iter();
    for row in cells.chunk_by(|a, b| a.at.0 == b.at.0) {
        let at = row[0].at.0;
        let columns = extent(row);
        let ends = match band {
            None => false,
            Some((last, open)) if at == last + 1 => {
                row.len() > 1 && (columns.1 < open.0 || open.1 < columns.0)
            }
            Some((last, open)) => at > last + 2 || next_band.as_slice().first() != Some(&open),
        };
        let is_new_band = band.is_none_or(|(last, _)| at > last + 1);
        if is_new_band {
            next_band.next();
        }
        if ends {
            blocks.push(&cells[start..end]);
            start = end;
        }
        end += row.len();
        let open = band.filter(|_| !ends && !is_new_band).map_or(columns, |(_, open)| union(open, columns));
        band = Some((at, open));
    }
    if end > start {
        blocks.push(&cells[start..end]);
    }
    blocks
}

fn union(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// The first and the last column.
fn extent(cells: &[Cell]) -> (u32, u32) {
    let columns = || cells.iter().map(|cell| cell.at.1);
    (columns().min().unwrap_or(0), columns().max().unwrap_or(0))
}

/// The tables side by side in a block, if there are several: they are apart by an empty column, each has several
/// columns, and they do not have the same rows. An empty column in one table has the same rows on both sides.
fn side_by_side(block: &[Cell]) -> Vec<Vec<Cell>> {
    let columns = Columns::of(block);
    if columns.runs.len() < 2 || columns.runs.iter().any(|(first, last)| first == last) {
        return Vec::new();
    }
    let mut parts: Vec<Vec<Cell>> = vec![Vec::new(); columns.runs.len()];
    for cell in block {
        let run = columns.runs.partition_point(|(_, last)| *last < cell.at.1);
        parts[run].push(*cell);
    }
    let rows = |part: &Vec<Cell>| (part.first().map(|cell| cell.at.0), part.last().map(|cell| cell.at.0));
    if parts.iter().all(|part| rows(part) == rows(&parts[0])) { Vec::new() } else { parts }
}

/// The columns of a table with words in them.
struct Columns {
    first: u32,
    last: u32,
    /// Columns without an empty one between them: their first and their last.
    runs: Vec<(u32, u32)>,
    /// Where each run is in the table.
    starts: Vec<usize>,
}

impl Columns {
    fn of(cells: &[Cell]) -> Self {
        let mut used: Vec<u32> = cells.iter().map(|cell| cell.at.1).collect();
        used.sort_unstable();
        used.dedup();
        let runs: Vec<(u32, u32)> =
            used.chunk_by(|a, b| *b == a + 1).map(|run| (run[0], run[run.len() - 1])).collect();
        let mut starts = Vec::with_capacity(runs.len());
        let mut start = 0;
        let mut end = runs.first().map_or(0, |run| run.0);
        for (first, last) in &runs {
            let empty = first - end;
            start += if empty > MAX_EMPTY_COLUMNS { 1 } else { empty as usize };
            starts.push(start);
            start += (last - first + 1) as usize;
            end = last + 1;
        }
        let (first, last) = (used.first().copied().unwrap_or(0), used.last().copied().unwrap_or(0));
        Self { first, last, runs, starts }
    }

    /// How many columns are written.
    fn shown(&self) -> usize {
        self.position(self.last) + 1
    }

    /// Where a column is written.
    fn position(&self, column: u32) -> usize {
        let run = self.runs.partition_point(|(_, last)| *last < column);
        self.starts
            .get(run)
            .zip(self.runs.get(run))
            .map_or(0, |(start, run)| start + (column - run.0) as usize)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use super::*;
    use crate::limits::Limits;

    fn text(cells: &[(u32, u32, &str)]) -> String {
        let limits = Limits::default();
        let bounds = Bounds::new(&limits, &|| ControlFlow::Continue(()));
        let mut grid = Grid::default();
        for (row, column, words) in cells {
            grid.add((*row, *column), words, bounds).unwrap();
        }
        let mut flow = Flow::new(&limits);
        grid.write(&mut flow, bounds).unwrap();
        flow.finish().unwrap().text
    }

    #[test]
    fn cells_stay_in_their_columns() {
        let cells = [(4, 2, "a"), (4, 4, "c"), (5, 3, "x|y"), (5, 4, "two\nlines")];
        assert_eq!(text(&cells), "| a | | c |\n| --- | --- | --- |\n| | x\\|y | two lines |");
    }

    #[test]
    fn the_order_of_the_file_does_not_matter_and_the_last_of_two_counts() {
        let cells = [(1, 1, "d"), (0, 0, "a"), (1, 0, "c"), (0, 1, "old"), (0, 1, "b")];
        assert_eq!(text(&cells), "| a | b |\n| --- | --- |\n| c | d |");
    }

    #[test]
    fn blocks_that_are_apart_are_tables_of_their_own() {
        let title = [(0, 0, "Report | 2024")];
        let table = [(2, 0, "a"), (2, 1, "b"), (3, 0, "c"), (3, 1, "d")];
        let same_columns = [(5, 0, "e"), (5, 1, "f")];
        let far_below = [(9, 0, "g"), (9, 1, "h")];
        assert_eq!(
            text(&[&title[..], &table, &same_columns, &far_below].concat()),
            "Report | 2024\n\n| a | b |\n| --- | --- |\n| c | d |\n| e | f |\n\n| g | h |\n| --- | --- |"
        );
    }

    #[test]
    fn tables_that_touch_at_a_corner_are_apart_and_an_outline_is_not() {
        let left = [(0, 0, "a"), (0, 1, "b"), (1, 0, "c"), (1, 1, "d")];
        let right = [(2, 2, "x"), (2, 3, "y"), (3, 2, "z"), (3, 3, "w")];
        assert_eq!(
            text(&[&left[..], &right].concat()),
            "| a | b |\n| --- | --- |\n| c | d |\n\n| x | y |\n| --- | --- |\n| z | w |"
        );
        let outline = [(0, 0, "1"), (1, 1, "1.1"), (2, 2, "1.1.1")];
        assert_eq!(text(&outline), "| 1 | | |\n| --- | --- | --- |\n| | 1.1 | |\n| | | 1.1.1 |");
    }

    #[test]
    fn tables_side_by_side_are_apart_and_a_table_with_an_empty_column_is_not() {
        let left = [(0, 0, "a"), (0, 1, "b"), (1, 0, "c"), (1, 1, "d")];
        let right = [(0, 3, "x"), (0, 4, "y")];
        assert_eq!(
            text(&[&left[..], &right].concat()),
            "| a | b |\n| --- | --- |\n| c | d |\n\n| x | y |\n| --- | --- |"
        );
        let wide = [(0, 3, "x"), (0, 4, "y"), (1, 3, "z"), (1, 4, "w")];
        assert_eq!(
            text(&[&left[..], &wide].concat()),
            "| a | b | | x | y |\n| --- | --- | --- | --- | --- |\n| c | d | | z | w |"
        );
    }

    #[test]
    fn a_sparse_sheet_is_written_without_its_empty_cells() {
        // A diagonal of 16,000 cells spans 256 million.
        let words: Vec<String> = (0..16_000).map(|n| format!("c{n}")).collect();
        let cells: Vec<(u32, u32, &str)> = (0..).zip(&words).map(|(n, word)| (n, n, word.as_str())).collect();
        let text = text(&cells);
        assert!(text.starts_with("| c0 |\n| --- |\n| c1 |") && text.len() < 200_000, "{}", text.len());
        // One wide row above many short ones.
        let wide = (0..300).map(|column| (0, column, "w"));
        let short = (1..5_000).map(|row| (row, 0, "s"));
        let wide = super::tests::text(&wide.chain(short).collect::<Vec<_>>());
        assert!(wide.ends_with("| s |") && wide.len() < 60_000, "{}", wide.len());
        let far = [(0, 0, "a"), (0, 16_383, "b"), (1, 0, "c")];
        assert_eq!(super::tests::text(&far), "| a | | b |\n| --- | --- | --- |\n| c | | |");
    }
}
