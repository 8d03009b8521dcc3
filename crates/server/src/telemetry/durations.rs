//! The buckets of durations from confirm to ready, for the histogram of `/metrics` and for the percentiles of the API.

/// The upper bounds in seconds: 25 for each power of ten, from 10 ms to 28 hours. Each is 9.6 % above the one before, so a
/// percentile that is interpolated within a bucket is never further off than that.
#[rustfmt::skip]
#[expect(clippy::unreadable_literal, reason = "a table of numbers with five digits each")]
pub const BOUNDS: &[f64] = &[
    0.01, 0.010965, 0.012023, 0.013183, 0.014454, 0.015849, 0.017378, 0.019055, 0.020893, 0.022909,
    0.025119, 0.027542, 0.0302, 0.033113, 0.036308, 0.039811, 0.043652, 0.047863, 0.052481, 0.057544,
    0.063096, 0.069183, 0.075858, 0.083176, 0.091201, 0.1, 0.10965, 0.12023, 0.13183, 0.14454, 0.15849,
    0.17378, 0.19055, 0.20893, 0.22909, 0.25119, 0.27542, 0.302, 0.33113, 0.36308, 0.39811, 0.43652,
    0.47863, 0.52481, 0.57544, 0.63096, 0.69183, 0.75858, 0.83176, 0.91201, 1.0, 1.0965, 1.2023, 1.3183,
    1.4454, 1.5849, 1.7378, 1.9055, 2.0893, 2.2909, 2.5119, 2.7542, 3.02, 3.3113, 3.6308, 3.9811, 4.3652,
    4.7863, 5.2481, 5.7544, 6.3096, 6.9183, 7.5858, 8.3176, 9.1201, 10.0, 10.965, 12.023, 13.183, 14.454,
    15.849, 17.378, 19.055, 20.893, 22.909, 25.119, 27.542, 30.2, 33.113, 36.308, 39.811, 43.652, 47.863,
    52.481, 57.544, 63.096, 69.183, 75.858, 83.176, 91.201, 100.0, 109.65, 120.23, 131.83, 144.54, 158.49,
    173.78, 190.55, 208.93, 229.09, 251.19, 275.42, 302.0, 331.13, 363.08, 398.11, 436.52, 478.63, 524.81,
    575.44, 630.96, 691.83, 758.58, 831.76, 912.01, 1_000.0, 1_096.5, 1_202.3, 1_318.3, 1_445.4, 1_584.9,
    1_737.8, 1_905.5, 2_089.3, 2_290.9, 2_511.9, 2_754.2, 3_020.0, 3_311.3, 3_630.8, 3_981.1, 4_365.2,
    4_786.3, 5_248.1, 5_754.4, 6_309.6, 6_918.3, 7_585.8, 8_317.6, 9_120.1, 10_000.0, 10_965.0, 12_023.0,
    13_183.0, 14_454.0, 15_849.0, 17_378.0, 19_055.0, 20_893.0, 22_909.0, 25_119.0, 27_542.0, 30_200.0,
    33_113.0, 36_308.0, 39_811.0, 43_652.0, 47_863.0, 52_481.0, 57_544.0, 63_096.0, 69_183.0, 75_858.0,
    83_176.0, 91_201.0, 100_000.0,
];

/// The bucket of a duration, by the place of its upper bound; the last place is for what is above all bounds.
pub fn bucket_of(seconds: f64) -> usize {
    BOUNDS.partition_point(|bound| *bound < seconds)
}

/// The duration in seconds that this share of durations does not exceed, interpolated within its bucket. `counts` has the
/// number of durations for each bucket.
pub fn quantile<'a>(counts: impl Iterator<Item = (&'a usize, &'a i64)> + Clone, share: f64) -> Option<f64> {
    let all: i64 = counts.clone().map(|(_, count)| count).sum();
    #[expect(clippy::cast_precision_loss, reason = "no hour has so many files that it shows")]
    let (rank, number) = (all as f64 * share, |count: i64| count as f64);
    let mut before = 0;
    for (bucket, count) in counts {
        if number(before + count) >= rank && *count > 0 {
            let lower = bucket.checked_sub(1).and_then(|below| BOUNDS.get(below)).copied().unwrap_or(0.0);
            let upper = BOUNDS.get(*bucket).copied().unwrap_or(lower);
            return Some(lower + (upper - lower) * (rank - number(before)) / number(*count));
        }
        before += count;
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_bound_is_less_than_a_tenth_above_the_one_before() {
        for pair in BOUNDS.windows(2) {
            assert!(pair[1] > pair[0] && pair[1] / pair[0] < 1.1, "{pair:?}");
        }
    }

    #[test]
    fn a_quantile_is_within_a_tenth_of_the_true_one() {
        // Durations of very different kinds: even, long-tailed, and all the same.
        let kinds: [&dyn Fn(u32) -> f64; 3] =
            [&|n| 0.1 + f64::from(n) * 0.01, &|n| 0.02 * 1.01_f64.powf(f64::from(n)), &|_| 0.375];
        for duration in kinds {
            let mut durations: Vec<f64> = (0..1_000).map(duration).collect();
            durations.sort_by(f64::total_cmp);
            let mut counts: BTreeMap<usize, i64> = BTreeMap::new();
            for seconds in &durations {
                *counts.entry(bucket_of(*seconds)).or_default() += 1;
            }
            for (share, place) in [(0.5, 499), (0.95, 949), (0.99, 989)] {
                let (found, exact) = (quantile(counts.iter(), share).unwrap(), durations[place]);
                assert!((found / exact - 1.0).abs() < 0.1, "{found} instead of {exact}");
            }
        }
        assert_eq!(quantile(BTreeMap::new().iter(), 0.5), None);
    }
}
