//! How long a part of a text is for the model.

use text_splitter::ChunkSizer;

use crate::tokens::Tokens;
use crate::wording::wording;

/// A token of a language that the model knows has at most about this many characters.
pub const MAX_CHARACTERS_PER_TOKEN: usize = 6;
/// The same for the text with its marks: addresses of links, bars of tables.
const MAX_MARKED_CHARACTERS_PER_TOKEN: usize = 4 * MAX_CHARACTERS_PER_TOKEN;

/// Counts tokens as the model does.
#[derive(Clone)]
pub struct Sizes(Tokens);

impl Sizes {
    pub fn new(tokens: &Tokens) -> Self {
        Self(tokens.clone())
    }

    /// The tokens that the model reads.
    pub fn tokens(&self, text: &str) -> usize {
        self.0.count(&wording(text))
    }

    /// The tokens, or more if the text is long: to the model a very long word is one unknown token, and so is a sentence
    /// in a script that it does not know. Without this limit such a chunk could have any length.
    fn of(&self, text: &str) -> usize {
        let words = wording(text);
        let by_characters = words.chars().count().div_ceil(MAX_CHARACTERS_PER_TOKEN);
        self.0.count(&words).max(by_characters).max(least(text))
    }

    /// The same, without a look at the words of a text that exceeds `limit` anyway.
    pub fn up_to(&self, limit: usize, text: &str) -> usize {
        if text.len() / 4 > limit.saturating_mul(MAX_MARKED_CHARACTERS_PER_TOKEN) {
            return usize::MAX;
        }
        self.of(text)
    }
}

fn least(text: &str) -> usize {
    text.chars().count().div_ceil(MAX_MARKED_CHARACTERS_PER_TOKEN)
}

impl ChunkSizer for Sizes {
    fn size(&self, chunk: &str) -> usize {
        self.of(chunk)
    }
}
