//! The products of bytes, and the arithmetic around them, for the kinds of processors that there are.
//!
//! A matrix of weights has one scale for each output; a row of activations has one scale and one offset. All kinds of
//! processors compute the same integers, to the bit.
//!
//! An activation is a byte from 1 to 255 and a weight a byte from -127 to 127. Instructions for unsigned times signed
//! bytes (VNNI) take them as they are. The others subtract 128 from the activation: both factors are then between -127
//! and 127, and the sum of two products fits into 16 bits without saturation.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;

use super::config::Activation;
use super::float::{self, Attention, HeadScratch, Norm, Quantized};

/// Outputs of a matrix that are computed together.
pub const PANEL: usize = 64;
/// Inputs whose products are added in one step.
pub const GROUP: usize = 4;

/// The weights of one panel for one group of inputs: for each output, four bytes.
pub type PanelGroup = [i8; PANEL * GROUP];
/// The activations of one row for one group of inputs.
pub type RowGroup = [u8; GROUP];

/// A matrix of weights, arranged in panels.
pub struct Matrix {
    pub inputs: usize,
    pub outputs: usize,
    /// Panel after panel, each with all groups of inputs.
    groups: Vec<PanelGroup>,
    /// One for each output, like the next two, padded to whole panels.
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// The sum of an output's weights, as integers.
    sums: Vec<i32>,
}

impl Matrix {
    /// `weights` has a row for each output.
    pub fn quantize(inputs: usize, outputs: usize, weights: &[f32], bias: &[f32]) -> Self {
        assert_eq!((weights.len(), bias.len()), (inputs * outputs, outputs));
        let (steps, padded) = (inputs.div_ceil(GROUP), outputs.next_multiple_of(PANEL));
        let mut matrix = Self {
            inputs,
            outputs,
            groups: vec![[0; PANEL * GROUP]; padded / PANEL * steps],
            scales: vec![0.0; padded],
            bias: vec![0.0; padded],
            sums: vec![0; padded],
        };
        matrix.bias[..outputs].copy_from_slice(bias);
        for (output, row) in weights.chunks_exact(inputs).enumerate() {
            let largest = row.iter().fold(0.0_f32, |largest, weight| largest.max(weight.abs()));
            let scale = largest.max(f32::MIN_POSITIVE * 256.0) / 127.0;
            matrix.scales[output] = scale;
            for (input, weight) in row.iter().enumerate() {
                #[expect(clippy::cast_possible_truncation, reason = "bounded to -127 and 127")]
                let weight = (weight / scale).round().clamp(-127.0, 127.0) as i8;
                let group = &mut matrix.groups[output / PANEL * steps + input / GROUP];
                group[output % PANEL * GROUP + input % GROUP] = weight;
                matrix.sums[output] += i32::from(weight);
            }
        }
        matrix
    }

    /// The bytes of a row of activations, with padding.
    pub fn row_bytes(&self) -> usize {
        self.inputs.next_multiple_of(GROUP)
    }

    fn panels(&self) -> impl Iterator<Item = Panel<'_>> {
        let steps = self.inputs.div_ceil(GROUP);
        self.groups.chunks_exact(steps).enumerate().map(|(panel, groups)| {
            let first = panel * PANEL;
            let of = first..first + PANEL;
            Panel {
                first,
                width: PANEL.min(self.outputs - first),
                groups,
                scales: self.scales[of.clone()].try_into().expect("a whole panel"),
                bias: self.bias[of.clone()].try_into().expect("a whole panel"),
                sums: self.sums[of].try_into().expect("a whole panel"),
            }
        })
    }
}

struct Panel<'a> {
    first: usize,
    /// How many outputs of the panel are not padding.
    width: usize,
    groups: &'a [PanelGroup],
    scales: &'a [f32; PANEL],
    bias: &'a [f32; PANEL],
    sums: &'a [i32; PANEL],
}

/// Rows of activations as bytes.
#[derive(Default)]
pub struct Bytes {
    bytes: Vec<u8>,
    quantized: Vec<Quantized>,
}

impl Bytes {
    #[cfg(test)]
    pub fn new(bytes: Vec<u8>, rows: usize) -> Self {
        Self { bytes, quantized: vec![Quantized { scale: 1.0, offset: 0.0 }; rows] }
    }

    /// Room for rows of `row_bytes`.
    pub fn resize(&mut self, rows: usize, row_bytes: usize) {
        self.bytes.resize(rows * row_bytes, 0);
        self.quantized.resize(rows, Quantized::default());
    }

    fn rows_mut(&mut self, row_bytes: usize) -> impl Iterator<Item = (&mut [u8], &mut Quantized)> {
        self.bytes.chunks_exact_mut(row_bytes).zip(&mut self.quantized)
    }
}

/// A kind of processor that this processor belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kernel(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Portable,
    /// Computes as `Portable` does, but rounds as the kinds below do. Slow without an instruction for it.
    #[cfg(test)]
    PortableFused,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
    #[cfg(target_arch = "aarch64")]
    NeonDot,
}

impl Kernel {
    /// All that this processor can run, the slowest first.
    pub fn available() -> Vec<Self> {
        #[allow(unused_mut, reason = "there are processors without any other")]
        let mut kinds = vec![Kind::Portable];
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                kinds.push(Kind::Avx2);
            }
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512vnni")
                && is_x86_feature_detected!("fma")
            {
                kinds.push(Kind::Avx512);
            }
        }
        #[cfg(target_arch = "aarch64")]
        {
            if std::arch::is_aarch64_feature_detected!("neon") {
                kinds.push(Kind::Neon);
                if std::arch::is_aarch64_feature_detected!("dotprod") {
                    kinds.push(Kind::NeonDot);
                }
            }
        }
        kinds.into_iter().map(Self).collect()
    }

    pub fn best() -> Self {
        Self::available().pop().expect("the portable one is always available")
    }

    /// The one that all others must agree with.
    #[cfg(test)]
    pub fn reference() -> Self {
        Self(Kind::PortableFused)
    }

    /// Whether it rounds as the reference does.
    #[cfg(test)]
    pub fn is_fused(self) -> bool {
        self.0 != Kind::Portable
    }

    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Portable => "portable",
            #[cfg(test)]
            Kind::PortableFused => "portable, fused",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512 VNNI",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "NEON",
            #[cfg(target_arch = "aarch64")]
            Kind::NeonDot => "NEON with dot products",
        }
    }
}

/// Compiles the generic functions of this name for each kind of processor, and calls the right one.
macro_rules! for_each_kind {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?);)*) => {
        impl Kernel {
            $(pub fn $name(self, $($argument: $type),*) {
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) {
                    generic::$name::<avx2::Avx2, true>($($argument),*);
                }
                #[cfg(target_arch = "x86_64")]
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")]
                fn avx512($($argument: $type),*) {
                    generic::$name::<avx512::Avx512, true>($($argument),*);
                }
                #[cfg(target_arch = "aarch64")]
                #[target_feature(enable = "neon")]
                fn neon($($argument: $type),*) {
                    generic::$name::<neon::Neon, true>($($argument),*);
                }
                #[cfg(target_arch = "aarch64")]
                #[target_feature(enable = "neon,dotprod")]
                fn neon_dot($($argument: $type),*) {
                    generic::$name::<neon::NeonDot, true>($($argument),*);
                }
                match self.0 {
                    Kind::Portable => generic::$name::<portable::Portable, false>($($argument),*),
                    #[cfg(test)]
                    Kind::PortableFused => generic::$name::<portable::Portable, true>($($argument),*),
                    #[cfg(target_arch = "x86_64")]
                    Kind::Avx2 => {
                        // SAFETY: only `available` makes this kind, after asking the processor for these features.
                        unsafe { avx2($($argument),*) }
                    }
                    #[cfg(target_arch = "x86_64")]
                    Kind::Avx512 => {
                        // SAFETY: only `available` makes this kind, after asking the processor for these features.
                        unsafe { avx512($($argument),*) }
                    }
                    #[cfg(target_arch = "aarch64")]
                    Kind::Neon => {
                        // SAFETY: only `available` makes this kind, after asking the processor for these features.
                        unsafe { neon($($argument),*) }
                    }
                    #[cfg(target_arch = "aarch64")]
                    Kind::NeonDot => {
                        // SAFETY: only `available` makes this kind, after asking the processor for these features.
                        unsafe { neon_dot($($argument),*) }
                    }
                }
            })*
        }
    };
}

for_each_kind! {
    fn multiply(rows: &Bytes, matrix: &Matrix, output: &mut [f32]);
    fn quantize(rows: &[f32], width: usize, bytes: &mut Bytes, row_bytes: usize);
    fn activate_and_quantize(
        rows: &mut [f32],
        width: usize,
        activation: Activation,
        bytes: &mut Bytes,
        row_bytes: usize,
    );
    fn add_and_normalize(rows: &mut [f32], added: &[f32], norm: Norm<'_>);
    fn attend(attention: Attention, projected: &[f32], output: &mut [f32], scratch: &mut HeadScratch);
}

/// The instructions for products of bytes.
trait Products {
    /// Rows that are computed together.
    const ROWS: usize;
    /// Groups of sixteen keys, or of sixteen dimensions, for which attention is computed together: as many as there are
    /// registers for.
    const COLUMNS: usize;

    /// For each row and each output of the panel, the sum of the products. All rows have as many groups as the panel.
    ///
    /// # Safety
    /// The processor has the features that the implementation names.
    unsafe fn sums<const COUNT: usize>(
        rows: [&[RowGroup]; COUNT],
        panel: &[PanelGroup],
        weight_sums: &[i32; PANEL],
        sums: &mut [[i32; PANEL]; COUNT],
    );
}

/// No kind of processor computes more rows together.
const MAX_ROWS: usize = 6;

mod generic {
    #![expect(
        clippy::inline_always,
        reason = "code is compiled for the features of its caller only when inlined"
    )]
    use super::{
        Activation, Attention, Bytes, GROUP, HeadScratch, MAX_ROWS, Matrix, Norm, PANEL, Panel, Products,
        Quantized, float,
    };

    #[inline(always)]
    pub(super) fn multiply<P: Products, const FUSED: bool>(
        rows: &Bytes,
        matrix: &Matrix,
        output: &mut [f32],
    ) {
        let count = rows.quantized.len();
        assert_eq!(rows.bytes.len(), count * matrix.row_bytes());
        assert_eq!(output.len(), count * matrix.outputs);
        // A panel stays in the nearest cache while all rows pass by.
        let mut sums = [[0; PANEL]; MAX_ROWS];
        for panel in matrix.panels() {
            let mut first = 0;
            while first < count {
                // The rows that are left after the last whole tile are at most one less than a tile.
                first += match (count - first).min(P::ROWS) {
                    1 => tile::<P, 1>(rows, matrix, &panel, first, &mut sums, output),
                    2 => tile::<P, 2>(rows, matrix, &panel, first, &mut sums, output),
                    3 => tile::<P, 3>(rows, matrix, &panel, first, &mut sums, output),
                    4 | 5 => tile::<P, 4>(rows, matrix, &panel, first, &mut sums, output),
                    _ => tile::<P, 6>(rows, matrix, &panel, first, &mut sums, output),
                };
            }
        }
    }

    /// Computes some rows from `first` on, and returns how many.
    #[inline(always)]
    fn tile<P: Products, const COUNT: usize>(
        rows: &Bytes,
        matrix: &Matrix,
        panel: &Panel<'_>,
        first: usize,
        sums: &mut [[i32; PANEL]; MAX_ROWS],
        output: &mut [f32],
    ) -> usize {
        let row_bytes = panel.groups.len() * GROUP;
        let mut bytes: [&[[u8; GROUP]]; COUNT] = [&[]; COUNT];
        for (row, bytes) in bytes.iter_mut().enumerate() {
            *bytes = rows.bytes[(first + row) * row_bytes..][..row_bytes].as_chunks().0;
        }
        let sums = sums.first_chunk_mut::<COUNT>().expect("no tile has more rows");
        // SAFETY: `for_each_kind` compiles this function for the features of `P`, and calls it only where they are.
        unsafe { P::sums(bytes, panel.groups, panel.sums, sums) };
        for (row, sums) in sums.iter().enumerate() {
            let quantized = rows.quantized[first + row];
            let target = &mut output[(first + row) * matrix.outputs + panel.first..][..panel.width];
            if let Ok(target) = <&mut [f32; PANEL]>::try_from(&mut *target) {
                finish(sums, panel, quantized, target);
            } else {
                let mut whole = [0.0; PANEL];
                finish(sums, panel, quantized, &mut whole);
                target.copy_from_slice(&whole[..panel.width]);
            }
        }
        COUNT
    }

    #[inline(always)]
    #[expect(clippy::cast_precision_loss, reason = "a rounding error far below that of the bytes")]
    fn finish(
        sums: &[i32; PANEL],
        panel: &Panel<'_>,
        Quantized { scale, offset }: Quantized,
        target: &mut [f32; PANEL],
    ) {
        for output in 0..PANEL {
            let product = sums[output] as f32 * scale + panel.sums[output] as f32 * offset;
            target[output] = product * panel.scales[output] + panel.bias[output];
        }
    }

    #[inline(always)]
    pub(super) fn quantize<P: Products, const FUSED: bool>(
        rows: &[f32],
        width: usize,
        bytes: &mut Bytes,
        row_bytes: usize,
    ) {
        for (row, (bytes, quantized)) in rows.chunks_exact(width).zip(bytes.rows_mut(row_bytes)) {
            *quantized = float::quantize(row, bytes);
        }
    }

    #[inline(always)]
    pub(super) fn activate_and_quantize<P: Products, const FUSED: bool>(
        rows: &mut [f32],
        width: usize,
        activation: Activation,
        bytes: &mut Bytes,
        row_bytes: usize,
    ) {
        for (row, (bytes, quantized)) in rows.chunks_exact_mut(width).zip(bytes.rows_mut(row_bytes)) {
            *quantized = float::activate_and_quantize::<FUSED>(row, activation, bytes);
        }
    }

    #[inline(always)]
    pub(super) fn add_and_normalize<P: Products, const FUSED: bool>(
        rows: &mut [f32],
        added: &[f32],
        norm: Norm<'_>,
    ) {
        let width = norm.weight.len();
        for (row, added) in rows.chunks_exact_mut(width).zip(added.chunks_exact(width)) {
            float::add_and_normalize::<FUSED>(row, added, norm);
        }
    }

    #[inline(always)]
    pub(super) fn attend<P: Products, const FUSED: bool>(
        attention: Attention,
        projected: &[f32],
        output: &mut [f32],
        scratch: &mut HeadScratch,
    ) {
        if P::COLUMNS == 2 {
            float::attend::<FUSED, 2>(attention, projected, output, scratch);
        } else {
            float::attend::<FUSED, 1>(attention, projected, output, scratch);
        }
    }
}
