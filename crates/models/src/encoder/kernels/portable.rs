//! Products of bytes without special instructions.

use super::{GROUP, PANEL, PanelGroup, Products, RowGroup};

pub struct Portable;

impl Products for Portable {
    const ROWS: usize = 4;
    const COLUMNS: usize = 1;

    #[inline]
    unsafe fn sums<const COUNT: usize>(
        rows: [&[RowGroup]; COUNT],
        panel: &[PanelGroup],
        _weight_sums: &[i32; PANEL],
        sums: &mut [[i32; PANEL]; COUNT],
    ) {
        for (row, sums) in rows.into_iter().zip(sums) {
            sums.fill(0);
            for (activations, weights) in row.iter().zip(panel) {
                for (sum, weights) in sums.iter_mut().zip(weights.as_chunks::<GROUP>().0) {
                    for (activation, weight) in activations.iter().zip(weights) {
                        *sum += i32::from(*activation) * i32::from(*weight);
                    }
                }
            }
        }
    }
}
