//! Ids of API calls: what ties an operation to the call that caused it.
//!
//! They count from 1 through the whole process, over all sessions and files that it writes.

use std::sync::atomic::{AtomicU64, Ordering};

static NEXT: AtomicU64 = AtomicU64::new(1);

/// An operation that no recorded call caused.
pub const NONE: u64 = 0;

/// A new id.
#[inline]
pub fn next() -> u64 {
    NEXT.fetch_add(1, Ordering::AcqRel)
}

/// The id that comes next: smaller ones have been given out, and whatever their threads did before that is visible.
#[inline]
pub fn watermark() -> u64 {
    NEXT.load(Ordering::Acquire)
}
