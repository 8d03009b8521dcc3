//! Products of bytes with NEON: with the instruction for dot products where there is one, and without it.

use std::arch::aarch64::{
    int8x16_t, int32x4_t, vdupq_n_s8, vdupq_n_s32, vget_low_s8, vld1q_s8, vld1q_s32, vmull_high_s8, vmull_s8,
    vpadalq_s16, vpaddq_s16, vreinterpretq_s8_s32, vshlq_n_s32, vst1q_s32,
};

use super::{GROUP, PANEL, PanelGroup, Products, RowGroup};

/// Outputs in one register.
const WIDTH: usize = 4;
/// Registers that are computed at once: four for each of four rows leave room for the rest.
const REGISTERS: usize = 4;

pub struct Neon;
pub struct NeonDot;

impl Products for Neon {
    const ROWS: usize = 4;
    const COLUMNS: usize = 1;

    #[inline]
    #[target_feature(enable = "neon")]
    unsafe fn sums<const COUNT: usize>(
        rows: [&[RowGroup]; COUNT],
        panel: &[PanelGroup],
        weight_sums: &[i32; PANEL],
        sums: &mut [[i32; PANEL]; COUNT],
    ) {
        add_products(rows, panel, weight_sums, sums, |total, weights, activations| {
            let low = vmull_s8(vget_low_s8(weights), vget_low_s8(activations));
            let high = vmull_high_s8(weights, activations);
            vpadalq_s16(total, vpaddq_s16(low, high))
        });
    }
}

impl Products for NeonDot {
    const ROWS: usize = 4;
    const COLUMNS: usize = 1;

    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn sums<const COUNT: usize>(
        rows: [&[RowGroup]; COUNT],
        panel: &[PanelGroup],
        weight_sums: &[i32; PANEL],
        sums: &mut [[i32; PANEL]; COUNT],
    ) {
        add_products(rows, panel, weight_sums, sums, |total, weights, activations| {
            dot(total, weights, activations)
        });
    }
}

/// `vdotq_s32`, which is not in the standard library yet.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn dot(mut total: int32x4_t, weights: int8x16_t, activations: int8x16_t) -> int32x4_t {
    // SAFETY: the instruction reads and writes these three registers only, and the feature is enabled here.
    unsafe {
        std::arch::asm!(
            "sdot {total:v}.4s, {weights:v}.16b, {activations:v}.16b",
            total = inout(vreg) total,
            weights = in(vreg) weights,
            activations = in(vreg) activations,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    total
}

#[inline]
#[target_feature(enable = "neon")]
fn add_products<const COUNT: usize>(
    rows: [&[RowGroup]; COUNT],
    panel: &[PanelGroup],
    weight_sums: &[i32; PANEL],
    sums: &mut [[i32; PANEL]; COUNT],
    add: impl Fn(int32x4_t, int8x16_t, int8x16_t) -> int32x4_t,
) {
    let rows = rows.map(|row| &row[..panel.len()]);
    for part in 0..PANEL / (WIDTH * REGISTERS) {
        let first = part * WIDTH * REGISTERS;
        // 128 is subtracted from each activation below, and added here.
        let mut starts = [vdupq_n_s32(0); REGISTERS];
        for (register, start) in starts.iter_mut().enumerate() {
            let sums = &weight_sums[first + register * WIDTH..][..WIDTH];
            // SAFETY: these are the four numbers that it reads.
            *start = vshlq_n_s32::<7>(unsafe { vld1q_s32(sums.as_ptr()) });
        }
        let mut totals = [starts; COUNT];
        for (step, group) in panel.iter().enumerate() {
            let mut weights = [vdupq_n_s8(0); REGISTERS];
            for (register, weights) in weights.iter_mut().enumerate() {
                let bytes = &group[(first + register * WIDTH) * GROUP..][..WIDTH * GROUP];
                // SAFETY: these are the sixteen bytes that it reads.
                *weights = unsafe { vld1q_s8(bytes.as_ptr()) };
            }
            for row in 0..COUNT {
                let bytes = u32::from_le_bytes(rows[row][step]) ^ 0x8080_8080;
                let activations = vreinterpretq_s8_s32(vdupq_n_s32(bytes.cast_signed()));
                for register in 0..REGISTERS {
                    totals[row][register] = add(totals[row][register], weights[register], activations);
                }
            }
        }
        for (sums, totals) in sums.iter_mut().zip(totals) {
            let sums = &mut sums[first..first + WIDTH * REGISTERS];
            for (sums, total) in sums.as_chunks_mut::<WIDTH>().0.iter_mut().zip(totals) {
                // SAFETY: it writes the four numbers.
                unsafe { vst1q_s32(sums.as_mut_ptr(), total) };
            }
        }
    }
}
