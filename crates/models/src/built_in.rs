//! The model that comes with the program: MiniLM-L3, 384 dimensions, 128 tokens at a time.

use crate::LocalModel;
use landfall_core::failure::{Code, Failure};

/// The most tokens of a text that it reads, without the two that frame it.
pub const WINDOW: usize = 126;

/// It is unpacked when it is first asked, and then kept: many a process never asks.
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
    fn the_window_is_what_the_model_reads_without_its_frame() {
        assert_eq!(pocket_encoder::model_info().max_tokens, WINDOW + 2);
    }
}
