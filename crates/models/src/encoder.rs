//! A BERT encoder: tokens in, one vector for each sequence out.
//!
//! The products with the weights, which are most of the work, are computed with bytes; everything else with `f32`.
//! Sequences are computed in groups, one after the other in the same matrices. No sequence is padded, and the vector of
//! a sequence is the same to the bit whatever else is in its group.

mod config;
mod float;
mod kernels;
#[cfg(test)]
mod tests;
mod weights;

use std::sync::{Mutex, PoisonError};

pub use config::{Activation, Config};
use float::{Attention, HeadScratch, Norm};
pub use kernels::Kernel;
use kernels::{Bytes, Matrix};
pub use weights::{Packed, Stored, Table, Tensors};

/// A group has sequences until it has this many tokens. The matrices of a larger group leave the caches.
const GROUP_TOKENS: usize = 256;

/// How the vectors of the tokens become the vector of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pooling {
    Mean,
    /// The vector of the first token, which represents the whole text.
    First,
}

/// The tokens of a text.
#[derive(Clone, Copy)]
pub struct Sequence<'a> {
    pub tokens: &'a [u32],
    pub types: &'a [u32],
}

pub struct Encoder {
    kernel: Kernel,
    words: Table,
    positions: Table,
    types: Table,
    norm: Normalization,
    layers: Vec<Layer>,
    heads: usize,
    hidden: usize,
    activation: Activation,
    /// Memory of earlier calls: new pages would have to be cleared by the kernel each time.
    scratch: Mutex<Vec<Scratch>>,
}

struct Normalization {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Normalization {
    fn load(tensors: &dyn Tensors, name: &str, config: &Config) -> Result<Self, String> {
        Ok(Self {
            weight: tensors.load(&format!("{name}.weight"), &[config.hidden_size])?,
            bias: tensors.load(&format!("{name}.bias"), &[config.hidden_size])?,
            epsilon: config.layer_norm_eps,
        })
    }

    fn get(&self) -> Norm<'_> {
        Norm { weight: &self.weight, bias: &self.bias, epsilon: self.epsilon }
    }
}

struct Layer {
    /// Queries, keys and values at once.
    projection: Matrix,
    attended: Matrix,
    attended_norm: Normalization,
    widening: Matrix,
    narrowing: Matrix,
    norm: Normalization,
}

impl Layer {
    fn load(tensors: &dyn Tensors, name: &str, config: &Config) -> Result<Self, String> {
        let (hidden, wide) = (config.hidden_size, config.intermediate_size);
        let matrix = |part: &str, inputs: usize, outputs: usize| -> Result<Matrix, String> {
            let weight = tensors.load(&format!("{name}.{part}.weight"), &[outputs, inputs])?;
            let bias = tensors.load(&format!("{name}.{part}.bias"), &[outputs])?;
            Ok(Matrix::quantize(inputs, outputs, &weight, &bias))
        };
        let (mut weight, mut bias) = (Vec::new(), Vec::new());
        for part in ["query", "key", "value"] {
            let name = format!("{name}.attention.self.{part}");
            weight.extend(tensors.load(&format!("{name}.weight"), &[hidden, hidden])?);
            bias.extend(tensors.load(&format!("{name}.bias"), &[hidden])?);
        }
        Ok(Self {
            projection: Matrix::quantize(hidden, 3 * hidden, &weight, &bias),
            attended: matrix("attention.output.dense", hidden, hidden)?,
            attended_norm: Normalization::load(
                tensors,
                &format!("{name}.attention.output.LayerNorm"),
                config,
            )?,
            widening: matrix("intermediate.dense", hidden, wide)?,
            narrowing: matrix("output.dense", wide, hidden)?,
            norm: Normalization::load(tensors, &format!("{name}.output.LayerNorm"), config)?,
        })
    }
}

/// The matrices of one group.
#[derive(Default)]
struct Scratch {
    hidden: Vec<f32>,
    projected: Vec<f32>,
    attended: Vec<f32>,
    change: Vec<f32>,
    wide: Vec<f32>,
    bytes: Bytes,
    wide_bytes: Bytes,
    head: HeadScratch,
}

impl Encoder {
    /// The error is a message for people.
    pub fn load(tensors: &dyn Tensors, config: &Config) -> Result<Self, String> {
        Self::load_for(Kernel::best(), tensors, config)
    }

    fn load_for(kernel: Kernel, tensors: &dyn Tensors, config: &Config) -> Result<Self, String> {
        config.check()?;
        let table = |name: &str, rows: usize| {
            tensors.table(&format!("embeddings.{name}.weight"), rows, config.hidden_size)
        };
        Ok(Self {
            kernel,
            words: table("word_embeddings", config.vocab_size)?,
            positions: table("position_embeddings", config.max_position_embeddings)?,
            types: table("token_type_embeddings", config.type_vocab_size)?,
            norm: Normalization::load(tensors, "embeddings.LayerNorm", config)?,
            layers: (0..config.num_hidden_layers)
                .map(|layer| Layer::load(tensors, &format!("encoder.layer.{layer}"), config))
                .collect::<Result<_, _>>()?,
            heads: config.num_attention_heads,
            hidden: config.hidden_size,
            activation: config.hidden_act,
            scratch: Mutex::default(),
        })
    }

    /// The kind of processor that it computes for.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// A vector for each sequence, not normalized. Computes on the calling thread. Ends early with `None` once
    /// `is_cancelled`, which it asks before each group.
    pub fn encode(
        &self,
        sequences: &[Sequence<'_>],
        pooling: Pooling,
        is_cancelled: &dyn Fn() -> bool,
    ) -> Result<Option<Vec<Vec<f32>>>, String> {
        for sequence in sequences {
            self.check(*sequence)?;
        }
        let mut scratch =
            self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default();
        let mut vectors = Vec::with_capacity(sequences.len());
        let mut rest = sequences;
        while !rest.is_empty() && !is_cancelled() {
            let (group, others) = rest.split_at(group_size(rest));
            self.encode_group(group, &mut scratch);
            self.pool(group, pooling, &scratch.hidden, &mut vectors);
            rest = others;
        }
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
        Ok(rest.is_empty().then_some(vectors))
    }

    fn check(&self, Sequence { tokens, types }: Sequence<'_>) -> Result<(), String> {
        let positions = self.positions.rows();
        if tokens.is_empty() || tokens.len() > positions || types.len() != tokens.len() {
            return Err(format!("{} tokens for a model that reads up to {positions}", tokens.len()));
        }
        let within =
            |numbers: &[u32], table: &Table| numbers.iter().all(|number| (*number as usize) < table.rows());
        if within(tokens, &self.words) && within(types, &self.types) {
            Ok(())
        } else {
            Err("a token that the model does not have".to_owned())
        }
    }

    /// Computes the vectors of all tokens into `scratch.hidden`.
    fn encode_group(&self, group: &[Sequence<'_>], scratch: &mut Scratch) {
        let Scratch { hidden, projected, attended, change, wide, bytes, wide_bytes, head } = scratch;
        let (kernel, width) = (self.kernel, self.hidden);
        let tokens = group.iter().map(|sequence| sequence.tokens.len()).sum::<usize>();
        self.embed_tokens(group, hidden, change);
        for layer in &self.layers {
            let row_bytes = layer.projection.row_bytes();
            bytes.resize(tokens, row_bytes);
            projected.resize(tokens * 3 * width, 0.0);
            attended.resize(tokens * width, 0.0);
            change.resize(tokens * width, 0.0);
            kernel.quantize(hidden, width, bytes, row_bytes);
            kernel.multiply(bytes, &layer.projection, projected);
            let mut first = 0;
            for sequence in group {
                let end = first + sequence.tokens.len();
                let attention =
                    Attention { tokens: sequence.tokens.len(), heads: self.heads, size: width / self.heads };
                let target = &mut attended[first * width..end * width];
                kernel.attend(attention, &projected[first * 3 * width..end * 3 * width], target, head);
                first = end;
            }
            kernel.quantize(attended, width, bytes, row_bytes);
            kernel.multiply(bytes, &layer.attended, change);
            kernel.add_and_normalize(hidden, change, layer.attended_norm.get());

            let (wide_width, wide_row) = (layer.widening.outputs, layer.narrowing.row_bytes());
            wide.resize(tokens * wide_width, 0.0);
            wide_bytes.resize(tokens, wide_row);
            kernel.quantize(hidden, width, bytes, row_bytes);
            kernel.multiply(bytes, &layer.widening, wide);
            kernel.activate_and_quantize(wide, wide_width, self.activation, wide_bytes, wide_row);
            kernel.multiply(wide_bytes, &layer.narrowing, change);
            kernel.add_and_normalize(hidden, change, layer.norm.get());
        }
    }

    fn embed_tokens(&self, group: &[Sequence<'_>], hidden: &mut Vec<f32>, zeros: &mut Vec<f32>) {
        let tokens = group.iter().map(|sequence| sequence.tokens.len()).sum::<usize>();
        for buffer in [&mut *hidden, &mut *zeros] {
            buffer.clear();
            buffer.resize(tokens * self.hidden, 0.0);
        }
        let mut rows = hidden.chunks_exact_mut(self.hidden);
        for Sequence { tokens, types } in group {
            for ((position, token), kind) in tokens.iter().enumerate().zip(*types) {
                let row = rows.next().expect("a row for each token");
                self.words.add_row(*token as usize, row);
                self.types.add_row(*kind as usize, row);
                self.positions.add_row(position, row);
            }
        }
        self.kernel.add_and_normalize(hidden, zeros, self.norm.get());
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of tokens")]
    fn pool(&self, group: &[Sequence<'_>], pooling: Pooling, hidden: &[f32], vectors: &mut Vec<Vec<f32>>) {
        let mut rest = hidden;
        for sequence in group {
            let (rows, others) = rest.split_at(sequence.tokens.len() * self.hidden);
            rest = others;
            let mut vector = rows[..self.hidden].to_vec();
            if pooling == Pooling::Mean {
                for row in rows.chunks_exact(self.hidden).skip(1) {
                    for (sum, value) in vector.iter_mut().zip(row) {
                        *sum += value;
                    }
                }
                for sum in &mut vector {
                    *sum /= sequence.tokens.len() as f32;
                }
            }
            vectors.push(vector);
        }
    }
}

/// How many of the sequences are computed together: at least one.
fn group_size(sequences: &[Sequence<'_>]) -> usize {
    let mut tokens = 0;
    let fitting = sequences.iter().take_while(|sequence| {
        tokens += sequence.tokens.len();
        tokens <= GROUP_TOKENS
    });
    fitting.count().max(1)
}
