//! `ext_librarycall`: a call of a GPU library.

use super::{Cells, Row};
use crate::id::{ApiId, Offset, StringId};
use rpd_sql::insert::{self, Insert};

/// What library a call is of.
#[derive(Clone, Copy, Debug)]
pub struct LibraryCallRow {
    /// The call.
    pub api: ApiId,
    /// The library.
    pub domain: StringId,
    /// What it does.
    pub category: StringId,
}

impl Row for LibraryCallRow {
    const INSERT: &'static Insert = &insert::EXT_LIBRARYCALL;

    fn largest_id(&self) -> u64 {
        self.api.local()
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.api(self.api)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.string_id(self.domain);
        cells.string_id(self.category);
    }
}
