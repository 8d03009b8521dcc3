//! Makes chunks of a text along its structure. No chunk crosses a page or a heading.
//!
//! `units` are what is kept whole, `pack` fills chunks with them, and `splitter` splits what is too long for one.

mod pack;
mod sections;
mod sizes;
mod splitter;
pub(crate) mod units;

use std::ops::ControlFlow;

use crate::tokens::Tokens;
use landfall_core::failure::{Code, Failure};
use landfall_core::text::{Chunk, Extracted, Markup, PageArea, TextBox};
use pack::{Packer, Piece, with_header};
use sections::{Section, each_section};
use sizes::Sizes;
use splitter::Splitter;

/// A chunk with more parts of a page than this has one for each page, which contains them all.
const MAX_PLACES: usize = 64;

/// How chunks are made.
#[derive(Debug, Clone, Copy)]
pub struct ChunkConfig {
    pub chunking: Chunking,
    /// In tokens of the model.
    pub size_tokens: usize,
    pub overlap_tokens: usize,
}

/// Where a text may be cut.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Chunking {
    /// Between the rows of a table, the items of a list and paragraphs, as far as they are not too long.
    #[default]
    Structure,
    /// Wherever a chunk is full, after a line, a sentence or a word.
    Fixed,
}

/// Computes on the calling thread. Calls `progress` often; `Break` stops it.
pub fn chunk(
    extracted: &Extracted,
    config: ChunkConfig,
    tokens: &Tokens,
    progress: impl Fn() -> ControlFlow<()>,
) -> Result<Vec<Chunk>, Failure> {
    let sizes = Sizes::new(tokens);
    let splitter = Splitter::new(extracted.markup, config, &sizes)?;
    let has_structure = extracted.markup == Markup::Markdown && config.chunking == Chunking::Structure;
    let mut chunks = Chunks::new(extracted, &sizes);
    let check = || match progress() {
        ControlFlow::Break(()) => Err(Failure::new(Code::StageTimeout, "Chunking was stopped")),
        ControlFlow::Continue(()) => Ok(()),
    };
    each_section(extracted, |section| {
        check()?;
        let text = section.text;
        if has_structure {
            let before = chunks.made.len();
            Packer::new(text, config, &sizes).pack(&splitter, |piece| {
                chunks.add(&section, &piece);
                check()
            })?;
            // A text of marks alone has no units.
            if chunks.made.len() > before {
                return Ok(());
            }
        }
        splitter.split(text, |start, piece| {
            chunks.add(&section, &Piece { start, end: start + piece.len(), header: None });
            check()
        })
    })?;
    if chunks.made.is_empty() {
        return Err(Failure::new(Code::NoText, "There is no text in this file"));
    }
    Ok(chunks.made)
}

/// The chunks so far, and what is needed for the next.
struct Chunks<'a> {
    made: Vec<Chunk>,
    sizes: &'a Sizes,
    boxes: &'a [TextBox],
    characters: CharacterCount<'a>,
}

impl<'a> Chunks<'a> {
    fn new(extracted: &'a Extracted, sizes: &'a Sizes) -> Self {
        let characters = CharacterCount::new(&extracted.text);
        Self { made: Vec::new(), sizes, boxes: &extracted.boxes, characters }
    }

    fn add(&mut self, section: &Section<'_>, piece: &Piece<'_>) {
        let body = &section.text[piece.start..piece.end];
        let text = piece.header.map_or_else(|| body.to_owned(), |header| with_header(header, body));
        let (start, end) = (section.start + piece.start, section.start + piece.end);
        self.made.push(Chunk {
            page: section.page,
            heading: section.heading.map(str::to_owned),
            headings: section.path.iter().map(|heading| (*heading).to_owned()).collect(),
            places: places(self.boxes, start, end),
            char_start: self.characters.before(start),
            char_end: self.characters.before(end),
            tokens: self.sizes.tokens(&text),
            text,
        });
    }
}

/// Where these bytes of the text are on their pages.
fn places(boxes: &[TextBox], start: usize, end: usize) -> Vec<PageArea> {
    let first = boxes.partition_point(|part| part.end <= start);
    let parts = boxes[first..].iter().take_while(|part| part.start < end);
    let mut places: Vec<PageArea> =
        parts.clone().take(MAX_PLACES).map(|part| PageArea { page: part.page, area: part.area }).collect();
    if parts.clone().nth(MAX_PLACES).is_none() {
        return places;
    }
    places.clear();
    for part in parts {
        match places.last_mut().filter(|last| last.page == part.page) {
            Some(last) => last.area = last.area.union(part.area),
            None => places.push(PageArea { page: part.page, area: part.area }),
        }
    }
    places.truncate(MAX_PLACES);
    places
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
mod tests;
