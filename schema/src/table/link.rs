//! The tables that tie rows together: `rocpd_api_ops`, `rocpd_op_inputSignals`, `rocpd_stackframe`. Their own local
//! ids are the appender's.

use super::{Cells, Row};
use crate::id::{ApiId, Offset, OpId, StringId};
use rpd_sql::insert::{self, Insert};

/// An API call caused an op.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ApiOp {
    pub(crate) id: u64,
    pub(crate) api: ApiId,
    pub(crate) op: OpId,
}

impl Row for ApiOp {
    const INSERT: &'static Insert = &insert::API_OPS;

    fn largest_id(&self) -> u64 {
        self.id.max(self.api.local()).max(self.op.0)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(offset.api(self.api));
        cells.integer(offset.op(self.op));
    }
}

/// An op waited for another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InputSignal {
    pub(crate) id: u64,
    pub(crate) from: OpId,
    pub(crate) to: OpId,
}

impl Row for InputSignal {
    const INSERT: &'static Insert = &insert::OP_INPUT_SIGNALS;

    fn largest_id(&self) -> u64 {
        self.id.max(self.from.0).max(self.to.0)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(offset.op(self.from));
        cells.integer(offset.op(self.to));
    }
}

/// A frame of the host call stack of an API call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackFrame {
    pub(crate) id: u64,
    pub(crate) api: ApiId,
    pub(crate) depth: u32,
    pub(crate) name: StringId,
}

impl Row for StackFrame {
    const INSERT: &'static Insert = &insert::STACKFRAME;

    fn largest_id(&self) -> u64 {
        self.id.max(self.api.local())
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(offset.api(self.api));
        cells.integer(self.depth);
        cells.string_id(self.name);
    }
}
