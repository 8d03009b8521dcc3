//! Joins the pieces of a column to lines.

use super::glyphs::{Frame, Glyph};
use super::words::{Piece, Word};
use super::{PageLine, blocks};
use crate::formats::pdf::right_to_left;

/// Two pieces are on one row if they share this much of the height of the smaller one.
const SAME_ROW: f32 = 0.5;
/// Larger differences in size are a drop cap beside lines.
const MAX_RATIO: f32 = 2.5;
/// How many rows back a piece may belong to.
const ROWS_BACK: usize = 8;
/// Words of one line closer than this share of their size have no space between them: an exponent.
const NO_SPACE: f32 = 0.1;
/// Words that overlap by more than this share of their size were not drawn as one.
const OVERLAP: f32 = 0.65;
/// The most letters of a word that are drawn between those of another one.
const MAX_INSERTED: usize = 2;
/// An exponent or an index is smaller than what it belongs to by this factor, and no farther from it than this share of its
/// size.
const INDEX: f32 = 0.85;
const BESIDE: f32 = 0.35;
/// It is raised or lowered by more than this share. Small numbers of lines are not.
const RAISED: f32 = 0.1;
/// How many pieces before and after an index, in their order from the top, may be what it belongs to.
const LOOK_AROUND: usize = 40;

#[derive(Debug, Clone)]
pub struct Line {
    pub words: Vec<Word>,
    pub x0: f32,
    pub x1: f32,
    pub top: f32,
    pub bottom: f32,
    pub y: f32,
    pub size: f32,
    pub table: Option<usize>,
}

/// Pieces that stand beside one another.
#[derive(Debug, Clone)]
pub struct Row {
    pub pieces: Vec<Piece>,
    pub top: f32,
    pub bottom: f32,
    pub y: f32,
    pub size: f32,
}

impl Row {
    fn new(piece: Piece) -> Self {
        Self { top: piece.top, bottom: piece.bottom, y: piece.y, size: piece.size, pieces: vec![piece] }
    }

    fn takes(&self, piece: &Piece) -> bool {
        let shared = self.bottom.min(piece.bottom) - self.top.max(piece.top);
        let smaller = (self.bottom - self.top).min(piece.bottom - piece.top);
        let ratio = (self.size / piece.size).max(piece.size / self.size);
        let is_table = piece.table.is_some() || self.pieces.iter().any(|piece| piece.table.is_some());
        !is_table && shared > SAME_ROW * smaller && ratio < MAX_RATIO
    }

    fn add(&mut self, piece: Piece) {
        // The largest piece is the row; the others are raised, lowered or smaller.
        if piece.size > self.size {
            (self.top, self.bottom, self.y, self.size) = (piece.top, piece.bottom, piece.y, piece.size);
        }
        self.pieces.push(piece);
    }
}

/// The rows of these pieces, from the top.
pub fn rows(mut pieces: Vec<Piece>) -> Vec<Row> {
    pieces.sort_by(|a, b| a.y.total_cmp(&b.y));
    let bases: Vec<Option<usize>> = (0..pieces.len()).map(|at| base(&pieces, at)).collect();
    let mut rows: Vec<Row> = Vec::new();
    // The row of each piece, and the pieces that belong to others.
    let mut row_of = vec![0; pieces.len()];
    let mut indices = Vec::new();
    for (at, piece) in pieces.into_iter().enumerate() {
        if bases[at].is_some() {
            indices.push((at, piece));
            continue;
        }
        let from = rows.len().saturating_sub(ROWS_BACK);
        let distance = |row: &Row| (row.y - piece.y).abs();
        let nearest = rows[from..]
            .iter()
            .enumerate()
            .filter(|(_, row)| row.takes(&piece))
            .min_by(|(_, a), (_, b)| distance(a).total_cmp(&distance(b)));
        if let Some(row) = nearest.map(|(row, _)| from + row) {
            row_of[at] = row;
            rows[row].add(piece);
        } else {
            row_of[at] = rows.len();
            rows.push(Row::new(piece));
        }
    }
    for (mut at, index) in indices {
        // An index may have one itself. Each is smaller than what it belongs to, so this ends.
        while let Some(base) = bases[at] {
            at = base;
        }
        rows[row_of[at]].add(index);
    }
    for row in &mut rows {
        row.pieces.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    }
    rows.sort_by(|a, b| a.top.total_cmp(&b.top));
    rows
}

/// The piece that this one is an exponent or an index of.
fn base(pieces: &[Piece], at: usize) -> Option<usize> {
    let index = &pieces[at];
    let is_base = |piece: &Piece| {
        let shared = index.bottom.min(piece.bottom) - index.top.max(piece.top);
        let beside = -BESIDE * piece.size..BESIDE * piece.size;
        let is_beside =
            |word: &Word| beside.contains(&(index.x0 - word.x1)) || beside.contains(&(word.x0 - index.x1));
        piece.table.is_none()
            && (index.y - piece.y).abs() > RAISED * piece.size
            && index.size < INDEX * piece.size
            && index.size * MAX_RATIO > piece.size
            && shared > 0.3 * (index.bottom - index.top)
            && piece.words.iter().any(is_beside)
    };
    if index.table.is_some() {
        return None;
    }
    let around = at.saturating_sub(LOOK_AROUND)..pieces.len().min(at + LOOK_AROUND);
    // An index follows what it belongs to.
    let distance = |at: usize| {
        let ends = pieces[at].words.iter().map(|word| (index.x0 - word.x1).abs());
        ends.fold(f32::INFINITY, f32::min)
    };
    around.filter(|at| is_base(&pieces[*at])).min_by(|a, b| distance(*a).total_cmp(&distance(*b)))
}

pub fn join(pieces: Vec<Piece>) -> Vec<Line> {
    rows(pieces).into_iter().map(Line::of_row).collect()
}

impl Line {
    fn of_row(row: Row) -> Self {
        let table = row.pieces.first().and_then(|piece| piece.table);
        let (mut x0, mut x1) = (f32::INFINITY, f32::NEG_INFINITY);
        let mut words = Vec::new();
        for piece in row.pieces {
            x0 = x0.min(piece.x0);
            x1 = x1.max(piece.x1);
            words.extend(piece.words);
        }
        words.sort_by(|a, b| a.x0.total_cmp(&b.x0));
        let words = interleaved(words);
        Self { words, x0, x1, top: row.top, bottom: row.bottom, y: row.y, size: row.size, table }
    }

    /// A line of some of the words of another one.
    pub fn of_words(words: Vec<Word>) -> Self {
        let mut rows = rows(vec![Piece::new(words)]);
        Self::of_row(rows.remove(0))
    }

    pub fn text(&self, frame: &Frame) -> String {
        self.text_and_starts(frame).0
    }

    /// The text, with the place of each word in it and on the line.
    fn text_and_starts(&self, frame: &Frame) -> (String, Vec<(usize, f32)>) {
        let is_from_right = |glyph: &Glyph| right_to_left::runs_from_right(glyph.character);
        if self.words.iter().any(|word| word.glyphs.iter().any(is_from_right)) {
            let mut glyphs: Vec<Glyph> = Vec::new();
            for word in &self.words {
                let space = word.glyphs.first().map(|first| Glyph { character: ' ', width: 0.0, ..*first });
                glyphs.extend(space.filter(|_| !glyphs.is_empty()));
                glyphs.extend(&word.glyphs);
            }
            return (right_to_left::read_line(&glyphs, frame.brackets).trim().to_owned(), vec![(0, self.x0)]);
        }
        let mut text = String::new();
        let mut starts = Vec::with_capacity(self.words.len());
        let mut end = f32::NEG_INFINITY;
        let mut last: Option<&Word> = None;
        for word in &self.words {
            let gap = word.x0 - end;
            // Words of one row were parted by a space already.
            let is_raised = last.is_some_and(|last| (last.y - word.y).abs() > 0.05 * word.size);
            let is_apart = gap > NO_SPACE * word.size || gap < -OVERLAP * word.size;
            let is_after_mark = starts.len() == 1 && last.is_some_and(|last| is_note_mark(last, word));
            if last.is_some() && (!is_raised || is_apart || is_after_mark) {
                text.push(' ');
            }
            last = Some(word);
            starts.push((text.len(), word.x0));
            text.extend(word.glyphs.iter().map(|glyph| glyph.character));
            end = end.max(word.x1);
        }
        (text, starts)
    }

    pub fn on_page(&self, frame: &Frame) -> PageLine {
        let (text, words) = self.text_and_starts(frame);
        let glyphs = || self.words.iter().flat_map(|word| &word.glyphs);
        let all = glyphs().count();
        // A bullet may be larger than its item.
        let item = match &self.words[..] {
            [marker, item @ ..] if !item.is_empty() && is_bullet(marker) => item,
            all => all,
        };
        let largest = item.iter().max_by(|a, b| a.size.total_cmp(&b.size));
        let (baseline, size) = match largest {
            Some(largest) if item.len() < self.words.len() => (largest.y, largest.size),
            _ => (self.y, self.size),
        };
        let first_word = match &self.words[..] {
            [first, second, ..] => second.x0 - first.x0,
            _ => 0.0,
        };
        PageLine {
            from_right: right_to_left::are_right_to_left(text.chars()),
            text,
            area: frame.area(self.x0, self.top, self.x1, self.y + 0.22 * self.size),
            left: self.x0,
            right: self.x1,
            baseline,
            size,
            bold: 10 * glyphs().filter(|glyph| glyph.bold).count() >= 9 * all,
            italic: glyphs().all(|glyph| glyph.italic),
            is_entry: false,
            mono: glyphs().all(|glyph| glyph.mono),
            at_edge: frame.is_at_edge(self.y),
            first_word,
            words,
        }
    }
}

fn is_bullet(word: &Word) -> bool {
    matches!(&word.glyphs[..], [glyph] if blocks::is_bullet(glyph.character))
}

/// Parts words whose letters have others between them that are raised or lowered, as those of the name of LaTeX.
fn interleaved(words: Vec<Word>) -> Vec<Word> {
    let mut parted: Vec<Word> = Vec::with_capacity(words.len());
    let mut is_parted = false;
    for word in words {
        let around = parted.last().filter(|last| {
            word.glyphs.len() <= MAX_INSERTED
                && (last.y - word.y).abs() > 0.05 * word.size
                && last.x0 < word.x0
                && word.x0 < last.x1 - 0.2 * word.size
        });
        let middle = f32::midpoint(word.x0, word.x1);
        let at = around.and_then(|last| {
            last.glyphs.iter().position(|glyph| f32::midpoint(glyph.x, glyph.end()) > middle)
        });
        if let (Some(at @ 1..), Some(last)) = (at, parted.last_mut()) {
            let after = last.glyphs.split_off(at);
            *last = Word::new(std::mem::take(&mut last.glyphs));
            parted.push(word);
            parted.push(Word::new(after));
            is_parted = true;
        } else {
            parted.push(word);
        }
    }
    if is_parted {
        parted.sort_by(|a, b| a.x0.total_cmp(&b.x0));
    }
    parted
}

/// Whether a word at the beginning of a line is the mark of a footnote, which no space parts from the first word.
fn is_note_mark(mark: &Word, first: &Word) -> bool {
    let is_sign = |glyph: &Glyph| glyph.character.is_ascii_digit() || "*∗†‡§¶".contains(glyph.character);
    mark.y < first.y - 0.15 * first.size
        && mark.size < INDEX * first.size
        && mark.glyphs.len() <= 3
        && mark.glyphs.iter().all(is_sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(text: &str, x: f32, y: f32, size: f32) -> Piece {
        let mut at = x;
        let glyphs = text.chars().map(|character| {
            at += 0.5 * size;
            Glyph { character, x: at - 0.5 * size, width: 0.5 * size, y, size, ..Glyph::default() }
        });
        Piece::new(vec![Word::new(glyphs.collect())])
    }

    #[test]
    fn a_small_number_that_is_raised_belongs_to_the_word_beside_it() {
        let base_of = |index: Piece| base(&[piece("mc", 0.0, 100.0, 10.0), index], 1);
        assert_eq!(base_of(piece("2", 10.5, 96.0, 7.0)), Some(0));
        assert_eq!(base_of(piece("2", 10.5, 102.0, 7.0)), Some(0), "an index");
        assert_eq!(base_of(piece("2", 10.5, 100.0, 7.0)), None, "the number of a line");
        assert_eq!(base_of(piece("2", 18.0, 96.0, 7.0)), None, "too far away");
        assert_eq!(base_of(piece("2", 10.5, 96.0, 10.0)), None, "as large as the word");
    }
}
