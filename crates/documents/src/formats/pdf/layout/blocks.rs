//! Joins lines to paragraphs, and recognises the markers of lists.

use std::collections::HashMap;

use super::PageLine;

/// Lines whose sizes differ by more than this share are different paragraphs.
const SAME_SIZE: f32 = 0.08;
/// A step to the next line that is longer than usual by this factor begins a paragraph.
const PARAGRAPH_STEP: f32 = 1.28;
/// The longest step inside a paragraph, as a share of the size, where there are fewer steps than this to know it from.
const MAX_STEP_OF_FEW: f32 = 1.5;
const FEW_STEPS: usize = 4;
/// A first line is indented by at least this share of its size.
const INDENT: f32 = 0.8;
/// The words that a paragraph of one line has at least if what is above it may be its title.
const MIN_WORDS_BELOW_TITLE: usize = 8;

/// Lines that belong together.
#[derive(Debug, Clone, Default)]
pub struct Block {
    pub lines: Vec<PageLine>,
    /// Whether the line after each line was begun on purpose, not because the line was full.
    pub breaks: Vec<bool>,
    /// The marker of a list item, with its length in the first line.
    pub marker: Option<(String, usize)>,
    /// Whether it is a line in italics right above a paragraph that is not.
    pub is_italic_title: bool,
}

impl Block {
    pub fn size(&self) -> f32 {
        self.lines.iter().map(|line| line.size).fold(0.0, f32::max)
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            super::rules::add_line(&mut text, &line.text);
        }
        text
    }

    pub fn is_bold(&self) -> bool {
        self.lines.iter().all(|line| line.bold)
    }
}

/// The paragraphs of a column. A line that is a title is one of its own.
pub fn paragraphs(lines: Vec<PageLine>, is_title: impl Fn(&str) -> bool) -> Vec<Block> {
    let left = lines.iter().map(|line| line.left).fold(f32::INFINITY, f32::min);
    let right = lines.iter().map(|line| line.right).fold(f32::NEG_INFINITY, f32::max);
    let steps = usual_steps(&lines);
    let mut blocks: Vec<Block> = Vec::new();
    for line in lines {
        let marker = marker(&line);
        let Some((block, last)) = blocks.last_mut().and_then(|block| {
            let last = block.lines.last()?.clone();
            Some((block, last))
        }) else {
            blocks.push(Block { lines: vec![line], marker, ..Block::default() });
            continue;
        };
        let step = steps.get(&rounded(line.size)).copied().unwrap_or(f32::INFINITY);
        let gap = Between { last: &last, line: &line, left, right, step };
        let is_broken = gap.is_broken();
        let is_item = marker.as_ref().is_some_and(|(marker, _)| {
            is_certain(marker) || is_broken || gap.is_new() || block.marker.is_some()
        });
        let marker = marker.filter(|_| is_item);
        let beside_title = is_title(&line.text) || block.lines.len() == 1 && is_title(&last.text);
        if beside_title
            || marker.is_some()
            || gap.is_new()
            || is_broken && (block.marker.is_some() || ends_sentence(&last.text))
            || gap.is_indented(block)
            || is_broken && gap.is_below_italic_title(block)
            || gap.is_italic_title()
        {
            blocks.push(Block { lines: vec![line], marker, ..Block::default() });
        } else {
            block.breaks.push(is_broken);
            block.lines.push(line);
        }
    }
    for at in 1..blocks.len() {
        let (above, below) = blocks.split_at_mut(at);
        let (before, title) = match above {
            [.., before, title] => (Some(&*before), title),
            [title] => (None, title),
            [] => break,
        };
        title.is_italic_title = is_italic_title(before, title, &below[0]);
    }
    blocks
}

/// Whether a block is a title in italics: one line after the end of a sentence, right above a paragraph that has the same left
/// edge and size and no italics.
fn is_italic_title(before: Option<&Block>, block: &Block, next: &Block) -> bool {
    let ([title], [first, ..]) = (&block.lines[..], &next.lines[..]) else { return false };
    let is_paragraph = next.lines.len() >= 2 || first.text.split(' ').count() >= MIN_WORDS_BELOW_TITLE;
    let last = before.and_then(|before| before.lines.last());
    title.italic
        && !first.italic
        && block.marker.is_none()
        && next.marker.is_none()
        && is_paragraph
        && (title.left - first.left).abs() < 1.0
        && (title.size - first.size).abs() < SAME_SIZE * first.size
        && (0.0..2.0 * title.size).contains(&(first.baseline - title.baseline))
        && last.is_none_or(|last| ends_sentence(&last.text) && !last.italic)
}

/// Two lines that follow one another.
struct Between<'a> {
    last: &'a PageLine,
    line: &'a PageLine,
    left: f32,
    right: f32,
    step: f32,
}

impl Between<'_> {
    fn is_new(&self) -> bool {
        let Self { last, line, .. } = self;
        let larger = last.size.max(line.size);
        let step = line.baseline - last.baseline;
        (last.size - line.size).abs() > SAME_SIZE * larger
            || last.bold != line.bold
            || last.mono != line.mono
            || step < 0.0
            || step > PARAGRAPH_STEP * self.step.clamp(0.9 * larger, 2.2 * larger)
    }

    /// Whether the first word of the line would have had room on the line before.
    fn is_broken(&self) -> bool {
        let Self { last, line, .. } = self;
        let first = if line.first_word > 0.0 { line.first_word } else { line.right - line.left };
        if line.from_right {
            last.left - first > self.left + line.size
        } else {
            last.right + first < self.right - line.size
        }
    }

    /// Whether the line may be a title in italics: it follows the end of a sentence, and is not full.
    fn is_italic_title(&self) -> bool {
        let Self { last, line, .. } = self;
        line.italic
            && !last.italic
            && !line.from_right
            && line.right < self.right - 2.0 * line.size
            && ends_sentence(&last.text)
    }

    /// Whether the line begins the text below a title in italics: on the same edge, in the same size.
    fn is_below_italic_title(&self, block: &Block) -> bool {
        let Self { last, line, .. } = self;
        block.lines.len() == 1 && last.italic && !line.italic && (last.left - line.left).abs() < 1.0
    }

    /// Whether the line is the indented first line of a paragraph.
    fn is_indented(&self, block: &Block) -> bool {
        let Self { last, line, .. } = self;
        if block.marker.is_some() {
            // The text of an item goes on to the right of its marker.
            let first = &block.lines[0];
            return line.left < first.left + 0.3 * line.size
                && block.lines.len() > 1
                && last.left > line.left + 0.3 * line.size;
        }
        let by = line.left - last.left;
        !line.from_right
            && by > INDENT * line.size
            && by < 5.0 * line.size
            && last.left < self.left + 0.5 * line.size
    }
}

/// The usual step from line to line, for each size of text.
fn usual_steps(lines: &[PageLine]) -> HashMap<i32, f32> {
    let mut steps: HashMap<i32, Vec<f32>> = HashMap::new();
    for pair in lines.windows(2) {
        let step = pair[1].baseline - pair[0].baseline;
        if rounded(pair[0].size) == rounded(pair[1].size) && step > 0.0 {
            steps.entry(rounded(pair[0].size)).or_default().push(step);
        }
    }
    // Most steps are inside paragraphs, but a page of short ones has as many between them.
    let usual = |size: i32, mut steps: Vec<f32>| {
        steps.sort_by(f32::total_cmp);
        let step = steps[steps.len() / 3];
        // A few steps may all be between paragraphs.
        #[expect(clippy::cast_precision_loss, reason = "a size of type")]
        let most = MAX_STEP_OF_FEW * size as f32;
        if steps.len() < FEW_STEPS { step.min(most) } else { step }
    };
    steps.into_iter().map(|(size, steps)| (size, usual(size, steps))).collect()
}

fn rounded(size: f32) -> i32 {
    #[expect(clippy::cast_possible_truncation, reason = "a size of type")]
    let rounded = size.round() as i32;
    rounded
}

fn ends_sentence(text: &str) -> bool {
    text.trim_end_matches(['"', '”', '’', ')', '»']).ends_with(['.', '!', '?', ':', '…', '。', '؟'])
}

/// Whether a word was divided at the end of a line that ends so, and goes on at the beginning of the next one.
pub fn is_divided(text: &str, next: &str) -> bool {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let Some(start) = word.strip_suffix(['-', '\u{AD}', '\u{2010}']) else { return false };
    start.chars().count() > 1
        && start.chars().all(char::is_alphabetic)
        && next.starts_with(char::is_lowercase)
}

/// Whether nothing stands between the end of a line and the beginning of the next one, as in Chinese and Japanese.
pub fn is_seamless(text: &str, next: &str) -> bool {
    let is_unspaced =
        |c: char| matches!(c, '\u{3001}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{FF00}'..='\u{FFEF}');
    text.ends_with(is_unspaced) && next.starts_with(is_unspaced)
}

fn marker(line: &PageLine) -> Option<(String, usize)> {
    let end = line.text.find(' ')?;
    let first = &line.text[..end];
    let has_words = line.text[end..].contains(char::is_alphanumeric);
    let spaces = line.text[end..].len() - line.text[end..].trim_start().len();
    (has_words && is_marker(first)).then(|| (first.to_owned(), end + spaces))
}

/// Whether a word marks an item of a list: a bullet, or a number with a dot or a bracket.
pub fn is_marker(word: &str) -> bool {
    is_certain(word) || matches!(word, "-" | "–" | "—" | "*" | "o" | "·") || is_number(word)
}

/// Whether it can be nothing else than a bullet.
fn is_certain(word: &str) -> bool {
    let mut characters = word.chars();
    let (Some(first), None) = (characters.next(), characters.next()) else { return false };
    is_bullet(first)
}

pub fn is_bullet(character: char) -> bool {
    matches!(
        character,
        '•' | '◦'
            | '▪'
            | '▫'
            | '■'
            | '□'
            | '●'
            | '○'
            | '‣'
            | '⁃'
            | '∙'
            | '➢'
            | '➤'
            | '►'
            | '▶'
            | '✓'
            | '✔'
            | '❖'
            | '◆'
            | '◇'
            | '\u{E000}'..='\u{F8FF}' | char::REPLACEMENT_CHARACTER
    )
}

fn is_number(word: &str) -> bool {
    let Some(number) = word.strip_suffix(['.', ')']) else { return false };
    let number = number.strip_prefix('(').unwrap_or(number);
    let is_short = number.len() <= 4 && !number.is_empty();
    let digits = number.bytes().all(|byte| byte.is_ascii_digit()) && number.len() <= 3;
    let letter = number.len() == 1 && number.bytes().all(|byte| byte.is_ascii_alphabetic());
    let roman = number.bytes().all(|byte| matches!(byte, b'i' | b'v' | b'x'));
    is_short && (digits || letter || roman)
}
