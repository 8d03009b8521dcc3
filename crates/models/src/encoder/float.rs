//! The arithmetic in `f32` around the integer products: normalization, activation, softmax and attention.
//!
//! Each function is compiled once for each kind of processor (see `kernels`). Every sum has a fixed order over sixteen
//! lanes, so that the result is the same to the bit wherever `FUSED` is the same.
#![expect(
    clippy::inline_always,
    reason = "code is compiled for the features of its caller only when inlined"
)]

use super::config::Activation;

pub const LANES: usize = 16;
type Lanes = [f32; LANES];

/// Queries that are computed together.
const QUERIES: usize = 4;

/// `a * b + c`, rounded once if the processor can do that fast.
#[inline(always)]
fn multiply_add<const FUSED: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}

#[inline(always)]
fn sum_of(lanes: Lanes) -> f32 {
    fold(lanes, |a, b| a + b)
}

/// Halves the lanes until one is left.
#[inline(always)]
fn fold(mut lanes: Lanes, combine: impl Fn(f32, f32) -> f32) -> f32 {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            lanes[lane] = combine(lanes[lane], lanes[lane + width]);
        }
        width /= 2;
    }
    lanes[0]
}

/// Comparisons that compile to one instruction; NaN cannot be here, because weights are finite.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// `e^x` for `x <= 0`, with a relative error of about 2e-7. Below -87 the result is almost zero.
#[inline(always)]
pub fn exp<const FUSED: bool>(x: f32) -> f32 {
    // Adding and subtracting it rounds to an integer.
    const ROUND: f32 = 12_582_912.0;
    let x = larger(x, -87.0);
    let shifted = multiply_add::<FUSED>(x, std::f32::consts::LOG2_E, ROUND);
    let power = shifted - ROUND;
    // The logarithm of two in two parts, so that the difference is exact enough.
    let rest = multiply_add::<FUSED>(power, -0.693_359_4, x);
    let rest = multiply_add::<FUSED>(power, 2.121_944_4e-4, rest);
    let mut sum = 1.987_569_1e-4;
    for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 0.166_666_65, 0.5] {
        sum = multiply_add::<FUSED>(sum, rest, coefficient);
    }
    let sum = multiply_add::<FUSED>(sum * rest, rest, rest) + 1.0;
    // The low bits of `shifted` are the integer; they become the exponent.
    let exponent = shifted.to_bits().wrapping_add(127) << 23;
    sum * f32::from_bits(exponent)
}

/// `x` times the share of a normal distribution below `x`, as BERT was trained with.
#[inline(always)]
pub fn gelu<const FUSED: bool>(x: f32) -> f32 {
    // A polynomial of `x * x` for `erf(x / sqrt(2)) / x`, fitted up to the limit. The error of the result is below 1e-4.
    const LIMIT: f32 = 4.25;
    const COEFFICIENTS: [f32; 9] = [
        9.094_147e-11,
        -9.030_608e-9,
        3.972_318_4e-7,
        -1.029_502_9e-5,
        1.769_783e-4,
        -2.158_156e-3,
        1.943_755_7e-2,
        -0.132_380_56,
        0.797_638_4,
    ];
    let bounded = smaller(larger(x, -LIMIT), LIMIT);
    let square = bounded * bounded;
    let mut sum = COEFFICIENTS[0];
    for coefficient in &COEFFICIENTS[1..] {
        sum = multiply_add::<FUSED>(sum, square, *coefficient);
    }
    let half = 0.5 * x;
    multiply_add::<FUSED>(half, smaller(larger(sum * bounded, -1.0), 1.0), half)
}

/// The other form of it, which some models were trained with.
#[inline(always)]
fn gelu_by_tanh<const FUSED: bool>(x: f32) -> f32 {
    let inner = 0.797_884_6 * multiply_add::<FUSED>(0.044_715 * x * x, x, x);
    // tanh(y) = 1 - 2 / (e^2y + 1), computed on the side where the power is small.
    let power = exp::<FUSED>(-2.0 * inner.abs());
    let tanh = ((1.0 - power) / (1.0 + power)).copysign(inner);
    let half = 0.5 * x;
    multiply_add::<FUSED>(half, tanh, half)
}

/// A row as bytes: `value ≈ byte * scale + offset`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Quantized {
    pub scale: f32,
    pub offset: f32,
}

/// Bytes from 1 to 255, so that a byte minus 128 has no value without an opposite (see `kernels`).
#[inline(always)]
pub fn quantize(row: &[f32], bytes: &mut [u8]) -> Quantized {
    let (whole, rest) = row.as_chunks::<LANES>();
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    for values in whole {
        for lane in 0..LANES {
            low[lane] = smaller(values[lane], low[lane]);
            high[lane] = larger(values[lane], high[lane]);
        }
    }
    to_bytes(row, ends(low, high, rest), bytes)
}

/// The row becomes its activations, and these become bytes.
#[inline(always)]
pub fn activate_and_quantize<const FUSED: bool>(
    row: &mut [f32],
    activation: Activation,
    bytes: &mut [u8],
) -> Quantized {
    let ends = match activation {
        Activation::Gelu => activate(row, gelu::<FUSED>),
        Activation::GeluByTanh => activate(row, gelu_by_tanh::<FUSED>),
        Activation::Relu => activate(row, |value| larger(value, 0.0)),
    };
    to_bytes(row, ends, bytes)
}

#[inline(always)]
fn activate(row: &mut [f32], activation: impl Fn(f32) -> f32) -> (f32, f32) {
    let (whole, rest) = row.as_chunks_mut::<LANES>();
    let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
    for values in whole {
        let mut activated = [0.0; LANES];
        for lane in 0..LANES {
            activated[lane] = activation(values[lane]);
            low[lane] = smaller(activated[lane], low[lane]);
            high[lane] = larger(activated[lane], high[lane]);
        }
        *values = activated;
    }
    for value in &mut *rest {
        *value = activation(*value);
    }
    ends(low, high, rest)
}

/// The lowest and the highest value of a row.
#[inline(always)]
fn ends(low: Lanes, high: Lanes, rest: &[f32]) -> (f32, f32) {
    rest.iter().fold((fold(low, smaller), fold(high, larger)), |(low, high), value| {
        (smaller(*value, low), larger(*value, high))
    })
}

#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "the low byte is wanted")]
fn to_bytes(row: &[f32], (low, high): (f32, f32), bytes: &mut [u8]) -> Quantized {
    // Adding it to a value from 1 to 255 puts the rounded value into the low byte.
    const ROUND: f32 = 8_388_608.0;
    let scale = larger(high - low, f32::MIN_POSITIVE * 256.0) / 254.0;
    let (inverse, offset) = (1.0 / scale, low - scale);
    let (bytes, padding) = bytes.split_at_mut(row.len());
    for (byte, value) in bytes.iter_mut().zip(row) {
        let steps = smaller(larger((value - offset) * inverse, 1.0), 255.0);
        *byte = (steps + ROUND).to_bits() as u8;
    }
    // The weights there are zero.
    padding.fill(0);
    Quantized { scale, offset }
}

/// Scale and shift of a normalization.
#[derive(Clone, Copy)]
pub struct Norm<'a> {
    pub weight: &'a [f32],
    pub bias: &'a [f32],
    pub epsilon: f32,
}

/// `sum` becomes the normalized `sum + added`.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a number of dimensions")]
pub fn add_and_normalize<const FUSED: bool>(sum: &mut [f32], added: &[f32], norm: Norm<'_>) {
    let length = sum.len();
    for (value, added) in sum.iter_mut().zip(added) {
        *value += added;
    }
    let (whole, rest) = sum.as_chunks::<LANES>();
    let mut total = [0.0; LANES];
    for values in whole {
        for lane in 0..LANES {
            total[lane] += values[lane];
        }
    }
    let mean = (sum_of(total) + rest.iter().sum::<f32>()) / length as f32;
    let mut squares = [0.0; LANES];
    for values in whole {
        for lane in 0..LANES {
            let from_mean = values[lane] - mean;
            squares[lane] = multiply_add::<FUSED>(from_mean, from_mean, squares[lane]);
        }
    }
    let squares = sum_of(squares) + rest.iter().map(|value| (value - mean) * (value - mean)).sum::<f32>();
    let inverse = 1.0 / (squares / length as f32 + norm.epsilon).sqrt();
    for ((value, weight), bias) in sum.iter_mut().zip(norm.weight).zip(norm.bias) {
        *value = multiply_add::<FUSED>((*value - mean) * inverse, *weight, *bias);
    }
}

/// Where the queries, keys and values of one sequence are, and how they are divided into heads.
#[derive(Clone, Copy)]
pub struct Attention {
    pub tokens: usize,
    pub heads: usize,
    /// Dimensions of one head.
    pub size: usize,
}

/// Memory for one head.
#[derive(Default)]
pub struct HeadScratch {
    /// Dimensions × keys, padded to whole lanes.
    keys: Vec<f32>,
    /// Keys × dimensions, padded to whole lanes.
    values: Vec<f32>,
    /// Weights of the keys for each of the queries that are computed together.
    scores: Vec<f32>,
}

impl HeadScratch {
    fn fit(&mut self, attention: Attention) {
        let tokens = attention.tokens.next_multiple_of(LANES);
        self.keys.clear();
        self.keys.resize(attention.size * tokens, 0.0);
        self.values.clear();
        self.values.resize(attention.tokens * attention.size.next_multiple_of(LANES), 0.0);
        self.scores.clear();
        self.scores.resize(QUERIES * tokens, 0.0);
    }
}

/// The attention of one sequence. A row of `projected` has the token's query, key and value for all heads.
#[inline(always)]
pub fn attend<const FUSED: bool, const COLUMNS: usize>(
    attention: Attention,
    projected: &[f32],
    output: &mut [f32],
    scratch: &mut HeadScratch,
) {
    let Attention { tokens, heads, size } = attention;
    let hidden = heads * size;
    let (padded, padded_size) = (tokens.next_multiple_of(LANES), size.next_multiple_of(LANES));
    scratch.fit(attention);
    for head in 0..heads {
        for (token, row) in projected.chunks_exact(3 * hidden).enumerate() {
            let (key, value) =
                (&row[hidden + head * size..][..size], &row[2 * hidden + head * size..][..size]);
            for (dimension, value) in key.iter().enumerate() {
                scratch.keys[dimension * padded + token] = *value;
            }
            scratch.values[token * padded_size..][..size].copy_from_slice(value);
        }
        let mut first = 0;
        while first + QUERIES <= tokens {
            attend_queries::<FUSED, QUERIES, COLUMNS>(attention, head, first, projected, output, scratch);
            first += QUERIES;
        }
        for first in first..tokens {
            attend_queries::<FUSED, 1, COLUMNS>(attention, head, first, projected, output, scratch);
        }
    }
}

#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a number of dimensions")]
fn attend_queries<const FUSED: bool, const COUNT: usize, const COLUMNS: usize>(
    Attention { tokens, heads, size }: Attention,
    head: usize,
    first: usize,
    projected: &[f32],
    output: &mut [f32],
    scratch: &mut HeadScratch,
) {
    let hidden = heads * size;
    let padded = tokens.next_multiple_of(LANES);
    let factor = 1.0 / (size as f32).sqrt();
    let mut queries: [&[f32]; COUNT] = [&[]; COUNT];
    for (query, values) in queries.iter_mut().enumerate() {
        *values = &projected[(first + query) * 3 * hidden + head * size..][..size];
    }
    products::<FUSED, COUNT, COLUMNS>(queries, &scratch.keys, padded, |query, column, sums| {
        scratch.scores[query * padded + column..][..LANES].copy_from_slice(sums);
    });
    let mut inverse = [0.0; COUNT];
    for (query, inverse) in inverse.iter_mut().enumerate() {
        let scores = &mut scratch.scores[query * padded..][..padded];
        // A padded key has no weight.
        scores[tokens..].fill(f32::NEG_INFINITY);
        *inverse = 1.0 / softmax::<FUSED>(scores, factor);
    }
    let mut weights: [&[f32]; COUNT] = [&[]; COUNT];
    for (query, weights) in weights.iter_mut().enumerate() {
        *weights = &scratch.scores[query * padded..][..tokens];
    }
    let padded_size = size.next_multiple_of(LANES);
    products::<FUSED, COUNT, COLUMNS>(weights, &scratch.values, padded_size, |query, column, sums| {
        let width = LANES.min(size - column);
        let target = &mut output[(first + query) * hidden + head * size + column..][..width];
        for (target, sum) in target.iter_mut().zip(sums) {
            *target = sum * inverse[query];
        }
    });
}

/// The products of some rows with a matrix whose rows have `width` numbers. Gives `store` a row's number, a column and
/// the sixteen sums from there.
#[inline(always)]
fn products<const FUSED: bool, const COUNT: usize, const COLUMNS: usize>(
    rows: [&[f32]; COUNT],
    matrix: &[f32],
    width: usize,
    mut store: impl FnMut(usize, usize, &Lanes),
) {
    let mut column = 0;
    while column + COLUMNS * LANES <= width {
        let sums = dot_products::<FUSED, COUNT, COLUMNS>(rows, matrix, width, column);
        for (row, sums) in sums.iter().enumerate() {
            for (part, sums) in sums.iter().enumerate() {
                store(row, column + part * LANES, sums);
            }
        }
        column += COLUMNS * LANES;
    }
    while column < width {
        let sums = dot_products::<FUSED, COUNT, 1>(rows, matrix, width, column);
        for (row, [sums]) in sums.iter().enumerate() {
            store(row, column, sums);
        }
        column += LANES;
    }
}

#[inline(always)]
fn dot_products<const FUSED: bool, const COUNT: usize, const COLUMNS: usize>(
    rows: [&[f32]; COUNT],
    matrix: &[f32],
    width: usize,
    column: usize,
) -> [[Lanes; COLUMNS]; COUNT] {
    let mut sums = [[[0.0; LANES]; COLUMNS]; COUNT];
    let length = rows[0].len();
    let rows = rows.map(|row| &row[..length]);
    for (index, values) in matrix.chunks_exact(width).take(length).enumerate() {
        let values = values[column..column + COLUMNS * LANES].as_chunks::<LANES>().0;
        for row in 0..COUNT {
            let factor = rows[row][index];
            for part in 0..COLUMNS {
                for lane in 0..LANES {
                    sums[row][part][lane] =
                        multiply_add::<FUSED>(factor, values[part][lane], sums[row][part][lane]);
                }
            }
        }
    }
    sums
}

/// Turns scores into weights whose sum is returned. A score is multiplied by `factor` first, which is positive.
#[inline(always)]
fn softmax<const FUSED: bool>(scores: &mut [f32], factor: f32) -> f32 {
    let (whole, _) = scores.as_chunks_mut::<LANES>();
    let mut highest = [f32::NEG_INFINITY; LANES];
    for values in &*whole {
        for lane in 0..LANES {
            highest[lane] = larger(values[lane], highest[lane]);
        }
    }
    let highest = fold(highest, larger) * factor;
    let mut total = [0.0; LANES];
    for values in whole {
        for lane in 0..LANES {
            values[lane] = exp::<FUSED>(values[lane] * factor - highest);
            total[lane] += values[lane];
        }
    }
    sum_of(total)
}
