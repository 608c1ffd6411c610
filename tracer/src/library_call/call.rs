//! A call of a library, from its beginning to its record.
//!
//! What a library calls of itself inside is part of the outer call. What it calls of another library is a call of its own. The HSA runtime is
//! not called by itself through its tables: a call inside another one was made by a function of the program that the runtime has called, and is
//! a call of its own.
//!
//! Operations refer to a call of the HSA runtime that submits them, unless their thread is in a call of HIP. They refer to no other call here.
//!
//! A call that was left without returning is lost. The thread's next call finds that out by its place on the stack (see [`Frame`]).
//! Cost: two clock readings, the arguments' bytes, one ring push. What may be a cancellation point is done inside [`cancellation::rarely`]: notes
//! of descriptors and communicators, calls that submit something, stack frames, and what [`thread`] does for the first record and where a ring
//! is full.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::{cancellation, clock};
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::records::Kind;
use rpd_transport::thread::Patience;
use rpd_transport::{correlation, counters, records, stack, thread};

use super::arguments::{self, MOST};
use super::description::{self, LIBRARIES, Library, LibraryFunction, Noted};
use super::trampoline::Saved;
use super::{SOURCE, communicators, descriptors};
use crate::call as open_call;
use crate::call::frame::{self, Callers, Frame};

/// Libraries that call each other on one thread.
const DEEPEST: usize = 8;

/// A call that has begun.
#[derive(Clone, Copy)]
struct OpenCall {
    place: u16,
    library: Library,
    /// Where its frame is. What it calls on the same stack has its own below.
    frame: Frame,
    /// What they saved, and where the call returns to.
    callers: Callers<2>,
    /// When it began; 0 where it is looked at and not recorded.
    start: u64,
    /// Its id, `correlation::NONE` where no operation refers to it.
    id: u64,
}

/// The calls that a thread is in, the outermost first.
struct OpenCalls {
    calls: [Option<OpenCall>; DEEPEST],
    depth: usize,
}

thread_local! {
    static OPEN: RefCell<OpenCalls> = const { RefCell::new(OpenCalls { calls: [None; DEEPEST], depth: 0 }) };
    /// The recorder that they are of: a forked child has none open that were recorded.
    static PID: Cell<u32> = const { Cell::new(0) };
    /// Marked with the id of the call that operations refer to, see [`frame`].
    static MARK: Cell<u64> = const { Cell::new(correlation::NONE) };
}

/// Calls that were left without returning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    /// How many of them were to be recorded.
    calls: u64,
    /// That of the one that operations refer to.
    id: u64,
}

/// By library: scalars may lie in the GPU's memory, and are not looked at.
static SCALARS_ON_DEVICE: [AtomicBool; LIBRARIES] = [const { AtomicBool::new(false) }; LIBRARIES];

impl OpenCalls {
    fn last(&self) -> Option<OpenCall> {
        self.calls.get(self.depth.checked_sub(1)?).copied().flatten()
    }

    /// Forgets the innermost calls for as long as `is_over` says so.
    fn forget(&mut self, is_over: impl Fn(&OpenCall) -> bool) -> Lost {
        let mut lost = Lost::default();
        while let Some(call) = self.last().filter(&is_over) {
            self.depth -= 1;
            lost.calls += u64::from(call.start != 0);
            lost.id = if call.id == correlation::NONE { lost.id } else { call.id };
        }
        lost
    }

    /// Takes the call in that frame out, where it is open, and forgets those that began inside it and did not return.
    fn take(&mut self, frame: Frame) -> (Option<OpenCall>, Lost) {
        let is_it = |call: &OpenCall| call.frame == frame;
        if !self.calls.iter().take(self.depth).flatten().any(is_it) {
            return (None, Lost::default());
        }
        let lost = self.forget(|call| !is_it(call));
        let call = self.last();
        self.depth -= 1;
        (call, lost)
    }

    fn push(&mut self, call: OpenCall) -> bool {
        let Some(room) = self.calls.get_mut(self.depth) else { return false };
        *room = Some(call);
        self.depth += 1;
        true
    }
}

/// A call of function number `place` begins, with its frame there. Whether [`exit`] must follow: not where recording is paused, or this is
/// a part of an open call of the same library.
pub(super) fn enter(place: u16, function: &LibraryFunction, frame: *const u64) -> bool {
    let Some(recorder) = recorder::get() else { return false };
    let is_on = recorder.switch.is_on() && function.note.is_none();
    if !is_on && function.note.is_none() && !function.makes_communicators {
        return false;
    }
    with_open(recorder, |open| {
        let place_on_stack = frame.cast();
        let frame = Frame::of_place(place_on_stack);
        lose(recorder, open.forget(|call| call.frame.is_over(frame, correlation::NONE, &call.callers)));
        let library = function.library;
        let mut outer = open.calls.iter().take(open.depth).flatten();
        if open.depth == DEEPEST || library != Library::Hsa && outer.any(|call| call.library == library) {
            return false;
        }
        let id = match is_on && function.submits {
            true => cancellation::rarely(|| begin_submitting(recorder)),
            false => correlation::NONE,
        };
        let callers = Callers::at(place_on_stack);
        let start = if is_on { clock::monotonic() } else { 0 };
        open.push(OpenCall { place, library, frame, callers, start, id })
    })
    .unwrap_or(false)
}

/// The call with its frame there is about to return.
///
/// # Safety
/// `saved` is of this call, whose words of the stack begin at `words`.
pub(super) unsafe fn exit(saved: &Saved, frame: *const u64, words: *const u64) {
    let Some(recorder) = recorder::get() else { return };
    let Some((call, lost)) = with_open(recorder, |open| open.take(Frame::of_place(frame.cast()))) else {
        return;
    };
    lose(recorder, lost);
    let Some(call) = call else { return };
    let end = clock::monotonic();
    let Some(function) = description::get().functions.get(usize::from(call.place)) else { return };
    let on_device = SCALARS_ON_DEVICE.get(function.library as usize);
    if function.note == Some(Noted::PointerMode) {
        // The second argument: where scalars lie, 0 for the host's memory.
        if let Some(on_device) = on_device.filter(|_| saved.integers[1] as u32 != 0) {
            on_device.store(true, Ordering::Relaxed);
        }
        return;
    }
    let mut room = [0; MOST];
    let on_host = on_device.is_some_and(|device| !device.load(Ordering::Relaxed));
    // SAFETY: the caller's promise.
    let length = unsafe { arguments::keep(function, saved, words, on_host, &mut room) };
    let bytes = &room[..length];
    if function.note == Some(Noted::Descriptor) {
        if function.has_succeeded(saved.result[0]) {
            cancellation::rarely(|| descriptors::note(function, bytes));
        }
        return;
    }
    if function.makes_communicators {
        cancellation::rarely(|| communicators::note(arguments::made_communicators(function, bytes), end));
    }
    if call.start == 0 {
        return;
    }
    if call.id != correlation::NONE || recorder.stacks.is_some() {
        cancellation::rarely(|| record(recorder, &call, end, bytes));
    } else {
        record(recorder, &call, end, bytes);
    }
}

/// The thread is about to submit something: the id that operations will have, unless it is in a call that they refer to.
fn begin_submitting(recorder: &'static Recorder) -> u64 {
    if open_call::cause().call != correlation::NONE {
        return correlation::NONE;
    }
    let Some(id) = thread::begin_call(recorder) else { return correlation::NONE };
    MARK.with(|mark| {
        // SAFETY: room for an id, which stays mapped as long as the thread lives.
        unsafe {
            frame::mark(mark.as_ptr().cast(), id);
            open_call::begin_handover(id, mark.as_ptr().cast());
        }
    });
    id
}

fn record(recorder: &'static Recorder, call: &OpenCall, end: u64, arguments: &[u8]) {
    recorder.in_use();
    let submitted = call.id != correlation::NONE && open_call::end();
    let body = records::Call {
        start: call.start,
        end,
        correlation: call.id,
        arguments: arguments.len() as u32,
        function: call.place,
        source: SOURCE,
        reserved: 0,
        kernel: records::NO_KERNEL,
        submitted: submitted.into(),
        dst_gpu: records::NO_GPU,
        src_gpu: records::NO_GPU,
        pinned: 0,
        commanded: 0,
        tid: 0,
    };
    let push = |text: [&[u8]; 2]| {
        if call.id == correlation::NONE {
            thread::push(recorder, Kind::Call, bytemuck::bytes_of(&body), text, Patience::Waits);
        } else {
            thread::end_call(recorder, &body, text);
        }
    };
    match &recorder.stacks {
        None => push([arguments, &[]]),
        Some(stacks) => {
            let mut words = [0; stack::MOST];
            push([arguments, bytemuck::cast_slice(stack::frames(stacks, &mut words))]);
        }
    }
}

fn lose(recorder: &Recorder, lost: Lost) {
    if lost.calls > 0 {
        recorder.counters.lose(counters::Cause::Abandoned, lost.calls);
    }
    if lost.id != correlation::NONE {
        cancellation::rarely(|| {
            open_call::forget(lost.id);
            recorder.lost_calls.add(lost.id);
        });
    }
}

/// Runs `act` on the thread's open calls; nothing in a signal handler that interrupted it there.
fn with_open<T>(recorder: &Recorder, act: impl FnOnce(&mut OpenCalls) -> T) -> Option<T> {
    OPEN.with(|open| {
        let mut open = open.try_borrow_mut().ok()?;
        if PID.replace(recorder.pid) != recorder.pid {
            open.depth = 0;
        }
        Some(act(&mut open))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(frame: Frame) -> OpenCall {
        OpenCall {
            place: 0,
            library: Library::RocBlas,
            frame,
            callers: Callers::UNKNOWN,
            start: 1,
            id: correlation::NONE,
        }
    }

    #[test]
    fn calls_that_were_left_are_forgotten_from_the_inside() {
        let stack = [0u64; 9];
        let at = |place: usize| Frame::of_place((&raw const stack[place]).cast());
        let mut open = OpenCalls { calls: [None; DEEPEST], depth: 0 };
        let over = |next: usize| {
            move |call: &OpenCall| call.frame.is_over(at(next), correlation::NONE, &call.callers)
        };
        assert!(
            open.push(call(at(8)))
                && open.push(call(at(6)))
                && open.push(OpenCall { start: 0, ..call(at(4)) })
        );
        assert_eq!(open.forget(over(3)).calls, 0, "something inside all of them");
        assert_eq!(open.forget(over(6)).calls, 1, "the third was not to be recorded");
        assert_eq!(open.last().map(|call| call.frame), Some(at(8)));
        for _ in 1..DEEPEST {
            assert!(open.push(call(at(1))));
        }
        assert!(!open.push(call(at(1))), "there is no room for more");
    }

    #[test]
    fn a_call_on_the_stack_of_a_coroutine_that_is_gone_is_over() {
        let (stack, other) = ([0u64; 8], vec![0u64; 8]);
        let (own, others) = (
            |at: usize| Frame::of_place((&raw const stack[at]).cast()),
            |at: usize| Frame::of_place((&raw const other[at]).cast()),
        );
        let mut open = OpenCalls { calls: [None; DEEPEST], depth: 0 };
        assert!(open.push(call(own(6))) && open.push(call(others(4))));
        assert_eq!(
            open.forget(|call| call.frame.is_over(others(2), correlation::NONE, &call.callers)).calls,
            0,
            "inside it"
        );
        assert_eq!(
            open.forget(|call| call.frame.is_over(own(2), correlation::NONE, &call.callers)).calls,
            1,
            "back on the thread's own stack"
        );
        assert!(open.push(call(others(4))));
        assert!(open.take(own(2)).0.is_none() && open.depth == 2, "no call that is open");
        let (outer, lost) = open.take(own(6));
        assert_eq!((outer.map(|call| call.frame), lost.calls, open.depth), (Some(own(6)), 1, 0));
    }
}
