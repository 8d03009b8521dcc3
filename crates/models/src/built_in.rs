//! The model that is part of the program: MiniLM-L3, 384 dimensions, 128 tokens at a time.

use crate::LocalModel;
use landfall_core::failure::{Code, Failure};

/// The maximum number of tokens that it reads, without the two special tokens around a text.
pub const WINDOW: usize = 126;

/// The model is unpacked on first use and then kept: many processes never use it.
pub struct BuiltIn {
    info: pocket_encoder::ModelInfo,
}

impl BuiltIn {
    pub fn new() -> Self {
        Self { info: pocket_encoder::model_info() }
    }

    pub fn name(&self) -> String {
        format!("{}@{}", self.info.id, self.info.revision)
    }

    pub fn dimensions(&self) -> usize {
        self.info.dimensions
    }
}

impl Default for BuiltIn {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalModel for BuiltIn {
    fn vector(&self, text: &str) -> Result<Vec<f32>, Failure> {
        let encoder = pocket_encoder::Encoder::new().map_err(embed_error)?;
        let mut vectors = encoder.embed(&[text]).map_err(embed_error)?;
        vectors.pop().ok_or_else(super::no_vectors)
    }
}

fn embed_error(error: pocket_encoder::Error) -> Failure {
    Failure::new(Code::EmbedError, format!("The embedding model failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_models_limit_without_special_tokens() {
        assert_eq!(pocket_encoder::model_info().max_tokens, WINDOW + 2);
    }
}
