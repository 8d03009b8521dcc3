//! Makes chunks and vectors of a text, in this process: the tokenizer, the chunker, and the local models. It also makes the codes
//! with which the vectors nearest to a question are found.
//!
//! This crate may use `landfall-core` and no other crate of ours. Models behind a service belong to the server.

pub mod bits;
pub mod built_in;
pub mod chunk;
pub mod encoder;
pub mod model_folder;
pub mod plain_text;
mod text_encoder;
pub mod tokens;
pub mod wording;

use landfall_core::failure::{Code, Failure};

/// A model that runs in this process.
pub trait LocalModel: Send + Sync {
    /// The vectors of the texts, each normalized to length one. Computes on the calling thread. Ends with `None` soon
    /// after `is_cancelled`, which it asks every few milliseconds.
    fn vectors(
        &self,
        texts: &[&str],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<f32>>>, Failure>;
}

pub fn no_vectors() -> Failure {
    Failure::new(Code::EmbedError, "The embedding model returned no vectors")
}

/// The same direction with length one, which is how vectors are compared. `None` for a vector without a direction.
pub fn normalized(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return None;
    }
    for value in &mut vector {
        #[expect(clippy::cast_possible_truncation, reason = "a value of a normalized vector fits")]
        let shortened = (f64::from(*value) / length) as f32;
        *value = shortened;
    }
    Some(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_without_a_direction_is_none() {
        assert_eq!(normalized(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        for degenerate in [vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], Vec::new()] {
            assert_eq!(normalized(degenerate), None);
        }
    }
}
