//! Two builds of a kernel against each other: which is faster, how sure that is, and what else may be the reason.

use serde::{Serialize, Serializer};

use super::collect::Build;
use super::interval::{LEAST, Series, Side, SpeedupInterval, interval, median};
use super::sample::SampledDispatch;

/// Which build is faster, as far as the times show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuildVerdict {
    /// The one that others are compared with.
    Baseline,
    /// Faster than the baseline.
    Faster,
    /// Slower than the baseline.
    Slower,
    /// It may be as fast as the baseline.
    NoDifferenceShown,
    /// One of the two ran too few times.
    TooFewCalls,
    /// The median of one of the two is 0: the GPU's clock is too coarse for it.
    TooShort,
    /// Nothing ran that it could be compared with.
    NothingToCompareWith,
}

impl BuildVerdict {
    /// Its word for programs; with blanks for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            BuildVerdict::Baseline => "baseline",
            BuildVerdict::Faster => "faster",
            BuildVerdict::Slower => "slower",
            BuildVerdict::NoDifferenceShown => "no-difference-shown",
            BuildVerdict::TooFewCalls => "too-few-calls",
            BuildVerdict::TooShort => "too-short",
            BuildVerdict::NothingToCompareWith => "nothing-to-compare-with",
        }
    }
}

impl Serialize for BuildVerdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A build against the baseline.
#[derive(Debug)]
pub(super) struct Compared {
    /// Median of the baseline over that of the build; none where one of them is 0.
    pub(super) speedup: Option<f64>,
    pub(super) interval: Option<SpeedupInterval>,
    /// The two ran by turns.
    pub(super) by_turns: bool,
    pub(super) verdict: BuildVerdict,
    /// What else may be the reason for a difference, or hide one.
    pub(super) remarks: Vec<String>,
}

impl Compared {
    /// What is said of a build that is compared with none.
    pub(super) fn alone(verdict: BuildVerdict) -> Compared {
        Compared { speedup: None, interval: None, by_turns: false, verdict, remarks: Vec::new() }
    }
}

/// Of two builds that ran by turns each ran in this many stretches at least.
const LEAST_TURNS: u64 = 5;

/// Shares of calls that differ by more get a remark, in percent.
const SHARE: f64 = 10.0;
/// Calls that another operation overlapped get a remark from this share on, in percent.
const OVERLAPPED: f64 = 5.0;
/// Idle times before calls that differ by more than this factor and this time get a remark, ns.
const GAP: (f64, f64) = (2.0, 10_000.0);

/// Compares two builds of one launch. `same_run`: both ran in one recording, so that their order says something.
pub(super) fn compare(base: &Build, other: &Build, same_run: bool) -> Compared {
    let speedup = (base.median_ns > 0.0 && other.median_ns > 0.0).then(|| base.median_ns / other.median_ns);
    let together = together(&base.taken, &other.taken);
    let by_turns = same_run && turns(&together).iter().all(|turns| *turns >= LEAST_TURNS);
    let series = if by_turns {
        vec![together.clone()]
    } else {
        vec![of(&base.taken, Side::Base), of(&other.taken, Side::Other)]
    };
    let of_sample = medians(&base.taken) / medians(&other.taken);
    // What is known of all calls is in the middle of what the sample tells.
    let interval = interval(&series).zip(speedup).map(|(SpeedupInterval { low, high }, speedup)| {
        SpeedupInterval { low: low * speedup / of_sample, high: high * speedup / of_sample }
    });
    let verdict = match (speedup, interval) {
        (None, _) => BuildVerdict::TooShort,
        (_, None) if base.taken.len().min(other.taken.len()) < LEAST => BuildVerdict::TooFewCalls,
        (_, None) => BuildVerdict::TooShort,
        (_, Some(interval)) if interval.has_one() => BuildVerdict::NoDifferenceShown,
        (_, Some(interval)) if interval.low > 1.0 => BuildVerdict::Faster,
        _ => BuildVerdict::Slower,
    };
    let mut remarks = Vec::new();
    if interval.is_some() {
        remarks.extend(if same_run && !by_turns { phases(base, &together) } else { Vec::new() });
        remarks.extend(surroundings(base, other, by_turns));
    }
    Compared { speedup, interval, by_turns, verdict, remarks }
}

fn medians(taken: &[SampledDispatch]) -> f64 {
    let mut times: Vec<u64> = taken.iter().map(|taken| taken.duration).collect();
    times.sort_unstable();
    median(&times)
}

fn of(taken: &[SampledDispatch], side: Side) -> Series {
    taken.iter().map(|taken| (side, taken.duration)).collect()
}

/// The times of both in order of time.
fn together(base: &[SampledDispatch], other: &[SampledDispatch]) -> Series {
    let both = [(Side::Base, base), (Side::Other, other)];
    let mut all: Vec<(i64, Side, u64)> = both
        .iter()
        .flat_map(|(side, taken)| taken.iter().map(|taken| (taken.start, *side, taken.duration)))
        .collect();
    all.sort_by_key(|(start, ..)| *start);
    all.into_iter().map(|(_, side, duration)| (side, duration)).collect()
}

/// How often each of the two began, one being over.
fn turns(series: &Series) -> [u64; 2] {
    let mut found = [0, 0];
    let mut last = None;
    for (side, _) in series {
        if last != Some(*side) {
            found[*side as usize] += 1;
            last = Some(*side);
        }
    }
    found
}

/// What is to be said of two that did not run by turns.
fn phases(base: &Build, together: &Series) -> Vec<String> {
    let order = match (together.first(), turns(together)) {
        (Some((Side::Base, _)), [1, 1]) => "the baseline ran first, this one after it",
        (Some((Side::Other, _)), [1, 1]) => "this one ran first, the baseline after it",
        _ => "they hardly ran by turns",
    };
    let mut remarks = vec![format!(
        "{order}: what changed in between (clocks, temperature, data) looks like a difference too; rpd record --alternate lets them run by turns"
    )];
    // Whether the baseline alone differs from one half of its calls to the other.
    let (first, second) = base.taken.split_at(base.taken.len() / 2);
    let drift = interval(&[of(first, Side::Base), of(second, Side::Other)]);
    if drift.is_some_and(|drift| !drift.has_one()) {
        let ratio = medians(second) / medians(first);
        remarks.push(format!(
            "the baseline alone took {:.1} % {} in the second half of its calls than in the first",
            100.0 * (ratio - 1.0).abs(),
            if ratio > 1.0 { "longer" } else { "less" }
        ));
    }
    remarks
}

/// What was around the calls of the two. Where they took turns one after the other, each may always have the same place in what the
/// program does over and over.
fn surroundings(base: &Build, other: &Build, by_turns: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    let advice = if by_turns { "; turns by chance (--alternate=random) even that out" } else { "" };
    let percent = |count: fn(&Build) -> u64| {
        [base, other].map(|build| 100.0 * count(build) as f64 / build.calls as f64)
    };
    let [base_share, share] = percent(|build| build.after_other);
    if (base_share - share).abs() > SHARE {
        remarks.push(format!(
            "something else ran on the queue right before {share:.0} % of its calls, and before {base_share:.0} % of the baseline's: caches may differ{advice}"
        ));
    }
    if let (Some(base_gap), Some(gap)) = (base.gap_ns(), other.gap_ns()) {
        let (short, long) = (base_gap.min(gap), base_gap.max(gap));
        if long > GAP.0 * short && long - short > GAP.1 {
            remarks.push(format!(
                "its queue was idle for {:.0} us before its calls, and for {:.0} us before the baseline's (medians): clocks and caches may differ{advice}",
                gap / 1000.0,
                base_gap / 1000.0
            ));
        }
    }
    let [base_share, share] = percent(|build| build.overlapped);
    if base_share.max(share) >= OVERLAPPED {
        remarks.push(format!(
            "the GPU did something else during {share:.0} % of its calls, and during {base_share:.0} % of the baseline's"
        ));
    }
    remarks
}
