//! Operations together with the calls that caused them.
//!
//! Everything is sorted, on disk where there is much of it, and walked beside each other: memory does not grow with the trace, but for a
//! bit or so for each call.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rpd_schema::Processes;
use rusqlite::Connection;
use rusqlite::types::ValueRef;

use super::by_id::{ById, integer};
use super::gpu_time::{GpuOps, LeftOut, OpName};
use crate::check::rule::are_sound;
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::trace::has_table;
use crate::trace::ids::Ids;

/// No call.
const NONE: i64 = i64::MIN;

/// An operation; ordered by the call that caused it, then by start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct CausedOp {
    /// Row of `rocpd_api`; of several calls that are linked to it the first by id.
    call: i64,
    pub(crate) start: i64,
    pub(crate) end: i64,
    /// Row of `rocpd_op`.
    pub(crate) id: i64,
    pub(crate) gpu: i64,
    pub(crate) queue: i64,
    pub(crate) name: OpName,
    /// The part of it in which no operation ran on its GPU that began before, ns. All of a GPU add up to the time in which it is busy.
    pub(crate) uncovered: i64,
}

impl CausedOp {
    /// How long it ran, ns.
    pub(crate) fn duration(&self) -> u64 {
        self.end.abs_diff(self.start)
    }
}

/// An operation, ordered by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct NumberedOp {
    id: i64,
    op: CausedOp,
}

/// A call that caused operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CausingCall {
    /// Row of `rocpd_api`.
    pub(crate) id: i64,
    /// Process, its id, and thread: ids alone may be equal.
    pub(crate) thread: (i64, i64, i64),
    /// Start and end, if they are possible.
    pub(crate) times: Option<(i64, i64)>,
    /// Id of the function's name.
    pub(crate) name: i64,
}

/// The operations of a part of a trace, by the calls that caused them.
pub(crate) struct CausedOps<'trace> {
    trace: &'trace Connection,
    ops: Sorted<CausedOp>,
    /// Rows that count nowhere.
    pub(crate) left_out: LeftOut,
}

impl<'trace> CausedOps<'trace> {
    /// Reads and sorts them.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(crate) fn of(trace: &'trace Connection, selected: &Selected) -> Result<CausedOps<'trace>> {
        let GpuOps { mut ops, left_out } = GpuOps::of(trace, selected)?;
        let mut numbered = Sorter::new();
        let mut covered: Option<(i64, i64)> = None;
        while let Some(op) = ops.next()? {
            let until = covered.filter(|(gpu, _)| *gpu == op.gpu).map_or(op.start, |(_, until)| until);
            covered = Some((op.gpu, until.max(op.end)));
            let uncovered = (op.end - until.max(op.start)).max(0);
            let (start, end, id, gpu, queue, name) = (op.start, op.end, op.id, op.gpu, op.queue, op.name);
            let op = CausedOp { call: NONE, start, end, id, gpu, queue, name, uncovered };
            numbered.push(NumberedOp { id, op })?;
        }
        let mut numbered = numbered.sorted()?;
        let mut links = links(trace)?;
        let mut link = links.next()?;
        let mut caused = Sorter::new();
        while let Some(NumberedOp { id, mut op }) = numbered.next()? {
            while let Some([linked, call]) = link.filter(|[linked, _]| *linked <= id) {
                // Sorted: the first is the smallest.
                if linked == id && op.call == NONE {
                    op.call = call;
                }
                link = links.next()?;
            }
            caused.push(op)?;
        }
        Ok(CausedOps { trace, ops: caused.sorted()?, left_out })
    }

    /// Hands each to `each`, those first that no call caused, the others by the id of their call.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read, and those of `each`.
    pub(crate) fn each(
        mut self,
        mut each: impl FnMut(&CausedOp, Option<CausingCall>) -> Result<()>,
    ) -> Result<()> {
        let processes = Processes::of(self.trace)?;
        let columns = "pid, tid, start, rocpd_api.\"end\", apiName_id";
        let mut calls = ById::of(self.trace, "rocpd_api", "id", columns)?;
        let mut calls = calls.rows()?;
        while let Some(op) = self.ops.next()? {
            let row = if op.call == NONE { None } else { calls.at(op.call)? };
            let call = row.map(|row| {
                let number = |column| integer(row, column).unwrap_or(-1);
                CausingCall {
                    id: op.call,
                    thread: (processes.of_row(op.call), number(0), number(1)),
                    times: integer(row, 2).zip(integer(row, 3)).filter(|times| are_sound(*times)),
                    name: number(4),
                }
            });
            each(&op, call)?;
        }
        Ok(())
    }
}

/// Operations and the calls that caused them and are in the file, by operation, then by call.
fn links(trace: &Connection) -> Result<Sorted<[i64; 2]>> {
    let mut sorter = Sorter::new();
    if has_table(trace, "rocpd_api_ops")? && has_table(trace, "rocpd_api")? {
        let there = Ids::of(trace, "SELECT id FROM rocpd_api", [])?;
        let mut rows = trace.prepare("SELECT op_id, api_id FROM rocpd_api_ops")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if let (ValueRef::Integer(op), ValueRef::Integer(call)) = (row.get_ref(0)?, row.get_ref(1)?)
                && there.has(call)
            {
                sorter.push([op, call])?;
            }
        }
    }
    sorter.sorted()
}
