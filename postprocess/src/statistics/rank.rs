//! The test whether values of one sample tend to be larger than those of another: the one of Mann and Whitney, which asks nothing of
//! how values are distributed.

use std::f64::consts::SQRT_2;

/// Samples with at most this many values each, all of them different, are tested exactly.
pub const EXACT: usize = 20;

/// What the test says of two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankTest {
    /// How likely samples of one distribution are at least this different: the two-sided p-value.
    pub p: f64,
    /// Cliff's delta, from -1 to 1: how much more often a value of the second sample is the larger one of a pair than the smaller one.
    pub delta: f64,
}

/// Compares two samples; None where one has no values.
#[must_use]
pub fn rank_test(a: &[f64], b: &[f64]) -> Option<RankTest> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|value| (*value, false)).chain(b.iter().map(|value| (*value, true))).collect();
    all.sort_unstable_by(|(one, _), (other, _)| one.total_cmp(other));
    let (count_a, count_b, count) = (a.len() as f64, b.len() as f64, all.len() as f64);
    let (mut ranks_of_b, mut ties, mut before) = (0.0, 0.0, 0.0);
    for equal in all.chunk_by(|(one, _), (other, _)| one == other) {
        let number = equal.len() as f64;
        let of_b = equal.iter().filter(|(_, is_b)| *is_b).count() as f64;
        ranks_of_b += of_b * (before + (number + 1.0) / 2.0);
        ties += number * number * number - number;
        before += number;
    }
    // Pairs of which the second sample has the larger value; of equal ones a half.
    let u = ranks_of_b - count_b * (count_b + 1.0) / 2.0;
    let pairs = count_a * count_b;
    let p = if ties == 0.0 && a.len().max(b.len()) <= EXACT {
        exact(a.len(), b.len(), u.min(pairs - u).round() as usize)
    } else {
        let variance = pairs / 12.0 * (count + 1.0 - ties / (count * (count - 1.0)));
        // The distribution has steps, of which the normal one knows nothing: half of one is taken off.
        let distance = ((u - pairs / 2.0).abs() - 0.5).max(0.0);
        if variance > 0.0 { 2.0 * above(distance / variance.sqrt()) } else { 1.0 }
    };
    Some(RankTest { p: p.min(1.0), delta: 2.0 * u / pairs - 1.0 })
}

/// Share of the normal distribution above `z`.
fn above(z: f64) -> f64 {
    0.5 * libm::erfc(z / SQRT_2)
}

/// The two-sided p-value of `smaller`, the smaller of the two numbers of pairs, of samples without ties.
fn exact(a: usize, b: usize, smaller: usize) -> f64 {
    // In how many orders of the first values each number of pairs comes out, sample sizes growing: the last value is of b, and larger
    // than all of a, or it is of a.
    let mut orders = vec![vec![0.0_f64; a * b + 1]; a + 1];
    orders.iter_mut().for_each(|of_size| of_size[0] = 1.0);
    for in_b in 1..=b {
        for in_a in 1..=a {
            for pairs in (0..=in_a * in_b).rev() {
                let last_of_b = if pairs >= in_a { orders[in_a][pairs - in_a] } else { 0.0 };
                orders[in_a][pairs] = last_of_b + orders[in_a - 1][pairs];
            }
        }
    }
    let all: f64 = orders[a].iter().sum();
    let tail: f64 = orders[a][..=smaller.min(a * b)].iter().sum();
    2.0 * tail / all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn p(a: &[f64], b: &[f64]) -> f64 {
        rank_test(a, b).unwrap().p
    }

    fn steps(from: f64, step: f64, count: usize) -> Vec<f64> {
        (0..count).map(|at| from + step * at as f64).collect()
    }

    /// Values of `scipy.stats.mannwhitneyu` (scipy 1.17.1): method exact without ties up to 20 values, else asymptotic.
    #[test]
    fn p_values_are_those_of_scipy() {
        for (a, b, expected) in [
            (&[1.0, 2.0, 3.0][..], &[4.0, 5.0, 6.0][..], 0.1),
            (&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 0.028_571_428_571_428_57),
            (&[1.5, 3.0, 5.0, 7.0, 9.0, 20.0], &[2.0, 4.0, 6.0, 8.0, 10.0, 12.0], 0.818_181_818_181_818_2),
            (&steps(10.0, 1.0, 8), &steps(14.5, 1.0, 8), 0.004_662_004_662_004_662),
            (&steps(0.0, 2.0, 20), &steps(7.0, 2.0, 20), 0.085_914_019_985_693_8),
            (&steps(0.0, 2.0, 25), &steps(7.0, 2.0, 30), 0.015_283_411_524_089_513),
            (&[1.0, 1.0, 2.0, 2.0, 3.0, 3.0], &[2.0, 2.0, 3.0, 3.0, 4.0, 4.0], 0.113_345_509_219_525_84),
            (
                &[5.0, 5.0, 5.0, 5.0, 5.0, 5.0, 6.0, 6.0],
                &[5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0, 6.0],
                0.160_659_678_027_710_53,
            ),
            (&[1.0, 2.0, 2.0, 3.0, 9.0, 9.0, 9.0], &[2.0, 2.0, 4.0, 5.0, 6.0, 9.0], 1.0),
            (&[7.0; 6], &[7.0; 6], 1.0),
        ] {
            let found = p(a, b);
            assert!((found - expected).abs() < 1e-12, "{found} {expected}: {a:?} {b:?}");
        }
    }

    /// The same of samples that do not overlap: the smallest p-values that there are.
    #[test]
    fn the_smallest_p_values_are_those_of_scipy() {
        for (count, expected) in [
            (3, 0.1),
            (5, 0.007_936_507_936_507_936),
            (6, 0.002_164_502_164_502_164_5),
            (10, 1.082_508_822_446_903e-5),
        ] {
            let found = p(&steps(0.0, 1.0, count), &steps(100.0, 1.0, count));
            assert!((found / expected - 1.0).abs() < 1e-12, "{count}: {found}");
        }
    }

    #[test]
    fn delta_says_which_is_larger() {
        let delta = |a: &[f64], b: &[f64]| rank_test(a, b).unwrap().delta;
        assert_eq!(delta(&[1.0, 2.0], &[3.0, 4.0]), 1.0);
        assert_eq!(delta(&[3.0, 4.0], &[1.0, 2.0]), -1.0);
        assert_eq!(delta(&[1.0, 4.0], &[1.0, 4.0]), 0.0);
        assert_eq!(delta(&[1.0, 2.0], &[2.0, 2.0]), 0.5);
        assert_eq!(rank_test(&[], &[1.0]), None);
        assert_eq!(rank_test(&[1.0], &[]), None);
    }

    fn sample() -> impl Strategy<Value = Vec<f64>> {
        // Few values give ties, many give none.
        let value = prop_oneof![(0..6_i32).prop_map(f64::from), 0.0..1e9_f64];
        prop::collection::vec(value, 1..30)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_other_way_round_it_says_the_opposite(a in sample(), b in sample()) {
            let (one, other) = (rank_test(&a, &b).unwrap(), rank_test(&b, &a).unwrap());
            prop_assert!((one.p - other.p).abs() < 1e-12);
            prop_assert!((one.delta + other.delta).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&one.p) && (-1.0..=1.0).contains(&one.delta));
        }

        #[test]
        fn a_sample_does_not_differ_from_itself(a in sample()) {
            let test = rank_test(&a, &a).unwrap();
            prop_assert_eq!(test.delta, 0.0);
            prop_assert!(test.p > 0.95, "{}", test.p);
        }

        #[test]
        fn delta_is_that_of_all_pairs(a in sample(), b in sample()) {
            let pairs = a.iter().flat_map(|a| b.iter().map(move |b| f64::from((b > a) as i8 - (b < a) as i8)));
            let delta = pairs.sum::<f64>() / (a.len() * b.len()) as f64;
            prop_assert!((rank_test(&a, &b).unwrap().delta - delta).abs() < 1e-9);
        }
    }
}
