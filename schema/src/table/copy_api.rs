//! `rocpd_copyapi`: the arguments of a call that copies.

use super::{Cells, Row};
use crate::id::{ApiId, Offset};
use rpd_sql::insert::{self, Insert};

/// A copy as it was asked for.
#[derive(Clone, Copy, Debug)]
pub struct CopyApiRow {
    /// The copying call.
    pub api: ApiId,
    /// Handle of the stream; 0 for the default stream.
    pub stream: u64,
    /// Bytes copied.
    pub size: u64,
    /// Width of a rectangle, bytes; 0 for a plain copy.
    pub width: u64,
    /// Height of a rectangle, rows; 0 for a plain copy.
    pub height: u64,
    /// Direction, as HIP numbers it (hipMemcpyKind).
    pub kind: u32,
    /// Destination address.
    pub dst: u64,
    /// Source address.
    pub src: u64,
    /// GPU of the destination; -1 for the host.
    pub dst_device: i32,
    /// GPU of the source; -1 for the host.
    pub src_device: i32,
    /// Whether the call waited for the copy.
    pub sync: bool,
    /// Whether the host's side was pinned.
    pub pinned: bool,
}

impl Row for CopyApiRow {
    const INSERT: &'static Insert = &insert::COPYAPI;

    fn largest_id(&self) -> u64 {
        self.api.local()
    }

    fn key(&self, offset: Offset) -> i64 {
        offset.api(self.api)
    }

    fn fill(&self, _offset: Offset, cells: &mut Cells<'_>) {
        cells.handle(self.stream);
        cells.unsigned(self.size);
        cells.unsigned(self.width);
        cells.unsigned(self.height);
        cells.integer(self.kind);
        cells.handle(self.dst);
        cells.handle(self.src);
        cells.integer(self.dst_device);
        cells.integer(self.src_device);
        cells.integer(self.sync);
        cells.integer(self.pinned);
    }
}
