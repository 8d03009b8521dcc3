//! The words of a chunk without the marks that mean nothing to a model: bars and rules of tables, addresses of links.

use std::borrow::Cow;

/// A longer address stays, so that the length of the words always says about how long the text is.
const MAX_ADDRESS: usize = 300;

/// What a model reads of a chunk. The marks of a wide table would fill most of the model's window.
pub fn wording(text: &str) -> Cow<'_, str> {
    if !text.contains('|') && !text.contains("](") {
        return Cow::Borrowed(text);
    }
    let mut words = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim();
        if is_rule(content) {
            continue;
        }
        if content.starts_with('|') {
            push_cells(content, &mut words);
            words.push('\n');
        } else {
            push_without_addresses(line, MAX_ADDRESS, &mut words);
        }
    }
    // A model needs something to read.
    if words.trim().is_empty() { Cow::Borrowed(text) } else { Cow::Owned(words) }
}

/// Whether it is the line between the header row of a table and its other rows.
pub(crate) fn is_rule(line: &str) -> bool {
    line.contains('-')
        && line.contains('|')
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' ' | '\t'))
}

fn push_cells(row: &str, words: &mut String) {
    let mut cells = String::with_capacity(row.len());
    let mut is_escaped = false;
    for character in row.chars() {
        match character {
            '|' if is_escaped => {
                cells.pop();
                cells.push('|');
            }
            '|' | ' ' => {
                if !cells.is_empty() && !cells.ends_with(' ') {
                    cells.push(' ');
                }
            }
            other => cells.push(other),
        }
        is_escaped = character == '\\' && !is_escaped;
    }
    push_without_addresses(cells.trim_end(), MAX_ADDRESS, words);
}

/// `[text](address)` becomes `text`.
pub(crate) fn push_without_addresses(text: &str, max_address: usize, words: &mut String) {
    // Where the next address ends, so that each character is looked at once.
    let (mut from, mut end) = (0, 0);
    while let Some(found) = text[from..].find("](") {
        let middle = from + found;
        let start = middle + 2;
        if end < start {
            let ends = text[start..].find(|c: char| c == ')' || c.is_whitespace());
            end = ends.map_or(text.len(), |ends| start + ends);
        }
        let before = &text[from..middle];
        let is_address = text[end..].starts_with(')') && end - start <= max_address;
        if let Some(open) = before.rfind('[').filter(|_| is_address) {
            words.push_str(before[..open].strip_suffix('!').unwrap_or(&before[..open]));
            words.push_str(&before[open + 1..]);
            from = end + 1;
        } else {
            words.push_str(&text[from..start]);
            from = start;
        }
    }
    words.push_str(&text[from..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_its_cells() {
        let table = "Tides:\n\n| Port | High |\n| --- | ---: |\n| Hull | a\\|b |\n| | 4 |";
        assert_eq!(wording(table), "Tides:\n\nPort High\nHull a|b\n4\n");
    }

    #[test]
    fn a_link_is_its_text_and_a_picture_its_description() {
        let text =
            "See [the tables](https://example.org/a?b=c) and ![a map](), then [1] (as said) and [odd](a b).";
        assert_eq!(wording(text), "See the tables and a map, then [1] (as said) and [odd](a b).");
        let long = format!("[x](https://example.org/{})", "a".repeat(400));
        assert_eq!(wording(&long), long);
    }

    #[test]
    fn a_table_without_words_is_not_empty() {
        assert_eq!(wording("| | |\n| --- | --- |"), "| | |\n| --- | --- |");
    }

    #[test]
    fn prose_is_not_copied() {
        assert!(matches!(wording("# Hours\n\n- from nine"), Cow::Borrowed(_)));
    }
}
