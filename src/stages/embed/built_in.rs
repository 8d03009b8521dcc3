//! The model that comes with the program: MiniLM-L3, 384 dimensions, 128 tokens at a time.

use super::LocalModel;
use crate::failure::{Code, Failure};

/// The most tokens of a text that it reads, without the two that frame it.
pub const WINDOW: usize = 126;

pub struct BuiltIn {
    encoder: pocket_encoder::Encoder,
    info: pocket_encoder::ModelInfo,
}

impl BuiltIn {
    pub fn new() -> Result<Self, Failure> {
        Ok(Self {
            encoder: pocket_encoder::Encoder::new().map_err(embed_error)?,
            info: pocket_encoder::model_info(),
        })
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
        let mut vectors = self.encoder.embed(&[text]).map_err(embed_error)?;
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
