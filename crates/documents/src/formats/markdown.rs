//! Markdown: the text is kept as it is, and its headings become places.

use landfall_core::text::{Extracted, Markup, Place};

pub fn extract(text: String) -> Extracted {
    let places = headings(&text);
    Extracted { markup: Markup::Markdown, places, ..Extracted::plain(text) }
}

fn headings(text: &str) -> Vec<Place> {
    let mut places = Vec::new();
    let mut fence: Option<&str> = None;
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            // In a block of code, a line with `#` is a comment.
            match fence {
                Some(open) if open == mark => fence = None,
                Some(_) => {}
                None => fence = Some(mark),
            }
        } else if fence.is_none()
            && let Some(heading) = heading(trimmed)
        {
            places.push(Place { start, page: None, heading: Some(heading) });
        }
        start += line.len();
    }
    places
}

/// `## Like this`, also `## like this ##`.
fn heading(line: &str) -> Option<String> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = line.get(level..)?;
    let text = rest.trim().trim_end_matches('#').trim();
    ((1..=6).contains(&level) && rest.starts_with([' ', '\t']) && !text.is_empty()).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_are_found_and_code_is_not_mistaken_for_them() {
        let text = "# One\ntext\n```sh\n# a comment\n```\n## Two ##\n#hashtag\n";
        let found: Vec<_> = headings(text).into_iter().map(|p| (p.start, p.heading.unwrap())).collect();
        assert_eq!(found, [(0, "One".to_owned()), (text.find("## Two").unwrap(), "Two".to_owned())]);
    }
}
