//! How busy each GPU is: the short form of [`super::gaps`], which says why it is not.

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
