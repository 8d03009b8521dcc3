//! A vector as one bit for each dimension, and how well the vector of a question agrees with such codes.
//!
//! The bits are the signs of the vector after a rotation. The rotation spreads what a model puts into a few dimensions
//! over all of them, so every bit says about as much as every other; it changes no distance.
//!
//! The question keeps more than its signs: each of its dimensions has a weight of a few bits. The score of a code is the
//! sum of the weights where the signs agree. It is counted with one population count for each bit of the weights.

/// The bits of a weight. With one more, the recall in `bench/vectors.rs` does not grow; with one less it falls.
const PLANES: usize = 4;
const MAX_WEIGHT: f32 = 15.0;
/// Codes that are scored together: their scores stay in the nearest cache of the processor.
const TILE: usize = 512;

/// The length of a code in bytes.
pub fn code_bytes(dimensions: usize) -> usize {
    dimensions.div_ceil(8)
}

/// The code of a vector: bit `n` of the bytes is set if dimension `n` is positive after the rotation.
pub fn code(vector: &[f32]) -> Vec<u8> {
    let mut code = vec![0_u8; code_bytes(vector.len())];
    for (number, value) in rotated(vector).into_iter().enumerate() {
        if value > 0.0 {
            code[number / 8] |= 1 << (number % 8);
        }
    }
    code
}

/// The vector after a rotation that depends only on the number of its dimensions. It is part of the stored format.
///
/// A Hadamard transform needs a power of two, so it is applied in turn to the first and the last dimensions, as many as
/// the largest power of two that fits. Random signs before each make it differ.
fn rotated(vector: &[f32]) -> Vec<f32> {
    const ROUNDS: usize = 4;
    let mut values = vector.to_vec();
    let Some(size) = largest_power_of_two(values.len()) else { return values };
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..ROUNDS {
        for value in &mut values {
            // Steps of SplitMix64, of which one bit is used.
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            if mixed >> 63 == 1 {
                *value = -*value;
            }
        }
        let start = if round % 2 == 0 { 0 } else { values.len() - size };
        transform(&mut values[start..start + size]);
    }
    values
}

fn largest_power_of_two(number: usize) -> Option<usize> {
    number.checked_ilog2().map(|exponent| 1 << exponent)
}

/// The Hadamard transform, scaled so that it changes no length.
fn transform(values: &mut [f32]) {
    let mut half = 1;
    while half < values.len() {
        for pair in values.chunks_exact_mut(half * 2) {
            let (left, right) = pair.split_at_mut(half);
            for (a, b) in left.iter_mut().zip(right) {
                (*a, *b) = (*a + *b, *a - *b);
            }
        }
        half *= 2;
    }
    #[expect(clippy::cast_precision_loss, reason = "dimensions are few")]
    let scale = 1.0 / (values.len() as f32).sqrt();
    for value in values {
        *value *= scale;
    }
}

/// The vector of a question, prepared for the comparison with codes.
#[derive(Debug, Clone)]
pub struct Query {
    words: Vec<QueryWord>,
}

/// 64 dimensions: their signs, and each bit of their weights.
#[derive(Debug, Clone, Copy, Default)]
struct QueryWord {
    signs: u64,
    planes: [u64; PLANES],
}

impl Query {
    pub fn new(vector: &[f32]) -> Self {
        let values = rotated(vector);
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let scale = if largest > 0.0 { MAX_WEIGHT / largest } else { 0.0 };
        let mut words = vec![QueryWord::default(); values.len().div_ceil(64)];
        for (number, value) in values.into_iter().enumerate() {
            let word = &mut words[number / 64];
            let bit = 1 << (number % 64);
            if value > 0.0 {
                word.signs |= bit;
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "between zero and the maximum"
            )]
            let weight = (value.abs() * scale).round() as u32;
            for (plane, bits) in word.planes.iter_mut().enumerate() {
                if weight >> plane & 1 == 1 {
                    *bits |= bit;
                }
            }
        }
        Self { words }
    }
}

/// Codes in memory. They are kept column by column: first the first 64 bits of every code, then the next 64. So a
/// processor with vector instructions compares several codes at once.
#[derive(Debug)]
pub struct Codes {
    count: usize,
    columns: Vec<u64>,
}

impl Codes {
    /// From codes of this length in bytes, one after another.
    pub fn unpack(packed: &[u8], code_bytes: usize) -> Self {
        let count = packed.len() / code_bytes.max(1);
        let words = code_bytes.div_ceil(8);
        let mut columns = vec![0_u64; words * count];
        for (number, code) in packed.chunks_exact(code_bytes.max(1)).enumerate() {
            for (word, bytes) in code.chunks(8).enumerate() {
                let mut full = [0_u8; 8];
                full[..bytes.len()].copy_from_slice(bytes);
                columns[word * count + number] = u64::from_le_bytes(full);
            }
        }
        Self { count, columns }
    }

    pub fn bytes(&self) -> usize {
        self.columns.len() * size_of::<u64>()
    }

    /// Calls `each` with the number and the score of every code. A higher score is nearer.
    pub fn score(&self, query: &Query, mut each: impl FnMut(usize, u64)) {
        let kernel = kernel();
        let mut scores = [0_u64; TILE];
        for start in (0..self.count).step_by(TILE) {
            let scores = &mut scores[..TILE.min(self.count - start)];
            scores.fill(0);
            for (word, column) in query.words.iter().zip(self.columns.chunks_exact(self.count)) {
                kernel(scores, &column[start..start + scores.len()], *word);
            }
            for (number, score) in scores.iter().enumerate() {
                each(start + number, *score);
            }
        }
    }
}

type Kernel = fn(&mut [u64], &[u64], QueryWord);

/// The fastest variant that this processor has the instructions for.
fn kernel() -> Kernel {
    kernels().next().unwrap_or(add)
}

/// All variants that this processor has the instructions for, the fastest first.
fn kernels() -> impl Iterator<Item = Kernel> {
    #[cfg(target_arch = "x86_64")]
    {
        let has_popcnt = is_x86_feature_detected!("popcnt");
        let has_avx2 = has_popcnt && is_x86_feature_detected!("avx2");
        let has_avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq");
        // SAFETY: it is called only if the processor has the two features.
        let with_avx512: Kernel = |scores, column, query| unsafe { add_with_avx512(scores, column, query) };
        // SAFETY: it is called only if the processor has the two features.
        let with_avx2: Kernel = |scores, column, query| unsafe { add_with_avx2(scores, column, query) };
        // SAFETY: it is called only if the processor has the feature.
        let with_popcnt: Kernel = |scores, column, query| unsafe { add_with_popcnt(scores, column, query) };
        let all = [(has_avx512, with_avx512), (has_avx2, with_avx2), (has_popcnt, with_popcnt), (true, add)];
        all.into_iter().filter_map(|(is_there, kernel)| is_there.then_some(kernel))
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::iter::once(add as Kernel)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn add_with_avx512(scores: &mut [u64], column: &[u64], query: QueryWord) {
    add(scores, column, query);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
fn add_with_avx2(scores: &mut [u64], column: &[u64], query: QueryWord) {
    add(scores, column, query);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn add_with_popcnt(scores: &mut [u64], column: &[u64], query: QueryWord) {
    add(scores, column, query);
}

/// Adds to each score the weights of the dimensions where the signs agree, for 64 dimensions. Compiled once for each set
/// of instructions. What lies beyond the last dimension has no weight.
#[expect(clippy::inline_always, reason = "otherwise it has only the instructions that every processor has")]
#[inline(always)]
fn add(scores: &mut [u64], column: &[u64], query: QueryWord) {
    for (score, code) in scores.iter_mut().zip(column) {
        let agree = !(code ^ query.signs);
        for (plane, weights) in query.planes.iter().enumerate() {
            *score += u64::from((agree & weights).count_ones()) << plane;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same numbers in every run.
    fn vectors(count: usize, dimensions: usize) -> Vec<Vec<f32>> {
        let mut state = 7_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f32::from(u16::try_from(state >> 48).unwrap()) / 32_768.0 - 1.0
        };
        (0..count).map(|_| (0..dimensions).map(|_| next()).collect()).collect()
    }

    fn product(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn a_rotation_changes_no_product() {
        for dimensions in [1, 2, 3, 8, 100, 384, 1_000] {
            let two = vectors(2, dimensions);
            let (before, after) = (product(&two[0], &two[1]), product(&rotated(&two[0]), &rotated(&two[1])));
            assert!((before - after).abs() < 1e-3, "{dimensions}: {before} {after}");
        }
    }

    #[test]
    fn the_stored_format_does_not_change() {
        let code = code(&vectors(1, 20)[0]);
        assert_eq!(hex::encode(code), "df0a0f", "existing codes would be worthless");
    }

    #[test]
    fn a_score_is_the_weight_of_the_dimensions_that_agree() {
        for dimensions in [1, 7, 8, 64, 65, 384] {
            let (question, all) = (vectors(1, dimensions).remove(0), vectors(1_300, dimensions));
            let packed: Vec<u8> = all.iter().flat_map(|vector| code(vector)).collect();
            let rotated_question = rotated(&question);
            let largest = rotated_question.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
            let mut scored = 0;
            Codes::unpack(&packed, code_bytes(dimensions)).score(&Query::new(&question), |number, score| {
                let expected: f32 = rotated(&all[number])
                    .iter()
                    .zip(&rotated_question)
                    .filter(|(a, b)| (**a > 0.0) == (**b > 0.0))
                    .map(|(_, weight)| (weight.abs() * MAX_WEIGHT / largest).round())
                    .sum();
                #[expect(clippy::cast_precision_loss, reason = "a small number")]
                let score = score as f32;
                assert!((score - expected).abs() < 0.5, "{dimensions}: {score} {expected}");
                scored += 1;
            });
            assert_eq!(scored, all.len());
        }
    }

    #[test]
    fn all_sets_of_instructions_count_the_same() {
        let column: Vec<u64> =
            (1..1_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let query =
            QueryWord { signs: 0x0123_4567_89ab_cdef, planes: [u64::MAX, 0xff00_ff00_ff00_ff00, 3, 5] };
        let mut plain = vec![1; column.len()];
        add(&mut plain, &column, query);
        for (place, kernel) in kernels().enumerate() {
            let mut scores = vec![1; column.len()];
            kernel(&mut scores, &column, query);
            assert_eq!(plain, scores, "the kernel at place {place}");
        }
    }
}
