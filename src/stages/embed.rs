//! Turns chunks into vectors.

use std::sync::LazyLock;

use tokenizers::Tokenizer;
use tokio_util::sync::CancellationToken;

use crate::failure::{Code, Failure};

/// The model that comes with the program: MiniLM-L3, 384 dimensions, 128 tokens at a time.
#[derive(Clone)]
pub struct Embedder {
    encoder: pocket_encoder::Encoder,
    model: String,
}

impl Embedder {
    pub fn new() -> Result<Self, Failure> {
        let info = pocket_encoder::model_info();
        Ok(Self {
            encoder: pocket_encoder::Encoder::new().map_err(embed_error)?,
            // Vectors of another revision cannot be compared with these.
            model: format!("{}@{}", info.id, info.revision),
        })
    }

    pub fn model(&self) -> &str {
        &self.model
    }

    /// The most tokens of a text that the model reads, without the two that frame it.
    pub fn window() -> usize {
        pocket_encoder::model_info().max_tokens - 2
    }

    /// A vector for each text. Computes on the calling thread; looks between texts whether anybody still waits.
    pub fn embed(&self, texts: &[String], cancelled: &CancellationToken) -> Result<Vec<Vec<f32>>, Failure> {
        let mut vectors = Vec::with_capacity(texts.len());
        for text in texts {
            if cancelled.is_cancelled() {
                return Err(Failure::new(Code::EmbedError, "Embedding was stopped"));
            }
            vectors.extend(self.encoder.embed(&[text]).map_err(embed_error)?);
        }
        Ok(vectors)
    }
}

fn embed_error(error: pocket_encoder::Error) -> Failure {
    Failure::new(Code::EmbedError, format!("The embedding model failed: {error}"))
}

/// How many tokens the model makes of a text.
pub fn count_tokens(text: &str) -> usize {
    static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
        let mut tokenizer =
            Tokenizer::from_bytes(include_bytes!(concat!(env!("OUT_DIR"), "/tokenizer.json")))
                .expect("the tokenizer is part of the program");
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).expect("no truncation is always possible");
        tokenizer
    });
    // A text that cannot be tokenized counts as one that fills any chunk.
    TOKENIZER.encode_fast(text, false).map_or(usize::MAX, |encoding| encoding.len())
}
