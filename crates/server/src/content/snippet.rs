//! The part of a chunk that shows why it was found.

/// About two lines.
const LENGTH: usize = 240;

/// The part of `text` with the most words of the question, cut at word boundaries.
pub fn snippet(text: &str, terms: &[String]) -> String {
    let words: Vec<(usize, usize)> = word_bounds(text);
    let flat = |from: usize, to: usize| text[from..to].split_whitespace().collect::<Vec<_>>().join(" ");
    if text.len() <= LENGTH || words.is_empty() {
        return flat(0, text.len());
    }
    let matches: Vec<bool> = words.iter().map(|(from, to)| is_match(&text[*from..*to], terms)).collect();
    let (mut best, mut best_count) = ((0, 0), None);
    let (mut last, mut count) = (0, 0_usize);
    for first in 0..words.len() {
        while last < words.len() && words[last].1 - words[first].0 <= LENGTH {
            count += usize::from(matches[last]);
            last += 1;
        }
        if best_count.is_none_or(|best| count > best) {
            best_count = Some(count);
            best = (first, last.max(first + 1));
        }
        count = count.saturating_sub(usize::from(matches[first]));
        last = last.max(first + 1);
    }
    let (from, to) = (words[best.0].0, words[best.1 - 1].1);
    let before = if from > 0 { "… " } else { "" };
    let after = if to < text.trim_end().len() { " …" } else { "" };
    format!("{before}{}{after}", flat(from, to))
}

/// Whether a word begins like one of the question's: close enough to stemming for display.
fn is_match(word: &str, terms: &[String]) -> bool {
    let word: String = word.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    !word.is_empty()
        && terms.iter().any(|term| {
            let stem: String = term.chars().take(term.chars().count().max(5) - 2).collect();
            word == *term || (stem.chars().count() > 3 && word.starts_with(&stem))
        })
}

/// Where each word begins and ends.
fn word_bounds(text: &str) -> Vec<(usize, usize)> {
    text.split_whitespace()
        .map(|word| {
            let from = word.as_ptr() as usize - text.as_ptr() as usize;
            (from, from + word.len())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_with_the_words_of_the_question_is_shown() {
        let text = format!("{} the harbour closes at low tide {}", "before ".repeat(60), "after ".repeat(60));
        let shown = snippet(&text, &["tide".to_owned(), "harbour".to_owned()]);
        assert!(shown.contains("harbour closes at low tide"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…') && shown.len() < 260, "{shown}");
    }

    #[test]
    fn a_short_text_is_shown_whole() {
        assert_eq!(snippet("one\n two", &[]), "one two");
    }
}
