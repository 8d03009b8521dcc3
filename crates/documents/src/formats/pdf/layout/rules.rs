//! Tables that are drawn with lines.

use super::Table;
use super::bands;
use super::glyphs::Frame;
use super::lines::{self, Line};
use super::words::{COLUMN_GAP, Piece, Word};

/// A page with more lines is a drawing.
pub const MAX_RULES: usize = 6_000;
/// Lines in one direction that are compared with those in the other.
const MAX_MERGED: usize = 800;
const MAX_ROWS: usize = 400;
const MAX_COLUMNS: usize = 60;
/// Lines that are nearer than this touch, in points.
pub const TOUCH: f32 = 3.0;
/// A line that is shorter than this belongs to a symbol.
pub const SHORT: f32 = 6.0;
/// A table of cells with more words than this is a frame around the layout of a page.
const MAX_WORDS_IN_A_CELL: usize = 80;

/// A gap inside a cell that is wider than this share of the size parts columns.
const INNER_GAP: f32 = 1.0;
/// Cells with at least so many lines at the same heights are several rows.
const UNRULED_LINES: usize = 6;

/// A cell over so many rows may be one of a column without lines.
const MIN_SPREAD: usize = 3;
/// Words beside one another have baselines that differ by less than this, in points.
const LEVEL: f32 = 1.5;

/// A straight line, in points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    pub x0: f32,
    pub y0: f32,
    pub x1: f32,
    pub y1: f32,
}

/// A line at a place across it, from and to a place along it.
#[derive(Debug, Clone, Copy)]
struct Stroke {
    at: f32,
    from: f32,
    to: f32,
}

impl Stroke {
    fn touches(&self, across: &Self) -> bool {
        let reaches = |stroke: &Self, at: f32| stroke.from - TOUCH <= at && at <= stroke.to + TOUCH;
        reaches(self, across.at) && reaches(across, self.at)
    }
}

/// A table with its words.
#[derive(Debug)]
pub struct Ruled {
    xs: Vec<f32>,
    ys: Vec<f32>,
    /// The words of each cell, row by row.
    cells: Vec<Vec<Word>>,
    /// Whether there is a line below each row.
    has_all_lines: bool,
}

/// Takes the tables with their words out of a page. Returns the rest in pieces, with a piece for each row of a table.
pub fn take_tables(words: Vec<Word>, rules: &[Rule]) -> (Vec<Ruled>, Vec<Piece>) {
    let mut tables = Vec::new();
    let mut pieces = Vec::new();
    let mut rest = words;
    for grid in grids(rules) {
        let (inside, outside): (Vec<Word>, Vec<Word>) = rest.into_iter().partition(|word| grid.has(word));
        rest = outside;
        match grid.fill(inside) {
            Ok(table) => {
                pieces.extend(table.rows_as_pieces(tables.len()));
                tables.push(table);
            }
            Err(words) => put_back(&mut rest, words),
        }
    }
    for bands in bands::find(rules) {
        let (inside, outside): (Vec<Word>, Vec<Word>) = rest.into_iter().partition(|word| bands.has(word));
        rest = outside;
        match bands.fill(inside) {
            Ok(table) => {
                pieces.extend(table.rows_as_pieces(tables.len()));
                tables.push(table);
            }
            Err(words) => put_back(&mut rest, words),
        }
    }
    pieces.extend(in_pieces(rest));
    (tables, pieces)
}

fn put_back(rest: &mut Vec<Word>, words: Vec<Word>) {
    if !words.is_empty() {
        rest.extend(words);
        rest.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.x0.total_cmp(&b.x0)));
    }
}

/// The level lines that no upright line touches, from the top: where each is, and from where to where it goes.
pub fn level_strokes(rules: &[Rule]) -> Vec<(f32, f32, f32)> {
    let (level, upright) = strokes(rules);
    if level.len() > MAX_MERGED || upright.len() > MAX_MERGED {
        return Vec::new();
    }
    let is_alone = |across: &&Stroke| !upright.iter().any(|down| across.touches(down));
    let mut alone: Vec<(f32, f32, f32)> =
        level.iter().filter(is_alone).map(|stroke| (stroke.at, stroke.from, stroke.to)).collect();
    alone.sort_by(|a, b| a.0.total_cmp(&b.0));
    alone
}

/// The level and the upright lines of a page.
fn strokes(rules: &[Rule]) -> (Vec<Stroke>, Vec<Stroke>) {
    let level = rules.iter().filter(|rule| rule.y1 - rule.y0 < 2.0 && rule.x1 - rule.x0 >= SHORT);
    let level = merged(level.map(|rule| Stroke { at: rule.y0, from: rule.x0, to: rule.x1 }).collect());
    let upright = rules.iter().filter(|rule| rule.x1 - rule.x0 < 2.0 && rule.y1 - rule.y0 >= SHORT);
    let upright = merged(upright.map(|rule| Stroke { at: rule.x0, from: rule.y0, to: rule.y1 }).collect());
    (level, upright)
}

/// Joins the words of a row up to the next wide gap.
pub fn in_pieces(words: Vec<Word>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut open: Vec<Word> = Vec::new();
    for word in words {
        let fits = open.last().is_some_and(|last| {
            let gap = word.x0 - last.x1;
            (last.y - word.y).abs() < 0.2 * word.size
                && gap < COLUMN_GAP * word.size.max(last.size)
                && gap > -0.5 * word.size
                && word.size.max(last.size) < 1.6 * word.size.min(last.size)
        });
        if !fits && !open.is_empty() {
            pieces.push(Piece::new(std::mem::take(&mut open)));
        }
        open.push(word);
    }
    if !open.is_empty() {
        pieces.push(Piece::new(open));
    }
    pieces
}

/// The grids that the lines of a page form.
fn grids(rules: &[Rule]) -> Vec<Grid> {
    let (level, upright) = strokes(rules);
    if level.len() > MAX_MERGED || upright.len() > MAX_MERGED {
        return Vec::new();
    }
    // Lines that touch belong to one grid.
    let mut groups: Vec<usize> = (0..level.len() + upright.len()).collect();
    for (i, across) in level.iter().enumerate() {
        for (j, down) in upright.iter().enumerate() {
            if across.touches(down) {
                let (a, b) = (root(&groups, i), root(&groups, level.len() + j));
                groups[a.max(b)] = a.min(b);
            }
        }
    }
    let mut grids = Vec::new();
    for group in 0..level.len() {
        if root(&groups, group) != group {
            continue;
        }
        let of_group = |number: usize| root(&groups, number) == group;
        let across = level.iter().enumerate().filter(|(number, _)| of_group(*number)).map(|(_, s)| *s);
        let down =
            upright.iter().enumerate().filter(|(number, _)| of_group(level.len() + number)).map(|(_, s)| *s);
        grids.extend(Grid::new(across.collect(), down.collect()));
    }
    grids
}

fn root(groups: &[usize], mut at: usize) -> usize {
    while groups[at] != at {
        at = groups[at];
    }
    at
}

/// Joins lines that continue one another.
fn merged(mut strokes: Vec<Stroke>) -> Vec<Stroke> {
    strokes.sort_by(|a, b| a.at.round().total_cmp(&b.at.round()).then(a.from.total_cmp(&b.from)));
    let mut merged: Vec<Stroke> = Vec::new();
    for stroke in strokes {
        match merged.last_mut() {
            Some(last) if (last.at - stroke.at).abs() < 1.6 && stroke.from <= last.to + TOUCH => {
                last.to = last.to.max(stroke.to);
            }
            _ => merged.push(stroke),
        }
    }
    merged
}

/// Lines that form a grid.
struct Grid {
    xs: Vec<f32>,
    ys: Vec<f32>,
    across: Vec<Stroke>,
    down: Vec<Stroke>,
}

impl Grid {
    fn new(across: Vec<Stroke>, down: Vec<Stroke>) -> Option<Self> {
        if across.is_empty() || down.is_empty() {
            return None;
        }
        let ends = |strokes: &[Stroke]| {
            let from = strokes.iter().map(|stroke| stroke.from).fold(f32::INFINITY, f32::min);
            let to = strokes.iter().map(|stroke| stroke.to).fold(f32::NEG_INFINITY, f32::max);
            [from, to]
        };
        // A table may have no line at its sides, or none above and below.
        let xs = places(down.iter().map(|stroke| stroke.at).chain(ends(&across)).collect());
        let ys = places(across.iter().map(|stroke| stroke.at).chain(ends(&down)).collect());
        let fits = (3..=MAX_COLUMNS + 1).contains(&xs.len()) && (3..=MAX_ROWS + 1).contains(&ys.len());
        fits.then_some(Self { xs, ys, across, down })
    }

    fn has(&self, word: &Word) -> bool {
        let (x, y) = (f32::midpoint(word.x0, word.x1), word.y - 0.3 * word.size);
        self.xs[0] - 1.0 < x
            && x < self.xs[self.xs.len() - 1] + 1.0
            && self.ys[0] - 1.0 < y
            && y < self.ys[self.ys.len() - 1] + 1.0
    }

    /// Puts the words into cells. Returns them if it is not a table.
    fn fill(self, words: Vec<Word>) -> Result<Ruled, Vec<Word>> {
        let columns = self.xs.len() - 1;
        let rows = self.ys.len() - 1;
        let owners = self.owners(rows, columns);
        let mut counts = vec![0_usize; rows * columns];
        let place = |word: &Word| {
            // A word that reaches into the next cell belongs where it begins.
            let x = word.x0 + 0.3 * word.size.min(word.x1 - word.x0);
            let column = band(&self.xs, x);
            let row = band(&self.ys, word.y - 0.3 * word.size);
            owners[row * columns + column]
        };
        for word in &words {
            counts[place(word)] += 1;
        }
        let filled = counts.iter().filter(|count| **count > 0).count();
        let filled_columns = (0..columns).filter(|c| (0..rows).any(|r| counts[r * columns + c] > 0)).count();
        let filled_rows = (0..rows).filter(|r| (0..columns).any(|c| counts[r * columns + c] > 0)).count();
        let cells = owners.iter().enumerate().filter(|(at, owner)| at == *owner).count();
        let is_table = filled_columns >= 2
            && filled_rows >= 2
            && 4 * filled >= cells
            && words.len() <= MAX_WORDS_IN_A_CELL * filled;
        if !is_table || is_unruled(&words, &counts, place) || has_inner_columns(&words, &counts, place) {
            return Err(words);
        }
        let mut filled: Vec<Vec<Word>> = vec![Vec::new(); rows * columns];
        for word in words {
            let cell = place(&word);
            filled[cell].push(word);
        }
        spread(&mut filled, &owners, &self.ys, columns);
        Ok(Ruled { xs: self.xs, ys: self.ys, cells: filled, has_all_lines: false })
    }

    /// The cell that each cell belongs to: the upper left one of those without a line between them.
    fn owners(&self, rows: usize, columns: usize) -> Vec<usize> {
        let middle = |places: &[f32], at: usize| f32::midpoint(places[at], places[at + 1]);
        let is_between = |strokes: &[Stroke], at: f32, along: f32| {
            strokes.iter().any(|stroke| {
                (stroke.at - at).abs() < TOUCH && stroke.from - 1.0 <= along && along <= stroke.to + 1.0
            })
        };
        let mut owners = vec![0; rows * columns];
        for row in 0..rows {
            for column in 0..columns {
                let at = row * columns + column;
                let y = middle(&self.ys, row);
                let x = middle(&self.xs, column);
                owners[at] = if column > 0 && !is_between(&self.down, self.xs[column], y) {
                    owners[at - 1]
                } else if row > 0 && !is_between(&self.across, self.ys[row], x) {
                    owners[at - columns]
                } else {
                    at
                };
            }
        }
        owners
    }
}

/// Puts the lines of a cell that reaches over several rows into these rows, if each of them stands beside those of other cells:
/// only a part of the table has lines between its rows, or colours.
fn spread(cells: &mut [Vec<Word>], owners: &[usize], ys: &[f32], columns: usize) {
    for at in 0..cells.len() {
        let rows: Vec<usize> = (at / columns..cells.len() / columns)
            .take_while(|row| owners[row * columns + at % columns] == at)
            .collect();
        if rows.len() < MIN_SPREAD || cells[at].len() < rows.len() {
            continue;
        }
        let row_of = |word: &Word| band(ys, word.y - 0.3 * word.size);
        let is_line = |row: &usize| {
            let mut inside = cells[at].iter().filter(|word| row_of(word) == *row);
            let others = cells[row * columns..(row + 1) * columns].iter().enumerate();
            let mut beside =
                others.filter(|(column, _)| row * columns + column != at).flat_map(|(_, words)| words);
            let Some(first) = inside.next() else { return false };
            inside.all(|word| (word.y - first.y).abs() < LEVEL)
                && beside.any(|word| (word.y - first.y).abs() < LEVEL)
        };
        if rows.iter().all(is_line) {
            for word in std::mem::take(&mut cells[at]) {
                let row = row_of(&word).clamp(rows[0], rows[rows.len() - 1]);
                cells[row * columns + at % columns].push(word);
            }
        }
    }
}

/// Whether the rows of a table have no lines between them: several cells of one row have many lines at the same heights.
fn is_unruled(words: &[Word], counts: &[usize], place: impl Fn(&Word) -> usize) -> bool {
    let mut heights: Vec<Vec<f32>> = vec![Vec::new(); counts.len()];
    // Words are in rows from the top.
    for word in words {
        let of_cell = &mut heights[place(word)];
        if of_cell.last().is_none_or(|last| word.y - last > 0.5 * word.size) {
            of_cell.push(word.y);
        }
    }
    let mut tall = heights.iter().filter(|heights| heights.len() >= UNRULED_LINES);
    let Some(first) = tall.next() else { return false };
    let shared = |heights: &&Vec<f32>| {
        let is_shared = |y: &&f32| first.iter().any(|of_first| (of_first - **y).abs() < 1.5);
        5 * heights.iter().filter(is_shared).count() >= 4 * heights.len()
    };
    tall.any(|heights| shared(&heights))
}

/// Whether a good part of the words is in cells that have columns of their own: the lines part blocks, not cells.
fn has_inner_columns(words: &[Word], counts: &[usize], place: impl Fn(&Word) -> usize) -> bool {
    // The baseline and the end of the open row of each cell, and whether there is a wide gap in it.
    let mut open: Vec<Option<(f32, f32, bool)>> = vec![None; counts.len()];
    let mut rows = vec![(0_usize, 0_usize); counts.len()];
    for word in words {
        let cell = place(word);
        let is_same = |(y, _, _): &(f32, f32, bool)| (word.y - y).abs() < 0.5 * word.size;
        match open[cell].as_mut().filter(|row| is_same(row)) {
            Some((_, end, has_gap)) => {
                if word.x0 - *end > INNER_GAP * word.size && !*has_gap {
                    *has_gap = true;
                    rows[cell].1 += 1;
                }
                *end = end.max(word.x1);
            }
            None => {
                open[cell] = Some((word.y, word.x1, false));
                rows[cell].0 += 1;
            }
        }
    }
    let has_columns = |(all, with_gap): (usize, usize)| with_gap >= 2 && 2 * with_gap >= all;
    let inside: usize =
        rows.iter().zip(counts).filter(|(rows, _)| has_columns(**rows)).map(|(_, count)| count).sum();
    4 * inside > words.len()
}

/// Places without those that are the same.
fn places(mut places: Vec<f32>) -> Vec<f32> {
    places.sort_by(f32::total_cmp);
    let mut distinct: Vec<f32> = Vec::new();
    for place in places {
        if distinct.last().is_none_or(|last| place - last > TOUCH + 1.0) {
            distinct.push(place);
        }
    }
    distinct
}

pub fn band(places: &[f32], at: f32) -> usize {
    places.partition_point(|place| *place <= at).clamp(1, places.len() - 1) - 1
}

impl Ruled {
    /// A table with a line below each row, and its columns between these places.
    pub fn of_bands(xs: Vec<f32>, ys: Vec<f32>, cells: Vec<Vec<Word>>) -> Self {
        Self { xs, ys, cells, has_all_lines: true }
    }

    fn columns(&self) -> usize {
        self.xs.len() - 1
    }

    fn rows_as_pieces(&self, table: usize) -> Vec<Piece> {
        let (x0, x1) = (self.xs[0], self.xs[self.xs.len() - 1]);
        let piece = |pair: &[f32]| Piece {
            words: Vec::new(),
            x0,
            x1,
            top: pair[0],
            bottom: pair[1],
            y: pair[1],
            size: (pair[1] - pair[0]).max(1.0),
            table: Some(table),
        };
        self.ys.windows(2).map(piece).collect()
    }

    pub fn read(self, frame: &Frame, from_right: bool) -> Table {
        let columns = self.columns();
        let area = frame.area(self.xs[0], self.ys[0], self.xs[columns], self.ys[self.ys.len() - 1]);
        let widths: Vec<f32> = self.xs.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let mut rows: Vec<Vec<String>> = Vec::new();
        for cells in self.cells.chunks(columns) {
            let cells: Vec<Vec<Line>> =
                cells.iter().map(|words| lines::join(in_pieces(words.clone()))).collect();
            rows.extend(split_row(&cells, &widths, self.has_all_lines, frame));
        }
        if from_right {
            for row in &mut rows {
                row.reverse();
            }
        }
        Table { rows, area: Some(area) }
    }
}

/// The rows between two lines: several where the table has no lines between its rows. In a table that seems to have all lines
/// only a row whose cells all have as many lines is several.
fn split_row(cells: &[Vec<Line>], widths: &[f32], has_all_lines: bool, frame: &Frame) -> Vec<Vec<String>> {
    let filled: Vec<&Vec<Line>> = cells.iter().filter(|lines| !lines.is_empty()).collect();
    let most = filled.iter().map(|lines| lines.len()).max().unwrap_or(0);
    let whole: Vec<&&Vec<Line>> = filled.iter().filter(|lines| lines.len() == most).collect();
    let spans = |lines: &[Line]| lines.len() < most && is_centred(lines, whole[0]);
    let spanning = filled.iter().filter(|lines| spans(lines)).count();
    let least = if has_all_lines { 10 } else { 6 };
    let has_rows =
        most >= 2 && whole.len() >= 2 && 10 * (whole.len() + spanning) >= least * filled.len() && {
            let aligned = |lines: &&&Vec<Line>| {
                lines
                    .iter()
                    .zip(whole[0].iter())
                    .all(|(line, first)| (line.y - first.y).abs() < 0.4 * first.size)
            };
            whole.iter().all(aligned) && are_broken(cells, widths)
        };
    if !has_rows {
        return vec![cells.iter().map(|lines| joined(lines, frame)).collect()];
    }
    let baselines: Vec<f32> = whole[0].iter().map(|line| line.y).collect();
    let mut rows = vec![vec![String::new(); cells.len()]; baselines.len()];
    for (column, lines) in cells.iter().enumerate() {
        if spans(lines) {
            rows[0][column] = joined(lines, frame);
            continue;
        }
        for line in lines {
            let row = baselines.partition_point(|y| *y < line.y - 0.4 * line.size).min(baselines.len() - 1);
            add_line(&mut rows[row][column], &line.text(frame));
        }
    }
    rows
}

/// Whether the only line of a cell stands in the middle of the lines of other cells, and beside none of them: the cell reaches
/// over all their rows.
fn is_centred(cell: &[Line], others: &[Line]) -> bool {
    let ([only], [first, .., last]) = (cell, others) else { return false };
    let is_beside = |other: &Line| (other.y - only.y).abs() < 0.25 * only.size;
    (f32::midpoint(first.y, last.y) - only.y).abs() < 0.25 * only.size && !others.iter().any(is_beside)
}

/// Whether the lines of most cells were begun on purpose: the next word would have had room on the line, or both are figures.
fn are_broken(cells: &[Vec<Line>], widths: &[f32]) -> bool {
    let (mut all, mut broken) = (0, 0);
    for (lines, width) in cells.iter().zip(widths) {
        for pair in lines.windows(2) {
            let Some(next) = pair[1].words.first() else { continue };
            let has_room = (pair[0].x1 - pair[0].x0) + (next.x1 - next.x0) + 1.5 * next.size < *width;
            all += 1;
            broken += usize::from(has_room || pair.iter().all(is_figure));
        }
    }
    4 * broken >= 3 * all
}

/// Whether a line is a single number, maybe with a sign or a unit that is no letter.
fn is_figure(line: &Line) -> bool {
    let [word] = &line.words[..] else { return false };
    let characters = || word.glyphs.iter().map(|glyph| glyph.character);
    characters().any(|c| c.is_ascii_digit()) && !characters().any(char::is_alphabetic)
}

fn joined(lines: &[Line], frame: &Frame) -> String {
    let mut text = String::new();
    for line in lines {
        add_line(&mut text, &line.text(frame));
    }
    text
}

/// Adds a line to a text. A word that was divided at the end of the line becomes one again.
pub fn add_line(text: &mut String, line: &str) {
    if text.is_empty() {
        text.push_str(line);
    } else if super::blocks::is_divided(text, line) {
        text.pop();
        text.push_str(line);
    } else {
        if !super::blocks::is_seamless(text, line) {
            text.push(' ');
        }
        text.push_str(line);
    }
}
