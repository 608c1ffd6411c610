//! `ext_validation`: what a candidate and the application's kernel left in copies of the same buffers.

use super::{Cells, Row};
use crate::id::{Offset, OpId};
use rpd_sql::insert::{self, Insert};

/// A buffer argument of a dispatch after both kernels.
#[derive(Clone, Copy, Debug)]
pub struct ValidationRow<'a> {
    /// The dispatch.
    pub op: OpId,
    /// Place among the kernel's arguments, from 0; none where nothing could be compared.
    pub argument: Option<u32>,
    /// Bytes from the start of the arguments.
    pub offset: u32,
    /// As what it was compared: `bytes`, `f32`, ...
    pub compared: &'a str,
    /// How many elements were compared.
    pub elements: u64,
    /// How many of them the application's kernel changed.
    pub written: u64,
    /// How many differ.
    pub different: u64,
    /// Place of the first that differs, elements from the argument's address; it may lie before that.
    pub first: i64,
    /// What the application's kernel left there; empty where none differs.
    pub original: &'a str,
    /// What the candidate left there.
    pub candidate: &'a str,
    /// The largest difference; empty where there is none that is a number.
    pub largest: &'a str,
    /// Why nothing could be compared.
    pub reason: &'a str,
}

/// A [`ValidationRow`] with its id.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedValidation<'a> {
    pub(crate) id: u64,
    pub(crate) row: &'a ValidationRow<'a>,
}

impl Row for NumberedValidation<'_> {
    const INSERT: &'static Insert = &insert::EXT_VALIDATION;

    fn largest_id(&self) -> u64 {
        self.row.op.0.max(self.id)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        let row = self.row;
        cells.integer(offset.op(row.op));
        cells.integer(row.argument.map_or(-1, i64::from));
        cells.integer(row.offset);
        cells.text(row.compared);
        cells.unsigned(row.elements);
        cells.unsigned(row.written);
        cells.unsigned(row.different);
        cells.integer(row.first);
        cells.text(row.original);
        cells.text(row.candidate);
        cells.text(row.largest);
        cells.text(row.reason);
    }
}
