//! How much the durations of a kernel differ where it runs between the same operations, after an idea of raptor.
//!
//! A kernel that is called with different sizes takes different times, and that is no noise. Its neighbourhood, the operations that began
//! before it on its GPU, tells most such calls apart, without their arguments being known. A group is a kernel and the names of some
//! operations in front of it. What all calls of a group took longer than its shortest one is the time that it varies by: a bound on what
//! there is to be won if each were as fast as the fastest.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use anyhow::Result;
use rusqlite::Connection;
use serde::{Serialize, Serializer};

use super::gpu_time::{GpuOps, LeftOut, OpName, OpTexts};
use super::ranking::Percentiles;
use crate::pass::sorted::Sorter;
use crate::region::Selected;
use crate::trace::instrumented::instrumented;
use crate::trace::op_kind::OpKind;

/// Steps of the histogram of a group.
pub const STEPS: usize = 8;
/// How many operations in front of a kernel tell calls apart at most.
pub const MOST_BEFORE: usize = 8;

/// What is compared with what, and what is far.
#[derive(Debug, Clone, Copy)]
pub struct Neighbourhood {
    /// How many operations in front of a kernel tell calls apart, [`MOST_BEFORE`] at most.
    pub before: usize,
    /// How many standard deviations from the mean of its group make a call an outlier.
    pub outlier: f64,
}

/// The groups, and what could not be counted.
#[derive(Debug)]
pub struct Variability {
    /// Those that vary by most time first.
    pub groups: Vec<KernelSpread>,
    /// Dispatches of instrumented kernels that were left out.
    pub instrumented: u64,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// The calls of a kernel behind the same operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KernelSpread {
    /// The kernel.
    #[serde(serialize_with = "text")]
    pub name: Arc<str>,
    /// What began in front of it on its GPU, the earliest first; fewer at the beginning of a GPU's work.
    #[serde(serialize_with = "texts")]
    pub after: Vec<Arc<str>>,
    /// How many.
    pub calls: u64,
    /// Sum of their durations, ns.
    pub total_ns: u64,
    /// Mean, ns.
    pub average_ns: f64,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Longest, ns.
    pub max_ns: u64,
    /// When the longest began, on the trace's clock, ns; the first of several.
    pub max_start_ns: i64,
    /// Durations that so many percent do not exceed.
    #[serde(flatten)]
    pub percentiles: Percentiles,
    /// Standard deviation of all of them, ns.
    pub deviation_ns: f64,
    /// The same in percent of the mean.
    pub deviation_percent: f64,
    /// What all of them took longer than the shortest, ns: `total_ns - calls * min_ns`.
    pub varying_ns: u64,
    /// Share of that in the total time of all kernels, percent.
    pub varying_percent: f64,
    /// Calls that are far from the mean.
    pub outliers: u64,
    /// How many took so long: steps from the shortest to the longest, each longer than the one before by the same factor.
    pub histogram: [u64; STEPS],
}

fn text<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

#[allow(clippy::ptr_arg)] // serde's way
fn texts<S: Serializer>(texts: &Vec<Arc<str>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(texts.iter().map(AsRef::as_ref))
}

/// A group while operations are read.
struct Running {
    calls: u64,
    total_ns: u64,
    min_ns: u64,
    /// Longest, and when it began.
    longest: (u64, i64),
    mean: f64,
    /// Sum of the squares of the differences to the mean.
    squares: f64,
}

impl Running {
    fn add(&mut self, ns: u64, start: i64) {
        self.calls += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.min_ns = self.min_ns.min(ns);
        if ns > self.longest.0 || self.calls == 1 {
            self.longest = (ns, start);
        }
        let from_mean = ns as f64 - self.mean;
        self.mean += from_mean / self.calls as f64;
        self.squares += from_mean * (ns as f64 - self.mean);
    }

    fn deviation(&self) -> f64 {
        (self.squares / self.calls.max(1) as f64).max(0.0).sqrt()
    }

    /// The step of the histogram that has a duration.
    fn step(&self, ns: u64) -> usize {
        let of_min = |ns: u64| (ns.max(1) as f64 / self.min_ns.max(1) as f64).ln();
        let whole = of_min(self.longest.0);
        let step = if whole > 0.0 { of_min(ns) / whole * STEPS as f64 } else { 0.0 };
        (step as usize).min(STEPS - 1)
    }
}

impl Default for Running {
    fn default() -> Running {
        Running { calls: 0, total_ns: 0, min_ns: u64::MAX, longest: (0, 0), mean: 0.0, squares: 0.0 }
    }
}

/// The names of operations, by numbers.
#[derive(Default)]
struct NumberedNames {
    known: HashMap<OpName, (u32, bool)>,
    numbers: HashMap<String, u32>,
}

impl NumberedNames {
    /// The number of a name, and whether the operation is a kernel.
    fn number(&mut self, texts: &mut OpTexts<'_>, name: OpName) -> rusqlite::Result<(u32, bool)> {
        if let Some(known) = self.known.get(&name) {
            return Ok(*known);
        }
        let is_kernel = OpKind::of(&texts.description_and_type(name)?.1) == OpKind::Kernel;
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(texts.name(name)?).or_insert(next);
        self.known.insert(name, (number, is_kernel));
        Ok((number, is_kernel))
    }
}

impl Variability {
    /// Reads the operations of a part of a trace. Of a GPU's operations only those of the part are neighbours.
    ///
    /// # Errors
    /// When the trace, or a temporary file for sorting, cannot be read.
    pub fn of(trace: &Connection, selected: &Selected, by: Neighbourhood) -> Result<Variability> {
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
        let instrumented_ops = instrumented(trace)?;
        let (mut texts, mut names) = (OpTexts::of(trace)?, NumberedNames::default());
        let before = by.before.min(MOST_BEFORE);
        // The kernel, then what is in front of it, the latest first.
        let mut places: HashMap<Box<[u32]>, usize> = HashMap::new();
        let mut groups: Vec<Running> = Vec::new();
        let mut durations = Sorter::new();
        let (mut gpu, mut recent): (Option<i64>, VecDeque<u32>) = (None, VecDeque::new());
        let (mut instrumented, mut key) = (0, Vec::new());
        while let Some(op) = ops.next()? {
            if gpu.replace(op.gpu) != Some(op.gpu) {
                recent.clear();
            }
            let (number, is_kernel) = names.number(&mut texts, op.name)?;
            let is_instrumented = instrumented_ops.has(op.id);
            instrumented += u64::from(is_instrumented);
            if is_kernel && !is_instrumented {
                key.clear();
                key.push(number);
                key.extend(&recent);
                let place = match places.get(key.as_slice()) {
                    Some(place) => *place,
                    None => {
                        places.insert(key.clone().into(), groups.len());
                        groups.push(Running::default());
                        groups.len() - 1
                    }
                };
                let ns = op.end.abs_diff(op.start);
                groups[place].add(ns, op.start);
                durations.push([place as u64, ns])?;
            }
            recent.push_front(number);
            recent.truncate(before);
        }
        let mut sorted = durations.sorted()?;
        let mut spread = Vec::with_capacity(groups.len());
        for group in &groups {
            spread.push(Spread::of(group, by.outlier, || Ok(sorted.next()?.map_or(0, |[_, ns]| ns)))?);
        }
        let mut texts: Vec<(u32, Arc<str>)> =
            names.numbers.into_iter().map(|(name, number)| (number, name.into())).collect();
        texts.sort_unstable();
        let all: f64 = groups.iter().map(|group| group.total_ns as f64).sum();
        let name = |number: u32| Arc::clone(&texts[number as usize].1);
        let mut found: Vec<KernelSpread> = places
            .into_iter()
            .map(|(key, place)| {
                let (running, spread) = (&groups[place], &spread[place]);
                let varying_ns =
                    running.total_ns.saturating_sub(running.calls.saturating_mul(running.min_ns));
                let deviation_ns = running.deviation();
                KernelSpread {
                    name: name(key[0]),
                    after: key[1..].iter().rev().map(|number| name(*number)).collect(),
                    calls: running.calls,
                    total_ns: running.total_ns,
                    average_ns: running.mean,
                    min_ns: running.min_ns,
                    max_ns: running.longest.0,
                    max_start_ns: running.longest.1,
                    percentiles: spread.percentiles,
                    deviation_ns,
                    deviation_percent: if running.mean > 0.0 {
                        100.0 * deviation_ns / running.mean
                    } else {
                        0.0
                    },
                    varying_ns,
                    varying_percent: if all > 0.0 { 100.0 * varying_ns as f64 / all } else { 0.0 },
                    outliers: spread.outliers,
                    histogram: spread.histogram,
                }
            })
            .collect();
        found.sort_unstable_by(|a, b| {
            (Reverse(a.varying_ns), Reverse(a.total_ns), &a.name, &a.after).cmp(&(
                Reverse(b.varying_ns),
                Reverse(b.total_ns),
                &b.name,
                &b.after,
            ))
        });
        Ok(Variability { groups: found, instrumented, left_out })
    }
}

/// What only a second look at the durations of a group can tell.
struct Spread {
    percentiles: Percentiles,
    outliers: u64,
    histogram: [u64; STEPS],
}

impl Spread {
    /// Of the durations that `next` has, the shortest first.
    fn of(group: &Running, outlier: f64, mut next: impl FnMut() -> Result<u64>) -> Result<Spread> {
        let rank = |percent: u64| (u128::from(group.calls) * u128::from(percent)).div_ceil(100) as u64;
        let ranks = [50, 90, 99].map(rank);
        let far = outlier * group.deviation();
        let (mut at, mut outliers, mut histogram) = ([0; 3], 0, [0; STEPS]);
        for nth in 1..=group.calls {
            let ns = next()?;
            for (rank, at) in ranks.iter().zip(&mut at) {
                if *rank == nth {
                    *at = ns;
                }
            }
            outliers += u64::from(far > 0.0 && (ns as f64 - group.mean).abs() >= far);
            histogram[group.step(ns)] += 1;
        }
        let [p50_ns, p90_ns, p99_ns] = at;
        Ok(Spread { percentiles: Percentiles { p50_ns, p90_ns, p99_ns }, outliers, histogram })
    }
}
