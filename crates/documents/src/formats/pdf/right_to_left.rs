//! Pages in Arabic, Hebrew and other scripts that run from right to left.
//!
//! A PDF contains the position of each glyph, not the order in which glyphs are read. For these scripts the glyphs of
//! each line are sorted by position and then put into reading order: from the right, except for words and numbers of
//! other scripts.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::layout::glyphs::Glyph;

/// A page is read this way if at least one letter in this many runs from right to left.
const MIN_LETTERS_DIVISOR: usize = 5;
/// Glyphs farther apart than this share of their size have a space between them.
const SPACE: f32 = 0.2;
/// Glyphs whose heights differ by less than this share of their size are on one line.
const SAME_LINE: f32 = 0.5;

/// Whether a text or page with these characters is read from the right.
pub fn are_right_to_left(characters: impl Iterator<Item = char>) -> bool {
    let letters = characters.filter(|c| c.is_alphabetic());
    let (all, from_right) =
        letters.fold((0, 0), |(all, from_right), c| (all + 1, from_right + usize::from(runs_from_right(c))));
    from_right > 0 && from_right * MIN_LETTERS_DIVISOR >= all
}

/// How brackets are stored in text from the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Brackets {
    AsStored,
    Mirrored,
}

/// Some programs store the bracket that is drawn, others the one that is meant. The variant with fewer brackets that
/// close before they open is right.
pub fn brackets(glyphs: &mut [Glyph]) -> Brackets {
    if !glyphs.iter().any(|glyph| runs_from_right(glyph.character)) {
        return Brackets::AsStored;
    }
    glyphs.sort_by(|a, b| a.y.total_cmp(&b.y));
    let as_stored = closed_too_early(&write_lines(glyphs, Brackets::AsStored));
    if as_stored == 0 || closed_too_early(&write_lines(glyphs, Brackets::Mirrored)) >= as_stored {
        Brackets::AsStored
    } else {
        Brackets::Mirrored
    }
}

/// The number of brackets that close without an opening one.
fn closed_too_early(text: &str) -> usize {
    let (mut open, mut early) = (0_usize, 0);
    for character in text.chars() {
        match character {
            '(' | '[' | '{' | '«' => open += 1,
            ')' | ']' | '}' | '»' if open > 0 => open -= 1,
            ')' | ']' | '}' | '»' => early += 1,
            _ => {}
        }
    }
    early
}

/// The text of glyphs that are sorted from the top.
fn write_lines(glyphs: &mut [Glyph], brackets: Brackets) -> String {
    let mut text = String::new();
    let mut rest = glyphs;
    while let Some(first) = rest.first() {
        let (y, size) = (first.y, first.size);
        let on_line = |glyph: &Glyph| glyph.y - y < SAME_LINE * size;
        let length = rest.iter().position(|glyph| !on_line(glyph)).unwrap_or(rest.len());
        let (line, after) = rest.split_at_mut(length.max(1));
        line.sort_by(|a, b| a.x.total_cmp(&b.x));
        let line = read_line(line, brackets);
        if !line.trim().is_empty() {
            text.push_str(line.trim());
            text.push('\n');
        }
        rest = after;
    }
    text
}

/// Characters that stay together when a line is reversed: a letter with its marks, a ligature.
struct Cluster {
    text: String,
    from_right: Option<bool>,
}

/// The text of a line whose glyphs are sorted from the left.
pub fn read_line(glyphs: &[Glyph], brackets: Brackets) -> String {
    let mut clusters = clusters(glyphs);
    let count = |wanted| clusters.iter().filter(|cluster| cluster.from_right == Some(wanted)).count();
    let line_from_right = count(true) >= count(false);
    // Characters between two words of the same direction get that direction, others that of the line.
    let mut before = None;
    for at in 0..clusters.len() {
        if clusters[at].from_right.is_some() {
            before = clusters[at].from_right;
            continue;
        }
        let after = clusters[at..].iter().find_map(|cluster| cluster.from_right);
        let direction = if before == after { before } else { None };
        clusters[at].from_right = Some(direction.unwrap_or(line_from_right));
    }
    let mut runs: Vec<String> = Vec::new();
    for run in clusters.chunk_by(|a, b| a.from_right == b.from_right) {
        let from_right = run.first().and_then(|cluster| cluster.from_right).unwrap_or(false);
        let parts = run.iter().map(|cluster| cluster.text.as_str());
        runs.push(match (from_right, brackets) {
            (true, Brackets::Mirrored) => parts.rev().map(mirrored).collect(),
            (true, Brackets::AsStored) => parts.rev().collect(),
            (false, _) => parts.collect(),
        });
    }
    if line_from_right {
        runs.reverse();
    }
    // Presentation forms become plain letters.
    runs.concat().chars().flat_map(plain).collect()
}

fn clusters(glyphs: &[Glyph]) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = Vec::with_capacity(glyphs.len());
    let mut last: Option<Glyph> = None;
    for glyph in glyphs {
        let Glyph { character, .. } = *glyph;
        if let (Some(base), Some(cluster)) = (last, clusters.last_mut()) {
            // A mark above a letter follows the letter. The same mark twice was drawn twice.
            if is_combining_mark(character) {
                if cluster.text.ends_with(character) {
                    continue;
                }
                if glyph.x < base.end() - 0.1 * base.width {
                    cluster.text.push(character);
                    continue;
                }
            } else if is_ligature(&base, glyph) {
                cluster.text.push(character);
                last = Some(*glyph);
                continue;
            } else if glyph.x - base.end() > SPACE * glyph.size {
                clusters.push(Cluster { text: " ".to_owned(), from_right: None });
            }
        }
        clusters.push(Cluster { text: character.to_string(), from_right: direction(character) });
        last = Some(*glyph);
    }
    clusters
}

/// Lam and alef are written as one glyph, which stands for both in reading order. Its two halves have exactly the
/// same width; two separate glyphs do not.
fn is_ligature(first: &Glyph, second: &Glyph) -> bool {
    first.character == 'ل'
        && matches!(second.character, 'ا' | 'أ' | 'إ' | 'آ')
        && (first.width - second.width).abs() < 0.01
        && (second.x - first.end()).abs() < 0.01 * second.size
}

fn direction(character: char) -> Option<bool> {
    if runs_from_right(character) {
        Some(true)
    } else if character.is_alphanumeric() {
        Some(false)
    } else {
        None
    }
}

/// Hebrew, Arabic and the scripts between them in Unicode, and their presentation forms. Their digits run from left
/// to right.
pub fn runs_from_right(character: char) -> bool {
    let is_digit = matches!(character, '\u{660}'..='\u{669}' | '\u{6F0}'..='\u{6F9}');
    matches!(character, '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}')
        && !is_digit
}

fn mirrored(text: &str) -> String {
    let mirror = |c| match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '«' => '»',
        '»' => '«',
        other => other,
    };
    text.chars().map(mirror).collect()
}

fn plain(character: char) -> Box<dyn Iterator<Item = char>> {
    if matches!(character, '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}') {
        Box::new(std::iter::once(character).nfkc())
    } else {
        Box::new(std::iter::once(character))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of glyphs as they are seen from the left, each ten wide.
    fn line(seen: &str) -> Vec<Glyph> {
        let mut along = 0.0;
        seen.chars()
            .enumerate()
            .map(|(number, character)| {
                // Two separate glyphs never have the same width.
                let width = if number % 2 == 0 { 10.0 } else { 9.0 };
                let glyph = Glyph { character, x: along, y: 0.0, width, size: 12.0, ..Glyph::default() };
                along += width;
                glyph
            })
            .collect()
    }

    fn read(seen: &str) -> String {
        {
            let mut glyphs = line(seen);
            let brackets = brackets(&mut glyphs);
            write_lines(&mut glyphs, brackets).trim_end().to_owned()
        }
    }

    #[test]
    fn a_line_is_read_from_the_right_and_the_words_of_other_scripts_from_the_left() {
        assert_eq!(read("Python 3.9 (םולש) םלוע"), "עולם (שלום) Python 3.9");
        assert_eq!(read("Python 3.9 )םולש( םלוע"), "עולם (שלום) Python 3.9");
        assert_eq!(read("The word םולש is here"), "The word שלום is here");
    }

    #[test]
    fn shapes_become_letters_and_ligatures_keep_their_order() {
        assert_eq!(read("ﻲﺒﻴﺒﺣ"), "حبيبي");
        let mut glyphs = line("لاس");
        glyphs[0].width = 9.5;
        glyphs[1].width = 9.5;
        glyphs[1].x = 9.5;
        assert_eq!(read_line(&glyphs, Brackets::AsStored), "سلا");
        assert_eq!(read("باتكلا"), "الكتاب");
    }

    #[test]
    fn a_mark_follows_its_letter() {
        let mut glyphs = line("הבא");
        let mark = Glyph { character: '\u{5B8}', x: 12.0, width: 2.0, ..glyphs[1] };
        glyphs.insert(2, mark);
        assert_eq!(read_line(&glyphs, Brackets::AsStored), "אב\u{5B8}ה");
    }

    #[test]
    fn a_page_mostly_in_another_script_is_not_reordered() {
        assert!(!are_right_to_left("Largely in English with one word: שלום".chars()));
        assert!(are_right_to_left("שלום עולם, and some English".chars()));
        assert!(!are_right_to_left("123".chars()));
    }
}
