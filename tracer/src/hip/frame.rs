//! Where a call has its data on the stack, which tells whether it has been left without returning: by `siglongjmp` out of a signal
//! handler, say, of which nobody tells us.

use std::cell::RefCell;
use std::ops::Range;
use std::ptr;

use crate::correlation;
use crate::stack::bounds;

thread_local! {
    /// The thread's own stack, empty where the system does not say.
    static STACK: RefCell<Option<Range<u64>>> = const { RefCell::new(None) };
}

/// The memory of a call's data. While the call is open, whatever it calls lies below.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    low: usize,
    size: usize,
}

impl Frame {
    pub(super) const NONE: Frame = Frame { low: 0, size: 0 };

    pub(super) fn new<T>(place: *const T, size: usize) -> Frame {
        Frame { low: place as usize, size }
    }

    fn high(self) -> usize {
        self.low + self.size
    }

    /// Whether this call is over, now that its thread begins another at `next`. `marked`: whether its data still is what it was.
    /// In doubt it is not: another stack (of a coroutine, a signal handler) says nothing.
    pub(super) fn is_over(self, next: Frame, marked: impl FnOnce() -> bool) -> bool {
        let overlap = next.low < self.high() && self.low < next.high();
        overlap || (on_own_stack([self, next]) && (next.low > self.low || !marked()))
    }
}

/// Whether all of them lie on the calling thread's own stack. Asks the system once per thread.
fn on_own_stack(frames: [Frame; 2]) -> bool {
    let known = STACK.try_with(|stack| {
        let mut stack = stack.try_borrow_mut().ok()?;
        let stack = stack.get_or_insert_with(|| bounds::of_this_thread().unwrap_or_default());
        Some(frames.iter().all(|frame| stack.contains(&(frame.low as u64))))
    });
    known.ok().flatten().unwrap_or(false)
}

/// Writes into a call's data whose it is: HIP's first member, which is a tool's, and is the wrappers' as well.
///
/// # Safety
/// `data` is room for HIP's data of a call.
pub(super) unsafe fn mark(data: *mut u8, call: u64) {
    // SAFETY: the caller's promise.
    unsafe { data.cast::<u64>().write(call) };
}

/// Whether the data is that call's still.
///
/// # Safety
/// `data` was marked, and is mapped.
pub(super) unsafe fn is_marked(data: *const u8, call: u64) -> bool {
    call != correlation::NONE
        // SAFETY: the caller's promise. Others may have the memory by now, which the compiler must not reason about.
        && unsafe { ptr::read_volatile(data.cast::<u64>()) } == call
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_elsewhere_on_the_same_stack_is_over() {
        let room = [0u64; 64];
        let at = |word: usize, words: usize| Frame::new(&raw const room[word], 8 * words);
        let open = at(32, 8);
        assert!(!open.is_over(at(8, 8), || true), "inside it");
        assert!(open.is_over(at(8, 8), || false), "something else has its place");
        assert!(open.is_over(at(28, 8), || true), "the same place");
        assert!(open.is_over(at(48, 8), || true), "above it");
        let point = at(32, 1);
        assert!(point.is_over(at(32, 1), || true) && !point.is_over(at(31, 1), || true));
    }

    #[test]
    fn another_stack_says_nothing() {
        let (room, heap) = ([0u64; 8], vec![0u64; 8]);
        let (own, other) = (Frame::new(room.as_ptr(), 64), Frame::new(heap.as_ptr(), 64));
        assert!(!own.is_over(other, || false) && !other.is_over(own, || false));
        assert!(other.is_over(other, || true));
    }
}
