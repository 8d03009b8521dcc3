//! Products of bytes with AVX2, whose instruction for them adds two products with saturation at 16 bits.

use std::arch::x86_64::{
    _mm256_abs_epi8, _mm256_add_epi32, _mm256_loadu_si256, _mm256_madd_epi16, _mm256_maddubs_epi16,
    _mm256_set1_epi16, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sign_epi8, _mm256_slli_epi32,
    _mm256_storeu_si256,
};

use super::{GROUP, PANEL, PanelGroup, Products, RowGroup};

/// Outputs in one register.
const WIDTH: usize = 8;
/// Registers that are computed at once: two for each of four rows leave room for the rest.
const REGISTERS: usize = 2;

pub struct Avx2;

impl Products for Avx2 {
    const ROWS: usize = 4;
    const COLUMNS: usize = 1;

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    unsafe fn sums<const COUNT: usize>(
        rows: [&[RowGroup]; COUNT],
        panel: &[PanelGroup],
        weight_sums: &[i32; PANEL],
        sums: &mut [[i32; PANEL]; COUNT],
    ) {
        let rows = rows.map(|row| &row[..panel.len()]);
        let ones = _mm256_set1_epi16(1);
        for part in 0..PANEL / (WIDTH * REGISTERS) {
            let first = part * WIDTH * REGISTERS;
            // 128 is subtracted from each activation below, and added here.
            let mut starts = [_mm256_setzero_si256(); REGISTERS];
            for (register, start) in starts.iter_mut().enumerate() {
                let sums = &weight_sums[first + register * WIDTH..][..WIDTH];
                // SAFETY: eight numbers of four bytes are the 32 bytes that this reads.
                *start = _mm256_slli_epi32::<7>(unsafe { _mm256_loadu_si256(sums.as_ptr().cast()) });
            }
            let mut totals = [starts; COUNT];
            for (step, group) in panel.iter().enumerate() {
                let mut weights = [_mm256_setzero_si256(); REGISTERS];
                for (register, weights) in weights.iter_mut().enumerate() {
                    let bytes = &group[(first + register * WIDTH) * GROUP..][..WIDTH * GROUP];
                    // SAFETY: these are the 32 bytes that it reads.
                    *weights = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
                }
                for row in 0..COUNT {
                    let bytes = u32::from_le_bytes(rows[row][step]) ^ 0x8080_8080;
                    let activations = _mm256_set1_epi32(bytes.cast_signed());
                    // The sign moves to the weight, because the first factor must be unsigned.
                    let sizes = _mm256_abs_epi8(activations);
                    for register in 0..REGISTERS {
                        let signed = _mm256_sign_epi8(weights[register], activations);
                        let pairs = _mm256_maddubs_epi16(sizes, signed);
                        let products = _mm256_madd_epi16(pairs, ones);
                        totals[row][register] = _mm256_add_epi32(totals[row][register], products);
                    }
                }
            }
            for (sums, totals) in sums.iter_mut().zip(totals) {
                let sums = &mut sums[first..first + WIDTH * REGISTERS];
                for (sums, total) in sums.as_chunks_mut::<WIDTH>().0.iter_mut().zip(totals) {
                    // SAFETY: eight numbers of four bytes are the 32 bytes that this writes.
                    unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), total) };
                }
            }
        }
    }
}
