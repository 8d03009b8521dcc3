//! Counts tokens as a model does, so that a chunk is no longer than the model can read.

use std::sync::{Arc, LazyLock};

use tokenizers::Tokenizer;

#[derive(Clone)]
pub enum Tokens {
    /// The tokenizer of the built-in model.
    BuiltIn,
    Of(Arc<Tokenizer>),
}

/// Unpacked on first use: many processes never split a text.
static BUILT_IN: LazyLock<Tokenizer> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/tokenizer.json"));
    unbounded(Tokenizer::from_bytes(bytes).expect("the tokenizer is part of the program"))
});

/// The tokenizer of the built-in model.
pub(crate) fn built_in() -> &'static Tokenizer {
    &BUILT_IN
}

/// Counts the whole text, without truncation or padding.
fn unbounded(mut tokenizer: Tokenizer) -> Tokenizer {
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).expect("no truncation is always possible");
    tokenizer
}

impl Tokens {
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self::Of(Arc::new(unbounded(tokenizer)))
    }

    /// How many tokens the text has for the model, without the special tokens.
    pub fn count(&self, text: &str) -> usize {
        let tokenizer = match self {
            Self::BuiltIn => &*BUILT_IN,
            Self::Of(tokenizer) => tokenizer,
        };
        // A text that cannot be tokenized counts as one that fills any chunk.
        tokenizer.encode_fast(text, false).map_or(usize::MAX, |encoding| encoding.len())
    }
}
