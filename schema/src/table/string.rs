//! `rocpd_string`: every text of the trace.

use super::{Cells, Row};
use crate::id::{Offset, StringId};
use rpd_sql::insert::{self, Insert};

/// A text and the id that the interner gave it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringRow<'a> {
    pub(crate) id: StringId,
    pub(crate) text: &'a str,
}

impl Row for StringRow<'_> {
    const INSERT: &'static Insert = &insert::STRING;

    fn largest_id(&self) -> u64 {
        // The interner hands out only ids that fit, and they carry the session already.
        0
    }

    fn key(&self, _offset: Offset) -> i64 {
        self.id.0
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.text(self.text);
    }
}
