//! `rocpd_api`: what a thread of the application did.

use super::{Cells, Row};
use crate::id::{ApiId, Offset, StringId};
use rpd_sql::insert::{self, Insert};

/// An API call, a marker (start = end) or a range.
#[derive(Clone, Copy, Debug)]
pub struct ApiRow {
    /// Correlation id of a call, or number of a marker.
    pub id: ApiId,
    /// Process, as the recording process's own namespace numbers it.
    pub pid: u32,
    /// Thread (gettid).
    pub tid: u32,
    /// Begin, ns, CLOCK_MONOTONIC.
    pub start: u64,
    /// End, ns, CLOCK_MONOTONIC; not before `start`.
    pub end: u64,
    /// Name of the function; `UserMarker` for roctx and nvtx markers.
    pub name: StringId,
    /// `key=value` pairs joined by ` | `, or the marker's message.
    pub args: StringId,
}

impl Row for ApiRow {
    const INSERT: &'static Insert = &insert::API;

    fn largest_id(&self) -> u64 {
        self.id.local()
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.api(self.id)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.integer(self.pid);
        cells.integer(self.tid);
        cells.unsigned(self.start);
        cells.unsigned(self.end);
        cells.string_id(self.name);
        cells.string_id(self.args);
    }
}
