//! Each kind of processor against the portable code, and all of it against plain arithmetic in `f64`.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::config::Config;
use super::kernels::{Bytes, Kernel, Matrix};
use super::{Encoder, Pooling, Sequence, Tensors, float};

/// Numbers between -1 and 1.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn number(&mut self) -> f32 {
        f32::from(u16::try_from(self.next() >> 48).expect("16 bits")) / 32_768.0 - 1.0
    }

    fn below(&mut self, limit: u64) -> u32 {
        u32::try_from(self.next() % limit).expect("a small number")
    }
}

/// Weights that depend only on the name of the tensor.
struct RandomTensors;

impl Tensors for RandomTensors {
    fn load(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, String> {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let mut random = Random(hasher.finish() | 1);
        let is_norm = name.ends_with("LayerNorm.weight");
        let mut number = || if is_norm { 1.0 + 0.2 * random.number() } else { 0.3 * random.number() };
        Ok((0..shape.iter().product()).map(|_| number()).collect())
    }
}

fn config(activation: &str) -> Config {
    // No dimension is a multiple of what a kernel computes at once.
    serde_json::from_value(serde_json::json!({
        "vocab_size": 50, "hidden_size": 54, "num_hidden_layers": 2, "num_attention_heads": 3,
        "intermediate_size": 101, "hidden_act": activation, "max_position_embeddings": 300, "type_vocab_size": 2,
        "layer_norm_eps": 1e-12,
    }))
    .expect("a config")
}

/// The tokens of a text of this length, and their types.
fn tokens(length: usize) -> (Vec<u32>, Vec<u32>) {
    let mut random = Random(length as u64 + 1);
    ((0..length).map(|_| random.below(50)).collect(), (0..length).map(|_| random.below(2)).collect())
}

fn encode(encoder: &Encoder, texts: &[(Vec<u32>, Vec<u32>)], pooling: Pooling) -> Vec<Vec<f32>> {
    let sequences: Vec<Sequence<'_>> =
        texts.iter().map(|(tokens, types)| Sequence { tokens, types }).collect();
    encoder.encode(&sequences, pooling, &|| false).expect("good tokens").expect("not cancelled")
}

fn bits(vectors: &[Vec<f32>]) -> Vec<Vec<u32>> {
    vectors.iter().map(|vector| vector.iter().map(|value| value.to_bits()).collect()).collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[test]
fn every_kernel_multiplies_bytes_exactly() {
    let sizes = [(1, 1, 1), (4, 64, 2), (6, 3, 5), (30, 65, 7), (384, 200, 13), (1536, 64, 6), (312, 130, 9)];
    // Miri computes a thousand times slower. The first sizes have every tile, and a panel that is not full.
    for (inputs, outputs, rows) in sizes.into_iter().take(if cfg!(miri) { 4 } else { sizes.len() }) {
        let mut random = Random((inputs * 1000 + outputs) as u64);
        let mut weights: Vec<f32> = (0..inputs * outputs).map(|_| random.number()).collect();
        // The first output has the largest sums that there are.
        weights[..inputs].fill(-1.0);
        let matrix = Matrix::quantize(inputs, outputs, &weights, &vec![0.5; outputs]);
        let mut bytes: Vec<u8> = (0..rows * matrix.row_bytes())
            .map(|_| u8::try_from(1 + random.below(255)).expect("a byte"))
            .collect();
        bytes[..matrix.row_bytes()].fill(255);
        if rows > 1 {
            bytes[matrix.row_bytes()..2 * matrix.row_bytes()].fill(1);
        }
        let rows_of_bytes = Bytes::new(bytes.clone(), rows);
        for kernel in Kernel::available().into_iter().chain([Kernel::reference()]) {
            let mut output = vec![0.0; rows * outputs];
            kernel.multiply(&rows_of_bytes, &matrix, &mut output);
            for (row, output) in output.chunks_exact(outputs).enumerate() {
                for (column, found) in output.iter().enumerate() {
                    let weights = &weights[column * inputs..(column + 1) * inputs];
                    let scale =
                        weights.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs())) / 127.0;
                    let sum: i64 = weights
                        .iter()
                        .zip(&bytes[row * matrix.row_bytes()..])
                        .map(|(weight, byte)| rounded(weight / scale) * i64::from(*byte))
                        .sum();
                    let sum =
                        i16::try_from(sum >> 16).map(|high| f32::from(high) * 65_536.0).expect("in range")
                            + f32::from(u16::try_from(sum & 0xffff).expect("16 bits"));
                    let expected = sum * scale + 0.5;
                    assert_eq!(
                        found.to_bits(),
                        expected.to_bits(),
                        "{}: {inputs} × {outputs}, row {row}, column {column}: {found} {expected}",
                        kernel.name()
                    );
                }
            }
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a small number")]
fn rounded(value: f32) -> i64 {
    value.round() as i64
}

#[test]
fn every_kernel_returns_the_same_vectors_to_the_bit() {
    for activation in ["gelu", "gelu_new", "relu"] {
        let config = config(activation);
        let load = |kernel| Encoder::load_for(kernel, &RandomTensors, &config).expect("an encoder");
        let texts: Vec<_> = [1, 2, 15, 16, 17, 33, 70].map(tokens).into();
        let expected = encode(&load(Kernel::reference()), &texts, Pooling::Mean);
        for kernel in Kernel::available() {
            let found = encode(&load(kernel), &texts, Pooling::Mean);
            if kernel.is_fused() {
                assert_eq!(bits(&found), bits(&expected), "{} {activation}", kernel.name());
            }
            for (found, expected) in found.iter().zip(&expected) {
                assert!(cosine(found, expected) > 0.999, "{} {activation}", kernel.name());
            }
        }
    }
}

#[test]
fn a_vector_does_not_depend_on_what_else_is_computed_with_it() {
    let encoder = Encoder::load(&RandomTensors, &config("gelu")).expect("an encoder");
    // Some groups have one text, others many.
    let texts: Vec<_> = [3, 100, 299, 1, 300, 128, 128, 5, 40, 2, 64, 7].map(tokens).into();
    for pooling in [Pooling::Mean, Pooling::First] {
        let together = encode(&encoder, &texts, pooling);
        let reversed: Vec<_> = texts.iter().rev().cloned().collect();
        let mut turned = encode(&encoder, &reversed, pooling);
        turned.reverse();
        assert_eq!(bits(&together), bits(&turned));
        for (text, vector) in texts.iter().zip(&together) {
            let alone = encode(&encoder, std::slice::from_ref(text), pooling);
            assert_eq!(bits(&alone), bits(std::slice::from_ref(vector)));
        }
    }
    assert_ne!(encode(&encoder, &texts, Pooling::Mean), encode(&encoder, &texts, Pooling::First));
}

#[test]
fn the_vectors_are_those_of_plain_arithmetic() {
    for activation in ["gelu", "gelu_new", "relu"] {
        let config = config(activation);
        let encoder = Encoder::load(&RandomTensors, &config).expect("an encoder");
        for length in [1, 5, 40, 200] {
            let text = tokens(length);
            let found = encode(&encoder, std::slice::from_ref(&text), Pooling::Mean);
            let expected = plain::encode(&config, &text.0, &text.1);
            let cosine = cosine(&found[0], &expected);
            assert!(cosine > 0.995, "{activation}, {length} tokens: {cosine}");
        }
    }
}

#[test]
fn a_cancelled_computation_returns_nothing() {
    let encoder = Encoder::load(&RandomTensors, &config("gelu")).expect("an encoder");
    let (tokens, types) = tokens(200);
    let sequences = [Sequence { tokens: &tokens, types: &types }; 3];
    let asked = std::cell::Cell::new(0);
    let after_the_first = || asked.replace(asked.get() + 1) > 0;
    assert_eq!(encoder.encode(&sequences, Pooling::Mean, &after_the_first), Ok(None));
    assert_eq!(asked.get(), 2, "asked before each group");
}

#[test]
fn tokens_that_the_model_does_not_have_are_refused() {
    let encoder = Encoder::load(&RandomTensors, &config("gelu")).expect("an encoder");
    for (tokens, types) in [
        (vec![50], vec![0]),
        (vec![1], vec![2]),
        (vec![], vec![]),
        (vec![1, 2], vec![0]),
        (vec![1; 301], vec![0; 301]),
    ] {
        let sequence = Sequence { tokens: &tokens, types: &types };
        assert!(encoder.encode(&[sequence], Pooling::Mean, &|| false).is_err());
    }
}

#[test]
fn the_fast_functions_are_close_to_the_exact_ones() {
    for step in -12_000_i16..12_000 {
        let x = f32::from(step) / 1_000.0;
        let exact = 0.5 * f64::from(x) * (1.0 + plain::erf(f64::from(x) / std::f64::consts::SQRT_2));
        assert!((f64::from(float::gelu::<true>(x)) - exact).abs() < 1e-4, "gelu({x})");
        let x = -x.abs() * 7.0;
        let exact = f64::from(x).exp();
        assert!((f64::from(float::exp::<true>(x)) - exact).abs() < 1e-6 * exact + 1e-37, "exp({x})");
    }
}

/// The encoder as its papers describe it, slow and in `f64`.
mod plain {
    use super::{Config, RandomTensors, Tensors};
    use crate::encoder::Activation;

    pub fn encode(config: &Config, tokens: &[u32], types: &[u32]) -> Vec<f32> {
        let width = config.hidden_size;
        let words = load("embeddings.word_embeddings.weight", &[config.vocab_size, width]);
        let positions =
            load("embeddings.position_embeddings.weight", &[config.max_position_embeddings, width]);
        let kinds = load("embeddings.token_type_embeddings.weight", &[config.type_vocab_size, width]);
        let row = |table: &[f64], row: usize| table[row * width..(row + 1) * width].to_vec();
        let mut hidden: Vec<Vec<f64>> = tokens
            .iter()
            .zip(types)
            .enumerate()
            .map(|(position, (token, kind))| {
                let sum = add(&row(&words, *token as usize), &row(&kinds, *kind as usize));
                normalize("embeddings.LayerNorm", &add(&sum, &row(&positions, position)))
            })
            .collect();
        for layer in 0..config.num_hidden_layers {
            hidden = self::layer(config, &format!("encoder.layer.{layer}"), &hidden);
        }
        let mut mean = vec![0.0; width];
        for row in &hidden {
            mean = add(&mean, row);
        }
        #[expect(clippy::cast_possible_truncation, reason = "the length of the vector does not matter")]
        mean.into_iter().map(|value| value as f32).collect()
    }

    fn layer(config: &Config, name: &str, hidden: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let (width, wide) = (config.hidden_size, config.intermediate_size);
        let size = width / config.num_attention_heads;
        let all = |part: &str| -> Vec<Vec<f64>> {
            hidden.iter().map(|row| linear(&format!("{name}.{part}"), row, width)).collect()
        };
        let queries = all("attention.self.query");
        let (keys, values) = (all("attention.self.key"), all("attention.self.value"));
        let mut output = Vec::new();
        for (row, query) in hidden.iter().zip(&queries) {
            let mut attended = vec![0.0; width];
            for head in (0..width).step_by(size) {
                let of = |row: &[f64]| row[head..head + size].to_vec();
                let factor = f64::from(u16::try_from(size).expect("small")).sqrt();
                let weights: Vec<f64> =
                    keys.iter().map(|key| (dot(&of(query), &of(key)) / factor).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (weight, value) in weights.iter().zip(&values) {
                    for (target, value) in attended[head..head + size].iter_mut().zip(of(value)) {
                        *target += weight / total * value;
                    }
                }
            }
            let change = linear(&format!("{name}.attention.output.dense"), &attended, width);
            let row = normalize(&format!("{name}.attention.output.LayerNorm"), &add(row, &change));
            let activated: Vec<f64> = linear(&format!("{name}.intermediate.dense"), &row, wide)
                .into_iter()
                .map(|value| activate(config.hidden_act, value))
                .collect();
            let change = linear(&format!("{name}.output.dense"), &activated, width);
            output.push(normalize(&format!("{name}.output.LayerNorm"), &add(&row, &change)));
        }
        output
    }

    fn load(name: &str, shape: &[usize]) -> Vec<f64> {
        RandomTensors.load(name, shape).expect("a tensor").into_iter().map(f64::from).collect()
    }

    fn linear(name: &str, row: &[f64], outputs: usize) -> Vec<f64> {
        let weights = load(&format!("{name}.weight"), &[outputs, row.len()]);
        let bias = load(&format!("{name}.bias"), &[outputs]);
        weights.chunks_exact(row.len()).zip(bias).map(|(weights, bias)| dot(weights, row) + bias).collect()
    }

    fn normalize(name: &str, row: &[f64]) -> Vec<f64> {
        let (weight, bias) =
            (load(&format!("{name}.weight"), &[row.len()]), load(&format!("{name}.bias"), &[row.len()]));
        let length = f64::from(u16::try_from(row.len()).expect("small"));
        let mean = row.iter().sum::<f64>() / length;
        let deviation = (row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / length).sqrt();
        let each = row.iter().zip(weight).zip(bias);
        each.map(|((value, weight), bias)| (value - mean) / deviation * weight + bias).collect()
    }

    fn activate(activation: Activation, x: f64) -> f64 {
        match activation {
            Activation::Gelu => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
            Activation::GeluByTanh => {
                0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
            }
            Activation::Relu => x.max(0.0),
        }
    }

    /// The sum of its series, and far from zero its limit.
    pub fn erf(x: f64) -> f64 {
        if x.abs() > 5.0 {
            return x.signum();
        }
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-17 {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
        a.iter().zip(b).map(|(a, b)| a + b).collect()
    }
}
