//! How busy the GPUs of a rank were, over time: the time in which any operation of a GPU ran, by equal parts of a time axis. Barriers do not
//! count, as the query `job_busy` has it: a GPU that waits does no work.
//!
//! The rows of a row group are in the order of their starts, and those of two row groups may overlap. So row groups are merged, each opened
//! when its first row is next. What is in memory is a few thousand rows of each that overlaps, and the parts of the axis.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use anyhow::{Result, bail};

use super::columns::{Batch, Batches, Columns, integer};
use super::contents::{DatasetContents, Rank};
use super::table::OP;
use crate::trace::barriers::BARRIER;

/// What is read of operations.
const COLUMNS: &[&str] = &["start", "end", "gpuId", "opType"];

/// A time that is cut into equal parts.
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// Its begin, ns as the rank's rows have it.
    pub begin_ns: i64,
    /// Its length, ns; at least 1.
    pub span_ns: u64,
    /// Into how many parts; at least 1.
    pub parts: usize,
}

/// How busy a rank's GPUs were.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankUtilisation {
    /// The GPUs that did anything but wait.
    pub gpus: Vec<i64>,
    /// Time in which any operation ran, of all GPUs together, ns.
    pub busy_ns: u64,
    /// The same by parts of the axis.
    pub parts: Vec<u64>,
    /// Operations that end before they begin, or lack one of these times.
    pub impossible: u64,
}

impl Axis {
    /// Where a part begins, ns since the axis begins.
    fn edge(&self, part: usize) -> u64 {
        (u128::from(self.span_ns) * part as u128 / self.parts as u128) as u64
    }

    /// The part that a time is in, which must be less than the span.
    fn part(&self, at: u64) -> usize {
        // The last one that does not begin later: edges are rounded down.
        (((u128::from(at) + 1) * self.parts as u128 - 1) / u128::from(self.span_ns)) as usize
    }
}

/// Rows of a row group.
struct Run {
    batches: Batches,
    batch: Batch,
    /// As [`barriers`] says.
    is_barrier: Vec<bool>,
    row: usize,
    last: i64,
}

struct Operation {
    start: i64,
    end: i64,
    gpu: i64,
}

/// What is added up.
struct Sums {
    axis: Axis,
    found: RankUtilisation,
    /// The end of what has been added, of each GPU.
    ends: Vec<i64>,
    /// The part that was added to last, and where it begins and ends.
    part: (usize, u64, u64),
}

impl Sums {
    /// Of no operation yet.
    fn of(axis: Axis) -> Sums {
        let found =
            RankUtilisation { gpus: Vec::new(), busy_ns: 0, parts: vec![0; axis.parts], impossible: 0 };
        Sums { axis, found, ends: Vec::new(), part: (0, 0, 0) }
    }

    fn add(&mut self, operation: &Operation) {
        let gpus = &mut self.found.gpus;
        let place = gpus.iter().position(|gpu| *gpu == operation.gpu).unwrap_or_else(|| {
            gpus.push(operation.gpu);
            self.ends.push(i64::MIN);
            gpus.len() - 1
        });
        let end = &mut self.ends[place];
        let from = operation.start.max(*end);
        if from >= operation.end {
            return;
        }
        *end = operation.end;
        self.found.busy_ns = self.found.busy_ns.saturating_add(operation.end.abs_diff(from));
        let since = |time: i64| {
            (i128::from(time) - i128::from(self.axis.begin_ns)).clamp(0, self.axis.span_ns.into())
        };
        let (mut from, to) = (since(from) as u64, since(operation.end) as u64);
        while from < to {
            if from < self.part.1 || from >= self.part.2 {
                let part = self.axis.part(from);
                self.part = (part, self.axis.edge(part), self.axis.edge(part + 1));
            }
            let until = to.min(self.part.2);
            let busy = &mut self.found.parts[self.part.0];
            *busy = busy.saturating_add(until - from);
            from = until;
        }
    }
}

/// Which texts of the batch are the type of barriers.
fn barriers(batch: &Batch) -> Result<Vec<bool>> {
    let types = batch.texts(3)?;
    Ok((0..types.len()).map(|key| types.value(key) == BARRIER).collect())
}

impl Run {
    /// The run of a row group; none where it has no operation with a time.
    fn of(batches: Batches, first: Batch, found: &mut RankUtilisation) -> Result<Option<(Operation, Run)>> {
        let is_barrier = barriers(&first)?;
        let mut run = Run { batches, batch: first, is_barrier, row: 0, last: i64::MIN };
        Ok(run.next(found)?.map(|operation| (operation, run)))
    }

    /// The next operation that has a time.
    fn next(&mut self, found: &mut RankUtilisation) -> Result<Option<Operation>> {
        loop {
            if self.row >= self.batch.rows {
                match self.batches.next()? {
                    Some(batch) => {
                        self.is_barrier = barriers(&batch)?;
                        (self.batch, self.row) = (batch, 0);
                    }
                    None => return Ok(None),
                }
                continue;
            }
            let row = self.row;
            self.row += 1;
            let [start, end, gpu] = [0, 1, 2].map(|column| self.batch.integers(column));
            let (start, end, gpu) = (integer(start?, row), integer(end?, row), integer(gpu?, row));
            if self.batch.texts(3)?.key(row).is_some_and(|key| self.is_barrier[key]) {
                continue;
            }
            let Some((start, end)) = start.zip(end).filter(|(start, end)| start <= end) else {
                found.impossible += 1;
                continue;
            };
            if start < self.last {
                bail!("rows are not in the order of their starts");
            }
            self.last = start;
            return Ok(Some(Operation { start, end, gpu: gpu.unwrap_or(-1) }));
        }
    }
}

impl DatasetContents {
    /// How busy the GPUs of a rank were.
    ///
    /// # Errors
    /// When a file is not there or damaged.
    pub fn utilisation(&self, rank: &Rank, axis: Axis) -> Result<RankUtilisation> {
        let axis = Axis { span_ns: axis.span_ns.max(1), parts: axis.parts.max(1), ..axis };
        let parts = rank.parts.iter().flat_map(|part| &part.files).filter(|file| file.table() == OP.name);
        let parts: Vec<_> = parts.collect();
        let files: Vec<Columns> =
            parts.iter().map(|part| Columns::open(&self.place, part)).collect::<Result<_>>()?;
        let mut groups: Vec<(i64, usize, usize)> = Vec::new();
        for (number, file) in files.iter().enumerate() {
            groups.extend(
                (0..file.groups())
                    .map(|group| (file.least(group, "start").unwrap_or(i64::MIN), number, group)),
            );
        }
        groups.sort_unstable();
        let mut sums = Sums::of(axis);
        let mut groups = groups.into_iter().peekable();
        // By the start of its next operation: each open row group, and that operation.
        let mut next: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
        let mut runs: Vec<Option<(usize, Operation, Run)>> = Vec::new();
        let of_file = |number: usize, error: anyhow::Error| {
            error.context(super::columns::damaged(&self.place, &parts[number].at(&self.place)))
        };
        loop {
            let first = next.peek().map(|Reverse((start, _))| *start);
            if let Some((_, number, group)) =
                groups.next_if(|(least, ..)| first.is_none_or(|first| *least <= first))
            {
                let mut batches = files[number].group(group, COLUMNS)?;
                let Some(batch) = batches.next()? else { continue };
                let run = Run::of(batches, batch, &mut sums.found).map_err(|error| of_file(number, error))?;
                if let Some((operation, run)) = run {
                    let free = runs.iter().position(Option::is_none).unwrap_or(runs.len());
                    if free == runs.len() {
                        runs.push(None);
                    }
                    next.push(Reverse((operation.start, free)));
                    runs[free] = Some((number, operation, run));
                }
                continue;
            }
            let Some(Reverse((_, at))) = next.pop() else { break };
            let Some((number, mut operation, mut run)) = runs[at].take() else { continue };
            let until = next.peek().map(|Reverse((start, _))| *start);
            let until = until.into_iter().chain(groups.peek().map(|(least, ..)| *least)).min();
            loop {
                sums.add(&operation);
                match run.next(&mut sums.found).map_err(|error| of_file(number, error))? {
                    None => break,
                    Some(following) => operation = following,
                }
                if until.is_some_and(|until| until <= operation.start) {
                    next.push(Reverse((operation.start, at)));
                    runs[at] = Some((number, operation, run));
                    break;
                }
            }
        }
        sums.found.gpus.sort_unstable();
        Ok(sums.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_an_axis_cover_it_without_a_gap() {
        for (span_ns, parts) in [(1, 1), (7, 3), (3, 7), (1_000_003, 1024), (u64::MAX, 1024)] {
            let axis = Axis { begin_ns: 0, span_ns, parts };
            assert_eq!((axis.edge(0), axis.edge(parts)), (0, span_ns));
            for at in [0, span_ns / 3, span_ns / 2, span_ns - 1] {
                let part = axis.part(at);
                assert!(axis.edge(part) <= at && at < axis.edge(part + 1), "{span_ns} {parts} {at} {part}");
            }
        }
    }

    #[test]
    fn operations_that_overlap_count_once_for_each_gpu() {
        let mut sums = Sums::of(Axis { begin_ns: 100, span_ns: 40, parts: 4 });
        for (start, end, gpu) in
            [(90, 105, 0), (101, 104, 0), (103, 112, 0), (103, 112, 1), (112, 112, 0), (138, 150, 0)]
        {
            sums.add(&Operation { start, end, gpu });
        }
        assert_eq!(sums.found.gpus, [0, 1]);
        assert_eq!(sums.found.parts, [17, 4, 0, 2]);
        assert_eq!(sums.found.busy_ns, 22 + 9 + 12);
    }
}
