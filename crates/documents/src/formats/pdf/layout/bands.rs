//! Tables that are drawn with level lines only: a line above and below each row, and none between the columns.

use super::rules::{Rule, Ruled, TOUCH, in_pieces, level_strokes};
use super::words::{Piece, Word};

/// The rows that such a table has at least.
const MIN_ROWS: usize = 3;
const MAX_ROWS: usize = 200;
const MAX_COLUMNS: usize = 30;
/// The lines of text that its rows have at most, in the mean. Lines farther apart are those of a page.
const MAX_LINES: usize = 4;
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
    found.retain(|bands| (MIN_ROWS + 1..=MAX_ROWS).contains(&bands.ys.len()));
    found
}

impl Bands {
    pub fn has(&self, word: &Word) -> bool {
        let (x, y) = (f32::midpoint(word.x0, word.x1), word.y - 0.3 * word.size);
        let (first, last) = (self.ys[0], self.ys[self.ys.len() - 1]);
        self.x0 - 1.0 < x && x < self.x1 + 1.0 && first < y && y < last
    }

    /// Puts the words into cells. Returns them if it is not a table.
    pub fn fill(self, words: Vec<Word>) -> Result<Ruled, Vec<Word>> {
        let pieces = in_pieces(words.clone());
        let Some(xs) = self.columns(&pieces) else { return Err(words) };
        let columns = xs.len() - 1;
        let rows = self.ys.len() - 1;
        let mut cells: Vec<Vec<Word>> = vec![Vec::new(); rows * columns];
        for piece in pieces {
            // A head over several columns stays whole, in the first of them.
            let column = super::rules::band(&xs, piece.x0 + 0.3 * piece.size.min(piece.x1 - piece.x0));
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

    /// Where the columns begin and end, if there are several: at the strips that hardly a line of text crosses.
    fn columns(&self, pieces: &[Piece]) -> Option<Vec<f32>> {
        let mut baselines: Vec<f32> = pieces.iter().map(|piece| piece.y).collect();
        baselines.sort_by(f32::total_cmp);
        baselines.dedup_by(|a, b| (*a - *b).abs() < 3.0);
        if baselines.len() > MAX_LINES * (self.ys.len() - 1) {
            return None;
        }
        let mut sizes: Vec<f32> = pieces.iter().map(|piece| piece.size).collect();
        sizes.sort_by(f32::total_cmp);
        let gap = GAP * sizes.get(sizes.len() / 2)?;
        // Where pieces begin (1) and end (-1).
        let mut ends: Vec<(f32, i32)> =
            pieces.iter().flat_map(|piece| [(piece.x0, 1), (piece.x1, -1)]).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let most = i32::try_from(baselines.len() / OVER_GAP).unwrap_or(i32::MAX);
        let mut xs = vec![self.x0];
        // Where the strip that is open begins, if there is one. There is none before the first column.
        let (mut open, mut since, mut is_begun) = (0, None, false);
        for (x, change) in ends {
            open += change;
            if open > most {
                is_begun = true;
                xs.extend(since.take().filter(|from| x - from >= gap).map(|from| f32::midpoint(from, x)));
            } else if is_begun {
                since.get_or_insert(x);
            }
        }
        xs.push(self.x1);
        (3..=MAX_COLUMNS + 1).contains(&xs.len()).then_some(xs)
    }
}
