//! Splits a text by its words: paragraphs first, then sentences, then words.

use text_splitter::{ChunkConfig as SplitterConfig, MarkdownSplitter, TextSplitter};

use super::ChunkConfig;
use super::sections::windows;
use super::sizes::{MAX_CHARACTERS_PER_TOKEN, Sizes};
use landfall_core::failure::{Code, Failure};
use landfall_core::text::Markup;

/// The maximum length of a text that is split at once, unless chunks are very long: the splitter reads its input
/// many times.
const WINDOW: usize = 8 * 1024;
/// With fewer chunks than this in one window, too many cuts would fall inside a sentence.
const CHUNKS_PER_WINDOW: usize = 4;

pub struct Splitter {
    by: By,
    window: usize,
}

enum By {
    Markdown(MarkdownSplitter<Sizes>),
    Words(TextSplitter<Sizes>),
}

impl Splitter {
    pub fn new(markup: Markup, config: ChunkConfig, sizes: &Sizes) -> Result<Self, Failure> {
        let splitting = SplitterConfig::new(config.size_tokens)
            .with_sizer(sizes.clone())
            .with_overlap(config.overlap_tokens)
            .map_err(|error| {
                Failure::new(Code::Unknown, format!("CHUNK_OVERLAP does not fit CHUNK_SIZE: {error}"))
            })?;
        Ok(Self {
            by: match markup {
                Markup::Markdown => By::Markdown(MarkdownSplitter::new(splitting)),
                Markup::Plain => By::Words(TextSplitter::new(splitting)),
            },
            window: WINDOW.max(CHUNKS_PER_WINDOW * config.size_tokens * MAX_CHARACTERS_PER_TOKEN),
        })
    }

    /// Calls `visit` with each piece and the offset where it begins, until it returns an error.
    pub fn split<E>(&self, text: &str, mut visit: impl FnMut(usize, &str) -> Result<(), E>) -> Result<(), E> {
        for (start, window) in windows(text, self.window) {
            match &self.by {
                By::Markdown(by) => {
                    by.chunk_indices(window).try_for_each(|(at, piece)| visit(start + at, piece))?;
                }
                By::Words(by) => {
                    by.chunk_indices(window).try_for_each(|(at, piece)| visit(start + at, piece))?;
                }
            }
        }
        Ok(())
    }
}
