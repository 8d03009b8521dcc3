//! Cuts a text into chunks along its structure: headings and paragraphs first, then sentences, then words.

use text_splitter::{ChunkConfig as SplitterConfig, ChunkSizer, MarkdownSplitter, TextSplitter};
use tokio_util::sync::CancellationToken;

use super::embed::count_tokens;
use super::{Chunk, Extracted, Markup};
use crate::config::ChunkConfig;
use crate::failure::{Code, Failure};

/// Measures as the model does.
struct Tokens;

impl ChunkSizer for Tokens {
    fn size(&self, chunk: &str) -> usize {
        count_tokens(chunk)
    }
}

/// Computes on the calling thread; looks between chunks whether anybody still waits.
pub fn chunk(
    extracted: &Extracted,
    config: ChunkConfig,
    cancelled: &CancellationToken,
) -> Result<Vec<Chunk>, Failure> {
    let splitting = SplitterConfig::new(config.size_tokens)
        .with_sizer(Tokens)
        .with_overlap(config.overlap_tokens)
        .map_err(|error| {
            Failure::new(
                Code::Unknown,
                format!("CHUNK_OVERLAP does not fit CHUNK_SIZE: {error}"),
            )
        })?;
    let text = extracted.text.as_str();
    let markdown;
    let plain;
    let pieces: Box<dyn Iterator<Item = (usize, &str)>> = match extracted.markup {
        Markup::Markdown => {
            markdown = MarkdownSplitter::new(splitting);
            Box::new(markdown.chunk_indices(text))
        }
        Markup::Plain => {
            plain = TextSplitter::new(splitting);
            Box::new(plain.chunk_indices(text))
        }
    };
    let mut chunks = Vec::new();
    let mut characters = CharacterCount::new(text);
    // Where in the document the chunk begins.
    let mut places = extracted.places.iter().peekable();
    let (mut page, mut heading) = (None, None);
    for (start, piece) in pieces {
        if cancelled.is_cancelled() {
            return Err(Failure::new(Code::StageTimeout, "Chunking was stopped"));
        }
        while let Some(place) = places.next_if(|place| place.start <= start) {
            page = place.page.or(page);
            // A page without a heading goes on under the last one.
            heading = place.heading.clone().or(heading);
        }
        chunks.push(Chunk {
            page,
            heading: heading.clone(),
            char_start: characters.before(start),
            char_end: characters.before(start + piece.len()),
            tokens: count_tokens(piece),
            text: piece.to_owned(),
        });
    }
    if chunks.is_empty() {
        return Err(Failure::new(Code::NoText, "There is no text in this file"));
    }
    Ok(chunks)
}

/// Turns byte offsets, which ascend but for overlaps, into character offsets without counting from the start each
/// time.
struct CharacterCount<'a> {
    text: &'a str,
    byte: usize,
    characters: usize,
}

impl<'a> CharacterCount<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            byte: 0,
            characters: 0,
        }
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
