//! Tables without lines: rows whose cells stand below one another.

use super::Table;
use super::glyphs::Frame;
use super::lines::Line;
use super::rules::add_line;
use super::words::Word;
use crate::formats::pdf::layout::blocks;

/// The gap between two cells, as a share of the size.
const CELL_GAP: f32 = 1.0;
/// Rows that a table of two columns has at least, and one of more columns.
const MIN_ROWS_OF_TWO: usize = 3;
const MIN_ROWS: usize = 2;
const MIN_COLUMNS: usize = 2;
const MAX_COLUMNS: usize = 40;
/// Dots that lead to the next cell.
const LEADER: usize = 4;
/// A single cell that is larger than the first row by this factor is a heading below the table.
const LARGER: f32 = 1.12;

pub enum Found {
    Lines(Vec<Line>),
    /// An entry of a form.
    Entry(Vec<Line>),
    Table(Aligned),
}

/// A table that was found by its columns.
pub struct Aligned {
    /// Each row with its lines, and each of these with its cells: the column and the words.
    rows: Vec<Vec<Vec<(usize, Line)>>>,
    columns: usize,
    x0: f32,
    x1: f32,
    top: f32,
    bottom: f32,
}

/// Finds the tables among the lines of a column.
pub fn find(lines: Vec<Line>, from_right: bool) -> Vec<Found> {
    let cells: Vec<Vec<Line>> = lines.iter().map(cells).collect();
    let mut found = Vec::new();
    let mut open: Vec<Line> = Vec::new();
    let mut lines = lines.into_iter();
    let mut at = 0;
    while at < cells.len() {
        let end = at + run(&cells[at..]);
        // The end of a run may not fit; a table may end before it.
        let table = (at < end).then(|| Aligned::new(&cells[at..end], from_right)).flatten();
        let Some((table, length)) = table else {
            open.extend(lines.next());
            at += 1;
            continue;
        };
        if !open.is_empty() {
            found.push(Found::Lines(std::mem::take(&mut open)));
        }
        match table.entries().filter(|_| !from_right) {
            Some(entries) => found.extend(entries.into_iter().map(Found::Entry)),
            None => found.push(Found::Table(table)),
        }
        for _ in 0..length {
            lines.next();
        }
        at += length;
    }
    if !open.is_empty() {
        found.push(Found::Lines(open));
    }
    found
}

/// The parts of a line between its wide gaps.
fn cells(line: &Line) -> Vec<Line> {
    let mut cells: Vec<Vec<Word>> = Vec::new();
    let mut end = f32::NEG_INFINITY;
    let mut dots = 0;
    for word in &line.words {
        let is_leader = word.glyphs.iter().all(|glyph| matches!(glyph.character, '.' | '…' | '·'));
        let ends_leader = dots >= LEADER && !is_leader;
        dots = if is_leader { dots + word.glyphs.len() } else { 0 };
        let is_apart = word.x0 - end > CELL_GAP * line.size && !(is_leader && dots > word.glyphs.len());
        if cells.is_empty() || ends_leader || is_apart {
            cells.push(Vec::new());
        }
        end = end.max(word.x1);
        if let Some(cell) = cells.last_mut() {
            cell.push(word.clone());
        }
    }
    cells.into_iter().map(Line::of_words).collect()
}

/// How many lines from the first on may be a table: lines of several cells, with single cells between them.
fn run(lines: &[Vec<Line>]) -> usize {
    if lines.first().is_none_or(|cells| cells.len() < 2) {
        return 0;
    }
    let mut end = 1;
    let mut single = 0;
    for (number, pair) in lines.windows(2).enumerate() {
        let [above, below] = pair else { break };
        let (Some(upper), Some(lower)) = (above.first(), below.first()) else { break };
        let gap = lower.y - upper.y;
        if gap > 4.0 * upper.size.max(lower.size) || gap < 0.0 {
            break;
        }
        single = if below.len() < 2 { single + 1 } else { 0 };
        let is_heading = single > 0 && lower.size > LARGER * lines[0][0].size;
        if single > 2 || is_heading {
            break;
        }
        if below.len() >= 2 {
            end = number + 2;
        }
    }
    end
}

impl Aligned {
    /// The longest table at the beginning of these lines, and how many of them it takes.
    fn new(lines: &[Vec<Line>], from_right: bool) -> Option<(Self, usize)> {
        let columns = columns(lines)?;
        let mut length = 0;
        let mut aligned = 0;
        for (number, cells) in lines.iter().enumerate() {
            let fits = fits(cells, &columns);
            if cells.len() >= 2 && !fits {
                break;
            }
            if cells.len() >= 2 {
                aligned += 1;
                length = number + 1;
            } else if !fits {
                break;
            }
        }
        let least = if columns.len() == 2 { MIN_ROWS_OF_TWO } else { MIN_ROWS };
        if aligned < least || is_list(&lines[..length], from_right) || is_prose(&lines[..length]) {
            return None;
        }
        let mut table = Self::of(&lines[..length], &columns);
        table.drop_bullets();
        Some((table, length))
    }

    fn of(lines: &[Vec<Line>], columns: &[(f32, f32)]) -> Self {
        let all = || lines.iter().flatten();
        let mut steps: Vec<f32> = lines
            .windows(2)
            .filter(|pair| pair.iter().all(|cells| is_first(cells, columns)))
            .filter_map(|pair| Some(pair[1].first()?.y - pair[0].first()?.y))
            .collect();
        steps.sort_by(f32::total_cmp);
        let step = steps.get(steps.len() / 2).copied().unwrap_or(f32::INFINITY);
        let mut rows: Vec<Vec<Vec<(usize, Line)>>> = Vec::new();
        let mut last = f32::NEG_INFINITY;
        for cells in lines {
            let Some(first) = cells.first() else { continue };
            let row: Vec<(usize, Line)> =
                cells.iter().map(|cell| (column_of(cell, columns), cell.clone())).collect();
            // A line that begins in a later column and follows closely goes on with the row above.
            let goes_on = row.iter().all(|(column, _)| *column > 0)
                && row.len() < columns.len()
                && first.y - last < 0.85 * step.min(3.0 * first.size);
            match rows.last_mut() {
                Some(above) if goes_on => above.push(row),
                _ => rows.push(vec![row]),
            }
            last = first.y;
        }
        Self {
            rows,
            columns: columns.len(),
            x0: all().map(|cell| cell.x0).fold(f32::INFINITY, f32::min),
            x1: all().map(|cell| cell.x1).fold(f32::NEG_INFINITY, f32::max),
            top: all().map(|cell| cell.top).fold(f32::INFINITY, f32::min),
            bottom: all().map(|cell| cell.bottom).fold(f32::NEG_INFINITY, f32::max),
        }
    }

    /// Removes a first column that has only bullets: they belong to what is beside them.
    fn drop_bullets(&mut self) {
        let is_bullet = |cell: &Line| {
            let mut glyphs = cell.words.iter().flat_map(|word| &word.glyphs);
            glyphs.all(|glyph| blocks::is_bullet(glyph.character))
        };
        let mut first = self.rows.iter().flatten().flatten().filter(|(column, _)| *column == 0).peekable();
        if self.columns < MIN_COLUMNS + 1 || first.peek().is_none() || !first.all(|(_, cell)| is_bullet(cell))
        {
            return;
        }
        for line in self.rows.iter_mut().flatten() {
            line.retain(|(column, _)| *column > 0);
            for (column, _) in line.iter_mut() {
                *column -= 1;
            }
        }
        self.columns -= 1;
    }

    /// The entries of a form, each with its lines: every label ends with a colon and has its value beside it. `None` for
    /// other tables.
    fn entries(&self) -> Option<Vec<Vec<Line>>> {
        let cells = || self.rows.iter().flatten().flatten();
        let is_label = |cell: &Line| plain(cell).ends_with([':', '：']);
        let is_form = self.columns.is_multiple_of(2)
            && cells().all(|(column, cell)| is_label(cell) == column.is_multiple_of(2))
            && self.rows.iter().all(|row| row[0].iter().any(|(column, _)| column.is_multiple_of(2)));
        if !is_form {
            return None;
        }
        let mut entries = Vec::new();
        for row in &self.rows {
            for label in (0..self.columns).step_by(2) {
                let of_entry = |line: &Vec<(usize, Line)>| {
                    let cells = line.iter().filter(|(column, _)| *column == label || *column == label + 1);
                    let words: Vec<Word> = cells.flat_map(|(_, cell)| cell.words.clone()).collect();
                    (!words.is_empty()).then(|| Line::of_words(words))
                };
                let lines: Vec<Line> = row.iter().filter_map(of_entry).collect();
                entries.extend((!lines.is_empty()).then_some(lines));
            }
        }
        Some(entries)
    }

    pub fn on_page(&self, frame: &Frame, from_right: bool) -> Table {
        let mut rows = Vec::new();
        for lines in &self.rows {
            let mut row = vec![String::new(); self.columns];
            for (column, cell) in lines.iter().flatten() {
                add_line(&mut row[*column], &cell.text(frame));
            }
            if from_right {
                row.reverse();
            }
            rows.push(row);
        }
        Table { rows, area: Some(frame.area(self.x0, self.top, self.x1, self.bottom)) }
    }
}

/// The columns of a table: where the cells of its fullest rows are.
fn columns(lines: &[Vec<Line>]) -> Option<Vec<(f32, f32)>> {
    let head = &lines[..lines.len().min(60)];
    let most = head.iter().map(Vec::len).max()?;
    let full = |number: usize| head.iter().filter(move |cells| cells.len() == number);
    // A single row with more cells than all others has a gap inside one of its cells.
    let number = (2..=most).rev().find(|number| full(*number).count() >= 2 || *number == 2)?;
    if number > MAX_COLUMNS {
        return None;
    }
    let mut spans: Vec<(f32, f32)> = full(number).flatten().map(|cell| (cell.x0, cell.x1)).collect();
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut columns: Vec<(f32, f32)> = Vec::new();
    for (x0, x1) in spans {
        match columns.last_mut() {
            Some(last) if x0 < last.1 => last.1 = last.1.max(x1),
            _ => columns.push((x0, x1)),
        }
    }
    (columns.len() >= 2 && columns.len() == number).then_some(columns)
}

/// Whether each cell of a line is in a column of its own. A cell above several columns may be one of two or more.
fn fits(cells: &[Line], columns: &[(f32, f32)]) -> bool {
    if cells.len() > columns.len() {
        return false;
    }
    let mut last = None;
    let mut wide = 0;
    for cell in cells {
        let column = column_of(cell, columns);
        if last.is_some_and(|last| column <= last) {
            return false;
        }
        last = Some(column);
        wide += usize::from(columns.iter().filter(|(x0, x1)| cell.x0 < *x1 && cell.x1 > *x0).count() > 1);
    }
    match cells {
        [only] => {
            let (x0, x1) = (columns[0].0, columns[columns.len() - 1].1);
            wide == 0 && only.x0 >= x0 - only.size || only.x1 - only.x0 < 0.5 * (x1 - x0)
        }
        _ => wide < cells.len(),
    }
}

fn column_of(cell: &Line, columns: &[(f32, f32)]) -> usize {
    let shared = |(x0, x1): &(f32, f32)| cell.x1.min(*x1) - cell.x0.max(*x0);
    // The first column that it overlaps, otherwise the nearest one.
    let over = columns.iter().position(|column| shared(column) > 0.0);
    over.unwrap_or_else(|| {
        let nearest = columns.iter().enumerate().max_by(|a, b| shared(a.1).total_cmp(&shared(b.1)));
        nearest.map_or(0, |(column, _)| column)
    })
}

fn is_first(cells: &[Line], columns: &[(f32, f32)]) -> bool {
    cells.first().is_some_and(|cell| column_of(cell, columns) == 0)
}

/// Whether the first column has the markers of a list, and the second one its items.
fn is_list(lines: &[Vec<Line>], from_right: bool) -> bool {
    let tabular: Vec<&Vec<Line>> = lines.iter().filter(|cells| cells.len() >= 2).collect();
    let is_item = |cells: &&Vec<Line>| {
        let marker = if from_right { cells.last() } else { cells.first() };
        cells.len() == 2 && marker.is_some_and(|marker| blocks::is_marker(&plain(marker)))
    };
    2 * tabular.iter().filter(|cells| is_item(cells)).count() >= tabular.len()
}

fn plain(line: &Line) -> String {
    line.words.iter().flat_map(|word| &word.glyphs).map(|glyph| glyph.character).collect()
}

/// Whether these lines are sentences with wide gaps in them.
fn is_prose(lines: &[Vec<Line>]) -> bool {
    let tabular = lines.iter().filter(|cells| cells.len() >= 2);
    let (mut words, mut cells) = (0, 0);
    for row in tabular {
        cells += row.len();
        words += row.iter().map(|cell| cell.words.len()).sum::<usize>();
    }
    words > 9 * cells
}
