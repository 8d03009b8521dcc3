//! Counts tokens as a model does, so that a chunk is as long as the model can read.

use std::sync::{Arc, LazyLock};

use tokenizers::Tokenizer;

#[derive(Clone)]
pub enum Tokens {
    /// Those of the built-in model.
    BuiltIn,
    Of(Arc<Tokenizer>),
}

/// Unpacked when it is first needed: many a process never cuts a text.
static BUILT_IN: LazyLock<Tokenizer> = LazyLock::new(|| {
    let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/tokenizer.json"));
    unbounded(Tokenizer::from_bytes(bytes).expect("the tokenizer is part of the program"))
});

/// Whatever is asked about is counted to its end, and nothing else.
fn unbounded(mut tokenizer: Tokenizer) -> Tokenizer {
    tokenizer.with_padding(None);
    tokenizer.with_truncation(None).expect("no truncation is always possible");
    tokenizer
}

impl Tokens {
    pub fn new(tokenizer: Tokenizer) -> Self {
        Self::Of(Arc::new(unbounded(tokenizer)))
    }

    /// How many tokens the model makes of a text, without those that frame it.
    pub fn count(&self, text: &str) -> usize {
        let tokenizer = match self {
            Self::BuiltIn => &*BUILT_IN,
            Self::Of(tokenizer) => tokenizer,
        };
        // A text that cannot be tokenized counts as one that fills any chunk.
        tokenizer.encode_fast(text, false).map_or(usize::MAX, |encoding| encoding.len())
    }
}
