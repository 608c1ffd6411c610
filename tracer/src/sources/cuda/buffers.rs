//! Memory for CUPTI's records: given to it empty, taken back full.
//!
//! CUPTI asks for buffers on threads of the application, and would fill new ones with zeros there; these are zeroed already, by the collecting
//! thread. It gives them back on a thread of its own, which only puts them in a list.

use std::alloc::{self, Layout};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rpd_preload::lock::lock;

/// Bytes of a buffer.
pub(super) const SIZE: usize = 1 << 20;
/// Buffers that are kept ready.
const SPARE: usize = 4;
/// ACTIVITY_RECORD_ALIGNMENT is 8; whole pages are zeroed fastest.
const LAYOUT: Layout = match Layout::from_size_align(SIZE, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a size that is a multiple of pages"),
};

/// A buffer of [`SIZE`] bytes.
pub(super) struct Buffer(*mut u8);

// SAFETY: whoever has it owns the memory.
unsafe impl Send for Buffer {}

impl Buffer {
    fn new() -> Option<Buffer> {
        // SAFETY: a size that is not 0.
        let memory = unsafe { alloc::alloc_zeroed(LAYOUT) };
        (!memory.is_null()).then_some(Buffer(memory))
    }

    /// Where its first byte is.
    pub(super) fn start(&self) -> *mut u8 {
        self.0
    }

    fn zero(&mut self) {
        // SAFETY: its own memory. A write to every page also has the system make it there.
        unsafe { self.0.write_bytes(0, SIZE) };
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: allocated so.
        unsafe { alloc::dealloc(self.0, LAYOUT) };
    }
}

/// A buffer that CUPTI has given back.
pub(super) struct Filled {
    pub(super) buffer: Buffer,
    /// Bytes of records.
    pub(super) valid: usize,
}

/// Buffers that CUPTI had when it was given back last. A call that went on then may have written into one.
static RETIRED: Mutex<Vec<Buffer>> = Mutex::new(Vec::new());

/// All buffers.
pub(super) struct Buffers {
    empty: Mutex<Vec<Buffer>>,
    /// Those that CUPTI has.
    given: Mutex<Vec<Buffer>>,
    filled: Mutex<Vec<Filled>>,
    /// Those that there are, CUPTI's included.
    all: AtomicUsize,
    /// How many there may be.
    most: usize,
}

impl Buffers {
    /// None so far; `most` of them at most.
    pub(super) fn new(most: usize) -> Buffers {
        Buffers {
            empty: Mutex::default(),
            given: Mutex::default(),
            filled: Mutex::default(),
            all: AtomicUsize::new(0),
            most,
        }
    }

    /// CUPTI wants one. Nothing where there are too many: CUPTI then counts the records that it has no place for.
    pub(super) fn give(&self) -> Option<*mut u8> {
        let buffer = lock(&self.empty).pop().or_else(|| self.add())?;
        let start = buffer.start();
        lock(&self.given).push(buffer);
        Some(start)
    }

    fn add(&self) -> Option<Buffer> {
        if self.all.fetch_add(1, Ordering::Relaxed) < self.most
            && let Some(buffer) = Buffer::new()
        {
            return Some(buffer);
        }
        self.all.fetch_sub(1, Ordering::Relaxed);
        None
    }

    /// How many CUPTI has.
    pub(super) fn given(&self) -> usize {
        lock(&self.given).len()
    }

    /// CUPTI gives one back, with so many bytes of records, and uses it no more.
    pub(super) fn take_back(&self, start: *mut u8, valid: usize) {
        let mut given = lock(&self.given);
        let Some(place) = given.iter().position(|buffer| buffer.start() == start) else { return };
        let buffer = given.swap_remove(place);
        drop(given);
        lock(&self.filled).push(Filled { buffer, valid: valid.min(SIZE) });
    }

    /// CUPTI was given back: all memory goes, that of what CUPTI still has when it is given back the next time.
    pub(super) fn retire(&self) {
        *lock(&RETIRED) = std::mem::take(&mut lock(&self.given));
        lock(&self.empty).clear();
        lock(&self.filled).clear();
    }

    /// Those that CUPTI has given back since.
    pub(super) fn filled(&self) -> Vec<Filled> {
        std::mem::take(&mut lock(&self.filled))
    }

    /// One has been read: it is for CUPTI again, or goes, where enough are ready.
    pub(super) fn done(&self, filled: Filled) {
        let Filled { mut buffer, .. } = filled;
        if lock(&self.empty).len() >= 2 * SPARE {
            self.all.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        buffer.zero();
        lock(&self.empty).push(buffer);
    }

    /// Sees to it that some are ready.
    pub(super) fn prepare(&self) {
        while lock(&self.empty).len() < SPARE
            && let Some(mut buffer) = self.add()
        {
            buffer.zero();
            lock(&self.empty).push(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_empty_and_no_more_than_allowed() {
        let buffers = Buffers::new(2);
        buffers.prepare();
        let given = [buffers.give().unwrap(), buffers.give().unwrap()];
        assert!(buffers.give().is_none() && buffers.given() == 2, "there may be two");
        for start in given {
            // SAFETY: of that size; nobody else uses it.
            unsafe { start.write_bytes(7, SIZE) };
            buffers.take_back(start, usize::MAX);
        }
        let filled = buffers.filled();
        assert_eq!(filled.iter().map(|filled| filled.valid).collect::<Vec<_>>(), [SIZE; 2]);
        filled.into_iter().for_each(|filled| buffers.done(filled));
        let start = buffers.give().unwrap();
        // SAFETY: ours now.
        let bytes = unsafe { std::slice::from_raw_parts(start, SIZE) };
        assert!(bytes.iter().all(|byte| *byte == 0));
        buffers.take_back(start, 0);
        buffers.take_back(start, 0);
        assert_eq!(buffers.filled().len(), 1, "it comes back once");
    }
}
