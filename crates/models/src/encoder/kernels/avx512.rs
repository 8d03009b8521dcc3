//! Products of bytes with AVX-512 VNNI: one instruction multiplies and adds 64 pairs of bytes.

use std::arch::x86_64::{
    _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_storeu_si512,
};

use super::{PANEL, PanelGroup, Products, RowGroup};

/// Outputs in one register.
const WIDTH: usize = 16;
const REGISTERS: usize = PANEL / WIDTH;

pub struct Avx512;

impl Products for Avx512 {
    /// Six rows of four registers, four registers of weights and one of activations fit into 32 registers.
    const ROWS: usize = 6;
    const COLUMNS: usize = 2;

    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
    unsafe fn sums<const COUNT: usize>(
        rows: [&[RowGroup]; COUNT],
        panel: &[PanelGroup],
        _weight_sums: &[i32; PANEL],
        sums: &mut [[i32; PANEL]; COUNT],
    ) {
        let rows = rows.map(|row| &row[..panel.len()]);
        let mut totals = [[_mm512_setzero_si512(); REGISTERS]; COUNT];
        for (step, group) in panel.iter().enumerate() {
            let mut weights = [_mm512_setzero_si512(); REGISTERS];
            for (register, weights) in weights.iter_mut().enumerate() {
                // SAFETY: 64 bytes from 64 times one of four are within the 256 bytes of the group.
                *weights = unsafe { _mm512_loadu_si512(group.as_ptr().add(register * 64).cast()) };
            }
            for row in 0..COUNT {
                let activations = _mm512_set1_epi32(i32::from_le_bytes(rows[row][step]));
                for register in 0..REGISTERS {
                    totals[row][register] =
                        _mm512_dpbusd_epi32(totals[row][register], activations, weights[register]);
                }
            }
        }
        for (sums, totals) in sums.iter_mut().zip(totals) {
            for (sums, total) in sums.as_chunks_mut::<WIDTH>().0.iter_mut().zip(totals) {
                // SAFETY: sixteen numbers of four bytes are the 64 bytes that this writes.
                unsafe { _mm512_storeu_si512(sums.as_mut_ptr().cast(), total) };
            }
        }
    }
}
