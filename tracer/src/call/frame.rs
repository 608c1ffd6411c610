//! Where a call has its data on the stack. The place says whether the program has left the call without returning: by `siglongjmp` out of a
//! signal handler, say, or by a coroutine that never goes on. Nothing else tells us that.
//!
//! The thread's own stack stays mapped for as long as the thread lives. Any other stack (a coroutine's, a signal handler's) may be gone, and
//! something else may be mapped there. The call's mark tells its memory from somebody else's; where the call has no data on the stack, the
//! words of its [`Callers`] do.

use std::cell::Cell;
use std::ptr;

use rpd_preload::cancellation;
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

    /// Whether it lies on the calling thread's own stack.
    #[inline]
    pub(crate) fn is_on_own_stack(self) -> bool {
        let (low, end) = STACK.get().unwrap_or_else(ask);
        (low..end).contains(&self.low)
    }

    /// Whether the call `call` in this frame, of those callers, is over, now that its thread begins another at `next`. In doubt it is not.
    pub(crate) fn is_over<const WORDS: usize>(
        self,
        next: Frame,
        call: u64,
        callers: &Callers<WORDS>,
    ) -> bool {
        let overlap = next.low < self.high() && self.low < next.high();
        overlap
            || match (self.is_on_own_stack(), next.is_on_own_stack()) {
                (true, true) => next.low > self.low || !self.is_intact(call, callers),
                // A handler that interrupted the call, on a stack of its own; or a coroutine, after the call was left.
                (true, false) => !self.is_intact(call, callers),
                // The coroutine or handler that made the call does not run any more.
                (false, true) => true,
                // The same stack or another.
                (false, false) => !self.is_intact(call, callers),
            }
    }

    fn is_marked_itself(self) -> bool {
        self.size >= size_of::<u64>()
    }

    /// Whether nobody else has this memory, as far as that can be known.
    fn is_intact<const WORDS: usize>(self, call: u64, callers: &Callers<WORDS>) -> bool {
        if !self.is_marked_itself() {
            return callers.are_there();
        }
        if self.is_on_own_stack() {
            // SAFETY: on the calling thread's own stack, where the call has used it.
            return unsafe { is_marked(self.low as *const u8, call) };
        }
        let mut mark = [0];
        match read(self.low, &mut mark) {
            Copied::All => mark == [call],
            Copied::NotThere => false,
            Copied::Unknown => true,
        }
    }
}

/// Words of the functions that made a call, on another stack than the thread's own: return addresses, saved registers. Most stay as they are
/// for as long as the call is open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callers<const WORDS: usize> {
    place: usize,
    /// How many are known; none on the thread's own stack.
    count: usize,
    words: [u64; WORDS],
}

impl<const WORDS: usize> Callers<WORDS> {
    pub(crate) const UNKNOWN: Callers<WORDS> = Callers { place: 0, count: 0, words: [0; WORDS] };

    /// Those whose memory begins at `place`, as far as their stack goes.
    pub(crate) fn at(place: *const u8) -> Callers<WORDS> {
        let mut callers = Callers { place: place as usize, ..Callers::UNKNOWN };
        if Frame::of_place(place).is_on_own_stack() {
            return callers;
        }
        callers.count = WORDS;
        while callers.count > 0 && read(callers.place, &mut callers.words[..callers.count]) != Copied::All {
            callers.count /= 2;
        }
        callers
    }

    fn are_there(&self) -> bool {
        let mut now = [0; WORDS];
        let now = &mut now[..self.count];
        match read(self.place, now) {
            Copied::All => {
                let words = self.words.iter().zip(now).filter(|(word, _)| **word != 0);
                let (same, all) =
                    words.fold((0, 0), |(same, all), (word, now)| (same + u32::from(word == now), all + 1));
                2 * same >= all
            }
            Copied::NotThere => false,
            Copied::Unknown => true,
        }
    }
}

fn read(place: usize, words: &mut [u64]) -> Copied {
    memory::copy(place, bytemuck::cast_slice_mut(words))
}

/// Asks the system, which may read a file and allocate.
#[cold]
fn ask() -> (usize, usize) {
    let stack = cancellation::rarely(stack_bounds::of_this_thread);
    let stack = stack.map_or((0, 0), |stack| (stack.start as usize, stack.end as usize));
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
    const NOBODY: Callers<4> = Callers::UNKNOWN;

    #[test]
    fn only_what_lies_elsewhere_on_the_same_stack_is_over() {
        let mut room = [0u64; 64];
        room[32] = CALL;
        let at = |word: usize| (&raw const room[word]).cast();
        let open = Frame::of_data(at(32), 64);
        let over = |frame: Frame, next| frame.is_over(Frame::of_data(at(next), 64), CALL, &NOBODY);
        assert!(!over(open, 8), "inside it");
        assert!(over(Frame::of_data(at(31), 64), 8), "something else has its place");
        assert!(over(open, 28), "the same place");
        assert!(over(open, 48), "above it");
        let point = Frame::of_place(at(33));
        assert!(
            point.is_over(point, CALL, &NOBODY) && !point.is_over(Frame::of_place(at(31)), CALL, &NOBODY)
        );
    }

    #[test]
    fn other_stacks() {
        let (room, other) = ([CALL; 8], vec![CALL; 64]);
        let on = |room: &[u64], word: usize| Frame::of_data((&raw const room[word]).cast(), 64);
        let own = on(&room, 0);
        let over = |frame: Frame, next, call| frame.is_over(next, call, &NOBODY);
        assert!(!over(own, on(&other, 0), CALL), "a handler that interrupted it");
        assert!(over(own, on(&other, 0), CALL + 1), "something else has its place");
        assert!(over(on(&other, 0), own, CALL), "the thread is back on its own stack");
        assert!(!over(on(&other, 32), on(&other, 8), CALL), "inside it, or on a third stack");
        assert!(over(on(&other, 32), on(&other, 8), CALL + 1));
        assert!(over(on(&other, 32), on(&other, 32), CALL));
    }

    #[test]
    fn a_stack_that_is_gone_or_somebody_elses_is_not_that_of_the_callers() {
        let mut stack = vec![0u64; 64];
        stack.iter_mut().step_by(2).zip(100..).for_each(|(word, value)| *word = value);
        let place = (&raw const stack[8]).cast::<u8>();
        let callers = Callers::<32>::at(place);
        assert!(callers.are_there());
        stack[12] = 7;
        assert!(callers.are_there(), "a variable has changed");
        stack.fill(0);
        assert!(!callers.are_there(), "it was mapped again");
        let gone = Callers::<32>::at(ptr::without_provenance(8));
        assert_eq!(gone.count, 0);
        assert!(!Callers { count: 1, ..gone }.are_there());
        let own = [0u64; 8];
        assert!(Callers::<2>::at((&raw const own).cast()).are_there(), "the thread's own");
    }
}
