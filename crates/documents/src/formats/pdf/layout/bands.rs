//! Tables that are drawn with level lines only: a line above and below each row, and none between the columns; or three lines,
//! one above and one below the head, and one at the end.

use super::rules::{Rule, Ruled, TOUCH, in_pieces, level_strokes};
use super::words::{Piece, Word};

/// The lines of a table with a line below its head only, and those that a table with a line below each row has at least.
const LINES_OF_HEAD: usize = 3;
const MAX_ROWS: usize = 200;
const MAX_COLUMNS: usize = 30;
/// The lines of text that its rows have at most, in the mean. Lines farther apart are those of a page.
const MAX_LINES: usize = 4;
/// The same for a head, and the words that the cells below it have at most, in the mean.
const MAX_LINES_OF_HEAD: usize = 3;
const MAX_WORDS: usize = 4;
/// How far the ends of its lines may differ, in points.
const SAME_END: f32 = 6.0;
/// The gap between two columns, as a share of the size.
const GAP: f32 = 0.8;
/// The share of the lines of text that may reach over a gap, one in so many: heads of several columns.
const OVER_GAP: usize = 6;

/// The frames of these tables: where their lines are, from the top.
pub struct Bands {
    x0: f32,
    x1: f32,
    ys: Vec<f32>,
}

/// The groups of level lines of the same width that no upright line touches.
pub fn find(rules: &[Rule]) -> Vec<Bands> {
    let mut found: Vec<Bands> = Vec::new();
    for (y, x0, x1) in level_strokes(rules) {
        let open = found
            .iter_mut()
            .rev()
            .find(|bands| (bands.x0 - x0).abs() < SAME_END && (bands.x1 - x1).abs() < SAME_END);
        match open {
            // Double lines are one.
            Some(bands) if bands.ys.last().is_some_and(|last| y - last > TOUCH) => bands.ys.push(y),
            Some(_) => {}
            None => found.push(Bands { x0, x1, ys: vec![y] }),
        }
    }
    found.retain(|bands| (LINES_OF_HEAD..=MAX_ROWS).contains(&bands.ys.len()));
    found
}

impl Bands {
    pub fn has(&self, word: &Word) -> bool {
        let (x, y) = (f32::midpoint(word.x0, word.x1), word.y - 0.3 * word.size);
        let (first, last) = (self.ys[0], self.ys[self.ys.len() - 1]);
        self.x0 - 1.0 < x && x < self.x1 + 1.0 && first < y && y < last
    }

    /// Puts the words into cells. Returns them if it is not a table.
    pub fn fill(mut self, words: Vec<Word>) -> Result<Ruled, Vec<Word>> {
        let mut pieces = in_pieces(words.clone());
        let Some(xs) = self.columns(&pieces) else { return Err(words) };
        if self.has_head_only() {
            let Some(ys) = rows_below(&mut pieces, &xs, &self.ys) else { return Err(words) };
            self.ys = ys;
        }
        let columns = xs.len() - 1;
        let rows = self.ys.len() - 1;
        let mut cells: Vec<Vec<Word>> = vec![Vec::new(); rows * columns];
        for piece in pieces {
            // A head over several columns stays whole, in the first of them.
            let column = column_of(&piece, &xs);
            let row = super::rules::band(&self.ys, piece.y - 0.3 * piece.size);
            cells[row * columns + column].extend(piece.words);
        }
        let is_filled = |row: usize, column: usize| !cells[row * columns + column].is_empty();
        let full_rows = (0..rows).filter(|row| (0..columns).filter(|c| is_filled(*row, *c)).count() >= 2);
        let full_columns =
            (0..columns).filter(|c| 3 * (0..rows).filter(|r| is_filled(*r, *c)).count() >= rows);
        if 4 * full_rows.count() < 3 * rows || full_columns.count() < columns.min(2) {
            return Err(words);
        }
        Ok(Ruled::of_bands(xs, self.ys, cells))
    }

    fn has_head_only(&self) -> bool {
        self.ys.len() == LINES_OF_HEAD
    }

    /// Where the columns begin and end, if there are several: at the strips that hardly a line of text crosses.
    fn columns(&self, pieces: &[Piece]) -> Option<Vec<f32>> {
        // The heads of a table may reach over its columns.
        let counted = || {
            let from = if self.has_head_only() { self.ys[1] } else { self.ys[0] };
            pieces.iter().filter(move |piece| piece.y - 0.3 * piece.size > from)
        };
        let mut baselines: Vec<f32> = counted().map(|piece| piece.y).collect();
        baselines.sort_by(f32::total_cmp);
        baselines.dedup_by(|a, b| (*a - *b).abs() < 3.0);
        if baselines.len() > MAX_LINES * (self.ys.len() - 1) && !self.has_head_only() {
            return None;
        }
        let mut sizes: Vec<f32> = pieces.iter().map(|piece| piece.size).collect();
        sizes.sort_by(f32::total_cmp);
        let gap = GAP * sizes.get(sizes.len() / 2)?;
        // Where pieces begin (1) and end (-1).
        let mut ends: Vec<(f32, i32)> = counted().flat_map(|piece| [(piece.x0, 1), (piece.x1, -1)]).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let most = i32::try_from(baselines.len() / OVER_GAP).unwrap_or(i32::MAX);
        let mut xs = vec![self.x0];
        // Where the strip that is open begins, if there is one. There is none before the first column.
        let (mut open, mut since, mut is_begun) = (0, None, false);
        for (x, change) in ends {
            open += change;
            if open > most {
                is_begun = true;
                let strip = since.take().filter(|from| x - from >= gap);
                xs.extend(strip.map(|from| clear_place(pieces, from, x)));
            } else if is_begun {
                since.get_or_insert(x);
            }
        }
        xs.push(self.x1);
        (3..=MAX_COLUMNS + 1).contains(&xs.len()).then_some(xs)
    }
}

/// The middle of the widest part of a strip that no piece covers, or of the strip: heads may reach into it.
fn clear_place(pieces: &[Piece], from: f32, to: f32) -> f32 {
    let mut inside: Vec<(f32, f32)> =
        pieces.iter().filter(|piece| piece.x0 < to && piece.x1 > from).map(|p| (p.x0, p.x1)).collect();
    inside.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut end, mut widest) = (from, (0.0, f32::midpoint(from, to)));
    for (x0, x1) in inside.into_iter().chain([(to, to)]) {
        if x0 - end > widest.0 {
            widest = (x0 - end, f32::midpoint(end, x0));
        }
        end = end.max(x1);
    }
    widest.1
}

/// A line of text of a table, with the columns that it has words in.
struct TextLine {
    y: f32,
    size: f32,
    pieces: Vec<usize>,
    columns: Vec<usize>,
}

/// Where the rows of a table end that has a line below its head only; `None` if it is not a table. What stands in the middle
/// of two rows, in columns that neither of them has words in, belongs to both; it is moved to the upper one.
fn rows_below(pieces: &mut [Piece], xs: &[f32], ys: &[f32]) -> Option<Vec<f32>> {
    let (head, body): (Vec<TextLine>, Vec<TextLine>) =
        text_lines(pieces, xs).into_iter().partition(|line| line.y - 0.3 * line.size < ys[1]);
    let most = body.iter().map(|line| line.columns.len()).max()?;
    let cells: usize = body.iter().map(|line| line.columns.len()).sum();
    let words: usize = body.iter().flat_map(|line| &line.pieces).map(|at| pieces[*at].words.len()).sum();
    let is_head = (1..=MAX_LINES_OF_HEAD).contains(&head.len())
        && head.iter().any(|line| line.columns.len() >= 2 && 2 * line.columns.len() > xs.len() - 1);
    if !is_head || most < 2 || words > MAX_WORDS * cells {
        return None;
    }
    let is_row = |line: &TextLine| line.columns.len() >= 2 && 2 * line.columns.len() >= most;
    let rows: Vec<&TextLine> = body.iter().filter(|line| is_row(line)).collect();
    let mut steps: Vec<f32> = rows.windows(2).map(|pair| pair[1].y - pair[0].y).collect();
    steps.sort_by(f32::total_cmp);
    let step = *steps.get(steps.len() / 2)?;
    // A line of the head with words over several columns is a row of its own.
    let reaches_over = |line: &TextLine| {
        let mut words = line.pieces.iter().map(|at| &pieces[*at]);
        words.any(|piece| xs[1..xs.len() - 1].iter().any(|x| piece.x0 < *x - 1.0 && *x + 1.0 < piece.x1))
    };
    let mut ends = vec![ys[0]];
    let heads = head.windows(2).filter(|pair| reaches_over(&pair[0]) && pair[1].columns.len() >= 2);
    ends.extend(heads.map(|pair| pair[1].y - 0.9 * pair[1].size));
    ends.push(ys[1]);
    let least = ends.len() + 2;
    let edges = right_edges(pieces, xs);
    let mut last: Option<&TextLine> = None;
    for (at, line) in body.iter().enumerate() {
        let next = body.get(at + 1).filter(|line| is_row(line));
        let is_empty = |other: &TextLine| !line.columns.iter().any(|column| other.columns.contains(column));
        if let (Some(upper), Some(lower), false) = (last, next, is_row(line))
            && is_empty(upper)
            && is_empty(lower)
            && (f32::midpoint(upper.y, lower.y) - line.y).abs() < 0.25 * line.size
        {
            for piece in &line.pieces {
                pieces[*piece].y = upper.y;
            }
            continue;
        }
        // A line that follows closely and leaves the first column empty goes on with the row above.
        let goes_on = last.is_some_and(|last| {
            !line.columns.contains(&0)
                && line.columns.len() < most
                && is_within(&line.columns, &last.columns)
                && (line.y - last.y < 0.85 * step
                    || !is_row(line) && line.y - last.y < 1.35 * line.size
                    || are_broken_off(pieces, xs, &edges, last, line))
        });
        if last.is_some() && !goes_on {
            ends.push(line.y - 0.9 * line.size);
        }
        last = Some(line);
    }
    ends.push(ys[2]);
    (ends.len() >= least).then_some(ends)
}

/// Where the words of each column end.
fn right_edges(pieces: &[Piece], xs: &[f32]) -> Vec<f32> {
    let mut edges = vec![f32::NEG_INFINITY; xs.len() - 1];
    for piece in pieces {
        let edge = &mut edges[column_of(piece, xs)];
        *edge = edge.max(piece.x1);
    }
    edges
}

/// Whether most cells of a line go on with those of the line above: they begin with a small letter, or with a word that had
/// no room there. Figures never do.
fn are_broken_off(pieces: &[Piece], xs: &[f32], edges: &[f32], above: &TextLine, line: &TextLine) -> bool {
    let goes_on = |at: &&usize| {
        let piece = &pieces[**at];
        let column = column_of(piece, xs);
        let (Some(word), Some(last)) = (
            piece.words.first(),
            above.pieces.iter().map(|at| &pieces[*at]).rfind(|above| column_of(above, xs) == column),
        ) else {
            return false;
        };
        let first = word.glyphs.first().map_or(' ', |glyph| glyph.character);
        let has_room = last.x1 + (word.x1 - word.x0) + 0.5 * word.size < edges[column].min(xs[column + 1]);
        !first.is_ascii_digit() && (first.is_lowercase() || !has_room)
    };
    2 * line.pieces.iter().filter(goes_on).count() > line.pieces.len()
}

/// A word that reaches into the next column belongs where it begins.
fn column_of(piece: &Piece, xs: &[f32]) -> usize {
    super::rules::band(xs, piece.x0 + 0.3 * piece.size.min(piece.x1 - piece.x0))
}

fn is_within(columns: &[usize], others: &[usize]) -> bool {
    columns.iter().all(|column| others.contains(column))
}

fn text_lines(pieces: &[Piece], xs: &[f32]) -> Vec<TextLine> {
    let mut order: Vec<usize> = (0..pieces.len()).collect();
    order.sort_by(|a, b| pieces[*a].y.total_cmp(&pieces[*b].y));
    let mut lines: Vec<TextLine> = Vec::new();
    for at in order {
        let piece = &pieces[at];
        let column = column_of(piece, xs);
        match lines.last_mut() {
            Some(line) if piece.y - line.y < 0.3 * piece.size => {
                line.pieces.push(at);
                line.columns.push(column);
                line.size = line.size.max(piece.size);
            }
            _ => {
                lines.push(TextLine {
                    y: piece.y,
                    size: piece.size,
                    pieces: vec![at],
                    columns: vec![column],
                });
            }
        }
    }
    for line in &mut lines {
        line.columns.sort_unstable();
        line.columns.dedup();
    }
    lines
}
