//! The energy of each operation, for reports that add operations up by something else than names, markers or ranks.

use anyhow::Result;
use bytemuck::{Pod, Zeroable};
use rusqlite::Connection;

use super::groups::GroupedOp;
use super::sweep::Parents;
use super::{StepLengths, sensor, share_out};
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;
use crate::report::gpu_time::GpuOps;

/// What an operation got of the steps of its GPU's sensor; ordered by the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct OpEnergy {
    /// Row of `rocpd_op`.
    op: i64,
    /// Time in steps.
    sampled_ns: u64,
    /// Above the idle floor, as bits: numbers with a point have no order.
    joules: u64,
}

/// The energy of operations, by their ids.
pub(in crate::report) struct OpEnergies {
    ops: Sorted<OpEnergy>,
    next: Option<OpEnergy>,
    /// What ran for less has no joules.
    pub(in crate::report) steps: StepLengths,
}

impl OpEnergies {
    /// Shares out the energy of a trace; none where no sensor was read. What runs beside the selected operations has its share too.
    ///
    /// # Errors
    /// When the trace, or a temporary file, cannot be read.
    pub(in crate::report) fn of(trace: &Connection, selected: &Selected) -> Result<Option<OpEnergies>> {
        let steps = sensor::steps(trace)?;
        if steps.is_empty() {
            return Ok(None);
        }
        let (mut sorter, mut energies) = (Sorter::new(), Sorter::new());
        let GpuOps { mut ops, .. } = GpuOps::of(trace, &Selected::everything())?;
        while let Some(op) = ops.next()? {
            sorter.push(GroupedOp { gpu: op.gpu, start: op.start, end: op.end, group: op.id })?;
        }
        let gpus = share_out((steps, &Parents::default()), sorter.sorted_twice()?, None, |_, op, share| {
            if !selected.has_op(op) {
                return Ok(());
            }
            energies.push(OpEnergy { op, sampled_ns: share.ns, joules: share.joules.to_bits() })
        })?;
        let mut ops = energies.sorted()?;
        Ok(Some(OpEnergies { next: ops.next()?, ops, steps: StepLengths::of(&gpus) }))
    }

    /// Joules of an operation, and for how long it ran while a sensor was read, ns. To be asked in the order of ids.
    ///
    /// # Errors
    /// When a temporary file cannot be read.
    pub(in crate::report) fn at(&mut self, op: i64) -> Result<(f64, u64)> {
        while self.next.is_some_and(|next| next.op < op) {
            self.next = self.ops.next()?;
        }
        let found = self.next.filter(|next| next.op == op);
        Ok(found.map_or((0.0, 0), |found| (f64::from_bits(found.joules), found.sampled_ns)))
    }
}
