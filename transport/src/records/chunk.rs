//! One piece of a ring's memory: a mapping of its own with the header in front, never from the allocator.
//!
//! A record may be pushed by a signal handler, and a process may end in one, while the interrupted thread is inside malloc. What
//! ring growth needs must not lie behind that lock; nor may a refused allocation end the process.

use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

/// The header; the record bytes follow it.
pub struct Chunk {
    /// The chunk that the producer went on to.
    pub next: AtomicPtr<Chunk>,
    /// Bytes the consumer may read.
    pub written: AtomicUsize,
    /// Bytes of the mapping.
    size: usize,
}

impl Chunk {
    /// Bytes in front of the records.
    pub const HEADER: usize = size_of::<Chunk>();

    /// Bytes of the mapping, header included.
    #[inline]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Where bytes `at` to `at + length` of the records lie, of `size() - HEADER`: to be written.
    ///
    /// # Safety
    /// `chunk` comes from [`Owned::into_raw`] and is mapped; so many bytes are in it, and nobody reads them.
    #[inline]
    pub unsafe fn space(chunk: *mut Chunk, at: usize, length: usize) -> *mut u8 {
        // SAFETY: the caller's word.
        unsafe {
            debug_assert!(at + length <= (*chunk).size - Chunk::HEADER);
            chunk.cast::<u8>().add(Chunk::HEADER + at)
        }
    }

    /// The first `until` bytes of the records.
    ///
    /// # Safety
    /// `chunk` comes from [`Owned::into_raw`] and stays mapped for `'a`; these bytes have been written and nobody changes them.
    #[inline]
    pub unsafe fn filled<'a>(chunk: *const Chunk, until: usize) -> &'a [u8] {
        // SAFETY: the caller's word.
        unsafe { std::slice::from_raw_parts(chunk.cast::<u8>().add(Chunk::HEADER), until) }
    }
}

/// A chunk that goes away with its owner.
pub struct Owned(NonNull<Chunk>);

// SAFETY: memory that is bound to no thread; the header is atomics and a constant.
unsafe impl Send for Owned {}

impl Owned {
    /// A mapping of `size` bytes, which hold the header at least. Nothing when the system refuses it.
    pub fn new(size: usize) -> Option<Owned> {
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // All of it will be written soon, and one call is cheaper than a fault for each page. Miri knows no such flag.
        let populate = if cfg!(miri) { 0 } else { libc::MAP_POPULATE };
        // SAFETY: a fresh anonymous mapping, nothing of which anybody else knows.
        let address = unsafe { libc::mmap(ptr::null_mut(), size, access, kind | populate, -1, 0) };
        if address == libc::MAP_FAILED {
            return None;
        }
        let chunk = NonNull::new(address.cast::<Chunk>())?;
        let header = Chunk { next: AtomicPtr::new(ptr::null_mut()), written: AtomicUsize::new(0), size };
        // SAFETY: the beginning of the mapping, page-aligned and large enough.
        unsafe { chunk.write(header) };
        Some(Owned(chunk))
    }

    /// Gives up ownership.
    pub fn into_raw(self) -> *mut Chunk {
        let chunk = self.0.as_ptr();
        std::mem::forget(self);
        chunk
    }

    /// Takes ownership back.
    ///
    /// # Safety
    /// `chunk` comes from [`Owned::into_raw`], and nobody else uses it any more.
    pub unsafe fn from_raw(chunk: *mut Chunk) -> Owned {
        // SAFETY: into_raw gives no null pointer.
        Owned(unsafe { NonNull::new_unchecked(chunk) })
    }

    /// As new.
    pub fn reset(&mut self) {
        // SAFETY: ours alone.
        let chunk = unsafe { self.0.as_mut() };
        *chunk.next.get_mut() = ptr::null_mut();
        *chunk.written.get_mut() = 0;
    }
}

impl Deref for Owned {
    type Target = Chunk;

    fn deref(&self) -> &Chunk {
        // SAFETY: mapped as long as the owner lives.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let size = self.size;
        // SAFETY: the mapping made in `new`, which nobody uses any more.
        unsafe { libc::munmap(self.0.as_ptr().cast(), size) };
    }
}
