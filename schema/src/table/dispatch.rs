//! `ext_dispatch`: how a kernel was launched, where the row of its call does not say it.

use super::{Cells, Row};
use crate::id::{CodeObjectId, Offset, OpId, StringId};
use rpd_sql::insert::{self, Insert};

/// A launch of a kernel of which no row of `rocpd_kernelapi` tells.
#[derive(Clone, Copy, Debug)]
pub struct DispatchRow {
    /// The op of the kernel.
    pub op: OpId,
    /// Demangled kernel name.
    pub kernel_name: StringId,
    /// Grid, in workgroups, rounded up.
    pub grid: [u32; 3],
    /// Workgroup, in work-items.
    pub workgroup: [u32; 3],
    /// LDS of a workgroup, bytes.
    pub group_segment_size: u32,
    /// Scratch of a work-item, bytes.
    pub private_segment_size: u32,
    /// Address of the kernel's arguments; 0 where it is not known.
    pub kernarg_address: u64,
    /// Resources of the kernel.
    pub code_object: CodeObjectId,
}

impl Row for DispatchRow {
    const INSERT: &'static Insert = &insert::EXT_DISPATCH;

    fn largest_id(&self) -> u64 {
        self.op.0.max(self.code_object.0)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.op(self.op)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.string_id(self.kernel_name);
        for extent in self.grid.into_iter().chain(self.workgroup) {
            cells.integer(extent);
        }
        cells.integer(self.group_segment_size);
        cells.integer(self.private_segment_size);
        cells.handle(self.kernarg_address);
        cells.integer(offset.code_object(self.code_object));
    }
}
