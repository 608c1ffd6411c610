//! Memory for kernel arguments that are made anew: slots of one size, taken by interceptors and given back when their dispatch has
//! completed. Neither waits or asks the runtime; the loader's thread brings more memory before it runs out.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_queue::ArrayQueue;

/// Bytes to which arguments are aligned: a cache line of the device, and what kernels ask for at most.
pub(super) const ALIGN: usize = 64;
/// Slots that one size may have.
const MOST: usize = 1 << 16;
/// Slots that are brought at a time.
const MORE: usize = 1 << 10;
/// Slots that are free before more are brought.
const FEW: usize = MORE / 2;

/// Slots of one size.
pub(super) struct Slots {
    size: usize,
    free: ArrayQueue<Slot>,
    /// How many there are.
    all: AtomicUsize,
    /// How often there was none.
    missed: AtomicU64,
}

/// Memory for the arguments of one dispatch.
#[derive(Clone, Copy)]
struct Slot(NonNull<u8>);

// SAFETY: memory that is bound to no thread.
unsafe impl Send for Slot {}

/// A slot in use; given back when it is dropped.
pub(super) struct Taken {
    slots: Arc<Slots>,
    slot: Slot,
}

impl Slots {
    /// None yet, of at least `size` bytes.
    pub(super) fn new(size: u32) -> Slots {
        let size = (size.max(1) as usize).next_multiple_of(ALIGN);
        Slots { size, free: ArrayQueue::new(MOST), all: AtomicUsize::new(0), missed: AtomicU64::new(0) }
    }

    /// Bytes of memory that should be brought; 0 while there are enough.
    pub(super) fn wanted(&self) -> usize {
        let is_full = self.all.load(Ordering::Relaxed) + MORE > MOST;
        if is_full || self.free.len() >= FEW { 0 } else { MORE * self.size }
    }

    /// Adds `bytes` bytes of memory.
    ///
    /// # Safety
    /// They are the caller's alone, aligned to [`ALIGN`], stay as long as the process, and devices read them.
    pub(super) unsafe fn add(&self, memory: NonNull<u8>, bytes: usize) {
        for place in 0..bytes / self.size {
            // SAFETY: inside the memory.
            let slot = unsafe { memory.add(place * self.size) };
            self.all.fetch_add(1, Ordering::Relaxed);
            // There is room for as many as `wanted` asks for.
            let _ = self.free.push(Slot(slot));
        }
    }

    /// One of them; none where all are in use.
    pub(super) fn take(self: &Arc<Slots>) -> Option<Taken> {
        let slot = self.free.pop();
        if slot.is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
        }
        Some(Taken { slots: Arc::clone(self), slot: slot? })
    }

    /// How often there was none.
    pub(super) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

impl Taken {
    /// Its address, by which a packet names it.
    pub(super) fn address(&self) -> u64 {
        self.slot.0.as_ptr() as u64
    }

    /// Its bytes.
    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: memory of this size that is this slot's alone as long as it is taken (`Slots::add`).
        unsafe { std::slice::from_raw_parts_mut(self.slot.0.as_ptr(), self.slots.size) }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        // A thread that panics may drop it while the device still reads it.
        if !std::thread::panicking() {
            let _ = self.slots.free.push(self.slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_taken_again() {
        let slots = Arc::new(Slots::new(100));
        assert_eq!(slots.size, 128);
        assert!(slots.take().is_none());
        let wanted = slots.wanted();
        assert_eq!(wanted, 128 * MORE);
        let memory = Box::leak(vec![0u8; wanted + ALIGN].into_boxed_slice());
        let aligned = memory.as_ptr().align_offset(ALIGN);
        let memory = NonNull::new(memory[aligned..].as_mut_ptr()).unwrap();
        // SAFETY: leaked, aligned, and nobody else's; there is no device.
        unsafe { slots.add(memory, wanted) };
        assert_eq!(slots.wanted(), 0);
        let mut taken: Vec<Taken> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!((taken.len(), slots.missed()), (MORE, 2));
        taken.iter_mut().enumerate().for_each(|(number, slot)| slot.bytes().fill(number as u8));
        assert!(taken.iter_mut().enumerate().all(|(number, slot)| slot.bytes() == [number as u8; 128]));
        let last = taken.pop().map(|slot| slot.address());
        assert_eq!(slots.take().map(|slot| slot.address()), last);
    }
}
