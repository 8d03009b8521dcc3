//! Cuts a page into columns, in the order in which they are read.
//!
//! A gutter is a strip without words that goes through several rows. The best gutter cuts a region into four: what is
//! above it, the columns on its two sides, and what is below it. These are cut in the same way.

use super::lines::{self, Row};
use super::words::{Piece, Word};

/// A gutter is at least this wide, as a share of the size of the text.
const GUTTER: f32 = 0.75;
/// Rows that each side of a gutter has at least.
const MIN_ROWS: usize = 3;
/// A gutter through so many rows is one between columns, even if all rows have words on both sides.
const LONG: usize = 25;
/// Regions in one another.
const MAX_DEPTH: usize = 12;
/// A page with more pieces is a drawing or hostile, and is read from the top.
const MAX_PIECES: usize = 4_000;
/// The places where a gutter is looked for in one region.
const MAX_CANDIDATES: usize = 60;
/// Cells of one row have baselines that differ by less than this share of their size.
const LEVEL: f32 = 0.15;
/// The most characters of the number of an entry.
const MAX_MARKER: usize = 6;
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
    // A line on one side only that is far from the columns is a heading above them, or a note below them. A footnote is
    // below the column that it belongs to.
    while end - start > MIN_ROWS
        && sides(&rows[start]) != (true, true)
        && is_apart(&rows[start], &rows[start + 1])
    {
        start += 1;
    }
    while end - start > MIN_ROWS
        && sides(&rows[end - 1]) != (true, true)
        && is_apart(&rows[end - 2], &rows[end - 1])
        && !is_footnote(&rows[end - 1])
    {
        end -= 1;
    }
    let inside = &rows[start..end];
    let counts = Counts::of(inside, x1);
    if usize::from(counts.left.min(counts.right)) < MIN_ROWS {
        return None;
    }
    let on_left =
        |row: &Row| -> Vec<usize> { (0..row.pieces.len()).filter(|at| row.pieces[*at].x1 <= x1).collect() };
    let on_right =
        |row: &Row| -> Vec<usize> { (0..row.pieces.len()).filter(|at| row.pieces[*at].x1 > x1).collect() };
    let (left, right) = (Side::of(inside, on_left), Side::of(inside, on_right));
    // There may be several columns on a side: those beside the gutter decide.
    let beside_left = Side::of(inside, |row| near(row, on_left(row), true));
    // Numbers and bullets belong to what is beside them.
    if beside_left.is_markers() || right.is_markers() {
        return None;
    }
    // Beside solid text there may be anything: pictures with labels, short notes.
    let is_text = left.is_prose() && right.is_prose() || left.is_solid() || right.is_solid();
    // Rows that all stand side by side, with ends that differ, are those of a table, be they as long as sentences.
    let is_table = inside.len() < LONG && counts.are_paired() && !(left.is_filled() && right.is_filled());
    let is_text = is_text && !is_table;
    // Two columns of cells have their rows in common; two columns of text need not.
    if !is_text && counts.are_aligned() {
        let beside_right = Side::of(inside, |row| near(row, on_right(row), false));
        if !(beside_left.is_column() && beside_right.is_column()) {
            return None;
        }
    }
    if counts.both > 0 && left.is_short() && right.is_short() {
        // Two blocks of short lines beside one another: what is below one of them, after a gap, belongs to neither.
        let last = inside.iter().rposition(|row| sides(row) == (true, true))?;
        let gap = (last + 1..inside.len()).find(|at| is_apart(&inside[at - 1], &inside[*at]));
        end = start + gap.unwrap_or(inside.len());
        if end - start < MIN_ROWS {
            return None;
        }
    }
    let inside = &rows[start..end];
    let height = inside.last()?.bottom - inside.first()?.top;
    let score = height * f32::from(counts.left.min(counts.right)).sqrt();
    Some(Gutter { first: start, last: end - 1, x1, score })
}

fn is_apart(upper: &Row, lower: &Row) -> bool {
    lower.top - upper.bottom > 0.9 * lower.size.max(upper.size)
}

/// Whether a row may be a footnote: it begins with a number or a sign, and has some words.
fn is_footnote(row: &Row) -> bool {
    let words: usize = row.pieces.iter().map(|piece| piece.words.len()).sum();
    let first = row.pieces.first().and_then(|piece| piece.words.first()?.glyphs.first());
    words >= 4
        && first.is_some_and(|first| first.character.is_ascii_digit() || "*†‡§¹²³".contains(first.character))
}

/// The pieces beside the gutter, of those on one side: up to the next wide gap.
fn near(row: &Row, mut on_side: Vec<usize>, is_left: bool) -> Vec<usize> {
    let gap = |a: usize, b: usize| row.pieces[b].x0 - row.pieces[a].x1;
    let is_wide = |pair: &[usize]| gap(pair[0], pair[1]) > SENTENCE_GAP * row.size;
    if is_left {
        let from = on_side.windows(2).rposition(is_wide).map_or(0, |at| at + 1);
        on_side.drain(..from);
    } else {
        let after_marker = usize::from(on_side.first().is_some_and(|first| is_marker(&row.pieces[*first])));
        let wide = on_side.windows(2).skip(after_marker).position(is_wide);
        on_side.truncate(wide.map_or(on_side.len(), |at| at + after_marker + 1));
    }
    on_side
}

/// The rows on the sides of a gutter.
struct Counts {
    left: u16,
    right: u16,
    /// Rows with words on both sides, and those whose words have the same baseline.
    both: u16,
    level: u16,
}

impl Counts {
    fn of(rows: &[Row], x1: f32) -> Self {
        let mut counts = Self { left: 0, right: 0, both: 0, level: 0 };
        for row in rows.iter().take(usize::from(u16::MAX)) {
            let left = row.pieces.iter().rfind(|piece| piece.x1 <= x1);
            let right = row.pieces.iter().find(|piece| piece.x1 > x1);
            counts.left += u16::from(left.is_some());
            counts.right += u16::from(right.is_some());
            if let (Some(left), Some(right)) = (left, right) {
                counts.both += 1;
                counts.level += u16::from((left.y - right.y).abs() < LEVEL * row.size);
            }
        }
        counts
    }

    /// Whether nearly each row has words on both sides, at the same height.
    fn are_paired(&self) -> bool {
        let [both, level, most] = [self.both, self.level, self.left.max(self.right)].map(u32::from);
        10 * both >= 8 * most && 10 * level >= 9 * both
    }

    fn are_aligned(&self) -> bool {
        f32::from(self.both) > 0.5 * f32::from(self.left.min(self.right))
            && f32::from(self.level) > 0.4 * f32::from(self.both)
    }
}

/// How many of these pieces' words have a letter or a digit. Dots that lead to the next cell are no words.
fn count_words(pieces: &[&Piece]) -> usize {
    let is_word = |word: &&Word| word.glyphs.iter().any(|glyph| glyph.character.is_alphanumeric());
    pieces.iter().flat_map(|piece| &piece.words).filter(is_word).count()
}

/// Whether a piece is a number such as `2.1`, or a bullet.
fn is_marker(piece: &Piece) -> bool {
    let [word] = &piece.words[..] else { return false };
    let has_digit = word.glyphs.iter().any(|glyph| glyph.character.is_ascii_digit());
    let letters = word.glyphs.iter().filter(|glyph| glyph.character.is_alphabetic()).count();
    word.glyphs.len() <= MAX_MARKER && (letters == 0 || letters == 1 && !has_digit)
}

/// What one side of a gutter consists of.
struct Side {
    lines: usize,
    words: usize,
    /// Lines that are only a number or a bullet.
    markers: usize,
    /// Lines that run on like a sentence.
    running: usize,
    /// Lines that take more than half of the width, most of it, and nearly all of it.
    long: usize,
    wide: usize,
    full: usize,
}

impl Side {
    fn of(rows: &[Row], chosen: impl Fn(&Row) -> Vec<usize>) -> Self {
        let (mut x0, mut x1) = (f32::INFINITY, f32::NEG_INFINITY);
        let mut widths: Vec<f32> = Vec::new();
        let mut side = Self { lines: 0, words: 0, markers: 0, running: 0, long: 0, wide: 0, full: 0 };
        for row in rows {
            let pieces: Vec<&Piece> = chosen(row).into_iter().map(|at| &row.pieces[at]).collect();
            let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { continue };
            x0 = x0.min(first.x0);
            x1 = x1.max(last.x1);
            let words = count_words(&pieces);
            let is_table = pieces.iter().any(|piece| piece.table.is_some());
            let gap = |pair: &[&Piece]| pair[1].x0 - pair[0].x1;
            // The number or the bullet of an entry stands apart from its words.
            let after_marker =
                usize::from(pieces.len() > 1 && is_marker(first) && gap(&pieces) < 4.0 * row.size);
            let is_even = pieces[after_marker..].windows(2).all(|pair| gap(pair) < SENTENCE_GAP * row.size);
            side.running += usize::from(is_table || is_even && words >= 3);
            side.words += words;
            side.markers += usize::from(pieces.len() == 1 && is_marker(first));
            side.lines += 1;
            widths.push(last.x1 - first.x0);
        }
        side.long = widths.iter().filter(|width| **width > 0.55 * (x1 - x0)).count();
        side.wide = widths.iter().filter(|width| **width > 0.75 * (x1 - x0)).count();
        side.full = widths.iter().filter(|width| **width > 0.9 * (x1 - x0)).count();
        side
    }

    /// Whether it is text in sentences, not cells of a table.
    fn is_prose(&self) -> bool {
        let is_long = 2 * self.long >= self.lines || self.words >= 4 * self.lines;
        is_long && 5 * self.running >= 3 * self.lines
    }

    /// Whether it is a narrow column of text: many lines of some words, most of them as wide as the column.
    fn is_column(&self) -> bool {
        self.lines >= 8
            && 2 * self.words >= 5 * self.lines
            && 10 * self.running >= 6 * self.lines
            && 10 * self.wide >= 6 * self.lines
    }

    /// Whether most lines end where the column ends, or all near it, as those of paragraphs do.
    fn is_filled(&self) -> bool {
        2 * self.full >= self.lines || 10 * self.wide >= 8 * self.lines
    }

    fn is_markers(&self) -> bool {
        10 * self.markers >= 8 * self.lines
    }

    fn is_short(&self) -> bool {
        self.words < 4 * self.lines
    }

    /// Whether it is a column of paragraphs: nearly all lines are full.
    fn is_solid(&self) -> bool {
        self.lines >= 8
            && self.words >= 5 * self.lines
            && 10 * self.running >= 8 * self.lines
            && 10 * self.full >= 7 * self.lines
    }
}
