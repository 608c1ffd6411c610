//! Ids of API calls: what ties an operation to the call that caused it.
//!
//! They count from 1 through the whole process, over all sessions and files that it writes.

mod ids;

use crate::atomic::AtomicU64;
use crate::records::ring::Producer;
use ids::NextId;
pub use ids::{OPENING, may_be};

static IDS: NextId = NextId(AtomicU64::new(1));

/// An operation that no recorded call caused.
pub const NONE: u64 = 0;

/// A new id.
#[inline]
pub fn next() -> u64 {
    IDS.next()
}

/// The id that comes next: smaller ones have been given out, and whatever their threads did before that is visible.
#[inline]
pub fn watermark() -> u64 {
    IDS.watermark()
}

/// A new id, which is open in the ring of `producer` before anybody can see that it has been given out.
#[inline]
pub fn open(producer: &Producer) -> u64 {
    IDS.open(producer)
}
