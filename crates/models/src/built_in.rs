//! The model that is part of the program: MiniLM-L3, 384 dimensions, 128 tokens at a time.

use std::collections::HashMap;
use std::sync::LazyLock;

use safetensors::SafeTensors;
use serde::Deserialize;

use crate::encoder::{Config, Encoder, Packed, Pooling, Table, Tensors};
use crate::text_encoder::TextEncoder;
use crate::{LocalModel, tokens};
use landfall_core::failure::Failure;

/// The maximum number of tokens that it reads, without the two special tokens around a text.
pub const WINDOW: usize = 126;

/// The name of the weights and of how texts are prepared for them.
const ID: &str = "pocket-encoder/minilm-l3-q4-g32-v1";
const WEIGHTS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/model.safetensors"));
const SHAPES: &str = include_str!(concat!(env!("OUT_DIR"), "/shapes.json"));
const CONFIG: &str = include_str!(concat!(env!("OUT_DIR"), "/config.json"));
const PROVENANCE: &str = include_str!(concat!(env!("OUT_DIR"), "/provenance.json"));

/// Prepared on first use and then kept: many processes never use it.
static MODEL: LazyLock<TextEncoder> = LazyLock::new(|| load().expect("the model is part of the program"));

#[derive(Deserialize)]
struct Provenance {
    bundled_sha256: String,
    dimensions: usize,
    #[cfg(test)]
    max_tokens: usize,
}

pub struct BuiltIn {
    provenance: Provenance,
}

impl BuiltIn {
    pub fn new() -> Self {
        Self { provenance: serde_json::from_str(PROVENANCE).expect("the model is part of the program") }
    }

    pub fn name(&self) -> String {
        format!("{ID}@sha256:{}", self.provenance.bundled_sha256)
    }

    pub fn dimensions(&self) -> usize {
        self.provenance.dimensions
    }
}

impl Default for BuiltIn {
    fn default() -> Self {
        Self::new()
    }
}

impl LocalModel for BuiltIn {
    fn vectors(
        &self,
        texts: &[&str],
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<f32>>>, Failure> {
        MODEL.vectors(texts, is_cancelled)
    }
}

fn load() -> Result<TextEncoder, String> {
    let tensors = PackedTensors {
        file: SafeTensors::deserialize(WEIGHTS).map_err(|error| error.to_string())?,
        shapes: serde_json::from_str(SHAPES).map_err(|error| error.to_string())?,
    };
    let config: Config = serde_json::from_str(CONFIG).map_err(|error| error.to_string())?;
    let encoder = Encoder::load(&tensors, &config)?;
    TextEncoder::new(encoder, tokens::built_in().clone(), WINDOW, Pooling::Mean)
}

/// The weights as their crate stores them: matrices with four bits for a number, and the rest as `f32`.
struct PackedTensors {
    file: SafeTensors<'static>,
    shapes: HashMap<String, Vec<usize>>,
}

impl PackedTensors {
    fn bytes(&self, name: &str) -> Result<&'static [u8], String> {
        let tensor = self.file.tensor(name).map_err(|error| error.to_string())?;
        Ok(tensor.data())
    }

    fn packed(&self, name: &str, rows: usize, width: usize) -> Result<Packed, String> {
        let halves = self.bytes(&format!("{name}.q4"))?;
        let scales = self.bytes(&format!("{name}.scales"))?.as_chunks().0;
        let count = rows * width;
        if halves.len() * 2 < count || scales.len() * Packed::GROUP < count {
            return Err(format!("{name} is too short"));
        }
        Ok(Packed { rows, width, halves, scales })
    }
}

impl Tensors for PackedTensors {
    fn load(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        if self.shapes.get(name).map(Vec::as_slice) != Some(shape) {
            return Err(format!("{name} has another shape than {shape:?}"));
        }
        match *shape {
            [rows, width] => Ok(self.packed(name, rows, width)?.values()),
            _ => Ok(self.bytes(name)?.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()),
        }
    }

    fn table(&self, name: &str, rows: usize, width: usize) -> Result<Table, String> {
        self.packed(name, rows, width).map(Table::Packed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_the_models_limit_without_special_tokens() {
        assert_eq!(BuiltIn::new().provenance.max_tokens, WINDOW + 2);
    }

    /// Vectors that were stored when the crate's own encoder computed them can still be compared with new ones.
    #[test]
    fn the_vectors_are_those_of_the_model_in_f32() {
        let texts = [
            "The harbour master writes down every ship.",
            "Invoices are due within thirty days.",
            "größe 東京 \u{1f6a2} №1",
            "x",
        ];
        let found = BuiltIn::new().vectors(&texts, &|| false).expect("vectors").expect("not cancelled");
        let expected =
            pocket_encoder::Encoder::new().and_then(|encoder| encoder.embed(&texts)).expect("vectors");
        for ((text, found), expected) in texts.iter().zip(&found).zip(&expected) {
            let cosine: f32 = found.iter().zip(expected).map(|(a, b)| a * b).sum();
            assert!(cosine > 0.999, "{text}: {cosine}");
        }
    }

    #[test]
    fn the_name_is_that_of_the_vectors_that_are_already_stored() {
        assert_eq!(
            BuiltIn::new().name(),
            "pocket-encoder/minilm-l3-q4-g32-v1@sha256:\
             dabb40d5d98a22372c8921acf048cb54bb8bf6d781b1233b2a360d5125789c7e"
        );
    }
}
