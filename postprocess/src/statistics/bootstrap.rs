//! An interval for the ratio of the centres of two samples: a percentile bootstrap.

use std::cmp::Ordering;

use fastrand::Rng;

use super::{Centre, mean, median_of_sorted};

/// Where the random numbers begin, so that the same samples give the same interval.
pub const SEED: u64 = 1;

/// Resamples of an interval.
pub const RESAMPLES: usize = 2000;

/// Of 100 such intervals so many have the true value.
pub const CONFIDENCE_PERCENT: f64 = 95.0;

/// Resamples left out at each end: 2.5 %.
const TAIL: usize = RESAMPLES / 40;

/// Of samples with more values the centre of a resample is drawn by itself: its distribution is the normal one by then.
const DRAWN: usize = 100;

/// From where to where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end.
    pub low: f64,
    /// The upper one; infinite where too many resamples of the first sample have a centre of 0.
    pub high: f64,
}

/// What the centre of `b` over that of `a` is between. None where a sample has fewer than two values, or the first one's centre is 0.
///
/// With the two samples changed over, the ends are exactly one over the other.
#[must_use]
pub fn ratio_interval(a: &[f64], b: &[f64], centre: Centre) -> Option<Interval> {
    if a.len().min(b.len()) < 2 || centre.of(a) <= 0.0 {
        return None;
    }
    let (a, b) = (Drawing::of(a, centre), Drawing::of(b, centre));
    // The random numbers go to the sample that is first by its values, whichever way round the two are compared.
    let lengths = a.sorted.len().cmp(&b.sorted.len());
    let order = lengths.then_with(|| a.sorted.partial_cmp(&b.sorted).unwrap_or(Ordering::Equal));
    let mut random = Rng::with_seed(SEED);
    let mut resample = Vec::new();
    let mut ratios: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let mut draw = |drawing: &Drawing| drawing.centre(&mut random, &mut resample);
            let (of_a, of_b) = if order.is_le() {
                let of_a = draw(&a);
                (of_a, draw(&b))
            } else {
                let of_b = draw(&b);
                (draw(&a), of_b)
            };
            match (of_a > 0.0, of_b > 0.0) {
                (true, _) => of_b / of_a,
                (false, true) => f64::INFINITY,
                (false, false) => 1.0,
            }
        })
        .collect();
    ratios.sort_unstable_by(f64::total_cmp);
    Some(Interval { low: ratios[TAIL], high: ratios[RESAMPLES - 1 - TAIL] })
}

/// A sample that is drawn from again and again.
struct Drawing {
    sorted: Vec<f64>,
    centre: Centre,
    mean: f64,
    /// For the mean: its standard deviation from resample to resample.
    error: f64,
}

impl Drawing {
    fn of(sample: &[f64], centre: Centre) -> Drawing {
        let mut sorted = sample.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (mean, count) = (mean(&sorted), sorted.len() as f64);
        let squares: f64 = sorted.iter().map(|value| (value - mean) * (value - mean)).sum();
        Drawing { sorted, centre, mean, error: (squares / count).sqrt() / count.sqrt() }
    }

    /// The centre of one resample.
    fn centre(&self, random: &mut Rng, resample: &mut Vec<f64>) -> f64 {
        let (sorted, count) = (&self.sorted, self.sorted.len());
        if count <= DRAWN {
            resample.clear();
            resample.extend((0..count).map(|_| sorted[random.usize(..count)]));
            if self.centre == Centre::Median {
                resample.sort_unstable_by(f64::total_cmp);
                return median_of_sorted(resample);
            }
            return mean(resample);
        }
        let normal = normal(random);
        match self.centre {
            Centre::Median => {
                let rank = count as f64 / 2.0 + normal * (count as f64).sqrt() / 2.0;
                sorted[(rank.max(0.0) as usize).min(count - 1)]
            }
            Centre::Mean => self.mean + normal * self.error,
        }
    }
}

/// A number of the normal distribution (Box and Muller).
fn normal(random: &mut Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;
    use proptest::prelude::{ProptestConfig, prop, prop_assert, proptest};

    use super::*;

    fn noisy(random: &mut Rng, centre: f64, count: usize) -> Vec<f64> {
        (0..count).map(|_| centre * (0.05 * normal(random)).exp()).collect()
    }

    /// Of 150 pairs of samples 142 must have the true ratio inside; small ones fewer, because a bootstrap is too sure of them.
    #[test]
    fn the_true_ratio_is_inside_as_often_as_said() {
        let mut random = Rng::with_seed(5);
        for (count, least) in [(10, 130), (50, 136), (3000, 136)] {
            for centre in [Centre::Median, Centre::Mean] {
                let inside = (0..150).filter(|_| {
                    let (a, b) = (noisy(&mut random, 100.0, count), noisy(&mut random, 130.0, count));
                    let Interval { low, high } = ratio_interval(&a, &b, centre).unwrap();
                    (low..=high).contains(&1.3)
                });
                let inside = inside.count();
                assert!(inside >= least, "{count} {centre:?}: {inside} of 150");
            }
        }
    }

    #[test]
    fn what_is_known_exactly_is_said_exactly() {
        let exact = ratio_interval(&[2.0; 9], &[3.0; 9], Centre::Median);
        assert_eq!(exact, Some(Interval { low: 1.5, high: 1.5 }));
        assert_eq!(ratio_interval(&[2.0], &[3.0; 9], Centre::Median), None);
        assert_eq!(ratio_interval(&[0.0; 9], &[3.0; 9], Centre::Median), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 40, ..ProptestConfig::default() })]

        #[test]
        fn the_other_way_round_the_ends_change_over(
            a in prop::collection::vec(1.0..1e6_f64, 2..20),
            b in prop::collection::vec(1.0..1e6_f64, 2..20),
        ) {
            let one = ratio_interval(&a, &b, Centre::Median).unwrap();
            let other = ratio_interval(&b, &a, Centre::Median).unwrap();
            prop_assert!((one.low * other.high - 1.0).abs() < 1e-9 && (one.high * other.low - 1.0).abs() < 1e-9);
        }
    }
}
