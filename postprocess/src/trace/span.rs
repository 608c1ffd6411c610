//! From when to when something happened.

use serde::Serialize;

/// A range of time on the recording host's CLOCK_MONOTONIC, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Span {
    /// First start.
    pub start_ns: i64,
    /// Last end.
    pub end_ns: i64,
}

impl Span {
    /// Its length, ns.
    pub fn duration_ns(self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns).max(0).unsigned_abs()
    }

    pub(super) fn around(self, other: Span) -> Span {
        Span { start_ns: self.start_ns.min(other.start_ns), end_ns: self.end_ns.max(other.end_ns) }
    }
}
