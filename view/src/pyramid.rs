//! The summary of a subtrack for a view that is zoomed out: per bucket of 2^level ns the longest event in it, how many begin in it, and how
//! long it is busy.
//!
//! Buckets lie at fixed times, never relative to what is looked at, so that nothing shimmers when a view moves. Every second level is kept,
//! from the first with at most a quarter as many buckets as events up to one with few buckets. Finer ones are made of the events, coarser ones
//! of the last that is kept.

use std::ops::Range;

use crate::packed::{PackedRows, partition_point};

/// Levels are even numbers up to this: one bucket of it has all times there are.
pub const TOP_LEVEL: u8 = 54;

/// Subtracks with fewer events keep no levels.
pub(crate) const FEW_EVENTS: usize = 1024;

/// No coarser level is kept than the first with at most so many buckets.
pub(crate) const FEW_BUCKETS: u64 = 64;

/// Events of a subtrack by their place in it: none begins before the one in front of it has ended.
pub trait Spans {
    /// How many.
    fn count(&self) -> usize;
    /// Start and end of one, ns.
    fn at(&self, place: usize) -> (u64, u64);
    /// The event that stands for one: its number in the timeline, and its duration, ns.
    fn event(&self, place: usize) -> (u32, u64);
    /// Start, end, event and its duration of each of these.
    fn spans(&self, places: Range<usize>) -> impl Iterator<Item = (u64, u64, u32, u64)> {
        places.map(|place| {
            let ((start, end), (event, duration)) = (self.at(place), self.event(place));
            (start, end, event, duration)
        })
    }
    /// The first event that ends behind `time`, or begins there or later.
    fn first_at(&self, time: u64) -> usize {
        partition_point(0..self.count(), |place| {
            let (start, end) = self.at(place);
            end <= time && start < time
        })
    }
}

/// Adjacent buckets with the same longest event. Those of a run of several are busy throughout, and no event begins in
/// another one than the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first bucket.
    pub first: u64,
    /// How many buckets.
    pub length: u64,
    /// Time with an event in it, ns.
    pub busy: u64,
    /// Duration of the longest event, ns.
    pub duration: u64,
    /// The longest event; of equal ones the first.
    pub event: u32,
    /// Events that begin in it.
    pub count: u32,
}

impl Run {
    /// The bucket behind it.
    pub fn end(&self) -> u64 {
        self.first + self.length
    }

    fn packed(&self) -> [u64; 6] {
        let Run { first, length, busy, duration, event, count } = *self;
        [first, length, busy, duration, event.into(), count.into()]
    }

    fn of([first, length, busy, duration, event, count]: [u64; 6]) -> Run {
        Run { first, length, busy, duration, event: event as u32, count: count as u32 }
    }
}

/// The runs of a level.
#[derive(Debug)]
enum Runs {
    /// Of the finest one, which takes most of the room.
    Packed(Box<PackedRows<6>>),
    /// Of the others, which are read faster so.
    Plain(Vec<Run>),
}

impl Runs {
    fn len(&self) -> usize {
        match self {
            Runs::Packed(rows) => rows.len(),
            Runs::Plain(runs) => runs.len(),
        }
    }

    fn at(&self, place: usize) -> Run {
        match self {
            Runs::Packed(rows) => Run::of(rows.get(place)),
            Runs::Plain(runs) => runs[place],
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Runs::Packed(rows) => rows.bytes(),
            Runs::Plain(runs) => runs.capacity() * size_of::<Run>(),
        }
    }
}

/// The levels that are kept of a subtrack.
#[derive(Debug, Default)]
pub struct Pyramid {
    levels: Vec<(u8, Runs)>,
}

impl Pyramid {
    /// Those of these events.
    pub fn of(spans: &impl Spans) -> Pyramid {
        let mut levels = Vec::new();
        if spans.count() < FEW_EVENTS {
            return Pyramid { levels };
        }
        let (begin, _) = spans.at(0);
        let (_, end) = spans.at(spans.count() - 1);
        let first = first_level(spans.count(), |place| spans.at(place).0);
        let mut runs = of_events(spans, first, 0..spans.count());
        for level in (first..=TOP_LEVEL).step_by(2) {
            let coarser = of_runs(runs.iter().copied(), 2);
            runs.shrink_to_fit();
            let kept = match level == first {
                true => Runs::Packed(Box::new(runs.iter().map(Run::packed).collect())),
                false => Runs::Plain(runs),
            };
            levels.push((level, kept));
            if (end >> level) - (begin >> level) < FEW_BUCKETS {
                break;
            }
            runs = coarser;
        }
        Pyramid { levels }
    }

    /// The runs of `level`, an even number, in these buckets. Runs reach no further than that.
    pub fn runs(&self, spans: &impl Spans, level: u8, buckets: Range<u64>) -> Vec<Run> {
        let Some((kept, runs)) = self.levels.iter().rev().find(|(kept, _)| *kept <= level) else {
            let time = |bucket: u64| bucket.saturating_mul(1 << level);
            let (from, to) = (time(buckets.start), time(buckets.end));
            let first = spans.first_at(from);
            let last = partition_point(first..spans.count(), |place| spans.at(place).0 < to);
            let mut runs = of_events(spans, level, first..last);
            cut(&mut runs, buckets);
            return runs;
        };
        let finer = level - kept;
        let fine = |bucket: u64| bucket.saturating_mul(1 << finer);
        let (from, to) = (fine(buckets.start), fine(buckets.end));
        let first = partition_point(0..runs.len(), |place| runs.at(place).end() <= from);
        let last = partition_point(first..runs.len(), |place| runs.at(place).first < to);
        let part = (first..last).map(|place| runs.at(place));
        let mut runs = if finer == 0 { part.collect() } else { of_runs(part, finer) };
        cut(&mut runs, buckets);
        runs
    }

    /// How much memory it takes, bytes.
    pub fn bytes(&self) -> usize {
        self.levels.iter().map(|(_, runs)| runs.bytes()).sum()
    }
}

/// The first even level with at most a quarter as many buckets as events: where two starts lie in different buckets, their numbers differ above
/// the level.
pub(crate) fn first_level(count: usize, start_of: impl Fn(usize) -> u64) -> u8 {
    let mut differing = [0usize; 65];
    let mut before = start_of(0);
    for place in 1..count {
        let start = start_of(place);
        differing[64 - (start ^ before).leading_zeros() as usize] += 1;
        before = start;
    }
    let mut buckets = count;
    for level in 0..TOP_LEVEL {
        // Those that differ in the bits below the level only are in one bucket.
        buckets -= differing[usize::from(level)];
        if level % 2 == 0 && buckets <= count / 4 {
            return level;
        }
    }
    TOP_LEVEL
}

/// Adds a run behind others: its first bucket may be their last one, in which no run of several buckets ends.
fn add(runs: &mut Vec<Run>, new: Run) {
    let Some(last) = runs.last_mut().filter(|last| last.first == new.first) else {
        runs.push(new);
        return;
    };
    last.count = last.count.saturating_add(new.count);
    last.busy += new.busy;
    if new.duration > last.duration {
        (last.duration, last.event) = (new.duration, new.event);
    }
}

/// Adds the buckets from `first` to `last`, which are busy as long as `busy` says: the first, all between, the last.
fn spread(runs: &mut Vec<Run>, of: Run, (first, last): (u64, u64), busy: [u64; 3]) {
    add(runs, Run { first, length: 1, busy: busy[0], ..of });
    if last > first + 1 {
        add(runs, Run { first: first + 1, length: last - first - 1, busy: busy[1], count: 0, ..of });
    }
    if last > first {
        add(runs, Run { first: last, length: 1, busy: busy[2], count: 0, ..of });
    }
}

fn of_events(spans: &impl Spans, level: u8, places: Range<usize>) -> Vec<Run> {
    let mut runs = Vec::new();
    for (start, end, event, duration) in spans.spans(places) {
        let first = start >> level;
        let last = if end > start { (end - 1) >> level } else { first };
        let in_first = end.min((first + 1) << level) - start;
        let (between, in_last) = (last.saturating_sub(first + 1) << level, end.saturating_sub(last << level));
        let of = Run { first, length: 1, busy: 0, duration, event, count: 1 };
        spread(&mut runs, of, (first, last), [in_first, between, in_last]);
    }
    runs
}

/// Runs of a level that is coarser by `finer`.
fn of_runs(fine: impl ExactSizeIterator<Item = Run>, finer: u8) -> Vec<Run> {
    let mut runs = Vec::with_capacity(fine.len() / 2);
    for run in fine {
        let per = run.busy / run.length;
        let (first, last) = (run.first >> finer, (run.end() - 1) >> finer);
        let in_first = (run.end().min((first + 1) << finer) - run.first) * per;
        let between = (last.saturating_sub(first + 1) << finer) * per;
        let in_last = (run.end().saturating_sub(last << finer)) * per;
        spread(&mut runs, run, (first, last), [in_first, between, in_last]);
    }
    runs
}

/// Cuts off what lies outside of the buckets.
fn cut(runs: &mut Vec<Run>, buckets: Range<u64>) {
    runs.retain_mut(|run| {
        let (first, end) = (run.first.max(buckets.start), run.end().min(buckets.end));
        if first >= end {
            return false;
        }
        if end - first < run.length {
            run.busy = run.busy / run.length * (end - first);
            run.count = if first > run.first { 0 } else { run.count };
            (run.first, run.length) = (first, end - first);
        }
        true
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Starts and ends.
    #[derive(Debug)]
    struct Listed(Vec<(u64, u64)>);

    impl Spans for Listed {
        fn count(&self) -> usize {
            self.0.len()
        }

        fn at(&self, place: usize) -> (u64, u64) {
            self.0[place]
        }

        fn event(&self, place: usize) -> (u32, u64) {
            (place as u32, self.0[place].1 - self.0[place].0)
        }
    }

    /// What one bucket shows: the longest event, how many begin, busy time.
    type Bucket = (u32, u32, u64);

    fn naive(spans: &Listed, level: u8, bucket: u64) -> Option<Bucket> {
        let (from, to) = (bucket << level, (bucket + 1) << level);
        let (mut longest, mut count, mut busy): (Option<(u64, u32)>, u32, u64) = (None, 0, 0);
        for (event, (start, end)) in spans.0.iter().enumerate() {
            if !(*start < to && (*end > from || *start >= from)) {
                continue;
            }
            count += u32::from(*start >= from);
            busy += (*end).min(to) - (*start).max(from);
            if longest.is_none_or(|(duration, _)| end - start > duration) {
                longest = Some((end - start, event as u32));
            }
        }
        longest.map(|(_, event)| (event, count, busy))
    }

    /// The buckets of runs, each for itself.
    fn spelt(runs: &[Run]) -> Vec<(u64, Bucket)> {
        let buckets = runs.iter().flat_map(|run| {
            (run.first..run.end()).map(move |bucket| {
                let count = if bucket == run.first { run.count } else { 0 };
                (bucket, (run.event, count, run.busy / run.length))
            })
        });
        buckets.collect()
    }

    fn is_right(spans: &Listed, pyramid: &Pyramid, level: u8, buckets: Range<u64>) {
        let expected: Vec<_> =
            buckets.clone().filter_map(|bucket| Some((bucket, naive(spans, level, bucket)?))).collect();
        assert_eq!(spelt(&pyramid.runs(spans, level, buckets)), expected, "level {level}");
    }

    /// Events with gaps, some without a duration, some long.
    fn events(count: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Listed> {
        let duration = prop_oneof![1 => Just(0u64), 6 => 1u64..20, 1 => 100u64..3000];
        let gap = prop_oneof![3 => Just(0u64), 6 => 0u64..30, 1 => 500u64..4000];
        prop::collection::vec((gap, duration), count).prop_map(|steps| {
            let mut at = 7;
            Listed(
                steps
                    .into_iter()
                    .map(|(gap, duration)| {
                        let start = at + gap;
                        at = start + duration;
                        (start, at)
                    })
                    .collect(),
            )
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn every_level_of_few_events_is_what_a_count_gives(spans in events(0..60)) {
            let pyramid = Pyramid::of(&spans);
            let end = spans.0.last().map_or(0, |(_, end)| *end);
            for level in (0..20).step_by(2) {
                is_right(&spans, &pyramid, level, 0..(end >> level) + 2);
            }
        }

        #[test]
        fn every_level_of_many_events_is_what_a_count_gives(spans in events(1024..1400), part in 0u64..100) {
            let pyramid = Pyramid::of(&spans);
            let kept: Vec<u8> = pyramid.levels.iter().map(|(level, _)| *level).collect();
            prop_assert!(pyramid.levels[0].1.len() <= spans.count());
            prop_assert!(kept.windows(2).all(|pair| pair[1] == pair[0] + 2));
            let end = spans.0.last().map_or(0, |(_, end)| *end);
            for level in (0..24).step_by(2) {
                let all = (end >> level) + 2;
                let first = all * part / 100;
                is_right(&spans, &pyramid, level, first..(first + 40).min(all));
            }
        }
    }

    #[test]
    fn an_event_of_a_year_is_one_run() {
        let year = 365 * 86_400_000_000_000;
        let mut listed: Vec<_> = (0..2000).map(|at| (at * 10, at * 10 + 5)).collect();
        listed.push((20_000, year));
        let spans = Listed(listed);
        let pyramid = Pyramid::of(&spans);
        assert!(pyramid.bytes() < 200_000, "{}", pyramid.bytes());
        let runs = pyramid.runs(&spans, 0, 1_000_000..1_000_512);
        assert_eq!(spelt(&runs).len(), 512);
        assert_eq!(runs.len(), 1);
        let top = pyramid.runs(&spans, TOP_LEVEL, 0..512);
        assert_eq!((top[0].count, top[0].event), (2001, 2000));
    }
}
