//! `ext_instrumentation` and the tables of what analyzers found: written one row at a time, as they are few.

use std::borrow::Cow;

use rpd_sql::insert::{self, Insert};
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};

use crate::id::{CodeObjectId, Offset, OpId, StringId};

/// What one analyzer was given of one dispatch.
#[derive(Clone, Copy, Debug)]
pub struct InstrumentationRow<'a> {
    /// The dispatch; none where it did not complete.
    pub op: Option<OpId>,
    /// The application's kernel.
    pub kernel_name: StringId,
    /// Index of the GPU.
    pub gpu: u32,
    /// The queue's number.
    pub queue: u32,
    /// Place in the queue.
    pub sequence: u64,
    /// Such as `MemoryAnalysis`.
    pub analyzer: &'a str,
    /// Messages of all kinds.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Bytes that no analyzer was given.
    pub dropped: u64,
    /// The kernel did not run to its end.
    pub incomplete: bool,
    /// What else is missing, in words.
    pub reason: &'a str,
}

/// Something that an analyzer found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Finding {
    /// A row of `ext_memoryaccess`.
    MemoryAccess {
        /// File of the source; empty where it is not known.
        file: String,
        /// Line in it; 0 where it is not known.
        line: u32,
        /// Column; 0 where it is not known.
        column: u32,
        /// `read`, `write` or `read_write`.
        kind: Cow<'static, str>,
        /// Address space, such as `global`.
        space: Cow<'static, str>,
        /// Bytes that a lane accesses.
        size: u32,
        /// How often a wavefront made it.
        accesses: u64,
        /// Cache lines that would have been enough.
        lines_needed: u64,
        /// Cache lines that were touched.
        lines_used: u64,
        /// Conflicts of LDS banks.
        conflicts: u64,
    },
    /// A row of `ext_heatmap`.
    Page {
        /// Where the page begins.
        address: u64,
        /// Its bytes.
        size: u64,
        /// How often a lane accessed it.
        accesses: u64,
    },
    /// A row of `ext_timeinterval`. Times are ticks of the device's clock.
    Intervals {
        /// How many.
        count: u64,
        /// Their sum.
        total: u64,
        /// The first begin.
        first_begin: u64,
        /// The last end.
        last_end: u64,
    },
    /// A row of `ext_basicblock`. Times are ticks of the device's clock.
    BasicBlock {
        /// Its number in the kernel.
        block: u32,
        /// The compute unit; none for all of them together.
        cu: Option<u32>,
        /// File of the source; empty where it is not known.
        file: String,
        /// Line in it; 0 where it is not known.
        line: u32,
        /// How often a wavefront entered it.
        count: u64,
        /// How often its end was seen too.
        timed: u64,
        /// How long wavefronts stayed.
        total: u64,
        /// The shortest stay.
        min: u64,
        /// Half of all stays are not longer.
        p50: u64,
        /// Nine of ten are not longer.
        p90: u64,
        /// 99 of a hundred are not longer.
        p99: u64,
        /// The longest stay.
        max: u64,
        /// Which part of the lanes did not take part.
        branchiness: f64,
    },
    /// A row of `ext_blockcount`.
    BlockCount {
        /// The block, whose row the first such finding writes.
        block: Block,
        /// How many dispatches that is of.
        dispatches: u64,
        /// Wavefronts that entered it.
        waves: Option<u64>,
        /// Lanes that were active in it.
        lanes: Option<u64>,
        /// How long wavefronts stayed, in ticks of the device's clock.
        ticks: Option<u64>,
    },
    /// A row of `ext_handlervalue`.
    Value {
        /// What the handler calls it.
        name: String,
        /// The number.
        value: f64,
    },
}

/// A basic block of a kernel, as `ext_block` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// The local id of the kernel of the application among those of `rocpd_kernelcodeobject`.
    pub kernel: u64,
    /// Its number among the kernel's blocks, counted from 0.
    pub number: u32,
    /// Symbol of the function.
    pub function: String,
    /// Address in the code object.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// File of the source; empty where it is not known.
    pub file: String,
    /// Line in it; 0 where it is not known.
    pub line: u32,
    /// How many instructions it has of each kind, in the order of the columns.
    pub kinds: [u32; Block::KINDS],
}

impl Block {
    /// Kinds of instructions: valu, salu, vmem, smem, lds, mfma, branch, other.
    pub const KINDS: usize = 8;
    /// Blocks that a kernel may have.
    pub const MOST: u32 = 1 << 16;

    /// Its local id: the same whenever it is written.
    pub(crate) fn local_id(&self) -> u64 {
        self.kernel * u64::from(Block::MOST) + u64::from(self.number)
    }

    pub(crate) fn cells(&self, offset: Offset) -> Vec<Value> {
        let mut cells = vec![
            Value::Integer(offset.local(self.local_id())),
            Value::Integer(offset.code_object(CodeObjectId(self.kernel))),
            number(self.number.into()),
            text(&self.function),
            number(self.offset),
            number(self.size),
            text(&self.file),
            number(self.line.into()),
            number(self.kinds.iter().map(|count| u64::from(*count)).sum()),
        ];
        cells.extend(self.kinds.map(|count| number(count.into())));
        cells
    }
}

fn number(value: u64) -> Value {
    Value::Integer(i64::try_from(value).unwrap_or(i64::MAX))
}

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

impl InstrumentationRow<'_> {
    /// The cells of the row, whose local id is `id`.
    pub(crate) fn cells(&self, offset: Offset, id: u64) -> Vec<Value> {
        vec![
            Value::Integer(offset.local(id)),
            self.op.map_or(Value::Null, |op| Value::Integer(offset.op(op))),
            Value::Integer(self.kernel_name.0),
            number(self.gpu.into()),
            number(self.queue.into()),
            number(self.sequence),
            text(self.analyzer),
            number(self.messages),
            number(self.bytes),
            number(self.dropped),
            number(self.incomplete.into()),
            text(self.reason),
        ]
    }
}

impl Finding {
    pub(crate) fn table(&self) -> &'static Insert {
        match self {
            Finding::MemoryAccess { .. } => &insert::EXT_MEMORYACCESS,
            Finding::Page { .. } => &insert::EXT_HEATMAP,
            Finding::Intervals { .. } => &insert::EXT_TIMEINTERVAL,
            Finding::BasicBlock { .. } => &insert::EXT_BASICBLOCK,
            Finding::BlockCount { .. } => &insert::EXT_BLOCKCOUNT,
            Finding::Value { .. } => &insert::EXT_HANDLERVALUE,
        }
    }

    /// The cells of the row, whose local id is `id`; it is one of those of the instrumentation's row with the local id `of`.
    pub(crate) fn cells(&self, offset: Offset, id: u64, of: u64) -> Vec<Value> {
        let mut cells = vec![Value::Integer(offset.local(id)), Value::Integer(offset.local(of))];
        match self {
            Finding::MemoryAccess {
                file,
                line,
                column,
                kind,
                space,
                size,
                accesses,
                lines_needed,
                lines_used,
                conflicts,
            } => {
                cells.extend([text(file), number((*line).into()), number((*column).into())]);
                cells.extend([text(kind), text(space), number((*size).into())]);
                cells.extend([accesses, lines_needed, lines_used, conflicts].map(|&cell| number(cell)));
            }
            Finding::Page { address, size, accesses } => {
                cells.extend([address, size, accesses].map(|&cell| number(cell)));
            }
            Finding::Intervals { count, total, first_begin, last_end } => {
                cells.extend([count, total, first_begin, last_end].map(|&cell| number(cell)));
            }
            Finding::BasicBlock {
                block,
                cu,
                file,
                line,
                count,
                timed,
                total,
                min,
                p50,
                p90,
                p99,
                max,
                branchiness,
            } => {
                cells.extend([number((*block).into()), Value::Integer(cu.map_or(-1, i64::from))]);
                cells.extend([text(file), number((*line).into())]);
                cells.extend([count, timed, total, min, p50, p90, p99, max].map(|&cell| number(cell)));
                cells.push(Value::Real(*branchiness));
            }
            Finding::BlockCount { block, dispatches, waves, lanes, ticks } => {
                cells.extend([Value::Integer(offset.local(block.local_id())), number(*dispatches)]);
                cells.extend([waves, lanes, ticks].map(|cell| cell.map_or(Value::Null, number)));
            }
            Finding::Value { name, value } => cells.extend([text(name), Value::Real(*value)]),
        }
        cells
    }
}
