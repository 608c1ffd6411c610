//! `rocpd_kernelcodeobject` and `ext_kernelcodeobject`: what a kernel needs to run.

use super::{Cells, Row};
use crate::id::{CodeObjectId, Offset, StringId};
use rpd_sql::insert::{self, Insert};

/// Registers of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct CodeObjectRow {
    /// This kernel's facts.
    pub id: CodeObjectId,
    /// Vector registers per lane.
    pub vgpr: u32,
    /// Scalar registers per wave.
    pub sgpr: u32,
    /// Barrier resources; 0 where it is not known.
    pub fbar: u32,
}

impl Row for CodeObjectRow {
    const INSERT: &'static Insert = &insert::KERNELCODEOBJECT;

    fn largest_id(&self) -> u64 {
        self.id.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.code_object(self.id)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(self.vgpr);
        cells.integer(self.sgpr);
        cells.integer(self.fbar);
    }
}

/// What the code object's metadata says beyond that.
#[derive(Clone, Copy, Debug)]
pub struct ExtCodeObjectRow {
    /// The same id as its [`CodeObjectRow`].
    pub id: CodeObjectId,
    /// Demangled kernel name.
    pub kernel_name: StringId,
    /// Accumulation registers per lane.
    pub agpr: u32,
    /// Vector registers spilled to scratch.
    pub vgpr_spill: u32,
    /// Scalar registers spilled.
    pub sgpr_spill: u32,
    /// LDS that the kernel itself declares, bytes.
    pub group_segment_size: u32,
    /// Scratch of a work-item, bytes.
    pub private_segment_size: u32,
    /// Arguments, bytes.
    pub kernarg_segment_size: u32,
    /// Lanes of a wave: 32 or 64.
    pub wavefront_size: u32,
    /// Work-items that a workgroup may have.
    pub max_workgroup_size: u32,
}

impl Row for ExtCodeObjectRow {
    const INSERT: &'static Insert = &insert::EXT_KERNELCODEOBJECT;

    fn largest_id(&self) -> u64 {
        self.id.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.code_object(self.id)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.string_id(self.kernel_name);
        cells.integer(self.agpr);
        cells.integer(self.vgpr_spill);
        cells.integer(self.sgpr_spill);
        cells.integer(self.group_segment_size);
        cells.integer(self.private_segment_size);
        cells.integer(self.kernarg_segment_size);
        cells.integer(self.wavefront_size);
        cells.integer(self.max_workgroup_size);
    }
}
