//! Idle time of each GPU: how long the gaps between its operations are, what ran before them, and why they are there.
//!
//! A gap is a time in which nothing ran on a GPU, on none of its queues, between its first and its last operation. Its cause is looked
//! for on the thread that launched the operation behind it: `cause.rs` says what that thread did meanwhile.
//!
//! Memory does not grow with the trace: what has to be brought together is sorted, on disk where there is much of it.

mod cause;
mod timeline;
mod unrecorded;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rusqlite::Connection;
use serde::Serialize;

use self::cause::Causes;
pub use self::cause::{CAUSES, Cause};
use super::gpu_time::{GpuOps, LeftOut, OpName, OpTexts};
use super::utilisation::{BusyPart, BusyParts};
use crate::pass::sorted::Sorter;
use crate::region::Selected;

/// Where bins of lengths begin, ns: 1, 2, 5, 10, 20 ... us; the first begins at 0.
pub const BINS: [u64; 23] = bins();

/// How many of the longest gaps of each GPU are listed one by one.
const LONGEST: usize = 10;

const fn bins() -> [u64; 23] {
    let mut edges = [0; 23];
    let (mut at, mut decade) = (1, 1_000);
    while at < edges.len() {
        edges[at] = decade * [1, 2, 5][(at - 1) % 3];
        if at % 3 == 0 {
            decade *= 10;
        }
        at += 1;
    }
    edges
}

/// The idle time of each GPU, and what could not be counted.
#[derive(Debug)]
pub struct Gaps {
    /// By number.
    pub gpus: Vec<GpuGaps>,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// The idle time of one GPU. `busy + idle = span`; the idle times of its bins, of its causes and of what preceded add up to `idle`.
#[derive(Debug, Serialize)]
pub struct GpuGaps {
    /// Its number, `gpuId`.
    pub gpu: i64,
    /// Its operations.
    pub operations: u64,
    /// First start, on the trace's clock, ns.
    pub start_ns: i64,
    /// Last end, ns.
    pub end_ns: i64,
    /// From the one to the other, ns.
    pub span_ns: u64,
    /// In which anything ran, ns.
    pub busy_ns: u64,
    /// In which nothing ran, ns.
    pub idle_ns: u64,
    /// How many gaps that is.
    pub gaps: u64,
    /// The longest of them, ns.
    pub longest_ns: u64,
    /// By length, shortest first, from the first bin that has any to the last.
    pub bins: Vec<Bin>,
    /// By cause; all of [`CAUSES`], in that order.
    pub causes: Vec<CauseTime>,
    /// By the operation in front of them, most time first.
    pub after: Vec<After>,
    /// The longest, one by one.
    pub longest: Vec<Gap>,
    /// How busy it was in equal parts of the run, the same for all GPUs.
    pub over_time: Vec<BusyPart>,
}

/// Gaps of a length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bin {
    /// The shortest that counts, ns.
    pub from_ns: u64,
    /// The shortest that does not count any more, ns; none of the last bin.
    pub to_ns: Option<u64>,
    /// How many.
    pub gaps: u64,
    /// Their time, ns.
    pub idle_ns: u64,
}

/// Idle time of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct CauseTime {
    /// The cause.
    pub cause: Cause,
    /// Gaps of which it has the largest part.
    pub gaps: u64,
    /// Its parts of all gaps, ns.
    pub idle_ns: u64,
}

/// Gaps behind operations of one name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct After {
    /// The name, or the type where there is none (copies).
    pub name: String,
    /// How many.
    pub gaps: u64,
    /// Their time, ns.
    pub idle_ns: u64,
    /// The longest, ns.
    pub longest_ns: u64,
}

/// One gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// When it began, on the trace's clock, ns.
    pub start_ns: i64,
    /// How long it was, ns.
    pub idle_ns: u64,
    /// What has the largest part of it.
    pub cause: Cause,
    /// The operation in front of it.
    pub after: String,
    /// The operation behind it.
    pub before: String,
}

/// A gap as it is found; ordered by the operation behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct FoundGap {
    /// Row of `rocpd_op` of the operation that ended it.
    op: i64,
    gpu: i64,
    start: i64,
    end: i64,
    after: OpName,
    before: OpName,
}

impl FoundGap {
    fn length(&self) -> u64 {
        self.end.abs_diff(self.start)
    }
}

/// How many gaps, their time, the longest of them.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    gaps: u64,
    idle_ns: u64,
    longest_ns: u64,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.gaps += other.gaps;
        self.idle_ns += other.idle_ns;
        self.longest_ns = self.longest_ns.max(other.longest_ns);
    }
}

/// What is known of a GPU while its operations are read.
struct Running {
    operations: u64,
    start: i64,
    /// Until when an operation ran, and which was the last of them.
    covered: (i64, OpName),
    bins: [Sums; BINS.len()],
    after: HashMap<OpName, Sums>,
    causes: [(u64, u64); CAUSES.len()],
    /// The longest gaps so far, the shortest of them first to go.
    longest: BinaryHeap<Reverse<LongGap>>,
    /// Once the time of all GPUs is known.
    over_time: Option<BusyParts>,
}

/// Length, start, the gap itself, and its cause; of two of one length the later one is the smaller.
type LongGap = (u64, Reverse<i64>, FoundGap, Cause);

impl Gaps {
    /// Reads the operations of a part of a trace, and calls, of any schema version.
    ///
    /// # Errors
    /// When the trace, or a temporary file for sorting, cannot be read.
    pub fn of(trace: &Connection, selected: &Selected) -> Result<Gaps> {
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
        let mut gpus: BTreeMap<i64, Running> = BTreeMap::new();
        let mut found = Sorter::new();
        while let Some(op) = ops.next()? {
            let gpu = gpus.entry(op.gpu).or_insert_with(|| Running::from(op.start, op.name));
            gpu.operations += 1;
            let (covered, after) = gpu.covered;
            if op.start > covered {
                let gap = FoundGap {
                    op: op.id,
                    gpu: op.gpu,
                    start: covered,
                    end: op.start,
                    after,
                    before: op.name,
                };
                gpu.count(&gap);
                found.push(gap)?;
            }
            if op.end >= covered {
                gpu.covered = (op.end, op.name);
            }
        }
        let first = gpus.values().map(|gpu| gpu.start).min().unwrap_or(0);
        let last = gpus.values().map(|gpu| gpu.covered.0).max().unwrap_or(first);
        for gpu in gpus.values_mut() {
            gpu.over_time = Some(BusyParts::of((first, last), (gpu.start, gpu.covered.0)));
        }
        let mut causes = Causes::of(trace)?;
        let mut found = found.sorted()?;
        while let Some(gap) = found.next()? {
            if let Some(parts) = gpus.get_mut(&gap.gpu).and_then(|gpu| gpu.over_time.as_mut()) {
                parts.idle((gap.start, gap.end));
            }
            causes.push(gap)?;
        }
        causes.each(|gap, parts| {
            if let Some(gpu) = gpus.get_mut(&gap.gpu) {
                gpu.explain(gap, parts);
            }
        })?;
        let mut texts = OpTexts::of(trace)?;
        let gpus = gpus.into_iter().map(|(number, gpu)| gpu.finished(number, &mut texts));
        Ok(Gaps { gpus: gpus.collect::<rusqlite::Result<_>>()?, left_out })
    }
}

impl Running {
    fn from(start: i64, name: OpName) -> Running {
        Running {
            operations: 0,
            start,
            covered: (start, name),
            bins: [Sums::default(); BINS.len()],
            after: HashMap::new(),
            causes: [(0, 0); CAUSES.len()],
            longest: BinaryHeap::new(),
            over_time: None,
        }
    }

    fn count(&mut self, gap: &FoundGap) {
        let length = gap.length();
        let sums = Sums { gaps: 1, idle_ns: length, longest_ns: length };
        self.bins[BINS.partition_point(|from| *from <= length) - 1].add(sums);
        self.after.entry(gap.after).or_default().add(sums);
    }

    /// Adds the causes of a gap, of which each has a part, ns.
    fn explain(&mut self, gap: &FoundGap, parts: &[u64; CAUSES.len()]) {
        let mut main = 0;
        for (cause, part) in parts.iter().enumerate() {
            self.causes[cause].1 += part;
            if *part > parts[main] {
                main = cause;
            }
        }
        self.causes[main].0 += 1;
        self.longest.push(Reverse((gap.length(), Reverse(gap.start), *gap, CAUSES[main])));
        if self.longest.len() > LONGEST {
            self.longest.pop();
        }
    }

    fn finished(self, gpu: i64, texts: &mut OpTexts<'_>) -> rusqlite::Result<GpuGaps> {
        let mut all = Sums::default();
        self.bins.iter().for_each(|bin| all.add(*bin));
        let span_ns = self.covered.0.abs_diff(self.start);
        let bin = |(at, sums): (usize, &Sums)| Bin {
            from_ns: BINS[at],
            to_ns: BINS.get(at + 1).copied(),
            gaps: sums.gaps,
            idle_ns: sums.idle_ns,
        };
        let bins: Vec<Bin> = self.bins.iter().enumerate().map(bin).collect();
        let first = bins.iter().position(|bin| bin.gaps > 0).unwrap_or(bins.len());
        let last = bins.iter().rposition(|bin| bin.gaps > 0).map_or(first, |at| at + 1);
        let cause =
            |(cause, (gaps, idle_ns)): (&Cause, (u64, u64))| CauseTime { cause: *cause, gaps, idle_ns };
        let mut by_name: BTreeMap<String, Sums> = BTreeMap::new();
        for (name, sums) in self.after {
            by_name.entry(texts.name(name)?).or_default().add(sums);
        }
        let mut after: Vec<After> = by_name
            .into_iter()
            .map(|(name, Sums { gaps, idle_ns, longest_ns })| After { name, gaps, idle_ns, longest_ns })
            .collect();
        after.sort_by_key(|after| Reverse(after.idle_ns));
        // The shortest of those that go first is the greatest of the heap's order.
        let longest = self.longest.into_sorted_vec().into_iter().map(|Reverse((idle_ns, _, gap, cause))| {
            Ok(Gap {
                start_ns: gap.start,
                idle_ns,
                cause,
                after: texts.name(gap.after)?,
                before: texts.name(gap.before)?,
            })
        });
        Ok(GpuGaps {
            gpu,
            operations: self.operations,
            start_ns: self.start,
            end_ns: self.covered.0,
            span_ns,
            busy_ns: span_ns - all.idle_ns,
            idle_ns: all.idle_ns,
            gaps: all.gaps,
            longest_ns: all.longest_ns,
            bins: bins[first..last].to_vec(),
            causes: CAUSES.iter().zip(self.causes).map(cause).collect(),
            after,
            longest: longest.collect::<rusqlite::Result<_>>()?,
            over_time: self.over_time.map(BusyParts::finished).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_begin_at_1_2_5_of_each_decade() {
        assert_eq!(BINS[..8], [0, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000]);
        assert_eq!(BINS[22], 10_000_000_000);
    }
}
