//! Statistics of samples: whether two differ, by how much, and whether one has two modes.
//!
//! | file | owns |
//! |---|---|
//! | `rank.rs` | the test of Mann and Whitney, and Cliff's delta |
//! | `bootstrap.rs` | what the ratio of two centres is between |
//! | `modes.rs` | samples with two modes |
//!
//! Samples are slices in any order. Nothing here knows of traces.

mod bootstrap;
mod modes;
mod rank;

pub use bootstrap::{CONFIDENCE_PERCENT, Interval, RESAMPLES, SEED, ratio_interval};
pub use modes::{LEAST_FOR_MODES, Modes, modes};
pub use rank::{EXACT, RankTest, rank_test};

/// The middle of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Centre {
    /// Half of the values are below it.
    Median,
    /// Their sum over their number.
    Mean,
}

impl Centre {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Centre::Median => "median",
            Centre::Mean => "mean",
        }
    }

    /// That of a sample; 0 of none.
    #[must_use]
    pub fn of(self, sample: &[f64]) -> f64 {
        match self {
            Centre::Median => median(sample),
            Centre::Mean => mean(sample),
        }
    }
}

/// The median; 0 of no values.
#[must_use]
pub fn median(sample: &[f64]) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&sorted)
}

fn median_of_sorted(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        0 => f64::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

/// The mean; 0 of no values.
#[must_use]
pub fn mean(sample: &[f64]) -> f64 {
    if sample.is_empty() { 0.0 } else { sample.iter().sum::<f64>() / sample.len() as f64 }
}

/// Of p-values of several tests those that the procedure of Benjamini and Hochberg compares with the share of false discoveries that is
/// accepted: `q[i] <= 0.05` for all that are called changed keeps the false ones among them below 5 %, on average.
#[must_use]
pub fn false_discovery(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*b].total_cmp(&p[*a]));
    let mut q = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (behind, at) in order.into_iter().enumerate() {
        least = least.min(p[at] * p.len() as f64 / (p.len() - behind) as f64);
        q[at] = least;
    }
    q
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_means() {
        assert_eq!(
            [median(&[]), median(&[4.0]), median(&[5.0, 4.0]), median(&[9.0, 1.0, 2.0])],
            [0.0, 4.0, 4.5, 2.0]
        );
        assert_eq!([mean(&[]), mean(&[1.0, 2.0, 6.0])], [0.0, 3.0]);
        assert_eq!((Centre::Median.of(&[1.0, 2.0, 6.0]), Centre::Mean.of(&[1.0, 2.0, 6.0])), (2.0, 3.0));
    }

    /// Values of `scipy.stats.false_discovery_control` (scipy 1.17.1).
    #[test]
    fn false_discoveries_are_those_of_scipy() {
        let near = |found: &[f64], expected: &[f64]| {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-8, "{found} {expected}");
            }
        };
        near(&false_discovery(&[0.01, 0.02, 0.03, 0.04, 0.05, 0.5]), &[0.06, 0.06, 0.06, 0.06, 0.06, 0.5]);
        near(
            &false_discovery(&[0.001, 0.9, 0.04, 0.04, 0.2]),
            &[0.005, 0.9, 0.066_666_666_7, 0.066_666_666_7, 0.25],
        );
        assert!(false_discovery(&[]).is_empty());
    }
}
