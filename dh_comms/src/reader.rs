//! Taking the bytes out of sub-buffers: while a kernel runs, of those that are full; when it has ended, of all.
//!
//! A wave that finds its sub-buffer full stores 1 in its flag (release) and waits until the flag is 0 (acquire). Only then the sub-buffer
//! is the host's: it must not be looked at while its flag is 0 and the kernel runs.

#![allow(unsafe_code)]

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

/// Bit 0 of the error word.
const TOO_LARGE: u32 = 1;

/// Memory of the host that a device writes to: see [`crate::layout::Descriptor`].
#[derive(Clone, Copy, Debug)]
pub struct Regions {
    /// Sub-buffers.
    pub count: usize,
    /// Bytes of each.
    pub capacity: usize,
    /// All of them.
    pub buffer: NonNull<u8>,
    /// Bytes that are used of each.
    pub sizes: NonNull<u64>,
    /// The error word.
    pub errors: NonNull<u32>,
    /// The flags.
    pub full: NonNull<u8>,
}

/// The host's side of one descriptor.
#[derive(Debug)]
pub struct Reader {
    regions: Regions,
    /// How often a sub-buffer of the present kernel said to have more bytes than it can.
    clamped: usize,
}

/// What was found at the end of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Finished {
    /// Messages did not fit into an empty sub-buffer, and were dropped by the kernel.
    pub too_large: bool,
    /// Sub-buffers that a wave still waited for.
    pub stuck: usize,
    /// How often a sub-buffer said to have more bytes than it can.
    pub clamped: usize,
}

impl Reader {
    /// Of memory that is all zero.
    ///
    /// # Safety
    /// The regions have the sizes that they should, sizes are aligned to 8 bytes and errors to 4; all stays as long as this. Only a
    /// device that keeps to the protocol writes to it, and nobody reads it but this.
    pub unsafe fn new(regions: Regions) -> Reader {
        Reader { regions, clamped: 0 }
    }

    /// Gives the bytes of each full sub-buffer to `sink`, and the sub-buffer back to the kernel; how many they were.
    pub fn drain(&mut self, mut sink: impl FnMut(&[u8])) -> usize {
        let mut drained = 0;
        for place in 0..self.regions.count {
            if self.full(place).load(Ordering::Acquire) != 0 {
                self.take(place, &mut sink);
                self.full(place).store(0, Ordering::Release);
                drained += 1;
            }
        }
        drained
    }

    /// The kernel has ended: gives the rest of all sub-buffers to `sink`, and makes them ready for the next kernel.
    pub fn finish(&mut self, mut sink: impl FnMut(&[u8])) -> Finished {
        let mut finished = Finished::default();
        for place in 0..self.regions.count {
            self.take(place, &mut sink);
            finished.stuck += usize::from(self.full(place).swap(0, Ordering::AcqRel) != 0);
        }
        finished.clamped = std::mem::take(&mut self.clamped);
        // SAFETY: one word of the regions, aligned (`new`).
        let errors = unsafe { AtomicU32::from_ptr(self.regions.errors.as_ptr()) };
        finished.too_large = errors.swap(0, Ordering::AcqRel) & TOO_LARGE != 0;
        finished
    }

    /// Gives the bytes of one sub-buffer to `sink` and sets its size to 0.
    fn take(&mut self, place: usize, sink: &mut impl FnMut(&[u8])) {
        // SAFETY: one of the sizes, aligned (`new`).
        let size = unsafe { AtomicU64::from_ptr(self.regions.sizes.as_ptr().add(place)) };
        let said = size.load(Ordering::Acquire);
        let bytes = usize::try_from(said).unwrap_or(usize::MAX).min(self.regions.capacity);
        if bytes > 0 {
            // SAFETY: inside the sub-buffer. Its wave waits, or has ended, so nobody writes to it.
            sink(unsafe {
                std::slice::from_raw_parts(
                    self.regions.buffer.as_ptr().add(place * self.regions.capacity),
                    bytes,
                )
            });
        }
        size.store(0, Ordering::Relaxed);
        self.clamped += usize::from(said > self.regions.capacity as u64);
    }

    fn full(&self, place: usize) -> &AtomicU8 {
        // SAFETY: one of the flags (`new`).
        unsafe { AtomicU8::from_ptr(self.regions.full.as_ptr().add(place)) }
    }
}

// SAFETY: memory that is bound to no thread, and one reader of it.
unsafe impl Send for Reader {}
