//! Ids in the order in which they are given out, and which of them are still open.

use crate::atomic::{AtomicU64, Ordering};
use crate::records::ring::Producer;

/// Beside an id in a ring's open call: the thread is about to take an id, this one or a later one.
pub const OPENING: u64 = 1 << 63;

/// The id that comes next.
pub(super) struct NextId(pub(super) AtomicU64);

impl NextId {
    #[inline]
    pub(super) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::AcqRel)
    }

    #[inline]
    pub(super) fn watermark(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn open(&self, producer: &Producer) -> u64 {
        // Whoever sees the id given out sees at least this.
        producer.open_call(OPENING | self.watermark());
        let id = self.next();
        producer.open_call(id);
        id
    }
}

/// Whether a ring's open call `open` is `call`, or may be.
pub fn may_be(open: u64, call: u64) -> bool {
    if open & OPENING == 0 { open == call } else { call >= open & !OPENING }
}
