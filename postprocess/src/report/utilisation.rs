//! How busy each GPU is, over time too: the short form of [`super::gaps`], which says why it is not.

use anyhow::Result;
use rusqlite::Connection;
use serde::Serialize;

use super::gpu_time::{GpuOp, GpuOps, LeftOut, OpName, OpTexts};
use crate::region::Selected;

/// How busy the GPUs are, and what could not be counted.
#[derive(Debug)]
pub struct Utilisation {
    /// By number.
    pub gpus: Vec<GpuUtilisation>,
    /// Operations that count nowhere.
    pub left_out: LeftOut,
}

/// How busy one GPU is. `busy + idle = span`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuUtilisation {
    /// Its number, `gpuId`.
    pub gpu: i64,
    /// From its first start to its last end, ns.
    pub span_ns: u64,
    /// In which anything ran, ns.
    pub busy_ns: u64,
    /// In which nothing ran, ns.
    pub idle_ns: u64,
    /// The longest time in which nothing ran; the first of several. None where there is none.
    pub longest: Option<LongestGap>,
}

/// The longest gap of a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LongestGap {
    /// When it began, on the trace's clock, ns.
    pub start_ns: i64,
    /// How long it was, ns.
    pub idle_ns: u64,
    /// The operation that followed.
    pub before: String,
}

/// Parts of the run. Of each the report has the time in which GPUs were busy.
const PARTS: u64 = 200;

/// A part of the run, the same for all GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct BusyPart {
    /// When it begins, on the trace's clock, ns.
    pub start_ns: i64,
    /// When it ends, ns.
    pub end_ns: i64,
    /// In which anything ran on the GPU, ns.
    pub busy_ns: u64,
}

/// Equal parts of the time from the first start of anything to the last end, while the idle times of one GPU are taken off.
#[derive(Debug, Clone)]
pub(super) struct BusyParts {
    parts: Vec<BusyPart>,
}

impl BusyParts {
    /// The parts of all of a run, of which a GPU was busy from its first start to its last end but for its gaps.
    pub(super) fn of((first, last): (i64, i64), (start, end): (i64, i64)) -> BusyParts {
        let span = last.abs_diff(first);
        let count = PARTS.min(span);
        let edge = |at: u64| {
            first.saturating_add_unsigned((u128::from(span) * u128::from(at) / u128::from(count)) as u64)
        };
        let part = |at: u64| {
            let (start_ns, end_ns) = (edge(at), edge(at + 1));
            BusyPart { start_ns, end_ns, busy_ns: common((start_ns, end_ns), (start, end)) }
        };
        BusyParts { parts: (0..count).map(part).collect() }
    }

    /// Takes a gap off, which is in no other.
    pub(super) fn idle(&mut self, gap: (i64, i64)) {
        let begun = self.parts.partition_point(|part| part.end_ns <= gap.0);
        for part in self.parts[begun..].iter_mut().take_while(|part| part.start_ns < gap.1) {
            part.busy_ns -= common((part.start_ns, part.end_ns), gap);
        }
    }

    pub(super) fn finished(self) -> Vec<BusyPart> {
        self.parts
    }
}

/// The time that two times have in common.
fn common(one: (i64, i64), other: (i64, i64)) -> u64 {
    let (start, end) = (one.0.max(other.0), one.1.min(other.1));
    if end > start { end.abs_diff(start) } else { 0 }
}

/// A GPU while its operations are read.
struct Running {
    gpu: i64,
    start: i64,
    covered: i64,
    idle_ns: u64,
    longest: Option<(u64, i64, OpName)>,
}

impl Utilisation {
    /// Reads the operations of a part of a trace.
    ///
    /// # Errors
    /// When the trace, or a temporary file for sorting, cannot be read.
    pub fn of(trace: &Connection, selected: &Selected) -> Result<Utilisation> {
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
        let mut texts = OpTexts::of(trace)?;
        let mut gpus = Vec::new();
        let mut current: Option<Running> = None;
        while let Some(op) = ops.next()? {
            if current.as_ref().is_some_and(|running| running.gpu != op.gpu)
                && let Some(finished) = current.take()
            {
                gpus.push(finished.finished(&mut texts)?);
            }
            current.get_or_insert_with(|| Running::from(&op)).add(&op);
        }
        if let Some(finished) = current {
            gpus.push(finished.finished(&mut texts)?);
        }
        Ok(Utilisation { gpus, left_out })
    }
}

impl Running {
    fn from(op: &GpuOp) -> Running {
        Running { gpu: op.gpu, start: op.start, covered: op.start, idle_ns: 0, longest: None }
    }

    fn add(&mut self, op: &GpuOp) {
        if op.start > self.covered {
            let idle = op.start.abs_diff(self.covered);
            self.idle_ns += idle;
            if self.longest.is_none_or(|(longest, ..)| idle > longest) {
                self.longest = Some((idle, self.covered, op.name));
            }
        }
        self.covered = self.covered.max(op.end);
    }

    fn finished(self, texts: &mut OpTexts<'_>) -> rusqlite::Result<GpuUtilisation> {
        let span_ns = self.covered.abs_diff(self.start);
        let longest = match self.longest {
            None => None,
            Some((idle_ns, start_ns, before)) => {
                Some(LongestGap { start_ns, idle_ns, before: texts.name(before)? })
            }
        };
        let busy_ns = span_ns - self.idle_ns;
        Ok(GpuUtilisation { gpu: self.gpu, span_ns, busy_ns, idle_ns: self.idle_ns, longest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_what_gaps_leave() {
        let mut parts = BusyParts::of((0, 1000), (100, 900));
        for gap in [(150, 152), (200, 450), (452, 453), (899, 900)] {
            parts.idle(gap);
        }
        let parts = parts.finished();
        assert_eq!((parts.len(), parts[0].start_ns, parts[199].end_ns), (200, 0, 1000));
        let busy = |at: usize| parts[at].busy_ns;
        assert_eq!([0, 19, 20, 30, 39, 40, 89, 90, 179, 180].map(busy), [0, 0, 5, 3, 5, 0, 0, 4, 4, 0]);
        assert_eq!(parts.iter().map(|part| part.busy_ns).sum::<u64>(), 800 - 2 - 250 - 1 - 1);
        assert_eq!(BusyParts::of((5, 5), (5, 5)).finished(), []);
        assert_eq!(BusyParts::of((5, 8), (5, 8)).finished().len(), 3);
    }
}
