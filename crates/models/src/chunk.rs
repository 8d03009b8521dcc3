//! Splits a text into chunks along its structure: headings and paragraphs first, then sentences, then words.

use std::ops::ControlFlow;

use text_splitter::{ChunkConfig as SplitterConfig, ChunkSizer, MarkdownSplitter, TextSplitter};

use crate::tokens::Tokens;
use landfall_core::failure::{Code, Failure};
use landfall_core::text::{Chunk, Extracted, Markup};

/// A token of a language that the model knows has at most about this many characters.
const MAX_CHARACTERS_PER_TOKEN: usize = 6;
/// The maximum length of a text that is split at once, unless chunks are very long: the splitter reads its input
/// many times.
const WINDOW: usize = 8 * 1024;
/// With fewer chunks than this in one window, too many cuts would fall inside a sentence.
const CHUNKS_PER_WINDOW: usize = 4;

/// How long chunks are, in tokens of the model.
#[derive(Debug, Clone, Copy)]
pub struct ChunkConfig {
    pub size_tokens: usize,
    pub overlap_tokens: usize,
}

/// Counts tokens as the model does.
#[derive(Clone)]
struct Sizer(Tokens);

impl ChunkSizer for Sizer {
    fn size(&self, chunk: &str) -> usize {
        // To the model a very long word is one unknown token, and so is a sentence in a script that it does not
        // know. Without this limit such a chunk could have any length.
        self.0.count(chunk).max(chunk.chars().count().div_ceil(MAX_CHARACTERS_PER_TOKEN))
    }
}

/// Computes on the calling thread. Calls `progress` often; `Break` stops it.
pub fn chunk(
    extracted: &Extracted,
    config: ChunkConfig,
    tokens: &Tokens,
    progress: impl Fn() -> ControlFlow<()>,
) -> Result<Vec<Chunk>, Failure> {
    let splitter = Splitter::new(extracted.markup, config, tokens)?;
    let window = WINDOW.max(CHUNKS_PER_WINDOW * config.size_tokens * MAX_CHARACTERS_PER_TOKEN);
    let mut chunks = Vec::new();
    let mut characters = CharacterCount::new(&extracted.text);
    for section in sections(extracted).iter().flat_map(|section| windows(section, window)) {
        if progress().is_break() {
            return Err(Failure::new(Code::StageTimeout, "Chunking was stopped"));
        }
        for (offset, piece) in splitter.split(section.text) {
            let start = section.start + offset;
            chunks.push(Chunk {
                page: section.page,
                heading: section.heading.map(str::to_owned),
                char_start: characters.before(start),
                char_end: characters.before(start + piece.len()),
                tokens: tokens.count(piece),
                text: piece.to_owned(),
            });
        }
    }
    if chunks.is_empty() {
        return Err(Failure::new(Code::NoText, "There is no text in this file"));
    }
    Ok(chunks)
}

/// The text under one heading, on one page. No chunk crosses its bounds, so each has one page and one heading.
#[derive(Clone, Copy)]
struct Section<'a> {
    start: usize,
    text: &'a str,
    page: Option<i64>,
    heading: Option<&'a str>,
}

fn sections(extracted: &Extracted) -> Vec<Section<'_>> {
    let text = extracted.text.as_str();
    let mut sections = Vec::with_capacity(extracted.places.len() + 1);
    let (mut start, mut page, mut heading) = (0, None, None);
    for place in &extracted.places {
        let so_far = &text[start..place.start];
        // A heading with no text before the next heading is kept with that one.
        if !so_far.trim().is_empty() && !heading.is_some_and(|heading| is_only(so_far, heading)) {
            sections.push(Section { start, text: &text[start..place.start], page, heading });
            start = place.start;
        }
        // A new page keeps the last heading, and a new heading keeps the page.
        page = place.page.or(page);
        heading = place.heading.as_deref().or(heading);
    }
    sections.push(Section { start, text: &text[start..], page, heading });
    sections
}

/// A long section in parts, cut after a paragraph, a line, a sentence or at least a word.
fn windows<'a>(section: &Section<'a>, max_length: usize) -> Vec<Section<'a>> {
    let mut windows = Vec::with_capacity(section.text.len() / max_length + 1);
    let mut rest = section.text;
    let mut start = section.start;
    while !rest.is_empty() {
        let end = if rest.len() <= max_length {
            rest.len()
        } else {
            cut(&rest[..rest.floor_char_boundary(max_length)])
        };
        windows.push(Section { start, text: &rest[..end], ..*section });
        rest = &rest[end..];
        start += end;
    }
    windows
}

/// Where to cut: after the last boundary in the second half, or at the end.
fn cut(window: &str) -> usize {
    let half = window.ceil_char_boundary(window.len() / 2);
    ["\n\n", "\n", ". ", " "]
        .iter()
        .find_map(|end| window[half..].rfind(end).map(|found| half + found + end.len()))
        .unwrap_or(window.len())
}

fn is_only(text: &str, heading: &str) -> bool {
    text.trim_matches(|c: char| c.is_whitespace() || c == '#') == heading
}

enum Splitter {
    Markdown(MarkdownSplitter<Sizer>),
    Plain(TextSplitter<Sizer>),
}

impl Splitter {
    fn new(markup: Markup, config: ChunkConfig, tokens: &Tokens) -> Result<Self, Failure> {
        let config = SplitterConfig::new(config.size_tokens)
            .with_sizer(Sizer(tokens.clone()))
            .with_overlap(config.overlap_tokens)
            .map_err(|error| {
                Failure::new(Code::Unknown, format!("CHUNK_OVERLAP does not fit CHUNK_SIZE: {error}"))
            })?;
        Ok(match markup {
            Markup::Markdown => Self::Markdown(MarkdownSplitter::new(config)),
            Markup::Plain => Self::Plain(TextSplitter::new(config)),
        })
    }

    /// The pieces, each with the offset where it begins.
    fn split<'a>(&'a self, text: &'a str) -> Box<dyn Iterator<Item = (usize, &'a str)> + 'a> {
        match self {
            Self::Markdown(splitter) => Box::new(splitter.chunk_indices(text)),
            Self::Plain(splitter) => Box::new(splitter.chunk_indices(text)),
        }
    }
}

/// Converts byte offsets, which ascend except for overlaps, into character offsets without counting from the start
/// each time.
struct CharacterCount<'a> {
    text: &'a str,
    byte: usize,
    characters: usize,
}

impl<'a> CharacterCount<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, byte: 0, characters: 0 }
    }

    fn before(&mut self, byte: usize) -> usize {
        if byte >= self.byte {
            self.characters += self.text[self.byte..byte].chars().count();
        } else {
            self.characters -= self.text[byte..self.byte].chars().count();
        }
        self.byte = byte;
        self.characters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use landfall_core::text::Place;

    fn in_chunks(extracted: &Extracted, config: ChunkConfig) -> Result<Vec<Chunk>, Failure> {
        chunk(extracted, config, &Tokens::BuiltIn, || ControlFlow::Continue(()))
    }

    #[test]
    fn no_chunk_crosses_a_heading_or_a_page() {
        let text = "Before.\n\nTides\n\nLow water.\n\nOn the next page.";
        let place = |at: &str, page, heading: Option<&str>| Place {
            start: text.find(at).expect("it is there"),
            page,
            heading: heading.map(str::to_owned),
        };
        let places = vec![place("Tides", Some(1), Some("Tides")), place("On the", Some(2), None)];
        let extracted = Extracted { places, ..Extracted::plain(text.to_owned()) };
        let config = ChunkConfig { size_tokens: 100, overlap_tokens: 10 };
        let chunks = in_chunks(&extracted, config).expect("chunks");
        let found: Vec<_> = chunks.iter().map(|c| (c.text.as_str(), c.page, c.heading.as_deref())).collect();
        assert_eq!(
            found,
            [
                ("Before.", None, None),
                ("Tides\n\nLow water.", Some(1), Some("Tides")),
                ("On the next page.", Some(2), Some("Tides")),
            ]
        );
    }

    #[test]
    fn a_heading_alone_is_no_chunk() {
        let text = "# Handbook\n\n## Hours\n\nFrom nine to five.";
        let places = [("# Handbook", "Handbook"), ("## Hours", "Hours")].map(|(at, heading)| Place {
            start: text.find(at).expect("it is there"),
            page: None,
            heading: Some(heading.to_owned()),
        });
        let extracted = Extracted {
            markup: Markup::Markdown,
            places: places.to_vec(),
            ..Extracted::plain(text.to_owned())
        };
        let config = ChunkConfig { size_tokens: 100, overlap_tokens: 10 };
        let chunks = in_chunks(&extracted, config).expect("chunks");
        assert_eq!(chunks.len(), 1);
        assert_eq!((chunks[0].text.as_str(), chunks[0].heading.as_deref()), (text, Some("Hours")));
    }

    #[test]
    fn places_are_counted_in_characters() {
        let text = "Größe öäü. ".repeat(100);
        let extracted = Extracted::plain(text.clone());
        let config = ChunkConfig { size_tokens: 30, overlap_tokens: 10 };
        let characters: Vec<char> = text.chars().collect();
        for chunk in in_chunks(&extracted, config).expect("chunks") {
            assert_eq!(characters[chunk.char_start..chunk.char_end].iter().collect::<String>(), chunk.text);
            assert!(chunk.tokens <= 30);
        }
    }

    #[test]
    fn a_text_that_is_hard_to_split_still_gives_small_chunks() {
        let image = format!("Before. ![](data:image/png;base64,{}) After.", "iVBORw0KGgo".repeat(10_000));
        for (text, markup) in [
            ("a.".repeat(50_000), Markup::Plain),
            ("word ".repeat(40_000), Markup::Plain),
            ("a".repeat(200_000), Markup::Plain),
            (image, Markup::Markdown),
            ("> ".repeat(20_000), Markup::Markdown),
            ("ภาษาไทยไม่มีช่องว่างระหว่างคำ".repeat(300), Markup::Plain),
        ] {
            let extracted = Extracted { markup, ..Extracted::plain(text) };
            let config = ChunkConfig { size_tokens: 120, overlap_tokens: 20 };
            let chunks = in_chunks(&extracted, config).expect("chunks");
            assert!(chunks.iter().all(|chunk| chunk.text.chars().count() <= 120 * MAX_CHARACTERS_PER_TOKEN));
        }
    }
}
