//! Texts in, vectors out: a tokenizer, an encoder and the length of its vectors.

use tokenizers::{Encoding, Tokenizer, TruncationParams};

use crate::encoder::{Encoder, Pooling, Sequence};
use crate::normalized;
use landfall_core::failure::{Code, Failure};

/// The special tokens around a text: `[CLS]` and `[SEP]`.
pub const SPECIAL_TOKENS: usize = 2;

pub struct TextEncoder {
    encoder: Encoder,
    tokenizer: Tokenizer,
    pooling: Pooling,
}

impl TextEncoder {
    /// `window` is the maximum number of tokens of a text, without the special tokens; the rest of a text is ignored.
    pub fn new(
        encoder: Encoder,
        mut tokenizer: Tokenizer,
        window: usize,
        pooling: Pooling,
    ) -> Result<Self, String> {
        tokenizer.with_padding(None);
        tokenizer
            .with_truncation(Some(TruncationParams {
                max_length: window + SPECIAL_TOKENS,
                ..Default::default()
            }))
            .map_err(|error| error.to_string())?;
        Ok(Self { encoder, tokenizer, pooling })
    }

    /// The vectors of the texts, each with length one. `None` if it was cancelled.
    pub fn vectors(
        &self,
        texts: &[&str],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Code::EmbedError, format!("The embedding model failed: {error}"))
        };
        let mut encodings: Vec<Encoding> = Vec::with_capacity(texts.len());
        for text in texts {
            if is_cancelled() {
                return Ok(None);
            }
            let encoding = self.tokenizer.encode_fast(*text, true).map_err(|error| failed(&error))?;
            if encoding.is_empty() {
                return Err(failed(&"its tokenizer returns no tokens for this text"));
            }
            encodings.push(encoding);
        }
        let sequences: Vec<Sequence<'_>> = encodings
            .iter()
            .map(|encoding| Sequence { tokens: encoding.get_ids(), types: encoding.get_type_ids() })
            .collect();
        let Some(pooled) =
            self.encoder.encode(&sequences, self.pooling, is_cancelled).map_err(|error| failed(&error))?
        else {
            return Ok(None);
        };
        let vectors: Option<Vec<_>> = pooled.into_iter().map(normalized).collect();
        vectors.map(Some).ok_or_else(|| failed(&"it returned no valid vector for a text"))
    }
}
