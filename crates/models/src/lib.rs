//! What makes chunks and vectors of a text, in this process: the tokenizer, the chunker, and the models.
//!
//! This crate may use `landfall-core` and no other crate of ours. Models behind a service are the server's.

pub mod built_in;
pub mod chunk;
pub mod model_folder;
pub mod tokens;

use landfall_core::failure::{Code, Failure};

/// A model that runs in this process.
pub trait LocalModel: Send + Sync {
    /// The vector of a text, of length one. Computes on the calling thread.
    fn vector(&self, text: &str) -> Result<Vec<f32>, Failure>;
}

pub fn no_vectors() -> Failure {
    Failure::new(Code::EmbedError, "The embedding model answered no vectors")
}

/// The same direction at length one, which is how vectors are compared. `None` for one that has no direction.
pub fn of_length_one(mut vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length <= 0.0 {
        return None;
    }
    for value in &mut vector {
        #[expect(clippy::cast_possible_truncation, reason = "at length one it fits")]
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
        assert_eq!(of_length_one(vec![3.0, 4.0]), Some(vec![0.6, 0.8]));
        for hopeless in [vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], Vec::new()] {
            assert_eq!(of_length_one(hopeless), None);
        }
    }
}
