//! How sure a ratio of two medians is: a bootstrap of blocks of consecutive times.
//!
//! Times of consecutive dispatches resemble each other (clocks, temperature, caches), so they are not drawn one by one: a
//! resample is made of blocks of neighbours, as long as the times resemble each other (Politis and White 2004, corrected by
//! Patton, Politis and White 2009: `arch.bootstrap.optimal_block_length` in Python). The last time is followed by the first, so
//! that each is drawn equally often (the circular block bootstrap). The interval has the middle 95 % of the ratios, and is made
//! wider for small samples, of which a bootstrap is too sure (Hesterberg 2015): by Student's distribution.
//!
//! Where two builds ran by turns they are drawn together, in their order: a drift that both share is in both medians of a
//! resample, and the ratio does not see it.

use fastrand::Rng;

/// Where the random numbers begin, so that the same file gives the same interval.
pub(super) const SEED: u64 = 1;

/// Resamples of an interval.
pub(super) const RESAMPLES: usize = 2000;

/// The fewest times of each build that an interval is made of.
pub const LEAST: usize = 5;

/// Resamples left out at each end: 2.5 %.
const TAIL: usize = RESAMPLES / 40;

/// One of the two builds that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// The one that the ratio has above the line.
    Base,
    /// The one below it.
    Other,
}

/// Times in their order, ns.
pub(super) type Series = Vec<(Side, u64)>;

/// What the ratio of the medians, base over other, is between.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SpeedupInterval {
    pub(super) low: f64,
    /// Infinite where too many resamples have a median of 0 below the line.
    pub(super) high: f64,
}

impl SpeedupInterval {
    /// Whether it may be that there is no difference.
    pub(super) fn has_one(self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }
}

/// The median of times in ascending order; 0 of none.
pub(super) fn median(sorted: &[u64]) -> f64 {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => 0.0,
        0 => (sorted[half - 1] as f64 + sorted[half] as f64) / 2.0,
        _ => sorted[half] as f64,
    }
}

/// The interval. The times are one series where the two ran by turns, else a series each. None where one of them has fewer than
/// [`LEAST`], or a median of 0.
pub(super) fn interval(series: &[Series]) -> Option<SpeedupInterval> {
    let mut drawing = Drawing::of(series);
    if drawing.sorted.iter().any(|side| side.len() < LEAST) || drawing.medians.contains(&0.0) {
        return None;
    }
    let mut random = Rng::with_seed(SEED);
    let mut ratios: Vec<f64> = (0..RESAMPLES).map(|_| drawing.ratio(&mut random)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let (ratio, wider) = (drawing.medians[0] / drawing.medians[1], drawing.widening());
    let widened = |edge: f64| ratio * (edge / ratio).powf(wider);
    Some(SpeedupInterval { low: widened(ratios[TAIL]), high: widened(ratios[RESAMPLES - 1 - TAIL]) })
}

/// Series that are drawn from again and again. A resample is how often each time is in it.
struct Drawing {
    /// Per series its length and that of its blocks.
    series: Vec<(usize, usize)>,
    /// Per side its times in ascending order, each with its place in `weights`.
    sorted: [Vec<(u64, usize)>; 2],
    /// Of the times as they are.
    medians: [f64; 2],
    /// How often each time was drawn; the series one after the other, each with a place behind its last.
    weights: Vec<i32>,
}

impl Drawing {
    fn of(series: &[Series]) -> Drawing {
        let mut sorted = [Vec::new(), Vec::new()];
        let mut begin = 0;
        for times in series {
            for (at, (side, time)) in times.iter().enumerate() {
                sorted[*side as usize].push((*time, begin + at));
            }
            begin += times.len() + 1;
        }
        sorted.iter_mut().for_each(|side| side.sort_unstable());
        let medians =
            [0, 1].map(|side: usize| median(&sorted[side].iter().map(|(time, _)| *time).collect::<Vec<_>>()));
        let lengths = series.iter().map(|times| (times.len(), block(&influences(times, medians))));
        Drawing { series: lengths.collect(), sorted, medians, weights: vec![0; begin] }
    }

    /// How much wider the interval must be than the middle of the ratios, for what the bootstrap does not know of small samples.
    fn widening(&self) -> f64 {
        // What neighbours have in common says nothing of a ratio of two that ran by turns: there each time counts. Else each
        // block does.
        let counts = match self.series[..] {
            [(length, _)] => length as f64,
            ref apart => {
                apart.iter().map(|(length, block)| *length as f64 / *block as f64).fold(f64::MAX, f64::min)
            }
        };
        let freedom = (counts - 1.0).max(1.0);
        // Student's distribution over the normal one at 97.5 % (Abramowitz and Stegun 26.7.5).
        let student = 1.0 + 1.2103 / freedom + 1.4402 / (freedom * freedom);
        student * ((freedom + 1.0) / freedom).sqrt()
    }

    /// The ratio of the medians of one resample.
    fn ratio(&mut self, random: &mut Rng) -> f64 {
        loop {
            self.draw(random);
            // Either side may be missing from a resample of both together.
            if let (Some(base), Some(other)) = (self.drawn_median(0), self.drawn_median(1)) {
                return match (base > 0.0, other > 0.0) {
                    (false, false) => 1.0,
                    (true, false) => f64::INFINITY,
                    _ => base / other,
                };
            }
        }
    }

    fn draw(&mut self, random: &mut Rng) {
        self.weights.fill(0);
        let mut begin = 0;
        for &(length, block) in &self.series {
            let weights = &mut self.weights[begin..=begin + length];
            let mut left = length;
            while left > 0 {
                let (first, count) = (random.usize(..length), block.min(left));
                weights[first] += 1;
                if first + count > length {
                    weights[length] -= 1;
                    weights[0] += 1;
                    weights[first + count - length] -= 1;
                } else {
                    weights[first + count] -= 1;
                }
                left -= count;
            }
            // Beginnings and ends of blocks become how many blocks each time is in.
            let mut inside = 0;
            for weight in weights {
                inside += *weight;
                *weight = inside;
            }
            begin += length + 1;
        }
    }

    fn drawn_median(&self, side: usize) -> Option<f64> {
        let times = &self.sorted[side];
        let total: i64 = times.iter().map(|(_, at)| i64::from(self.weights[*at])).sum();
        if total == 0 {
            return None;
        }
        let mut before = 0;
        let mut lower = None;
        for &(time, at) in times {
            before += i64::from(self.weights[at]);
            if 2 * before > total {
                return Some((lower.unwrap_or(time) as f64 + time as f64) / 2.0);
            }
            if 2 * before == total && lower.is_none() {
                lower = Some(time);
            }
        }
        None
    }
}

/// What each time does to the ratio of the medians: it pulls its side's median up or down, whatever its size.
fn influences(times: &Series, medians: [f64; 2]) -> Vec<f64> {
    let counts = times.iter().fold([0.0, 0.0], |mut counts, (side, _)| {
        counts[*side as usize] += 1.0;
        counts
    });
    let influence = |(side, time): &(Side, u64)| {
        let (side, sign) = (*side as usize, if *side == Side::Base { 1.0 } else { -1.0 });
        let above = (*time as f64).partial_cmp(&medians[side]).map_or(0.0, |order| f64::from(order as i8));
        sign * above * times.len() as f64 / counts[side]
    };
    times.iter().map(influence).collect()
}

/// The length of blocks that a circular block bootstrap of the mean of `values` is best made of.
fn block(values: &[f64]) -> usize {
    let count = values.len();
    if count < 3 {
        return 1;
    }
    let mean = values.iter().sum::<f64>() / count as f64;
    let values: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let root = (count as f64).sqrt();
    let in_a_row = (count as f64).log10().max(5.0) as usize;
    let most = (root.ceil() as usize + in_a_row).min(count - 2);
    let significant = 2.0 * ((count as f64).log10() / count as f64).sqrt();
    let products = |lag: usize| values[lag..].iter().zip(&values).map(|(a, b)| a * b).sum::<f64>();
    let squares = |values: &[f64]| values.iter().map(|value| value * value).sum::<f64>();
    let mut covariances = Vec::with_capacity(most + 1);
    let mut correlations = Vec::with_capacity(most + 1);
    let mut last = None;
    for lag in 0..=most {
        let product = products(lag);
        covariances.push(product / count as f64);
        let scale = (squares(&values[lag + 1..]) * squares(&values[..count - lag - 1])).sqrt();
        correlations.push(if scale > 0.0 { product.abs() / scale } else { 0.0 });
        if last.is_none()
            && lag >= in_a_row
            && correlations[lag - in_a_row..lag].iter().all(|found| *found < significant)
        {
            last = Some(lag - in_a_row);
        }
    }
    let window = last.map_or(most, |last| (2 * last.max(1)).min(most));
    let mut slope = 0.0;
    let mut variance = covariances.first().copied().unwrap_or(0.0);
    for (lag, covariance) in covariances.iter().enumerate().take(window + 1).skip(1) {
        let share = lag as f64 / window as f64;
        let weight = if share <= 0.5 { 1.0 } else { 2.0 * (1.0 - share) };
        slope += 2.0 * weight * lag as f64 * covariance;
        variance += 2.0 * weight * covariance;
    }
    let longest = (3.0 * root).min(count as f64 / 3.0).ceil();
    let best = (1.5 * (slope / variance).powi(2) * count as f64).cbrt();
    if best.is_nan() { 1 } else { best.min(longest).max(1.0).round() as usize }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of the normal distribution (Box and Muller).
    fn normal(random: &mut Rng) -> f64 {
        (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
    }

    /// How measurements of two builds may look.
    #[derive(Clone, Copy)]
    struct Made {
        /// Times of each build.
        count: usize,
        by_turns: bool,
        /// How much each time resembles the one before, from 0 to 1.
        resemblance: f64,
        /// What the first build takes, by how much of that single times differ, and by what factor the second one is faster.
        time: f64,
        spread: f64,
        faster: f64,
        /// Times are multiples of this.
        tick: f64,
    }

    const ALIKE: Made = Made {
        count: 50,
        by_turns: true,
        resemblance: 0.0,
        time: 20_000.0,
        spread: 0.05,
        faster: 1.0,
        tick: 1.0,
    };

    impl Made {
        fn series(self, random: &mut Rng) -> Vec<Series> {
            let fresh = (1.0 - self.resemblance * self.resemblance).sqrt();
            let mut noise = normal(random);
            let mut all: Series = Vec::new();
            for number in 0..2 * self.count {
                let is_base = if self.by_turns { number % 2 == 0 } else { number < self.count };
                let (side, faster) = if is_base { (Side::Base, 1.0) } else { (Side::Other, self.faster) };
                let time = self.time * (self.spread * noise).exp() / faster;
                all.push((side, ((time / self.tick).round() * self.tick) as u64));
                noise = self.resemblance * noise + fresh * normal(random);
            }
            if self.by_turns {
                return vec![all];
            }
            let other = all.split_off(self.count);
            vec![all, other]
        }

        /// In how many of `sets` sets of measurements there is no difference, in percent.
        fn without_difference(self, sets: usize) -> f64 {
            let mut random = Rng::with_seed(7);
            let found = (0..sets).filter(|_| interval(&self.series(&mut random)).unwrap().has_one());
            100.0 * found.count() as f64 / sets as f64
        }
    }

    /// Of 1000 sets of measurements of two equal builds, which differ by chance, 950 must show no difference. By how much 1000 may
    /// be off by chance themselves: 2 % is three standard deviations.
    #[test]
    fn equal_builds_differ_in_one_of_twenty_measurements() {
        for (made, least, most) in [
            (ALIKE, 93.0, 97.5),
            (Made { count: 8, ..ALIKE }, 93.0, 98.0),
            (Made { by_turns: false, ..ALIKE }, 94.0, 99.0),
            (Made { count: 8, by_turns: false, ..ALIKE }, 94.0, 100.0),
            (Made { spread: 0.6, ..ALIKE }, 93.0, 97.5),
            // A clock that drifts is no difference of two that ran by turns, and is less of one than of single times.
            (Made { resemblance: 0.9, ..ALIKE }, 95.0, 100.0),
            (Made { resemblance: 0.5, by_turns: false, count: 200, ..ALIKE }, 92.0, 99.0),
            // What stays hidden: hardly any of the times of each is independent, and the drift is another for each.
            (Made { resemblance: 0.9, by_turns: false, ..ALIKE }, 75.0, 92.0),
            // Ties: of a clock of 25 MHz whose ticks are most of what times differ by.
            (Made { spread: 0.002, tick: 40.0, ..ALIKE }, 95.0, 100.0),
        ] {
            let share = made.without_difference(1000);
            let Made { count, by_turns, resemblance, spread, tick, .. } = made;
            println!(
                "{count} times, by turns {by_turns}, resemblance {resemblance}, spread {spread}, ticks {tick}: {share} %"
            );
            assert!(
                (least..=most).contains(&share),
                "{share}: {count} {by_turns} {resemblance} {spread} {tick}"
            );
        }
    }

    #[test]
    fn a_difference_of_a_twentieth_is_found() {
        for (made, most) in [
            (Made { faster: 1.05, count: 100, ..ALIKE }, 1.0),
            (Made { faster: 1.0 / 1.05, count: 100, ..ALIKE }, 1.0),
            (Made { faster: 1.05, count: 100, by_turns: false, ..ALIKE }, 1.0),
            (Made { faster: 1.05, count: 20, spread: 0.01, by_turns: false, ..ALIKE }, 1.0),
            (Made { faster: 1.05, count: 200, resemblance: 0.5, by_turns: false, ..ALIKE }, 2.0),
            // In the presence of a drift that is as large as the difference.
            (Made { faster: 1.05, count: 200, resemblance: 0.95, ..ALIKE }, 0.0),
        ] {
            let share = made.without_difference(300);
            println!("{} times of each, spread {}: not found in {share} %", made.count, made.spread);
            assert!(share <= most, "{share}: {} {}", made.count, made.by_turns);
        }
    }

    #[test]
    fn the_ratio_itself_is_inside_in_most_cases() {
        let made = Made { faster: 1.3, ..ALIKE };
        let mut random = Rng::with_seed(3);
        let inside = |interval: SpeedupInterval| (interval.low..=interval.high).contains(&1.3);
        let found = (0..500).filter(|_| inside(interval(&made.series(&mut random)).unwrap())).count();
        assert!((460..=492).contains(&found), "{found} of 500");
    }

    /// Times of the two, one after the other by turns.
    fn turns(base: &[u64], other: &[u64]) -> Vec<Series> {
        let pairs =
            base.iter().zip(other).flat_map(|(base, other)| [(Side::Base, *base), (Side::Other, *other)]);
        vec![pairs.collect()]
    }

    #[test]
    fn what_is_known_exactly_is_said_exactly() {
        let one = |value: u64| vec![value; 20];
        let exact = Some(SpeedupInterval { low: 1.5, high: 1.5 });
        assert_eq!(interval(&turns(&one(1500), &one(1000))), exact);
        assert_eq!(interval(&[turns(&one(1500), &one(1000)), turns(&one(1500), &one(1000))].concat()), exact);
        let huge = one(1 << 61);
        assert_eq!(interval(&turns(&huge, &huge)), Some(SpeedupInterval { low: 1.0, high: 1.0 }));
    }

    #[test]
    fn too_few_times_and_times_of_nothing_have_no_interval() {
        assert_eq!(interval(&turns(&[5; 4], &[5; 4])), None);
        assert!(interval(&turns(&[5; 5], &[5; 5])).is_some());
        let one_sided = |few: usize| {
            let times = |side, count| vec![(side, 7); count];
            [
                interval(&[times(Side::Base, few), times(Side::Other, 500)]),
                interval(&[[times(Side::Base, few), times(Side::Other, 500)].concat()]),
            ]
        };
        assert_eq!(one_sided(0), [None, None]);
        assert_eq!(one_sided(4), [None, None]);
        assert!(one_sided(5).iter().all(Option::is_some), "also where most resamples have none of one");
        assert_eq!(interval(&turns(&[0; 9], &[5; 9])), None);
        assert_eq!(interval(&turns(&[5; 9], &[0; 9])), None);
        // Nearly half of the times are 0: some medians of resamples are.
        let some = interval(&turns(&[5; 9], &[0, 5, 0, 5, 0, 5, 0, 5, 5])).unwrap();
        assert!(some.low == 1.0 && some.high == f64::INFINITY, "{some:?}");
    }

    #[test]
    fn the_same_times_have_the_same_interval() {
        let mut random = Rng::with_seed(5);
        let series = ALIKE.series(&mut random);
        assert_eq!(interval(&series), interval(&series));
    }

    #[test]
    fn medians_lie_between_the_two_in_the_middle() {
        assert_eq!([median(&[]), median(&[4]), median(&[4, 5]), median(&[1, 2, 9])], [0.0, 4.0, 4.5, 2.0]);
    }

    /// As long as `arch.bootstrap.optimal_block_length` has it (arch 8.0.0, postprocess/tests/replacements.py prints them).
    #[test]
    fn blocks_are_as_long_as_values_resemble_each_other() {
        let values = |keep: f64, count: usize| -> Vec<f64> {
            let (mut state, mut value) = (1_u64, 0.0);
            let mut next = || {
                state = state * 1_103_515_245 % 2_147_483_647;
                value = keep * value + (state % 1000) as f64 - 500.0;
                value
            };
            (0..count).map(|_| next()).collect()
        };
        let blocks = [(0.0, 1000), (0.5, 1000), (0.9, 1000), (-0.5, 1000), (0.9, 30)]
            .map(|(keep, count)| block(&values(keep, count)));
        assert_eq!(blocks, [2, 12, 34, 16, 5]);
        assert_eq!(block(&[3.0; 40]), 1);
        assert_eq!([block(&[]), block(&[3.0]), block(&[1.0, 3.0]), block(&[1.0, 3.0, 4.0])], [1; 4]);
    }
}
