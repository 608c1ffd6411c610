//! `ext_codeobject` and `ext_codeobject_kernel`: code objects whose bytes were saved.

use super::{Cells, Row};
use crate::id::{CodeObjectId, Offset, SavedCodeId};
use rpd_sql::insert::{self, Insert};

/// A code object that the program loaded.
#[derive(Clone, Copy, Debug)]
pub struct SavedCodeRow<'a> {
    /// This code object.
    pub id: SavedCodeId,
    /// SHA-256 of its bytes, in hexadecimal digits.
    pub sha256: &'a str,
    /// Where the program had it.
    pub uri: &'a str,
    /// The processor that it is for.
    pub target: &'a str,
    /// Bytes.
    pub size: u64,
}

impl Row for SavedCodeRow<'_> {
    const INSERT: &'static Insert = &insert::EXT_CODEOBJECT;

    fn largest_id(&self) -> u64 {
        self.id.0
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.local(self.id.0)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.text(self.sha256);
        cells.text(self.uri);
        cells.text(self.target);
        cells.unsigned(self.size);
    }
}

/// Which code object a kernel came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SavedKernel {
    pub(crate) kernel: CodeObjectId,
    pub(crate) code: SavedCodeId,
}

impl Row for SavedKernel {
    const INSERT: &'static Insert = &insert::EXT_CODEOBJECT_KERNEL;

    fn largest_id(&self) -> u64 {
        self.kernel.0.max(self.code.0)
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.code_object(self.kernel)
    }

    fn fill(&self, offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(offset.local(self.code.0));
    }
}
