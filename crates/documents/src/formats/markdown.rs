//! Markdown: the text is kept as it is, and its headings become places.

use landfall_core::text::{Extracted, Markup, Place};

pub fn extract(text: String) -> Extracted {
    let text = match front_matter(&text) {
        0 => text,
        length => text[length..].trim_start_matches('\n').to_owned(),
    };
    let places = headings(&text);
    Extracted { markup: Markup::Markdown, places, ..Extracted::plain(text) }
}

/// The length of the settings that some programs put before the text, between two lines of `---` or `+++`.
fn front_matter(text: &str) -> usize {
    /// The most lines of settings.
    const MAX_LINES: usize = 200;
    let mut lines = text.split_inclusive('\n');
    let Some(mark) = lines.next().map(str::trim_end).filter(|line| matches!(*line, "---" | "+++")) else {
        return 0;
    };
    let separator = if mark == "---" { ':' } else { '=' };
    let mut length = mark.len() + 1;
    let mut has_setting = false;
    for line in lines.take(MAX_LINES) {
        length += line.len();
        let line = line.trim_end();
        if line == mark || mark == "---" && line == "..." {
            return if has_setting { length.min(text.len()) } else { 0 };
        }
        // Between two rulers there is text, not settings.
        if !has_setting && !line.is_empty() && !line.starts_with('#') && !line.contains(separator) {
            return 0;
        }
        has_setting |= line.contains(separator);
    }
    0
}

fn headings(text: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut fence: Option<&str> = None;
    let mut start = 0;
    // Where the paragraph began that the next line may underline as a heading.
    let mut paragraph: Option<usize> = None;
    let place =
        |start, heading, level| Place { start, page: None, heading: Some(heading), level: Some(level) };
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let before = paragraph.take();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            // In a block of code, a line with `#` is a comment.
            match fence {
                Some(open) if open == mark => fence = None,
                Some(_) => {}
                None => fence = Some(mark),
            }
        } else if fence.is_some() {
        } else if let Some((level, heading)) = heading(trimmed) {
            places.push(place(start, heading, level));
        } else if let (Some(from), Some(level)) = (before, underline(trimmed)) {
            let heading = text[from..start].split_whitespace().collect::<Vec<_>>().join(" ");
            places.push(place(from, heading, level));
        } else if may_be_underlined(line) {
            paragraph = before.or(Some(start));
        }
        start += line.len();
    }
    places
}

/// The level of the heading that this line underlines.
fn underline(line: &str) -> Option<u8> {
    let is_all = |mark: char| !line.is_empty() && line.chars().all(|c| c == mark);
    if is_all('=') {
        Some(1)
    } else if is_all('-') {
        Some(2)
    } else {
        None
    }
}

/// Whether a line is a paragraph: no list, table, quotation or code.
fn may_be_underlined(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty()
        && !line.starts_with("    ")
        && !line.starts_with('\t')
        && !text.starts_with(['-', '*', '+', '>', '|', '<', '='])
        && !text.split_once(['.', ')']).is_some_and(|(number, _)| {
            !number.is_empty() && number.len() < 10 && number.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// `## Like this`, also `## like this ##`.
fn heading(line: &str) -> Option<(u8, String)> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(level..)?;
    let text = rest.trim().trim_end_matches('#').trim();
    if !(1..=6).contains(&level) || !rest.starts_with([' ', '\t']) || text.is_empty() {
        return None;
    }
    Some((u8::try_from(level).ok()?, text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn underlined_headings_are_found_and_rulers_are_not() {
        let text = "One\n===\n\ntext\n\n---\n\nTwo\nlines\n----\n- item\n---\n| a |\n---\n```\nx\n---\n```\n";
        let found: Vec<_> =
            headings(text).into_iter().map(|p| (p.start, p.level.unwrap(), p.heading.unwrap())).collect();
        assert_eq!(found, [(0, 1, "One".to_owned()), (text.find("Two").unwrap(), 2, "Two lines".to_owned())]);
    }

    #[test]
    fn settings_before_the_text_are_left_out() {
        let read = |text: &str| extract(text.to_owned()).text;
        assert_eq!(read("---\ntitle: T\ntags:\n  - a\n---\n\n# One\n"), "# One\n");
        assert_eq!(read("+++\ntitle = 'T'\n+++\nOne\n"), "One\n");
        for text in ["---\nOne\n---\nTwo\n", "---\n\n---\nTwo", "---\na: b\n", "One\n---\na: b\n---\n"] {
            assert_eq!(read(text), text);
        }
    }

    #[test]
    fn headings_are_found_and_code_is_not_mistaken_for_them() {
        let text = "# One\ntext\n```sh\n# a comment\n```\n## Two ##\n#hashtag\n";
        let found: Vec<_> = headings(text).into_iter().map(|p| (p.start, p.heading.unwrap())).collect();
        assert_eq!(found, [(0, "One".to_owned()), (text.find("## Two").unwrap(), "Two".to_owned())]);
    }
}
