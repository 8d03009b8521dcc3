//! A text in the parts that its pages and headings make.

use landfall_core::text::Extracted;

/// A longer heading is cut in the path: it is stored with every chunk below it.
const MAX_HEADING_CHARACTERS: usize = 200;

/// The text under one heading, on one page. No chunk crosses its bounds, so each has one page and one heading.
#[derive(Clone)]
pub struct Section<'a> {
    pub start: usize,
    pub text: &'a str,
    pub page: Option<i64>,
    pub heading: Option<&'a str>,
    /// The headings that it is under, with its own.
    pub path: Vec<&'a str>,
}

/// Calls `visit` with each section in turn, until it returns an error.
pub fn each_section<'a, E>(
    extracted: &'a Extracted,
    mut visit: impl FnMut(Section<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let text = extracted.text.as_str();
    let (mut start, mut page, mut heading, mut path) = (0, None, None, Path::default());
    let mut last = 0;
    for place in &extracted.places {
        let part = &text[last..place.start];
        last = place.start;
        // Headings with no text before the next heading are kept with that one.
        if !part.trim().is_empty() && !heading.is_some_and(|heading| is_only(part, heading)) {
            visit(Section { start, text: &text[start..place.start], page, heading, path: path.headings() })?;
            start = place.start;
        }
        // A new page keeps the last heading, and a new heading keeps the page.
        page = place.page.or(page);
        if let Some(new) = place.heading.as_deref() {
            heading = Some(new);
            path.enter(place.level.unwrap_or(0), new);
        }
    }
    visit(Section { start, text: &text[start..], page, heading, path: path.headings() })
}

fn is_only(text: &str, heading: &str) -> bool {
    text.trim_matches(|c: char| c.is_whitespace() || c == '#') == heading
}

/// The headings above a place in the text, with their levels, which ascend.
#[derive(Default)]
struct Path<'a>(Vec<(u8, &'a str)>);

impl<'a> Path<'a> {
    /// A heading without a level, such as the name of a sheet, is above all others.
    fn enter(&mut self, level: u8, heading: &'a str) {
        self.0.retain(|(above, _)| *above < level);
        let end = heading.char_indices().nth(MAX_HEADING_CHARACTERS).map_or(heading.len(), |(end, _)| end);
        self.0.push((level, &heading[..end]));
    }

    fn headings(&self) -> Vec<&'a str> {
        self.0.iter().map(|(_, heading)| *heading).collect()
    }
}

/// A long text in parts, cut after a paragraph, a line, a sentence or at least a word. Each has the offset where it begins.
pub fn windows(text: &str, max_length: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        if rest.is_empty() {
            return None;
        }
        let end = if rest.len() <= max_length {
            rest.len()
        } else {
            cut(&rest[..rest.floor_char_boundary(max_length)])
        };
        let window = (start, &rest[..end]);
        start += end;
        Some(window)
    })
}

/// Where to cut: after the last boundary in the second half, or at the end.
fn cut(window: &str) -> usize {
    let half = window.ceil_char_boundary(window.len() / 2);
    ["\n\n", "\n", ". ", " "]
        .iter()
        .find_map(|end| window[half..].rfind(end).map(|found| half + found + end.len()))
        .unwrap_or(window.len())
}
