//! `rocpd_op` and `rocpd_barrierop`: what a GPU did.

use super::{Cells, Fence, Row};
use crate::id::{Offset, OpId, StringId};
use rpd_sql::insert::{self, Insert};

/// A kernel, a copy or a fill.
#[derive(Clone, Copy, Debug)]
pub struct OpRow {
    /// This op.
    pub id: OpId,
    /// Index of the GPU among all GPUs of the node, from 0.
    pub gpu: u32,
    /// Small number of the hardware queue on that GPU.
    pub queue: u32,
    /// Position in the queue.
    pub sequence: u64,
    /// Handle of the completion signal; 0 where there is none.
    pub completion_signal: u64,
    /// Begin on the GPU, ns, translated to CLOCK_MONOTONIC.
    pub start: u64,
    /// End on the GPU, ns, translated to CLOCK_MONOTONIC; not before `start`.
    pub end: u64,
    /// Demangled kernel name; the empty text for copies and fills.
    pub description: StringId,
    /// `KernelExecution`, `CopyHostToDevice`, `FillBuffer` ...
    pub op_type: StringId,
}

impl Row for OpRow {
    const INSERT: &'static Insert = &insert::OP;

    fn largest_id(&self) -> u64 {
        self.id.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.op(self.id)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(self.gpu);
        cells.integer(self.queue);
        cells.unsigned(self.sequence);
        cells.handle(self.completion_signal);
        cells.unsigned(self.start);
        cells.unsigned(self.end);
        cells.string_id(self.description);
        cells.string_id(self.op_type);
    }
}

/// What a barrier packet waited for. Its op is linked to no API call: it would show as a kernel.
#[derive(Clone, Copy, Debug)]
pub struct BarrierRow {
    /// The op of the barrier.
    pub op: OpId,
    /// How many signals it waited for.
    pub signal_count: u32,
    /// Its acquire fence.
    pub acquire_fence: Fence,
    /// Its release fence.
    pub release_fence: Fence,
}

impl Row for BarrierRow {
    const INSERT: &'static Insert = &insert::BARRIEROP;

    fn largest_id(&self) -> u64 {
        self.op.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.op(self.op)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(self.signal_count);
        cells.text(self.acquire_fence.text());
        cells.text(self.release_fence.text());
    }
}
