//! A chunk whose bytes loom watches: a read that does not come after the write in every order fails the model.

use loom::cell::UnsafeCell;

use super::budget::CHUNK;
use crate::atomic::{AtomicPtr, AtomicUsize};

/// Bytes of a record in the models, header included.
pub const RECORD: usize = 32;
const RECORDS: usize = 2;

pub struct Chunk {
    pub next: AtomicPtr<Chunk>,
    pub written: AtomicUsize,
    size: usize,
    bytes: std::cell::UnsafeCell<[u64; RECORDS * RECORD / 8]>,
    watched: [UnsafeCell<()>; RECORDS],
}

impl Chunk {
    /// All but what is for records.
    pub const HEADER: usize = CHUNK - RECORDS * RECORD;

    pub fn size(&self) -> usize {
        self.size
    }

    /// # Safety
    /// As in the recorder.
    pub unsafe fn space(chunk: *mut Chunk, at: usize, length: usize) -> *mut u8 {
        assert!(at.is_multiple_of(RECORD) && length == RECORD);
        // SAFETY: the caller's word.
        let chunk = unsafe { &*chunk };
        chunk.watched[at / RECORD].with_mut(|_| {});
        // SAFETY: within the bytes.
        unsafe { chunk.bytes.get().cast::<u8>().add(at) }
    }

    /// # Safety
    /// As in the recorder.
    pub unsafe fn filled<'a>(chunk: *const Chunk, until: usize) -> &'a [u8] {
        // SAFETY: the caller's word.
        let chunk = unsafe { &*chunk };
        chunk.watched[..until / RECORD].iter().for_each(|record| record.with(|_| {}));
        // SAFETY: within the bytes.
        unsafe { std::slice::from_raw_parts(chunk.bytes.get().cast::<u8>(), until) }
    }
}

pub struct Owned(*mut Chunk);

impl Owned {
    pub fn new(size: usize) -> Owned {
        assert_eq!(size, CHUNK);
        Owned(Box::into_raw(Box::new(Chunk {
            next: AtomicPtr::new(std::ptr::null_mut()),
            written: AtomicUsize::new(0),
            size,
            bytes: std::cell::UnsafeCell::new([0; RECORDS * RECORD / 8]),
            watched: std::array::from_fn(|_| UnsafeCell::new(())),
        })))
    }

    pub fn into_raw(self) -> *mut Chunk {
        let chunk = self.0;
        std::mem::forget(self);
        chunk
    }

    /// # Safety
    /// As in the recorder.
    pub unsafe fn from_raw(chunk: *mut Chunk) -> Owned {
        Owned(chunk)
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and nobody else's.
        drop(unsafe { Box::from_raw(self.0) });
    }
}
