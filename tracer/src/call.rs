//! The API call that a thread is in, whichever source observes it: operations that the thread submits meanwhile refer to it.
//!
//! A call that was left without returning is not the cause of anything that comes after it: each call marks its memory on the stack
//! ([`frame`]), and a mark that is gone says so.

pub(crate) mod frame;

use std::cell::Cell;
use std::ptr;

use rpd_transport::correlation;
use rpd_transport::recorder::Recorder;

/// What a packet or a copy keeps of the call that submits it.
#[derive(Clone, Copy)]
pub(crate) struct CausingCall {
    /// Id of the call, `correlation::NONE` for none.
    pub(crate) call: u64,
    /// The stream it names, 0 for the default stream.
    pub(crate) stream: u64,
    /// The call launches one kernel.
    pub(crate) launches: bool,
}

impl CausingCall {
    /// No call.
    pub(crate) const NONE: CausingCall = CausingCall { call: correlation::NONE, stream: 0, launches: false };
}

/// Where the stream stands that a call names. It is read when something is submitted: a source may begin a call before its arguments
/// are there.
#[derive(Clone, Copy)]
pub(crate) enum StreamAt {
    /// This one, 0 for the default stream.
    Known(u64),
    /// An argument of the call.
    Argument(*const u64),
}

struct Current {
    /// Id of the call, `correlation::NONE` outside.
    id: Cell<u64>,
    /// When it began; 0 where that is not known.
    start: Cell<u64>,
    /// Memory that is marked with the id, and stays mapped even if the call is left.
    mark: Cell<*const u8>,
    stream: Cell<StreamAt>,
    launches: Cell<bool>,
    /// It has submitted packets.
    submitted: Cell<bool>,
    /// It hands over packets, whose places may have been taken outside of any call.
    hands_over: Cell<bool>,
}

thread_local! {
    static CURRENT: Current = const {
        Current {
            id: Cell::new(correlation::NONE),
            start: Cell::new(0),
            mark: Cell::new(ptr::null()),
            stream: Cell::new(StreamAt::Known(0)),
            launches: Cell::new(false),
            submitted: Cell::new(false),
            hands_over: Cell::new(false),
        }
    };
}

/// The call `id` begins on this thread, at `start` if that is not 0. `launches`: it launches one kernel.
///
/// # Safety
/// `mark` is marked with the id. It and the stream's place stay mapped until [`end`] or the next call, even if the call is left.
#[inline]
pub(crate) unsafe fn begin((id, start): (u64, u64), mark: *const u8, stream: StreamAt, launches: bool) {
    let _ = CURRENT.try_with(|current| {
        current.start.set(start);
        current.mark.set(mark);
        current.stream.set(stream);
        current.launches.set(launches);
        current.submitted.set(false);
        current.hands_over.set(false);
        current.id.set(id);
    });
}

/// The call `id` begins, which rings the doorbell of a queue or copies.
///
/// # Safety
/// As for [`begin`].
#[inline]
pub(crate) unsafe fn begin_handover(id: u64, mark: *const u8) {
    // SAFETY: the caller's promise.
    unsafe { begin((id, 0), mark, StreamAt::Known(0), true) };
    let _ = CURRENT.try_with(|current| current.hands_over.set(true));
}

/// The call that hands over the packets which this thread hands over now, where it is one that was begun so.
#[inline]
pub(crate) fn handover() -> CausingCall {
    let hands_over = CURRENT.try_with(|current| current.hands_over.get());
    if hands_over == Ok(true) { cause() } else { CausingCall::NONE }
}

/// When the call `id` began, where it is the one that this thread is in.
#[inline]
pub(crate) fn began(id: u64) -> Option<u64> {
    let began = CURRENT.try_with(|current| (current.id.get(), current.start.get()));
    began.ok().filter(|(open, start)| *open == id && *start != 0).map(|(_, start)| start)
}

/// The call `id` was left without returning.
pub(crate) fn forget(id: u64) {
    let _ = CURRENT.try_with(|current| {
        if current.id.get() == id {
            current.id.set(correlation::NONE);
        }
    });
}

/// The stream of the call that this thread is in is known now.
pub(crate) fn found_stream(stream: u64) {
    let _ = CURRENT.try_with(|current| current.stream.set(StreamAt::Known(stream)));
}

/// The call is over, or was left; whether it has submitted packets.
#[inline]
pub(crate) fn end() -> bool {
    let ended = CURRENT.try_with(|current| {
        current.id.set(correlation::NONE);
        current.submitted.get()
    });
    ended.unwrap_or(false)
}

/// The call that this thread is in.
#[inline]
pub(crate) fn cause() -> CausingCall {
    let cause = CURRENT.try_with(|current| {
        let call = current.id.get();
        // SAFETY: the memory was marked when the call began, and stays mapped: see `begin`.
        if call == correlation::NONE || !unsafe { frame::is_marked(current.mark.get(), call) } {
            return CausingCall::NONE;
        }
        let stream = match current.stream.get() {
            StreamAt::Known(stream) => stream,
            // SAFETY: an argument's place, which stays mapped.
            StreamAt::Argument(place) => unsafe { place.read_unaligned() },
        };
        CausingCall { call, stream, launches: current.launches.get() }
    });
    cause.unwrap_or(CausingCall::NONE)
}

/// Whether a copy that this thread submits now is recorded: while recording is on, and behind a stop for a call that began before it, which
/// has a row.
#[inline]
pub(crate) fn records_copies(recorder: &Recorder) -> bool {
    recorder.switch.is_on() || cause().call != correlation::NONE
}

/// What the call that this thread is in means to packets, of which it is about to submit some.
#[inline]
pub(crate) fn submits() -> CausingCall {
    let _ = CURRENT.try_with(|current| current.submitted.set(true));
    cause()
}
