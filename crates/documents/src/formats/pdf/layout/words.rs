//! Joins glyphs to words.

use std::collections::{HashMap, HashSet};

use super::glyphs::{Glyph, Sheet};

/// Glyphs of one row differ in their baselines by less than this share of their size.
const SAME_BASELINE: f32 = 0.12;
/// A gap wider than this share of the size is a space.
const SPACE: f32 = 0.15;
/// The same where the document has a space character, which may be very narrow.
const WRITTEN_SPACE: f32 = -0.02;
/// The same after a character whose width the document does not say right: it has a gap after it inside of words.
const AFTER_WRONG_WIDTH: f32 = 0.45;
/// The same before the point of a decimal number.
const BEFORE_DECIMALS: f32 = 0.45;
/// A page with a space character for each so many others has them between all its words.
const WRITES_SPACES: usize = 14;
/// The least width of a space that words are usually parted by.
const USUAL_SPACE: f32 = 0.22;
/// A space character begins exactly where a glyph ends up to this share of the size.
const EXACT: f32 = 0.02;
/// It covers a letter if it reaches into it by more than this share.
const COVER: f32 = 0.15;
/// How many glyphs from the left the one may be that a space character follows.
const LOOK_BACK: usize = 6;
/// How often a character has to be seen inside of words before its width is known to be wrong.
const MIN_SEEN: usize = 3;
/// The same glyph again at less than this share of its size was drawn twice, to make it bold.
const DRAWN_TWICE: f32 = 0.2;
/// The gap after which a run of words may belong to another column, as a share of the size.
pub const COLUMN_GAP: f32 = 0.7;

/// Glyphs that belong together.
#[derive(Debug, Clone)]
pub struct Word {
    pub glyphs: Vec<Glyph>,
    pub x0: f32,
    pub x1: f32,
    pub y: f32,
    pub size: f32,
}

impl Word {
    pub fn new(glyphs: Vec<Glyph>) -> Self {
        let x0 = glyphs.iter().map(|glyph| glyph.x).fold(f32::INFINITY, f32::min);
        let x1 = glyphs.iter().map(Glyph::end).fold(f32::NEG_INFINITY, f32::max);
        let size = glyphs.iter().map(|glyph| glyph.size).fold(0.0, f32::max);
        let y = glyphs[0].y;
        Self { glyphs, x0, x1, y, size }
    }

    pub fn top(&self) -> f32 {
        self.y - 0.72 * self.size
    }

    pub fn bottom(&self) -> f32 {
        self.y + 0.12 * self.size
    }
}

/// A part of a row that is moved as one: a run of words without a wide gap, or a row of a ruled table.
#[derive(Debug, Clone)]
pub struct Piece {
    pub words: Vec<Word>,
    pub x0: f32,
    pub x1: f32,
    pub top: f32,
    pub bottom: f32,
    pub y: f32,
    pub size: f32,
    /// The table that this is a row of.
    pub table: Option<usize>,
}

impl Piece {
    pub fn new(words: Vec<Word>) -> Self {
        let x0 = words.iter().map(|word| word.x0).fold(f32::INFINITY, f32::min);
        let x1 = words.iter().map(|word| word.x1).fold(f32::NEG_INFINITY, f32::max);
        let tallest = words.iter().max_by(|a, b| a.size.total_cmp(&b.size));
        let (top, bottom, y, size) =
            tallest.map_or((0.0, 0.0, 0.0, 1.0), |word| (word.top(), word.bottom(), word.y, word.size));
        Self { words, x0, x1, top, bottom, y, size, table: None }
    }
}

/// The words of a sheet, in rows from the top.
pub fn join(sheet: Sheet) -> Vec<Word> {
    let mut glyphs = sheet.glyphs;
    glyphs.sort_by(|a, b| a.y.total_cmp(&b.y));
    let mut rows: Vec<&mut [Glyph]> = Vec::new();
    let mut rest = &mut glyphs[..];
    while let Some(first) = rest.first() {
        let mut last = *first;
        let mut length = 1;
        for glyph in &rest[1..] {
            if glyph.y - last.y > SAME_BASELINE * glyph.size.min(last.size) {
                break;
            }
            last = *glyph;
            length += 1;
        }
        let (row, after) = rest.split_at_mut(length);
        row.sort_by(|a, b| a.x.total_cmp(&b.x));
        rows.push(row);
        rest = after;
    }
    let wrong = wrong_widths(&rows);
    let mut words = Vec::new();
    for row in rows {
        split_row(row, &wrong, &mut words);
    }
    words
}

fn is_space(glyph: &Glyph) -> bool {
    glyph.character.is_whitespace() || glyph.character == '\u{200B}'
}

/// For each glyph of a row, whether a space character follows it.
///
/// Where a space character stands says little by itself: some programs draw them upon the first letter of a line, or let those
/// at the end of a cell run into the next one. One that begins exactly where a glyph ends follows that glyph. Others count
/// only if they cover no letters.
fn spaces(row: &[Glyph]) -> Vec<bool> {
    let mut followed = vec![false; row.len()];
    let mut next = vec![None; row.len()];
    let mut nearest = None;
    for (at, glyph) in row.iter().enumerate().rev() {
        next[at] = nearest;
        if !is_space(glyph) {
            nearest = Some(at);
        }
    }
    let mut last = None;
    for (at, space) in row.iter().enumerate() {
        if !is_space(space) {
            last = Some(at);
            continue;
        }
        let follows = |before: &usize| {
            let glyph = &row[*before];
            !is_space(glyph)
                && (glyph.x + glyph.advance - space.x).abs() < EXACT * space.size
                && (glyph.y - space.y).abs() < EXACT * space.size
        };
        let cover = COVER * space.size;
        let begins_inside = last.is_some_and(|last| space.x < row[last].end() - cover);
        let ends_inside = next[at].is_some_and(|next: usize| row[next].x < space.end() - cover);
        if let Some(before) = (at.saturating_sub(LOOK_BACK)..at).rev().find(follows) {
            followed[before] = true;
        } else if let Some(last) = last.filter(|_| !begins_inside && !ends_inside) {
            followed[last] = true;
        }
    }
    followed
}

/// The characters, in usual and in bold type, that mostly have a gap after them where the page has no space character. Only
/// a page that has space characters between its words shows this.
fn wrong_widths(rows: &[&mut [Glyph]]) -> HashSet<(char, bool)> {
    let glyphs = || rows.iter().flat_map(|row| row.iter());
    let spaces = glyphs().filter(|glyph| is_space(glyph)).count();
    if WRITES_SPACES * spaces < glyphs().count() {
        return HashSet::new();
    }
    let mut seen: HashMap<(char, bool), Seen> = HashMap::new();
    for pair in rows.iter().flat_map(|row| row.windows(2)) {
        let [first, second] = pair else { continue };
        let gap = (second.x - first.end()) / second.size;
        if first.character.is_alphanumeric() && second.character.is_alphanumeric() {
            let seen = seen.entry((first.character, first.bold)).or_default();
            seen.inside += usize::from(gap < AFTER_WRONG_WIDTH);
            seen.wide += usize::from(gap < AFTER_WRONG_WIDTH && gap > SPACE);
            seen.unwritten += usize::from(gap > USUAL_SPACE);
        }
    }
    let (wrong, right): (Vec<_>, Vec<_>) =
        seen.into_iter().partition(|(_, seen)| seen.inside >= MIN_SEEN && 10 * seen.wide >= 7 * seen.inside);
    // Where other letters have gaps after them too, spaces are written only here and there.
    let unwritten: usize = right.iter().map(|(_, seen)| seen.unwritten).sum();
    if 2 * unwritten > spaces {
        return HashSet::new();
    }
    wrong.into_iter().map(|(key, _)| key).collect()
}

/// How often a character was followed by another one without a space character between them.
#[derive(Default)]
struct Seen {
    /// At a gap that may be inside of a word, and those of them that are as wide as a narrow space.
    inside: usize,
    wide: usize,
    /// At a gap that is as wide as a usual space.
    unwritten: usize,
}

/// Splits a row of glyphs at its spaces.
fn split_row(row: &[Glyph], wrong: &HashSet<(char, bool)>, words: &mut Vec<Word>) {
    let extra = letter_spacing(row);
    let mut open: Vec<Glyph> = Vec::new();
    let mut end = f32::NEG_INFINITY;
    let mut has_space = false;
    for (at, (glyph, is_followed)) in row.iter().zip(spaces(row)).enumerate() {
        if is_space(glyph) {
            continue;
        }
        if open.iter().rev().take(3).any(|drawn| is_drawn_twice(drawn, glyph)) {
            has_space |= is_followed;
            continue;
        }
        let space = match open.last() {
            _ if has_space => WRITTEN_SPACE,
            Some(last) if is_decimal(last, glyph, row.get(at + 1)) => BEFORE_DECIMALS,
            Some(last) if wrong.contains(&(last.character, last.bold)) => AFTER_WRONG_WIDTH,
            _ => SPACE,
        } * glyph.size;
        let gap = glyph.x - end;
        if !open.is_empty() && gap > space + extra {
            words.push(Word::new(std::mem::take(&mut open)));
            end = f32::NEG_INFINITY;
        }
        has_space = is_followed;
        end = end.max(glyph.end());
        open.push(*glyph);
    }
    if !open.is_empty() {
        words.push(Word::new(open));
    }
}

/// Whether a point parts the decimals of a number, which tables set apart so that they stand below one another.
fn is_decimal(last: &Glyph, point: &Glyph, next: Option<&Glyph>) -> bool {
    let is_digit = |glyph: &Glyph| glyph.character.is_ascii_digit();
    matches!(point.character, '.' | ',')
        && is_digit(last)
        && next.is_some_and(|next| is_digit(next) && next.x - point.end() < SPACE * point.size)
}

fn is_drawn_twice(drawn: &Glyph, glyph: &Glyph) -> bool {
    drawn.character == glyph.character
        && (glyph.x - drawn.x).abs() < DRAWN_TWICE * glyph.width.max(0.1 * glyph.size)
        && (glyph.size - drawn.size).abs() < 0.1 * glyph.size
}

/// The gap between the letters of a row that is spaced out; 0 for usual ones.
fn letter_spacing(row: &[Glyph]) -> f32 {
    let are_letters = |pair: &&[Glyph]| pair.iter().all(|glyph| glyph.character.is_alphabetic());
    let pairs = row.windows(2).filter(are_letters);
    let mut gaps: Vec<f32> = pairs.map(|pair| (pair[1].x - pair[0].end()) / pair[0].size).collect();
    if gaps.len() < 5 {
        return 0.0;
    }
    gaps.sort_by(f32::total_cmp);
    let median = gaps[gaps.len() / 2];
    // Many gaps of a row of short words are between words, but some are always between letters of a word.
    if gaps[gaps.len() / 5] > SPACE && median < 1.0 { median * row[0].size } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row of glyphs that are all half as wide as high, but for the letter m: it says so and is wider.
    fn row(text: &str) -> Vec<Glyph> {
        let mut x = 0.0;
        text.chars()
            .map(|character| {
                let glyph = Glyph { character, x, width: 5.0, advance: 5.0, size: 10.0, ..Glyph::default() };
                x += if character == 'm' { 8.0 } else { 5.0 };
                glyph
            })
            .collect()
    }

    fn split(text: &str) -> Vec<String> {
        let mut row = row(text);
        let wrong = wrong_widths(&[&mut row]);
        let mut words = Vec::new();
        split_row(&row, &wrong, &mut words);
        words.iter().map(|word| word.glyphs.iter().map(|glyph| glyph.character).collect()).collect()
    }

    #[test]
    fn space_characters_upon_letters_part_no_words() {
        let space = |x| Glyph { character: ' ', x, width: 2.5, advance: 2.5, size: 10.0, ..Glyph::default() };
        let words = |glyphs: Vec<Glyph>| {
            let mut glyphs = glyphs;
            glyphs.sort_by(|a, b| a.x.total_cmp(&b.x));
            let mut words = Vec::new();
            split_row(&glyphs, &HashSet::new(), &mut words);
            let text = |word: &Word| word.glyphs.iter().map(|glyph| glyph.character).collect::<String>();
            words.iter().map(text).collect::<Vec<_>>()
        };
        // The spaces after another cell run through this one, and one is drawn upon its first letter.
        let over = [1.0, 6.0, 11.0, 16.0, 21.0];
        assert_eq!(words([row("tides"), over.map(|x| space(x + 0.3)).to_vec()].concat()), ["tides"]);
        // One that follows a letter does, also where the next word begins before it.
        let next = row("low").into_iter().map(|glyph| Glyph { x: glyph.x + 24.9, ..glyph });
        assert_eq!(
            words(row("tides").into_iter().chain([space(25.0)]).chain(next).collect()),
            ["tides", "low"]
        );
    }

    #[test]
    fn a_row_of_short_words_is_not_spaced_out() {
        // Most letters are parted from the next one, but not those of the two words.
        let at =
            |character, x| Glyph { character, x, width: 5.0, advance: 5.0, size: 10.0, ..Glyph::default() };
        let short = [('o', 0.0), ('f', 5.0), ('F', 13.0), ('o', 21.0), ('r', 26.0), ('Q', 34.0), ('C', 42.0)];
        assert!(letter_spacing(&short.map(|(character, x)| at(character, x))).abs() < 0.01);
        let spaced =
            [('H', 0.0), ('A', 8.0), ('R', 16.0), ('B', 24.0), ('O', 32.0), ('U', 40.0), ('R', 48.0)];
        assert!((letter_spacing(&spaced.map(|(character, x)| at(character, x))) - 3.0).abs() < 0.01);
    }

    #[test]
    fn a_gap_after_a_letter_of_a_wrong_width_is_no_space() {
        assert_eq!(split("some more names come"), ["some", "more", "names", "come"]);
        // Without spaces between the words, each gap is one.
        assert_eq!(split("somemorenamescomehome").len(), 6);
    }

    #[test]
    fn a_page_that_writes_some_of_its_spaces_has_no_wrong_widths() {
        // Each E is followed by a space, of which none is written, as those after some other letters.
        let (mut row, mut x) = (Vec::new(), 0.0);
        let mut draw = |character, x, width| {
            row.push(Glyph { character, x, width, advance: width, size: 10.0, ..Glyph::default() });
        };
        for (number, word) in "E is so E as to E at an E on us E or by".split(' ').enumerate() {
            for character in word.chars() {
                draw(character, x, 5.0);
                x += 5.0;
            }
            if number % 3 == 1 {
                draw(' ', x, 2.5);
            }
            x += 2.5;
        }
        assert!(wrong_widths(&[&mut row]).is_empty());
    }
}
