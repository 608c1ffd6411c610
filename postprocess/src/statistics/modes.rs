//! Samples with two modes: a kernel that takes either 100 or 130 us has a median that says nothing.

use super::median_of_sorted;

/// Samples with fewer values are not looked at: chance makes modes of few.
pub const LEAST_FOR_MODES: usize = 50;

/// How much of the variance of the logarithms the two modes must explain.
const EXPLAINED: f64 = 0.8;
/// Share of the values that each mode has at least.
const SHARE: f64 = 0.1;
/// How far apart they are at least.
const RATIO: f64 = 1.1;

/// The two modes of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modes {
    /// Median of the lower values.
    pub lower: f64,
    /// Median of the upper ones.
    pub upper: f64,
    /// Share of the upper ones, from 0 to 1.
    pub upper_share: f64,
}

/// The two modes of positive values; None where there is one, or too few values.
#[must_use]
pub fn modes(sample: &[f64]) -> Option<Modes> {
    let mut sorted: Vec<f64> = sample.iter().copied().filter(|value| *value > 0.0).collect();
    if sorted.len() < LEAST_FOR_MODES {
        return None;
    }
    sorted.sort_unstable_by(f64::total_cmp);
    let logs: Vec<f64> = sorted.iter().map(|value| value.ln()).collect();
    let count = logs.len() as f64;
    let sum: f64 = logs.iter().sum();
    let variance: f64 = logs.iter().map(|log| (log - sum / count).powi(2)).sum();
    let (mut before, mut best) = (0.0, (0.0, 0));
    for (at, log) in logs.iter().enumerate() {
        let (lower, upper) = (at as f64, count - at as f64);
        if at > 0 && sorted[at] > sorted[at - 1] {
            let explained = lower * upper / count * ((sum - before) / upper - before / lower).powi(2);
            if explained > best.0 {
                best = (explained, at);
            }
        }
        before += log;
    }
    let (explained, at) = best;
    let upper_share = (count - at as f64) / count;
    let is_split =
        at > 0 && explained >= EXPLAINED * variance && (SHARE..=1.0 - SHARE).contains(&upper_share);
    let (lower, upper) = sorted.split_at(at);
    let (lower, upper) = (median_of_sorted(lower), median_of_sorted(upper));
    (is_split && upper >= RATIO * lower).then_some(Modes { lower, upper, upper_share })
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::*;

    fn normal(random: &mut Rng) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
    }

    /// In how many of 200 samples two modes are found.
    fn found(count: usize, value: impl Fn(&mut Rng) -> f64) -> usize {
        let mut random = Rng::with_seed(3);
        (0..200)
            .filter(|_| modes(&(0..count).map(|_| value(&mut random)).collect::<Vec<_>>()).is_some())
            .count()
    }

    #[test]
    fn two_modes_are_found_and_one_is_not() {
        let two = |random: &mut Rng| {
            let mode = if random.f64() < 0.5 { 100.0 } else { 130.0 };
            mode + 3.0 * normal(random)
        };
        assert!(found(200, two) >= 195);
        assert!(found(200, |random| 100.0 + 10.0 * normal(random)) <= 2);
        assert!(found(200, |random| (0.3 * normal(random)).exp()) <= 2);
        assert!(found(200, |random| 100.0 + 100.0 * random.f64()) <= 4);
        assert_eq!(found(40, two), 0, "too few");
    }

    #[test]
    fn modes_are_said_with_their_shares() {
        let sample: Vec<f64> = (0..100).map(|at| if at % 4 == 0 { 130.0 } else { 100.0 }).collect();
        assert_eq!(modes(&sample), Some(Modes { lower: 100.0, upper: 130.0, upper_share: 0.25 }));
        assert_eq!(modes(&[5.0; 100]), None);
        assert_eq!(modes(&[0.0; 100]), None);
        let near: Vec<f64> = (0..100).map(|at| if at % 2 == 0 { 105.0 } else { 100.0 }).collect();
        assert_eq!(modes(&near), None, "less than a tenth apart");
    }
}
