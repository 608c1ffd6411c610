//! Memory for records that are not written yet. It comes in chunks; the rings of all threads together have a limited number of bytes.
//!
//! Spare chunks lie in a vector behind a lock that nobody waits for. A queue without a lock (crossbeam's `ArrayQueue`) would be waited for:
//! a thread that a signal handler has interrupted between the two steps of its push or pop holds up whoever comes to that place, which
//! may be the handler itself, or the writer at the end of a process whose handler does not return.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, TryLockError};

use crate::records::chunk::Owned;

/// Bytes of a chunk, but for the first of a thread and those of records that need more.
pub const CHUNK: usize = 64 << 10;
/// Bytes of new chunks after which the writer should come by: a steady load then runs in chunks given back, which need no memory
/// from the system, while a transaction is still a tenth of a second's work.
pub const ENOUGH: usize = 8 << 20;
/// Chunks kept for that.
const SPARE_CHUNKS: usize = ENOUGH / CHUNK;

/// Memory that all rings of a process share.
pub struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
    /// Bytes of chunks taken since the writer's last visit.
    taken: AtomicUsize,
    /// Somebody has waited in vain since the writer last gave memory back.
    exhausted: AtomicBool,
    spare: Mutex<Vec<Owned>>,
}

impl Budget {
    /// At most `limit` bytes of chunks.
    pub fn new(limit: usize) -> Budget {
        let spare = Mutex::new(Vec::with_capacity(SPARE_CHUNKS));
        let (used, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Budget { limit: AtomicUsize::new(limit), used, taken, exhausted: AtomicBool::new(false), spare }
    }

    /// At most `limit` bytes from now on; what is in use stays.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Whether much was taken since the writer's last visit.
    pub fn is_busy(&self) -> bool {
        self.taken.load(Ordering::Relaxed) >= ENOUGH
    }

    /// The writer has come by.
    pub fn visited(&self) {
        self.taken.store(0, Ordering::Relaxed);
    }

    /// Whether more than a quarter is in use: the writer should hurry.
    pub fn pressed(&self) -> bool {
        self.used.load(Ordering::Relaxed) > self.limit() / 4
    }

    /// Whether there can ever be room for a chunk of `size` bytes.
    pub fn fits(&self, size: usize) -> bool {
        size <= self.limit()
    }

    /// Waiting for memory was in vain: until the writer gives some back, nobody else waits.
    pub fn mark_exhausted(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    /// Whether waiting for memory was in vain, and nothing has changed since.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Memory of that size, where there is room for it.
    pub fn take(&self, size: usize) -> Option<Owned> {
        let before = self.used.fetch_add(size, Ordering::Relaxed);
        if before + size > self.limit() {
            self.used.fetch_sub(size, Ordering::Relaxed);
            return None;
        }
        self.taken.fetch_add(size, Ordering::Relaxed);
        let recycled = if size == CHUNK { self.with_spare(Vec::pop).flatten() } else { None };
        let chunk = recycled.or_else(|| Owned::new(size));
        if chunk.is_none() {
            self.used.fetch_sub(size, Ordering::Relaxed);
        } else if self.is_exhausted() {
            self.exhausted.store(false, Ordering::Relaxed);
        }
        chunk
    }

    /// Memory that is not needed any more.
    pub fn give_back(&self, mut chunk: Owned) {
        self.used.fetch_sub(chunk.size(), Ordering::Relaxed);
        self.exhausted.store(false, Ordering::Relaxed);
        if chunk.size() == CHUNK {
            chunk.reset();
            self.with_spare(|spare| {
                if spare.len() < SPARE_CHUNKS {
                    spare.push(chunk);
                }
            });
        }
    }

    /// Nobody waits for the spare chunks: whoever holds them may be interrupted by a handler that never returns.
    fn with_spare<T>(&self, act: impl FnOnce(&mut Vec<Owned>) -> T) -> Option<T> {
        match self.spare.try_lock() {
            Ok(mut spare) => Some(act(&mut spare)),
            Err(TryLockError::Poisoned(poisoned)) => Some(act(&mut poisoned.into_inner())),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}
