//! The call that this thread is in: from HIP's word that it begins to the record of it.
//!
//! Only the outermost call is recorded; what HIP calls of itself inside is part of it. Operations that the thread submits meanwhile
//! refer to it. A call that was left without returning is lost, which the next one finds out ([`frame`]).
//! Cost: two clock readings, the arguments' bytes, one ring push.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use super::arguments::{self, Arguments, MOST, unsigned};
use super::command::Created;
use super::description::{Api, Role, Row, StreamPlace};
use super::frame::{self, Frame};
use super::launch::{LAUNCH_CONFIG_STREAM, Launch, Transfer};
use super::{function, pointer};
use crate::hsa::kernel::KernelId;
use crate::record::NO_KERNEL;
use crate::recorder::{self, Recorder};
use crate::{clock, correlation, counters, record, stack, thread};

/// u64s of the room for HIP's data of one call: more than any version known writes there (1520 bytes in 6.x).
pub(super) const ROOM: usize = 256;

struct Current {
    /// Id of the call, `correlation::NONE` outside.
    id: Cell<u64>,
    start: Cell<u64>,
    api: Cell<Option<(u16, &'static Api)>>,
    /// HIP's hip_api_data_t of the call, marked with the id.
    data: Cell<*const u8>,
    frame: Cell<Frame>,
    /// It has submitted packets.
    submitted: Cell<bool>,
    /// The kernel it names, where that had to be found out at its beginning.
    kernel: Cell<KernelId>,
    room: UnsafeCell<[u64; ROOM]>,
}

impl Current {
    /// The function of the call, if it is recorded.
    fn recorded(&self) -> Option<&'static Api> {
        self.api.get().filter(|_| self.id.get() != correlation::NONE).map(|(_, api)| api)
    }

    /// Whether the data of the open call is its own still.
    fn is_marked(&self) -> bool {
        // SAFETY: the data was marked when the call began, on this thread's stack or in the room.
        unsafe { frame::is_marked(self.data.get(), self.id.get()) }
    }

    /// Forgets a call that will not return.
    #[cold]
    fn abandon(&self, recorder: &Recorder) {
        recorder.lost_calls.add(self.id.replace(correlation::NONE));
        recorder.counters.lose(counters::Cause::Abandoned, 1);
    }
}

thread_local! {
    static CURRENT: Current = const {
        Current {
            id: Cell::new(correlation::NONE),
            start: Cell::new(0),
            api: Cell::new(None),
            data: Cell::new(ptr::null()),
            frame: Cell::new(Frame::NONE),
            submitted: Cell::new(false),
            kernel: Cell::new(NO_KERNEL),
            room: UnsafeCell::new([0; ROOM]),
        }
    };
}

/// What an operation keeps of the call that submits it.
#[derive(Clone, Copy)]
pub(crate) struct Cause {
    /// Id of the call, `correlation::NONE` for none.
    pub(crate) call: u64,
    /// The stream it names, 0 for the default stream.
    pub(crate) stream: u64,
    /// The call launches one kernel.
    pub(crate) launches: bool,
}

impl Cause {
    /// No call.
    pub(crate) const NONE: Cause = Cause { call: correlation::NONE, stream: 0, launches: false };
}

/// The call that this thread is in.
#[inline]
pub(crate) fn cause() -> Cause {
    let cause = CURRENT.try_with(|current| {
        let (call, Some((_, api))) = (current.id.get(), current.api.get()) else { return Cause::NONE };
        if call == correlation::NONE || !current.is_marked() {
            return Cause::NONE;
        }
        // SAFETY: HIP keeps its data until the call ends, and has filled it before anything is submitted.
        let stream = unsafe { stream(api, current.data.get()) };
        Cause { call, stream, launches: api.is_launch() }
    });
    cause.unwrap_or(Cause::NONE)
}

/// Its id, `correlation::NONE` outside.
pub(super) fn cause_id() -> u64 {
    CURRENT.try_with(|current| current.id.get()).unwrap_or(correlation::NONE)
}

/// What the call that this thread is in means to packets, of which it is about to submit some.
#[inline]
pub(crate) fn submits() -> Cause {
    let _ = CURRENT.try_with(|current| current.submitted.set(true));
    cause()
}

/// # Safety
/// `data` is HIP's data of a call to `api`, filled.
unsafe fn stream(api: &Api, data: *const u8) -> u64 {
    // SAFETY: an argument's place in that data.
    let argument = |offset| unsafe { data.add(offset).cast::<u64>().read_unaligned() };
    match api.stream {
        None => 0,
        Some(StreamPlace::Argument(offset)) => argument(offset),
        // A call that is given none fails, but may have to initialise HIP first.
        Some(StreamPlace::Config(offset)) if argument(offset) == 0 => 0,
        Some(StreamPlace::Config(offset)) => {
            let config = argument(offset) as *const u8;
            // SAFETY: what the call launches by, which is the application's until the call returns.
            unsafe { config.add(LAUNCH_CONFIG_STREAM).cast::<u64>().read_unaligned() }
        }
    }
}

/// A call begins. `data`: where on the stack its arguments are kept, in `size` bytes, or null for room of ours; that place, or null when
/// the call is not recorded: recording is paused, this is inside another call, or the thread is ending.
pub(super) fn enter(index: u16, api: &'static Api, data: *mut u8, size: usize) -> *mut u8 {
    let here = 0u8;
    let Some(recorder) = recorder::get().filter(|recorder| recorder.switch.is_on()) else {
        return ptr::null_mut();
    };
    let entered = CURRENT.try_with(|current| {
        let frame = if data.is_null() { Frame::new(&raw const here, 1) } else { Frame::new(data, size) };
        if current.id.get() != correlation::NONE {
            if !current.frame.get().is_over(frame, || current.is_marked()) {
                return ptr::null_mut();
            }
            current.abandon(recorder);
        }
        let Some(id) = thread::begin_call(recorder) else { return ptr::null_mut() };
        let data = if data.is_null() { current.room.get().cast() } else { data };
        current.id.set(id);
        current.api.set(Some((index, api)));
        // SAFETY: room for HIP's data.
        unsafe { frame::mark(data, id) };
        current.data.set(data);
        current.frame.set(frame);
        current.submitted.set(false);
        current.kernel.set(NO_KERNEL);
        current.start.set(clock::monotonic());
        data
    });
    entered.unwrap_or(ptr::null_mut())
}

/// Finds out which kernel the call that this thread is in is to launch, where commands cannot tell it themselves.
pub(super) fn find_kernel() {
    let _ = CURRENT.try_with(|current| {
        let Some(api) = current.recorded() else { return };
        if current.kernel.get() != NO_KERNEL {
            return;
        }
        let mut room = [0; MOST];
        // SAFETY: HIP has filled its data, and the call has not returned.
        let length = unsafe { arguments::keep(api, current.data.get(), &mut room) };
        let argument = |role| argument(api, &room[..length], role);
        current.kernel.set(function::kernel(api, argument(Role::Function), argument(Role::Stream)));
    });
}

/// What a command that this thread creates now should know of its call.
pub(super) fn created() -> Created {
    let mut created = Created::by(correlation::NONE, clock::monotonic());
    let _ = CURRENT.try_with(|current| {
        let Some(api) = current.recorded() else { return };
        created.call = current.id.get();
        if !matches!(api.row, Row::Kernel | Row::Copy { .. }) {
            return;
        }
        let mut room = [0; MOST];
        // SAFETY: HIP fills its data before it creates commands, and the call has not returned.
        let length = unsafe { arguments::keep(api, current.data.get(), &mut room) };
        if let Some(copy) = Transfer::read(api, &room[..length]) {
            let ends = pointer::Ends::of(&copy);
            created.ends = Some((ends.dst_gpu, ends.src_gpu));
        } else {
            let launch = Launch::read(api, &room[..length]);
            (created.stream, created.kernel) = (launch.stream, current.kernel.get());
            (created.grid, created.workgroup, created.shared) =
                (launch.grid, launch.workgroup, launch.shared);
        }
    });
    created
}

/// The call that [`enter`] took is about to return.
pub(super) fn exit() {
    let _ = CURRENT.try_with(|current| {
        let (id, Some((index, api))) = (current.id.replace(correlation::NONE), current.api.get()) else {
            return;
        };
        if id == correlation::NONE {
            return;
        }
        let Some(recorder) = recorder::get() else { return };
        let mut call = record::Call {
            start: current.start.get(),
            end: clock::monotonic(),
            correlation: id,
            arguments: 0,
            api: index.into(),
            kernel: current.kernel.get(),
            submitted: current.submitted.get().into(),
            dst_gpu: record::NO_GPU,
            src_gpu: record::NO_GPU,
            pinned: 0,
            reserved: 0,
        };
        // SAFETY: HIP has filled its data at the beginning of this call, which has not returned yet.
        unsafe { record(recorder, api, current.data.get(), &mut call) };
    });
}

/// # Safety
/// `data` is HIP's data of a call to `api` that is about to return.
unsafe fn record(recorder: &'static Recorder, api: &Api, data: *const u8, call: &mut record::Call) {
    let mut room = [0; MOST];
    // SAFETY: the caller's promise.
    let length = unsafe { arguments::keep(api, data, &mut room) };
    let bytes = &room[..length];
    call.arguments = length as u32;
    let argument = |role| argument(api, bytes, role);
    match api.row {
        // A dispatch knows its kernel better; only a launch without one (a captured one, one that failed) must say it.
        Row::Kernel if call.submitted == 0 && call.kernel == NO_KERNEL => {
            call.kernel = function::kernel(api, argument(Role::Function), argument(Role::Stream));
        }
        Row::Copy { .. } => {
            let ends = pointer::Ends::of(&Transfer::read(api, bytes).unwrap_or_default());
            (call.dst_gpu, call.src_gpu, call.pinned) = (ends.dst_gpu, ends.src_gpu, ends.pinned.into());
        }
        _ => {}
    }
    match &recorder.stacks {
        None => thread::end_call(recorder, call, [bytes, &[]]),
        Some(stacks) => {
            let mut words = [0; stack::MOST];
            let frames = stack::frames(stacks, &mut words);
            thread::end_call(recorder, call, [bytes, bytemuck::cast_slice(frames)]);
        }
    }
}

/// The argument of a call to `api` that has that role, 0 without one.
fn argument(api: &Api, bytes: &[u8], role: Role) -> u64 {
    let mut each = Arguments::new(api, bytes).each();
    each.find(|(field, _)| field.role == Some(role)).map_or(0, |(_, bytes)| unsigned(bytes))
}
