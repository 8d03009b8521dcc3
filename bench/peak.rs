//! What the processor can compute at most: multiplications and additions in registers, and nothing else.

/// Operations per CPU second; a multiplication and an addition are two.
pub struct Peak {
    pub floats: f64,
    pub bytes: f64,
}

#[cfg(not(target_arch = "x86_64"))]
pub fn measure() -> Option<Peak> {
    None
}

#[cfg(target_arch = "x86_64")]
pub fn measure() -> Option<Peak> {
    use x86::{bytes_avx2, bytes_avx512, floats_avx2, floats_avx512};
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni") {
        // SAFETY: the processor has both features.
        let (floats, bytes) = unsafe { (best(|n| floats_avx512(n)), best(|n| bytes_avx512(n))) };
        return Some(Peak { floats: floats * 16.0, bytes: bytes * 64.0 });
    }
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has both features.
        let (floats, bytes) = unsafe { (best(|n| floats_avx2(n)), best(|n| bytes_avx2(n))) };
        return Some(Peak { floats: floats * 8.0, bytes: bytes * 32.0 });
    }
    None
}

/// Pairs of a multiplication and an addition, times two, per CPU second, for one lane.
#[cfg(target_arch = "x86_64")]
fn best(compute: impl Fn(usize)) -> f64 {
    const STEPS: usize = 4_000_000;
    let mut best = 0.0_f64;
    for _ in 0..5 {
        let watch = super::measure::Stopwatch::start();
        compute(STEPS);
        best = best.max(2.0 * (STEPS * x86::CHAINS) as f64 / watch.cpu().as_secs_f64());
    }
    best
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        _mm256_add_epi32, _mm256_fmadd_ps, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_set1_epi8,
        _mm256_set1_epi16, _mm256_set1_ps, _mm256_setzero_si256, _mm512_dpbusd_epi32, _mm512_fmadd_ps,
        _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512,
    };
    use std::hint::black_box;

    /// Sums that do not depend on each other, so that none waits for the one before.
    pub const CHAINS: usize = 12;

    #[target_feature(enable = "avx512f")]
    pub fn floats_avx512(steps: usize) {
        let mut sums = [_mm512_set1_ps(1.0); CHAINS];
        let (a, b) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(0.25)));
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm512_fmadd_ps(a, b, *sum);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx512f,avx512vnni")]
    pub fn bytes_avx512(steps: usize) {
        let mut sums = [_mm512_setzero_si512(); CHAINS];
        let a = _mm512_set1_epi32(black_box(0x0101_0101));
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm512_dpbusd_epi32(*sum, a, a);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx2,fma")]
    pub fn floats_avx2(steps: usize) {
        let mut sums = [_mm256_set1_ps(1.0); CHAINS];
        let (a, b) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(0.25)));
        for _ in 0..steps {
            for sum in &mut sums {
                *sum = _mm256_fmadd_ps(a, b, *sum);
            }
        }
        black_box(sums);
    }

    #[target_feature(enable = "avx2")]
    pub fn bytes_avx2(steps: usize) {
        let mut sums = [_mm256_setzero_si256(); CHAINS];
        let (a, ones) = (_mm256_set1_epi8(black_box(1)), _mm256_set1_epi16(1));
        for _ in 0..steps {
            for sum in &mut sums {
                let pairs = _mm256_maddubs_epi16(black_box(a), a);
                *sum = _mm256_add_epi32(*sum, _mm256_madd_epi16(pairs, ones));
            }
        }
        black_box(sums);
    }
}
