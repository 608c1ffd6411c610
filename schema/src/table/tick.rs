//! `ext_tick`: an op in the device's own time.

use super::{Cells, Row};
use crate::id::{Offset, OpId};
use rpd_sql::insert::{self, Insert};

/// Raw tick counts of an op, as the device wrote them.
#[derive(Clone, Copy, Debug)]
pub struct TickRow {
    /// The op.
    pub op: OpId,
    /// Begin, ticks of the device's counter.
    pub start: u64,
    /// End, ticks of the device's counter.
    pub end: u64,
}

impl Row for TickRow {
    const INSERT: &'static Insert = &insert::EXT_TICK;

    fn largest_id(&self) -> u64 {
        self.op.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.op(self.op)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        // Raw means raw: the bit pattern of a counter that a broken device wrote must come back unchanged.
        cells.integer(self.start.cast_signed());
        cells.integer(self.end.cast_signed());
    }
}
