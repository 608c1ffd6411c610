//! Where a call has its data on the stack. The place says whether the program has left the call without returning: by `siglongjmp` out of a
//! signal handler, say, or by a coroutine that never goes on. Nothing else tells us that.
//!
//! The thread's own stack stays mapped for as long as the thread lives. Any other stack (a coroutine's, a signal handler's) may be gone.

use std::cell::Cell;
use std::ptr;

use rpd_preload::memory::{self, Copied};
use rpd_transport::correlation;

use rpd_preload::stack_bounds;

thread_local! {
    /// Where the thread's own stack begins and ends, empty where the system does not say; asked for once.
    static STACK: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// The memory of a call's data. While the call is open, whatever it calls lies below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    low: usize,
    size: usize,
}

impl Frame {
    pub(crate) const NONE: Frame = Frame { low: 0, size: 0 };

    /// One whose data is on the stack, and is [marked](mark) there.
    pub(crate) fn of_data(data: *const u8, size: usize) -> Frame {
        Frame { low: data as usize, size }
    }

    /// One whose data is elsewhere: `place` is any on the stack.
    pub(crate) fn of_place(place: *const u8) -> Frame {
        Frame { low: place as usize, size: 1 }
    }

    /// Whether this is the frame of that data.
    pub(crate) fn is_of(self, data: *const u8) -> bool {
        self.low == data as usize
    }

    fn high(self) -> usize {
        self.low + self.size
    }

    fn is_marked_itself(self) -> bool {
        self.size >= size_of::<u64>()
    }

    /// Whether it lies on the calling thread's own stack.
    #[inline]
    pub(crate) fn is_on_own_stack(self) -> bool {
        let (low, end) = STACK.get().unwrap_or_else(ask);
        (low..end).contains(&self.low)
    }

    /// Whether the call `call` in this frame is over, now that its thread begins another at `next`. In doubt it is not.
    pub(crate) fn is_over(self, next: Frame, call: u64) -> bool {
        let overlap = next.low < self.high() && self.low < next.high();
        overlap
            || match (self.is_on_own_stack(), next.is_on_own_stack()) {
                (true, true) => next.low > self.low || !self.is_intact(call),
                // A handler that interrupted the call, on a stack of its own; or a coroutine, after the call was left.
                (true, false) => !self.is_intact(call),
                // The coroutine or handler that made the call does not run any more.
                (false, true) => true,
                // The same stack or another.
                (false, false) => !self.is_intact(call),
            }
    }

    /// Whether nobody else has this memory, as far as that can be known.
    fn is_intact(self, call: u64) -> bool {
        if !self.is_on_own_stack() {
            let mut mark = [0; size_of::<u64>()];
            return match memory::copy(self.low, &mut mark) {
                Copied::All => !self.is_marked_itself() || u64::from_ne_bytes(mark) == call,
                Copied::NotThere => false,
                Copied::Unknown => true,
            };
        }
        // SAFETY: on the calling thread's own stack, where the call has used it.
        !self.is_marked_itself() || unsafe { is_marked(self.low as *const u8, call) }
    }
}

/// Asks the system, which may read a file and allocate.
#[cold]
fn ask() -> (usize, usize) {
    let stack =
        stack_bounds::of_this_thread().map_or((0, 0), |stack| (stack.start as usize, stack.end as usize));
    STACK.set(Some(stack));
    stack
}

/// Writes into a call's data whose it is: HIP's first member, which is a tool's, and is the wrappers' as well.
///
/// # Safety
/// `data` is room for HIP's data of a call.
pub(crate) unsafe fn mark(data: *mut u8, call: u64) {
    // SAFETY: the caller's promise.
    unsafe { data.cast::<u64>().write(call) };
}

/// Whether the data is that call's still.
///
/// # Safety
/// `data` was marked, and is mapped.
pub(crate) unsafe fn is_marked(data: *const u8, call: u64) -> bool {
    call != correlation::NONE
        // SAFETY: the caller's promise. Others may have the memory by now, which the compiler must not reason about.
        && unsafe { ptr::read_volatile(data.cast::<u64>()) } == call
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: u64 = 7;

    #[test]
    fn only_what_lies_elsewhere_on_the_same_stack_is_over() {
        let mut room = [0u64; 64];
        room[32] = CALL;
        let at = |word: usize| (&raw const room[word]).cast();
        let open = Frame::of_data(at(32), 64);
        let over = |frame: Frame, next| frame.is_over(Frame::of_data(at(next), 64), CALL);
        assert!(!over(open, 8), "inside it");
        assert!(over(Frame::of_data(at(31), 64), 8), "something else has its place");
        assert!(over(open, 28), "the same place");
        assert!(over(open, 48), "above it");
        let point = Frame::of_place(at(33));
        assert!(point.is_over(point, CALL) && !point.is_over(Frame::of_place(at(31)), CALL));
    }

    #[test]
    fn other_stacks() {
        let (room, other) = ([CALL; 8], vec![CALL; 64]);
        let on = |room: &[u64], word: usize| Frame::of_data((&raw const room[word]).cast(), 64);
        let own = on(&room, 0);
        assert!(!own.is_over(on(&other, 0), CALL), "a handler that interrupted it");
        assert!(own.is_over(on(&other, 0), CALL + 1), "something else has its place");
        assert!(on(&other, 0).is_over(own, CALL), "the thread is back on its own stack");
        assert!(!on(&other, 32).is_over(on(&other, 8), CALL), "inside it, or on a third stack");
        assert!(on(&other, 32).is_over(on(&other, 8), CALL + 1));
        assert!(on(&other, 32).is_over(on(&other, 32), CALL));
        let gone = Frame::of_place(std::ptr::without_provenance(8));
        assert!(gone.is_over(on(&other, 0), CALL), "its stack is not there any more");
    }
}
