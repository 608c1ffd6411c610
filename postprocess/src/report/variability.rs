//! How much the durations of a kernel differ where it runs between the same operations, after an idea of raptor.
//!
//! A kernel that is called with different sizes takes different times, and that is no noise. Its neighbourhood, the operations that began
//! before it on its GPU, tells most such calls apart, without their arguments being known. A group is a kernel and the names of some
//! operations in front of it. What all calls of a group took longer than its shortest one is the time that it varies by: a bound on what
//! there is to be won if each were as fast as the fastest.
//!
//! Calls and groups are sorted on disk where there are many: memory grows with the names of operations alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rusqlite::Connection;
use serde::{Serialize, Serializer};

use super::gpu_time::{GpuOps, LeftOut, OpName, OpTexts};
use super::ranking::Percentiles;
use crate::pass::sorted::{Sorted, Sorter};
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

/// The groups, those that vary by most time first, and what could not be counted.
pub struct Variability {
    groups: Sorted<Group>,
    /// The names of operations in their order.
    names: Vec<Arc<str>>,
    /// The time of all kernels, ns.
    all_ns: u128,
    /// How many groups there are.
    pub count: u64,
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

/// The names of a kernel and of what began in front of it, by numbers from 1; those that are not there are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Place {
    kernel: u32,
    /// The earliest first.
    after: [u32; MOST_BEFORE],
    /// Keeps what follows aligned.
    unused: u32,
}

impl Place {
    /// Of a kernel behind `recent`, the latest first.
    fn of(kernel: u32, recent: &VecDeque<u32>) -> Place {
        let mut after = [0; MOST_BEFORE];
        for (name, recent) in after.iter_mut().zip(recent.iter().rev()) {
            *name = *recent;
        }
        Place { kernel, after, unused: 0 }
    }

    /// With other numbers of the same names.
    fn renumbered(self, numbers: &[u32]) -> Place {
        let number = |name: u32| if name == 0 { 0 } else { numbers[name as usize - 1] };
        Place { kernel: number(self.kernel), after: self.after.map(number), unused: 0 }
    }
}

/// A call of a kernel; ordered by group, then by duration and start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Call {
    place: Place,
    ns: u64,
    start: i64,
}

/// What all calls of a group are together, the shortest of which comes first.
#[derive(Debug, Default)]
struct Sums {
    calls: u64,
    total_ns: u64,
    min_ns: u64,
    /// Longest, and when the first of that length began.
    longest: (u64, i64),
    mean: f64,
    /// Sum of the squares of the differences to the mean.
    squares: f64,
}

impl Sums {
    fn add(&mut self, call: &Call) {
        let ns = call.ns;
        if self.calls == 0 {
            self.min_ns = ns;
        }
        if self.calls == 0 || ns > self.longest.0 {
            self.longest = (ns, call.start);
        }
        self.calls += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        let from_mean = ns as f64 - self.mean;
        self.mean += from_mean / self.calls as f64;
        self.squares += from_mean * (ns as f64 - self.mean);
    }

    fn deviation(&self) -> f64 {
        (self.squares / self.calls.max(1) as f64).max(0.0).sqrt()
    }

    fn varying_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.calls.saturating_mul(self.min_ns))
    }

    /// The step of the histogram that has a duration.
    fn step(&self, ns: u64) -> usize {
        let of_min = |ns: u64| (ns.max(1) as f64 / self.min_ns.max(1) as f64).ln();
        let whole = of_min(self.longest.0);
        let step = if whole > 0.0 { of_min(ns) / whole * STEPS as f64 } else { 0.0 };
        (step as usize).min(STEPS - 1)
    }
}

/// A group with all that is said of it; ordered from what varies by most time to what does by least, then by time and names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Group {
    not_varying_ns: u64,
    not_total_ns: u64,
    place: Place,
    calls: u64,
    min_ns: u64,
    max_ns: u64,
    max_start_ns: i64,
    percentiles: [u64; 3],
    /// Bits of numbers of ns.
    average: u64,
    deviation: u64,
    outliers: u64,
    histogram: [u64; STEPS],
}

/// The names of operations, by numbers.
#[derive(Default)]
struct NumberedNames {
    known: HashMap<OpName, (u32, bool)>,
    /// From 1.
    numbers: HashMap<String, u32>,
}

impl NumberedNames {
    /// The number of a name, and whether the operation is a kernel.
    fn number(&mut self, texts: &mut OpTexts<'_>, name: OpName) -> rusqlite::Result<(u32, bool)> {
        if let Some(known) = self.known.get(&name) {
            return Ok(*known);
        }
        let is_kernel = OpKind::of(&texts.description_and_type(name)?.1) == OpKind::Kernel;
        let next = self.numbers.len() as u32 + 1;
        let number = *self.numbers.entry(texts.name(name)?).or_insert(next);
        self.known.insert(name, (number, is_kernel));
        Ok((number, is_kernel))
    }

    /// The names in their order, and for each of the numbers given so far, from 1, what it would be in that order.
    fn in_order(self) -> (Vec<Arc<str>>, Vec<u32>) {
        let mut texts: Vec<(String, u32)> = self.numbers.into_iter().collect();
        texts.sort_unstable();
        let mut numbers = vec![0; texts.len()];
        for (at, (_, number)) in texts.iter().enumerate() {
            numbers[*number as usize - 1] = at as u32 + 1;
        }
        (texts.into_iter().map(|(text, _)| text.into()).collect(), numbers)
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
        let mut calls = Sorter::new();
        let (mut gpu, mut recent): (Option<i64>, VecDeque<u32>) = (None, VecDeque::new());
        let (mut instrumented, mut all_ns) = (0, 0);
        while let Some(op) = ops.next()? {
            if gpu.replace(op.gpu) != Some(op.gpu) {
                recent.clear();
            }
            let (number, is_kernel) = names.number(&mut texts, op.name)?;
            let is_instrumented = instrumented_ops.has(op.id);
            instrumented += u64::from(is_instrumented);
            if is_kernel && !is_instrumented {
                let ns = op.end.abs_diff(op.start);
                all_ns += u128::from(ns);
                calls.push(Call { place: Place::of(number, &recent), ns, start: op.start })?;
            }
            recent.push_front(number);
            recent.truncate(before);
        }
        drop(ops);
        let (names, numbers) = names.in_order();
        // What is far from the mean is known when all calls of a group have been seen: they are read twice.
        let (mut first, mut second) = calls.sorted_twice()?;
        let mut groups = Sorter::new();
        let (mut count, mut next) = (0, first.next()?);
        while let Some(Call { place, .. }) = next {
            let mut sums = Sums::default();
            while let Some(call) = next.filter(|call| call.place == place) {
                sums.add(&call);
                next = first.next()?;
            }
            groups.push(group(place.renumbered(&numbers), &sums, by.outlier, &mut second)?)?;
            count += 1;
        }
        drop((first, second));
        Ok(Variability { groups: groups.sorted()?, names, all_ns, count, instrumented, left_out })
    }

    fn spread(&self, group: &Group) -> KernelSpread {
        let (total_ns, varying_ns) = (!group.not_total_ns, !group.not_varying_ns);
        let (average_ns, deviation_ns) = (f64::from_bits(group.average), f64::from_bits(group.deviation));
        let percent = |part: f64, whole: f64| if whole > 0.0 { 100.0 * part / whole } else { 0.0 };
        let name = |number: u32| Arc::clone(&self.names[number as usize - 1]);
        let [p50_ns, p90_ns, p99_ns] = group.percentiles;
        KernelSpread {
            name: name(group.place.kernel),
            after: group.place.after.iter().take_while(|number| **number > 0).map(|it| name(*it)).collect(),
            calls: group.calls,
            total_ns,
            average_ns,
            min_ns: group.min_ns,
            max_ns: group.max_ns,
            max_start_ns: group.max_start_ns,
            percentiles: Percentiles { p50_ns, p90_ns, p99_ns },
            deviation_ns,
            deviation_percent: percent(deviation_ns, average_ns),
            varying_ns,
            varying_percent: percent(varying_ns as f64, self.all_ns as f64),
            outliers: group.outliers,
            histogram: group.histogram,
        }
    }
}

impl Iterator for Variability {
    type Item = Result<KernelSpread>;

    fn next(&mut self) -> Option<Result<KernelSpread>> {
        let group = self.groups.next().transpose()?;
        Some(group.map(|group| self.spread(&group)))
    }
}

/// A group of which `calls` has the calls, the shortest first.
fn group(place: Place, sums: &Sums, outlier: f64, calls: &mut Sorted<Call>) -> Result<Group> {
    let rank = |percent: u64| (u128::from(sums.calls) * u128::from(percent)).div_ceil(100) as u64;
    let ranks = [50, 90, 99].map(rank);
    let least = outlier * sums.deviation();
    let (mut percentiles, mut outliers, mut histogram) = ([0; 3], 0, [0; STEPS]);
    for nth in 1..=sums.calls {
        let Some(Call { ns, .. }) = calls.next()? else { break };
        for (rank, at) in ranks.iter().zip(&mut percentiles) {
            if *rank == nth {
                *at = ns;
            }
        }
        outliers += u64::from(least > 0.0 && (ns as f64 - sums.mean).abs() >= least);
        histogram[sums.step(ns)] += 1;
    }
    Ok(Group {
        not_varying_ns: !sums.varying_ns(),
        not_total_ns: !sums.total_ns,
        place,
        calls: sums.calls,
        min_ns: sums.min_ns,
        max_ns: sums.longest.0,
        max_start_ns: sums.longest.1,
        percentiles,
        average: (sums.total_ns as f64 / sums.calls as f64).to_bits(),
        deviation: sums.deviation().to_bits(),
        outliers,
        histogram,
    })
}
