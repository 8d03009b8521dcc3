//! Counts tokens as a model does, so that a chunk is as long as the model can read.

use std::sync::{Arc, LazyLock};

use tokenizers::Tokenizer;

#[derive(Clone)]
pub struct Tokens {
    tokenizer: Arc<Tokenizer>,
}

impl Tokens {
    /// Those of the built-in model.
    pub fn built_in() -> Self {
        static TOKENS: LazyLock<Tokens> = LazyLock::new(|| {
            let bytes = include_bytes!(concat!(env!("OUT_DIR"), "/tokenizer.json"));
            Tokens::new(Tokenizer::from_bytes(bytes).expect("the tokenizer is part of the program"))
        });
        TOKENS.clone()
    }

    pub fn new(mut tokenizer: Tokenizer) -> Self {
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).expect("no truncation is always possible");
        Self { tokenizer: Arc::new(tokenizer) }
    }

    /// How many tokens the model makes of a text, without those that frame it.
    pub fn count(&self, text: &str) -> usize {
        // A text that cannot be tokenized counts as one that fills any chunk.
        self.tokenizer.encode_fast(text, false).map_or(usize::MAX, |encoding| encoding.len())
    }
}
