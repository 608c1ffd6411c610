//! `rocpd_kernelapi`: the arguments of a call that launches one kernel.

use super::{Cells, Fence, Row};
use crate::id::{ApiId, CodeObjectId, Offset, StringId};
use rpd_sql::insert::{self, Insert};

/// A launch of one kernel. The kernels of a graph launch have no row here, only in `ext_dispatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelApiRow {
    /// The launching call.
    pub api: ApiId,
    /// Handle of the stream; 0 for the default stream.
    pub stream: u64,
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
    /// The packet's acquire fence.
    pub acquire_fence: Fence,
    /// The packet's release fence.
    pub release_fence: Fence,
    /// Resources of the kernel.
    pub code_object: CodeObjectId,
    /// Demangled kernel name.
    pub kernel_name: StringId,
}

impl Row for KernelApiRow {
    const INSERT: &'static Insert = &insert::KERNELAPI;

    fn largest_id(&self) -> u64 {
        self.api.local().max(self.code_object.0)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.api(self.api)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.handle(self.stream);
        for extent in self.grid.into_iter().chain(self.workgroup) {
            cells.integer(extent);
        }
        cells.integer(self.group_segment_size);
        cells.integer(self.private_segment_size);
        cells.handle(self.kernarg_address);
        cells.text(self.acquire_fence.text());
        cells.text(self.release_fence.text());
        cells.integer(offset.code_object(self.code_object));
        cells.string_id(self.kernel_name);
    }
}
