//! What the sizes of the text of a whole document say: which one is that of its text, and which are those of its headings.

use std::collections::BTreeMap;

use super::layout::PageLine;
use super::layout::blocks::Block;
use super::outline::Outline;

/// A heading is larger than the text by at least this factor.
const LARGER: f32 = 1.12;
/// The most characters and lines of a heading.
const MAX_CHARACTERS: usize = 200;
const MAX_LINES: usize = 4;
/// The highest level of headings that are only italic: the usual styles have them below those that are larger or bold.
const ITALIC_LEVEL: u8 = 3;
/// The most characters of a heading that is only bold or italic.
const MAX_BOLD: usize = 90;
/// The most parts of the number of a heading, such as the three of `2.1.4`, and the most digits of a part.
const MAX_PARTS: usize = 6;
const MAX_DIGITS: usize = 2;
/// Sizes that differ by less than this share are one level.
const SAME_LEVEL: f32 = 0.05;

/// The sizes of a document.
#[derive(Debug, Default)]
pub struct Styles {
    /// Characters by size, in tenths of a point.
    characters: BTreeMap<i32, usize>,
    bold: usize,
    italic: usize,
    all: usize,
    body: f32,
    levels: Vec<f32>,
}

impl Styles {
    pub fn count(&mut self, line: &PageLine) {
        let characters = line.text.len();
        *self.characters.entry(tenths(line.size)).or_default() += characters;
        self.all += characters;
        self.bold += if line.bold { characters } else { 0 };
        self.italic += if line.italic { characters } else { 0 };
    }

    /// Ends the count: the size of most characters is that of the text.
    pub fn decide(&mut self) {
        let body = self.characters.iter().max_by_key(|(_, characters)| **characters);
        #[expect(clippy::cast_precision_loss, reason = "a size of type")]
        let body = body.map_or(0.0, |(tenths, _)| *tenths as f32 / 10.0);
        self.body = body;
    }

    /// Notes the size of what may be a heading, so that sizes can be put in order.
    pub fn add_level(&mut self, block: &Block) {
        if self.is_larger(block) && !self.levels.iter().any(|size| is_same(*size, block.size())) {
            self.levels.push(block.size());
            self.levels.sort_by(|a, b| b.total_cmp(a));
        }
    }

    /// The level of a heading; `None` for other text. A part of the document may have no headings of the upper levels, but the
    /// number of a heading still says how many there are above it.
    pub fn level(&self, block: &Block, outline: &Outline) -> Option<u8> {
        let level = self.level_by_look(block, outline)?;
        Some(level.max(parts_of_number(&block.text())))
    }

    fn level_by_look(&self, block: &Block, outline: &Outline) -> Option<u8> {
        if self.is_larger(block) {
            let rank = self.levels.iter().position(|size| is_same(*size, block.size())).unwrap_or(0);
            return u8::try_from(rank + 1).ok();
        }
        let below = u8::try_from(self.levels.len() + 1).unwrap_or(u8::MAX);
        if !may_be_heading(block) {
            return None;
        }
        if let Some(depth) = outline.depth(&block.text()) {
            return Some(below.saturating_add(depth).min(6));
        }
        if self.is_italic_heading(block) {
            return Some(below.clamp(ITALIC_LEVEL, 6));
        }
        self.is_bold_heading(block).then_some(below.min(6))
    }

    fn is_larger(&self, block: &Block) -> bool {
        may_be_heading(block) && block.size() >= LARGER * self.body
    }

    fn is_bold_heading(&self, block: &Block) -> bool {
        let text = block.text();
        block.is_bold()
            && 3 * self.bold < self.all
            && block.size() >= 0.95 * self.body
            && text.chars().count() <= MAX_BOLD
            && block.lines.len() <= 2
            && is_like_title(&text)
    }

    fn is_italic_heading(&self, block: &Block) -> bool {
        let text = block.text();
        block.is_italic_title
            && 3 * self.italic < self.all
            && block.size() >= 0.95 * self.body
            && text.chars().count() <= MAX_BOLD
            && is_like_title(&text)
    }
}

/// Whether a text begins and ends like a title, not like a sentence.
fn is_like_title(text: &str) -> bool {
    let begins_well = text.starts_with(|c: char| c.is_uppercase() || c.is_ascii_digit());
    begins_well && !text.ends_with(['.', ',', ';', ':'])
}

fn may_be_heading(block: &Block) -> bool {
    let text = block.text();
    block.lines.len() <= MAX_LINES
        && text.chars().count() <= MAX_CHARACTERS
        && text.chars().filter(|c| c.is_alphabetic()).count() >= 2
        && block.marker.as_ref().is_none_or(|(marker, _)| marker.contains(char::is_alphanumeric))
}

/// How many parts the number at the beginning of a heading has; 0 without a number of several parts.
fn parts_of_number(heading: &str) -> u8 {
    let Some((number, title)) = heading.split_once(' ') else { return 0 };
    let is_part =
        |part: &str| (1..=MAX_DIGITS).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = || number.trim_end_matches('.').split('.');
    let is_number = (2..=MAX_PARTS).contains(&parts().count())
        && parts().all(is_part)
        && title.starts_with(char::is_uppercase);
    if is_number { u8::try_from(parts().count()).unwrap_or(0) } else { 0 }
}

fn is_same(a: f32, b: f32) -> bool {
    (a - b).abs() < SAME_LEVEL * a.max(b)
}

fn tenths(size: f32) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a size of type, within the sizes of glyphs")]
    let halves = (size * 2.0).round() as i32;
    halves * 5
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_a_heading_says_how_many_are_above_it() {
        let levels = ["5.1 Results", "2.1.4. Errors", "3 Model", "1.5 million ships", "12.06.2025 Minutes"];
        assert_eq!(levels.map(parts_of_number), [2, 3, 0, 0, 0]);
    }
}
