//! Numbers over time: what sensors read, how many operations wait or run. What each shows from afar is the least and the greatest value of a
//! bucket of 2^level ns, so that no peak is lost.

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::packed::{Packed, PackedRows, partition_point};
use crate::pyramid::{FEW_BUCKETS, FEW_EVENTS, TOP_LEVEL, first_level};

/// Whole numbers beyond this one are not exact as floating-point numbers.
const EXACT: i64 = 1 << 53;

/// A value of a counter.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The number; for one that this cannot be exactly, the nearest.
    pub number: f64,
    /// The number in digits where it is not exact.
    pub digits: Option<Box<str>>,
}

impl Value {
    /// A whole number.
    pub fn whole(number: i64) -> Value {
        let is_exact = (-EXACT..=EXACT).contains(&number);
        Value { number: number as f64, digits: (!is_exact).then(|| number.to_string().into()) }
    }

    /// What a sensor's text says, if that is a number.
    pub fn of_text(text: &str) -> Option<Value> {
        let text = text.trim();
        if let Ok(whole) = text.parse() {
            return Some(Value::whole(whole));
        }
        let number = text.parse().ok().filter(|number: &f64| number.is_finite())?;
        Some(Value { number, digits: None })
    }
}

/// A number as it is packed: of small whole ones few bits differ so.
fn bits(number: f64) -> u64 {
    number.to_bits().reverse_bits()
}

fn of_bits(bits: u64) -> f64 {
    f64::from_bits(bits.reverse_bits())
}

/// A counter's values. Each holds until the next one begins, the last until the end.
#[derive(Debug, Default)]
pub struct Steps {
    start: Packed,
    number: Packed,
    digits: FxHashMap<u32, Box<str>>,
    end: u64,
}

impl Steps {
    /// Those of values that begin in ascending order; of several that begin at one time the last. They end at `end`, ns.
    pub fn of(values: impl Iterator<Item = (u64, Value)>, end: u64) -> Steps {
        let mut steps = Steps { end, ..Steps::default() };
        let mut last: Option<(u64, Value)> = None;
        for (start, value) in values {
            if let Some((at, value)) = last.replace((start, value)).filter(|(at, _)| *at != start) {
                steps.push(at, value);
            }
        }
        if let Some((at, value)) = last {
            steps.push(at, value);
        }
        steps.end = steps.len().checked_sub(1).map_or(end, |last| end.max(steps.start.get(last)));
        steps
    }

    /// Adds a value behind the others where it is another one than the last.
    fn push(&mut self, start: u64, Value { number, digits }: Value) {
        let last = self.len().checked_sub(1);
        let before = last.and_then(|last| self.digits.get(&(last as u32)));
        if last.is_some_and(|last| self.number(last) == number) && before == digits.as_ref() {
            return;
        }
        if let Some(digits) = digits {
            self.digits.insert(self.len() as u32, digits);
        }
        self.start.push(start);
        self.number.push(bits(number));
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Begin and end of the time for which one holds, ns.
    pub fn times(&self, place: usize) -> (u64, u64) {
        let end = if place + 1 < self.len() { self.start.get(place + 1) } else { self.end };
        (self.start.get(place), end)
    }

    /// The number of one.
    pub fn number(&self, place: usize) -> f64 {
        of_bits(self.number.get(place))
    }

    /// Whether the number of one is exact.
    pub fn is_exact(&self, place: usize) -> bool {
        !self.digits.contains_key(&(place as u32))
    }

    /// One in digits.
    pub fn digits(&self, place: usize) -> String {
        match self.digits.get(&(place as u32)) {
            Some(digits) => digits.to_string(),
            None => self.number(place).to_string(),
        }
    }

    /// The value at a time: its place.
    pub fn at(&self, time: u64) -> Option<usize> {
        let behind = self.start.partition_point(0..self.len(), |start| start <= time);
        let place = behind.checked_sub(1)?;
        let (start, end) = self.times(place);
        (time < end || time == start).then_some(place)
    }

    /// The values that hold in the time from `from` to before `to`.
    pub fn within(&self, from: u64, to: u64) -> Range<usize> {
        let end = self.start.partition_point(0..self.len(), |start| start < to);
        let first = self.start.partition_point(0..self.len(), |start| start <= from).saturating_sub(1);
        let first = if self.at(from).is_none() && !self.is_empty() && self.start.get(0) < from {
            self.len()
        } else {
            first
        };
        first.min(end)..end
    }

    /// Places of the least and the greatest of these values; of equal ones the first.
    pub fn extremes(&self, places: Range<usize>) -> Option<(usize, usize)> {
        let mut places = places;
        let first = places.next()?;
        let (mut least, mut greatest) = ((first, self.number(first)), (first, self.number(first)));
        for (place, number) in places.clone().zip(self.number.range(places).map(of_bits)) {
            least = if number < least.1 { (place, number) } else { least };
            greatest = if number > greatest.1 { (place, number) } else { greatest };
        }
        Some((least.0, greatest.0))
    }
}

/// Adjacent buckets with the same values. In those of a band of several one value holds throughout, and none begins in another one than the
/// first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Band {
    /// The first bucket.
    pub first: u64,
    /// How many buckets.
    pub length: u64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
    /// Values that begin in it.
    pub count: u32,
}

impl Band {
    /// The bucket behind it.
    pub fn end(&self) -> u64 {
        self.first + self.length
    }

    fn packed(&self) -> [u64; 5] {
        let Band { first, length, least, greatest, count } = *self;
        [first, length, bits(least), bits(greatest), count.into()]
    }

    fn of([first, length, least, greatest, count]: [u64; 5]) -> Band {
        Band { first, length, least: of_bits(least), greatest: of_bits(greatest), count: count as u32 }
    }
}

/// A counter, and the levels that are kept of it.
#[derive(Debug, Default)]
pub struct Counter {
    /// Its values.
    pub steps: Steps,
    levels: Vec<(u8, PackedRows<5>)>,
}

impl Counter {
    /// One of these values.
    pub fn of(steps: Steps) -> Counter {
        let mut levels = Vec::new();
        if steps.len() >= FEW_EVENTS {
            let (begin, end) = (steps.start.get(0), steps.end);
            let first = first_level(steps.len(), |place| steps.start.get(place));
            let mut bands = of_steps(&steps, first, 0..steps.len());
            for level in (first..=TOP_LEVEL).step_by(2) {
                levels.push((level, bands.iter().map(Band::packed).collect()));
                if (end >> level) - (begin >> level) < FEW_BUCKETS {
                    break;
                }
                bands = of_bands(bands.into_iter(), 2);
            }
        }
        Counter { steps, levels }
    }

    /// The bands of `level`, an even number, in these buckets. They reach no further than that.
    pub fn bands(&self, level: u8, buckets: Range<u64>) -> Vec<Band> {
        let mut bands = match self.levels.iter().rev().find(|(kept, _)| *kept <= level) {
            None => {
                let time = |bucket: u64| bucket.saturating_mul(1 << level);
                let places = self.steps.within(time(buckets.start), time(buckets.end));
                of_steps(&self.steps, level, places)
            }
            Some((kept, bands)) => {
                let finer = level - kept;
                let fine = |bucket: u64| bucket.saturating_mul(1 << finer);
                let (from, to) = (fine(buckets.start), fine(buckets.end));
                let end = |place: usize| bands.column(0).get(place) + bands.column(1).get(place);
                let first = partition_point(0..bands.len(), |place| end(place) <= from);
                let last = bands.column(0).partition_point(first..bands.len(), |first| first < to);
                of_bands((first..last).map(|place| Band::of(bands.get(place))), finer)
            }
        };
        bands.retain_mut(|band| {
            let (first, end) = (band.first.max(buckets.start), band.end().min(buckets.end));
            if first >= end {
                return false;
            }
            band.count = if first > band.first { 0 } else { band.count };
            (band.first, band.length) = (first, end - first);
            true
        });
        bands
    }

    /// How much memory the levels take, bytes.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|(_, bands)| bands.bytes()).sum()
    }
}

/// Adds a band behind others: its first bucket may be their last one.
fn add(bands: &mut Vec<Band>, new: Band) {
    let Some(last) = bands.last_mut().filter(|last| last.first == new.first) else {
        bands.push(new);
        return;
    };
    last.count = last.count.saturating_add(new.count);
    last.least = last.least.min(new.least);
    last.greatest = last.greatest.max(new.greatest);
}

/// Adds the buckets from `first` to `last`: the first, all between, the last.
fn spread(bands: &mut Vec<Band>, of: Band, (first, last): (u64, u64)) {
    add(bands, Band { first, length: 1, ..of });
    if last > first + 1 {
        add(bands, Band { first: first + 1, length: last - first - 1, count: 0, ..of });
    }
    if last > first {
        add(bands, Band { first: last, length: 1, count: 0, ..of });
    }
}

fn of_steps(steps: &Steps, level: u8, places: Range<usize>) -> Vec<Band> {
    let mut bands = Vec::new();
    let behind = places.start + 1..(places.end + 1).min(steps.len());
    let ends = steps.start.range(behind).chain([steps.end]);
    let times = steps.start.range(places.clone()).zip(ends);
    for ((start, end), number) in times.zip(steps.number.range(places).map(of_bits)) {
        let first = start >> level;
        let last = if end > start { (end - 1) >> level } else { first };
        let of = Band { first, length: 1, least: number, greatest: number, count: 1 };
        spread(&mut bands, of, (first, last));
    }
    bands
}

/// Bands of a level that is coarser by `finer`.
fn of_bands(fine: impl ExactSizeIterator<Item = Band>, finer: u8) -> Vec<Band> {
    let mut bands = Vec::with_capacity(fine.len() / 2);
    for band in fine {
        spread(&mut bands, band, (band.first >> finer, (band.end() - 1) >> finer));
    }
    bands
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Least and greatest value of one bucket, and how many begin in it.
    type Bucket = (f64, f64, u32);

    fn naive(steps: &Steps, level: u8, bucket: u64) -> Option<Bucket> {
        let (from, to) = (bucket << level, (bucket + 1) << level);
        let mut found: Option<Bucket> = None;
        for place in 0..steps.len() {
            let (start, end) = steps.times(place);
            if start < to && (end > from || start >= from) {
                let number = steps.number(place);
                let (least, greatest, count) = found.unwrap_or((number, number, 0));
                found = Some((least.min(number), greatest.max(number), count + u32::from(start >= from)));
            }
        }
        found
    }

    fn spelt(bands: &[Band]) -> Vec<(u64, Bucket)> {
        let buckets = bands.iter().flat_map(|band| {
            (band.first..band.end()).map(move |bucket| {
                (bucket, (band.least, band.greatest, if bucket == band.first { band.count } else { 0 }))
            })
        });
        buckets.collect()
    }

    fn steps(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Steps> {
        let gap = prop_oneof![1 => Just(0u64), 6 => 1u64..30, 1 => 500u64..4000];
        (prop::collection::vec((gap, -5i64..6), count), 0u64..50).prop_map(|(gaps, rest)| {
            let mut at = 7;
            let values: Vec<_> = gaps
                .into_iter()
                .map(|(gap, number)| {
                    at += gap;
                    (at, Value::whole(number))
                })
                .collect();
            Steps::of(values.into_iter(), at + rest)
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_level_has_the_least_and_the_greatest_of_each_bucket(
            steps in prop_oneof![steps(0..60), steps(1500..2600)], part in 0u64..100,
        ) {
            let counter = Counter::of(steps);
            for level in (0..24).step_by(2) {
                let all = (counter.steps.end >> level) + 2;
                let first = all * part / 100;
                let buckets = first..(first + 40).min(all);
                let expected: Vec<_> =
                    buckets.clone().filter_map(|bucket| Some((bucket, naive(&counter.steps, level, bucket)?))).collect();
                prop_assert_eq!(spelt(&counter.bands(level, buckets)), expected, "level {}", level);
            }
        }

        #[test]
        fn a_value_is_the_last_that_began(steps in steps(0..60), time in 0u64..3000) {
            let place = (0..steps.len()).rfind(|place| steps.times(*place).0 <= time);
            let place = place.filter(|place| steps.times(*place).1 > time || steps.times(*place).0 == time);
            prop_assert_eq!(steps.at(time), place);
            let within: Vec<_> = (0..steps.len())
                .filter(|place| steps.times(*place).0 < time + 100 && (steps.times(*place).1 > time || steps.times(*place).0 >= time))
                .collect();
            prop_assert_eq!(steps.within(time, time + 100).collect::<Vec<_>>(), within);
        }
    }

    #[test]
    fn texts_that_are_numbers_are_exact() {
        let digits = |text: &str| {
            let steps = Steps::of([(0, Value::of_text(text)?)].into_iter(), 1);
            Some(steps.digits(0))
        };
        for (text, expected) in [
            ("1700", Some("1700")),
            (" 45.5 ", Some("45.5")),
            ("-3", Some("-3")),
            ("9007199254740993", Some("9007199254740993")),
            ("-9223372036854775808", Some("-9223372036854775808")),
            ("", None),
            ("inf", None),
            ("NaN", None),
            ("0x10", None),
        ] {
            assert_eq!(digits(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn equal_values_are_one_and_of_several_at_one_time_the_last_counts() {
        let values = [(1, 5), (2, 5), (3, 6), (3, 7), (3, 5), (9, 5), (9, 8)];
        let steps = Steps::of(values.into_iter().map(|(at, value)| (at, Value::whole(value))), 4);
        let found: Vec<_> = (0..steps.len()).map(|place| (steps.times(place), steps.digits(place))).collect();
        assert_eq!(found, [((1, 9), "5".to_string()), ((9, 9), "8".to_string())]);
        assert_eq!(steps.extremes(0..2), Some((0, 1)));
        assert_eq!(
            (steps.at(0), steps.at(9), steps.at(10), steps.extremes(0..0)),
            (None, Some(1), None, None)
        );
    }
}
