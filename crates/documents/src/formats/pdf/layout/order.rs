//! Cuts a page into columns, in the order in which they are read.
//!
//! A gutter is a strip without words that goes through several rows. The best gutter cuts a region into four: what is
//! above it, the columns on its two sides, and what is below it. These are cut in the same way.

use super::lines::{self, Row};
use super::words::Piece;

/// A gutter is at least this wide, as a share of the size of the text.
const GUTTER: f32 = 0.75;
/// Rows that each side of a gutter has at least.
const MIN_ROWS: usize = 3;
/// Regions in one another.
const MAX_DEPTH: usize = 12;
/// A page with more pieces is a drawing or hostile, and is read from the top.
const MAX_PIECES: usize = 4_000;
/// The places where a gutter is looked for in one region.
const MAX_CANDIDATES: usize = 60;
/// A row that runs on like a sentence has no gap wider than this share of its size.
const SENTENCE_GAP: f32 = 1.1;

/// The regions of a page, each read from the top.
pub fn regions(pieces: Vec<Piece>, from_right: bool) -> Vec<Vec<Piece>> {
    let mut regions = Vec::new();
    if pieces.len() > MAX_PIECES {
        regions.push(pieces);
    } else {
        cut(pieces, from_right, MAX_DEPTH, &mut regions);
    }
    regions
}

fn cut(pieces: Vec<Piece>, from_right: bool, depth: usize, regions: &mut Vec<Vec<Piece>>) {
    if pieces.is_empty() {
        return;
    }
    let rows = lines::rows(pieces);
    let Some(gutter) = (depth > 0).then(|| best_gutter(&rows)).flatten() else {
        regions.push(rows.into_iter().flat_map(|row| row.pieces).collect());
        return;
    };
    let (mut above, mut left, mut right, mut below) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, row) in rows.into_iter().enumerate() {
        for piece in row.pieces {
            let side = if number < gutter.first {
                &mut above
            } else if number > gutter.last {
                &mut below
            } else if piece.x1 <= gutter.x1 {
                &mut left
            } else {
                &mut right
            };
            side.push(piece);
        }
    }
    let (first, second) = if from_right { (right, left) } else { (left, right) };
    for part in [above, first, second, below] {
        cut(part, from_right, depth - 1, regions);
    }
}

struct Gutter {
    /// The rows that it goes through.
    first: usize,
    last: usize,
    x1: f32,
    score: f32,
}

fn best_gutter(rows: &[Row]) -> Option<Gutter> {
    if rows.len() < MIN_ROWS {
        return None;
    }
    let mut sizes: Vec<f32> = rows.iter().map(|row| row.size).collect();
    sizes.sort_by(f32::total_cmp);
    let width = GUTTER * sizes[sizes.len() / 2];
    let mut edges: Vec<f32> = rows.iter().flat_map(|row| &row.pieces).map(|piece| piece.x0).collect();
    edges.sort_by(f32::total_cmp);
    // Where most pieces begin is where columns begin.
    let mut candidates: Vec<(usize, f32)> = Vec::new();
    for edge in edges {
        match candidates.last_mut() {
            Some((number, first)) if edge - *first < 2.0 => *number += 1,
            _ => candidates.push((1, edge)),
        }
    }
    candidates.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    candidates.truncate(MAX_CANDIDATES);
    let found = candidates.iter().flat_map(|(_, edge)| through(rows, edge - width, *edge - 0.05));
    found.max_by(|a, b| a.score.total_cmp(&b.score))
}

/// The gutters in this strip: all ranges of rows that it goes through, if there are columns on its sides.
fn through(rows: &[Row], x0: f32, x1: f32) -> Vec<Gutter> {
    let crosses = |row: &Row| row.pieces.iter().any(|piece| piece.x0 < x1 && piece.x1 > x0);
    let mut found = Vec::new();
    let mut start = 0;
    while start < rows.len() {
        if crosses(&rows[start]) {
            start += 1;
            continue;
        }
        let end = rows[start..].iter().position(crosses).map_or(rows.len(), |length| start + length);
        found.extend(gutter(rows, start, end, x1));
        start = end;
    }
    found
}

fn gutter(rows: &[Row], mut start: usize, mut end: usize, x1: f32) -> Option<Gutter> {
    let sides = |row: &Row| {
        let left = row.pieces.iter().any(|piece| piece.x1 <= x1);
        let right = row.pieces.iter().any(|piece| piece.x1 > x1);
        (left, right)
    };
    let is_apart = |upper: &Row, lower: &Row| lower.top - upper.bottom > 0.9 * lower.size.max(upper.size);
    // A line on one side only that is far from the columns is a heading above them, or a note below them.
    while end - start > MIN_ROWS
        && sides(&rows[start]) != (true, true)
        && is_apart(&rows[start], &rows[start + 1])
    {
        start += 1;
    }
    while end - start > MIN_ROWS
        && sides(&rows[end - 1]) != (true, true)
        && is_apart(&rows[end - 2], &rows[end - 1])
    {
        end -= 1;
    }
    let inside = &rows[start..end];
    let (mut left, mut right, mut both) = (0_u16, 0_u16, 0_u16);
    for row in inside.iter().take(usize::from(u16::MAX)) {
        let (has_left, has_right) = sides(row);
        left += u16::from(has_left);
        right += u16::from(has_right);
        both += u16::from(has_left && has_right);
    }
    if usize::from(left.min(right)) < MIN_ROWS {
        return None;
    }
    let is_left = |piece: &Piece| piece.x1 <= x1;
    let is_right = |piece: &Piece| piece.x1 > x1;
    let (on_left, on_right) = (Side::of(inside, is_left), Side::of(inside, is_right));
    // Beside solid text there may be anything: pictures with labels, short notes.
    let prose = on_left.is_prose() && on_right.is_prose() || on_left.is_solid() || on_right.is_solid();
    // Two columns of cells have their rows in common; two columns of text need not.
    let aligned = f32::from(both) > 0.5 * f32::from(left.min(right));
    if !prose && aligned {
        return None;
    }
    let height = inside.last()?.bottom - inside.first()?.top;
    let score = height * f32::from(left.min(right)).sqrt();
    Some(Gutter { first: start, last: end - 1, x1, score })
}

/// What one side of a gutter consists of.
struct Side {
    lines: usize,
    words: usize,
    /// Lines that run on like a sentence.
    running: usize,
    /// Lines that take more than half of the width, and those that take nearly all of it.
    long: usize,
    full: usize,
}

impl Side {
    fn of(rows: &[Row], is_inside: impl Fn(&Piece) -> bool) -> Self {
        let (mut x0, mut x1) = (f32::INFINITY, f32::NEG_INFINITY);
        let mut widths: Vec<f32> = Vec::new();
        let mut side = Self { lines: 0, words: 0, running: 0, long: 0, full: 0 };
        for row in rows {
            let pieces: Vec<&Piece> = row.pieces.iter().filter(|piece| is_inside(piece)).collect();
            let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { continue };
            x0 = x0.min(first.x0);
            x1 = x1.max(last.x1);
            let words: usize = pieces.iter().map(|piece| piece.words.len()).sum();
            let is_table = pieces.iter().any(|piece| piece.table.is_some());
            let is_even = pieces.windows(2).all(|pair| pair[1].x0 - pair[0].x1 < SENTENCE_GAP * row.size);
            side.running += usize::from(is_table || is_even && words >= 3);
            side.words += words;
            side.lines += 1;
            widths.push(last.x1 - first.x0);
        }
        side.long = widths.iter().filter(|width| **width > 0.55 * (x1 - x0)).count();
        side.full = widths.iter().filter(|width| **width > 0.9 * (x1 - x0)).count();
        side
    }

    /// Whether it is text in sentences, not cells of a table.
    fn is_prose(&self) -> bool {
        let is_long = 2 * self.long >= self.lines || self.words >= 4 * self.lines;
        is_long && 5 * self.running >= 3 * self.lines
    }

    /// Whether it is a column of paragraphs: nearly all lines are full.
    fn is_solid(&self) -> bool {
        self.lines >= 8
            && self.words >= 5 * self.lines
            && 10 * self.running >= 8 * self.lines
            && 10 * self.full >= 7 * self.lines
    }
}
