//! How near one Markdown text is to another: in its words, in their order, and in its structure.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug, Clone, Copy)]
pub struct Score {
    /// F1 of the words, without their order.
    pub unigram: f64,
    /// F1 of the pairs of neighbouring words.
    pub bigram: f64,
    /// How much of both texts is one common sequence of words.
    pub sequence: f64,
    /// F1 of headings with their level, list items with their depth, table rows, and cells with their column.
    pub structure: f64,
}

impl Score {
    pub fn of(found: &str, reference: &str) -> Self {
        let (found, reference) = (Parsed::of(found), Parsed::of(reference));
        let pairs =
            |words: &[String]| words.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
        let (found_pairs, reference_pairs): (Vec<_>, Vec<_>) = (pairs(&found.words), pairs(&reference.words));
        Self {
            unigram: f1(&found.words, &reference.words),
            bigram: f1(&found_pairs, &reference_pairs),
            sequence: share(
                common_sequence(&found.words, &reference.words),
                found.words.len(),
                reference.words.len(),
            ),
            structure: f1(&found.features, &reference.features),
        }
    }
}

/// The words of a text without the marks of Markdown, and what the marks say.
#[derive(Default)]
struct Parsed {
    words: Vec<String>,
    features: Vec<Feature>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Feature {
    Heading(usize, String),
    Item(usize, String),
    Row(String),
    Cell(usize, String),
}

impl Parsed {
    fn of(markdown: &str) -> Self {
        let mut parsed = Self::default();
        let mut fence: Option<&str> = None;
        // How far the open items are indented.
        let mut items: Vec<usize> = Vec::new();
        for line in markdown.lines() {
            let mut line = line.trim_end();
            let mark = line.trim_start().get(..3).filter(|mark| matches!(*mark, "```" | "~~~"));
            match (fence, mark) {
                (None, Some(_)) => fence = mark,
                (Some(open), Some(mark)) if open == mark => fence = None,
                (Some(_), _) => {
                    parsed.add_words(line);
                }
                (None, None) => {
                    while let Some(quoted) = line.trim_start().strip_prefix('>') {
                        line = quoted;
                    }
                    parsed.line(line, &mut items);
                }
            }
        }
        parsed
    }

    fn line(&mut self, line: &str, items: &mut Vec<usize>) {
        let content = line.trim_start();
        let indent = line.len() - content.len();
        let hashes = content.bytes().take_while(|byte| *byte == b'#').count();
        if (1..=6).contains(&hashes) && content[hashes..].starts_with(' ') {
            let text = self.add_words(&content[hashes..]);
            self.features.push(Feature::Heading(hashes, text));
        } else if let Some((marker, text)) = item(content) {
            while items.last().is_some_and(|open| *open >= indent) {
                items.pop();
            }
            items.push(indent);
            if marker != "-" {
                self.words.push(marker.to_owned());
            }
            let text = self.add_words(text);
            self.features.push(Feature::Item(items.len(), format!("{marker} {text}")));
        } else if content.starts_with('|') {
            self.row(content);
        } else if !content.is_empty() {
            items.retain(|open| *open < indent);
            self.add_words(content);
        }
    }

    fn row(&mut self, line: &str) {
        if line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ')) && line.contains("---") {
            return;
        }
        let cells = line.replace("\\|", "\u{1}");
        let cells = cells.trim_start_matches('|').trim_end_matches('|').split('|');
        let cells: Vec<String> =
            cells.map(|cell| self.add_words(&cell.trim().replace('\u{1}', "|"))).collect();
        for (column, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
            self.features.push(Feature::Cell(column, cell.clone()));
        }
        self.features.push(Feature::Row(cells.join(" | ")));
    }

    /// Returns the words in one line.
    fn add_words(&mut self, text: &str) -> String {
        let text = without_links(text);
        let words: Vec<String> =
            text.split_whitespace().map(|word| word.trim_start_matches('\\').to_owned()).collect();
        let line = words.join(" ");
        self.words.extend(words);
        line
    }
}

/// The marker of a list item, and what follows it. All bullets are the same.
fn item(line: &str) -> Option<(&str, &str)> {
    let (marker, text) = line.split_once(' ')?;
    if matches!(marker, "-" | "*" | "+") {
        return Some(("-", text));
    }
    let digits = marker.bytes().take_while(u8::is_ascii_digit).count();
    ((1..=9).contains(&digits) && matches!(&marker[digits..], "." | ")")).then_some((marker, text))
}

/// A link becomes its text and its address, a picture its description.
fn without_links(text: &str) -> String {
    text.replace("![", " ").replace("]()", " ").replace("](", " ").replace(['[', ']'], " ")
}

fn counts<T: Hash + Eq>(items: &[T]) -> HashMap<&T, usize> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_default() += 1;
    }
    counts
}

fn f1<T: Hash + Eq>(found: &[T], reference: &[T]) -> f64 {
    let of_reference = counts(reference);
    let common = counts(found)
        .into_iter()
        .map(|(item, count)| count.min(of_reference.get(item).copied().unwrap_or(0)))
        .sum();
    share(common, found.len(), reference.len())
}

/// Two texts of which both are empty are equal.
fn share(common: usize, found: usize, reference: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of words")]
    let share = |common: usize, total: usize| 2.0 * common as f64 / total as f64;
    if found + reference == 0 { 1.0 } else { share(common, found + reference) }
}

/// The length of the longest common subsequence.
fn common_sequence(found: &[String], reference: &[String]) -> usize {
    let mut row = vec![0; reference.len() + 1];
    for word in found {
        let mut diagonal = 0;
        for (column, other) in reference.iter().enumerate() {
            let above = row[column + 1];
            row[column + 1] = if word == other { diagonal + 1 } else { above.max(row[column]) };
            diagonal = above;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[test]
fn each_score_falls_with_what_it_measures() {
    let reference = "# Tides\n\n- high\n  - low\n\n| a | b |\n| --- | --- |\n| | c |\n\nThe end of it.";
    let perfect = Score::of(reference, reference);
    assert!(
        [perfect.unigram, perfect.bigram, perfect.sequence, perfect.structure].iter().all(|s| *s > 0.999)
    );

    let swapped = Score::of(&reference.replace("The end of it.", "it. of end The"), reference);
    assert!(swapped.unigram > 0.999 && swapped.structure > 0.999);
    assert!(swapped.bigram < 0.8 && swapped.sequence < 0.8, "{swapped:?}");

    for (from, to) in [("# T", "## T"), ("  - low", "- low"), ("| | c |", "| c | |"), ("- high", "1. high")] {
        let other = Score::of(&reference.replace(from, to), reference);
        assert!(other.structure < 0.999, "{to}: {other:?}");
    }
    let plain = Score::of("Tides high low a b c The end of it.", reference);
    assert!(plain.bigram > 0.999 && plain.structure < 0.001, "{plain:?}");
}
