//! The shape of a BERT encoder, as `config.json` states it.

use serde::Deserialize;

/// Sums of products of bytes stay within 32 bits up to this length.
const MAX_INPUTS: usize = 65_536;
/// Larger than any encoder in use, and small enough that no product of two overflows.
const MAX_COUNT: usize = 10_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Activation {
    #[serde(rename = "gelu")]
    Gelu,
    #[serde(
        rename = "gelu_new",
        alias = "gelu_pytorch_tanh",
        alias = "gelu_approximate",
        alias = "geluapproximate"
    )]
    GeluByTanh,
    #[serde(rename = "relu")]
    Relu,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Positions {
    #[default]
    Absolute,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Config {
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    pub num_attention_heads: usize,
    pub intermediate_size: usize,
    pub hidden_act: Activation,
    pub max_position_embeddings: usize,
    pub type_vocab_size: usize,
    pub layer_norm_eps: f32,
    pub model_type: Option<String>,
    #[serde(default, rename = "position_embedding_type")]
    _positions: Positions,
}

impl Config {
    /// Whether an encoder of this shape can be computed. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if let Some(kind) = self.model_type.as_deref().filter(|kind| *kind != "bert") {
            return Err(format!("it is of the type {kind:?} and not \"bert\""));
        }
        let (size, heads) = (self.hidden_size, self.num_attention_heads);
        if size == 0 || heads == 0 || !size.is_multiple_of(heads) {
            return Err(format!("{size} dimensions cannot be divided among {heads} heads"));
        }
        for (name, value, limit) in [
            ("hidden_size", size, MAX_INPUTS),
            ("intermediate_size", self.intermediate_size, MAX_INPUTS),
            ("vocab_size", self.vocab_size, MAX_COUNT),
            ("num_hidden_layers", self.num_hidden_layers, 1_000),
            ("max_position_embeddings", self.max_position_embeddings, MAX_COUNT),
            ("type_vocab_size", self.type_vocab_size, MAX_COUNT),
        ] {
            if value == 0 || value > limit {
                return Err(format!("{name} is {value} and not from 1 to {limit}"));
            }
        }
        Ok(())
    }
}
