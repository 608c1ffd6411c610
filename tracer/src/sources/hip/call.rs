//! A call of HIP: from HIP's word that it begins to the record of it.
//!
//! Only the outermost call is recorded; what HIP calls of itself inside is part of it. Operations that the thread submits meanwhile
//! refer to it. A call that was left without returning is lost, which the next one finds out ([`crate::call::frame`]).
//! Cost: two clock readings, the arguments' bytes, one ring push. What may be a cancellation point is done inside [`cancellation::rarely`]:
//! questions to HIP and the runtime, stack frames, and what [`thread`] does for the first record and where a ring is full.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use rpd_preload::{cancellation, clock};
use rpd_transport::correlation;
use rpd_transport::counters;
use rpd_transport::recorder::{self, Recorder};
use rpd_transport::records;
use rpd_transport::records::{KernelId, NO_KERNEL};
use rpd_transport::stack;
use rpd_transport::thread;

use super::arguments::{Arguments, CallState, Room, unsigned};
use super::command::Created;
use super::description::{Api, ArgumentRole, RowKind, StreamPlace};
use super::launch::{LAUNCH_CONFIG_STREAM, launch, transfer};
use super::{activity, functions, kernel, pointer};
use crate::call::frame::{self, Callers, Frame};
use crate::call::{self as open_call, StreamAt};

/// u64s of the room for HIP's data of one call: more than any version known writes there (1520 bytes in 6.x).
pub(super) const ROOM: usize = 256;

/// Where a call can be found again.
#[derive(Clone, Copy)]
pub(super) enum CallPlace {
    /// HIP or a wrapper has room for so many bytes of arguments there, on the stack.
    Data(*mut u8, usize),
    /// HIP wants room of ours. Its own memory on the stack begins there.
    Callers(*const u8),
}

struct CurrentCall {
    /// Id of the call, `correlation::NONE` outside.
    id: Cell<u64>,
    start: Cell<u64>,
    api: Cell<Option<(u16, &'static Api)>>,
    /// HIP's hip_api_data_t of the call, marked with the id: on the thread's own stack or in the room, so that it stays mapped even if
    /// the call is left.
    data: Cell<*const u8>,
    frame: Cell<Frame>,
    /// Of a call without data on the stack.
    callers: Cell<Callers<64>>,
    /// HIP has made a command of it.
    commanded: Cell<bool>,
    /// The kernel it names, where that had to be found out at its beginning.
    kernel: Cell<KernelId>,
    room: UnsafeCell<[u64; ROOM]>,
}

impl CurrentCall {
    /// The function of the call, if it is recorded.
    fn recorded(&self) -> Option<&'static Api> {
        self.api.get().filter(|_| self.id.get() != correlation::NONE).map(|(_, api)| api)
    }

    /// # Safety
    /// `offset` is the place of an argument in the data.
    unsafe fn argument(&self, offset: usize) -> u64 {
        // SAFETY: the caller's promise, and the data stays mapped.
        unsafe { self.data.get().add(offset).cast::<u64>().read_unaligned() }
    }

    /// Forgets a call that will not return.
    #[cold]
    fn abandon(&self, recorder: &Recorder) {
        open_call::end();
        recorder.lost_calls.add(self.id.replace(correlation::NONE));
        recorder.counters.lose(counters::Cause::Abandoned, 1);
    }
}

thread_local! {
    static CURRENT: CurrentCall = const {
        CurrentCall {
            id: Cell::new(correlation::NONE),
            start: Cell::new(0),
            api: Cell::new(None),
            data: Cell::new(ptr::null()),
            frame: Cell::new(Frame::NONE),
            callers: Cell::new(Callers::UNKNOWN),
            commanded: Cell::new(false),
            kernel: Cell::new(NO_KERNEL),
            room: UnsafeCell::new([0; ROOM]),
        }
    };
}

/// Id of the call that this thread is in, `correlation::NONE` outside.
pub(super) fn cause_id() -> u64 {
    CURRENT.try_with(|current| current.id.get()).unwrap_or(correlation::NONE)
}

/// HIP makes a command that it will time, on behalf of the call that this thread is in. True: the first of a launch of one kernel.
pub(super) fn commands() -> bool {
    let first = CURRENT.try_with(|current| {
        let is_launch = current.recorded().is_some_and(Api::is_launch);
        is_launch && !current.commanded.replace(true)
    });
    first.unwrap_or(false)
}

/// A call begins. Where its arguments are to be kept: in the data, or in room of ours; null when the call is not recorded: recording is
/// paused, this is inside another call, or the thread is ending.
pub(super) fn enter(index: u16, api: &'static Api, place: CallPlace) -> *mut u8 {
    let Some(recorder) = recorder::get() else { return ptr::null_mut() };
    let entered = CURRENT.try_with(|current| {
        let is_on = recorder.switch.is_on();
        if !is_on && current.id.get() == correlation::NONE {
            return ptr::null_mut();
        }
        let (frame, data, size) = match place {
            CallPlace::Data(data, size) => (Frame::of_data(data, size), data, size),
            CallPlace::Callers(callers) => (Frame::of_place(callers), ptr::null_mut(), 0),
        };
        if current.id.get() != correlation::NONE {
            if !current.frame.get().is_over(frame, current.id.get(), &current.callers.get()) {
                return ptr::null_mut();
            }
            current.abandon(recorder);
            if !is_on {
                return ptr::null_mut();
            }
        }
        // On another stack than the thread's own the data goes with the stack, if the call is left.
        let in_room = data.is_null() || !frame.is_on_own_stack();
        if in_room && size > 8 * ROOM {
            return ptr::null_mut();
        }
        let Some(id) = thread::begin_call(recorder) else { return ptr::null_mut() };
        let kept = if in_room { current.room.get().cast() } else { data };
        current.id.set(id);
        current.api.set(Some((index, api)));
        // SAFETY: room for HIP's data.
        unsafe { frame::mark(kept, id) };
        if in_room && !data.is_null() {
            // SAFETY: as above.
            unsafe { frame::mark(data, id) };
        }
        current.data.set(kept);
        current.frame.set(frame);
        if let CallPlace::Callers(callers) = place {
            current.callers.set(Callers::at(callers));
        }
        current.commanded.set(false);
        current.kernel.set(NO_KERNEL);
        let stream = match api.stream {
            Some(StreamPlace::Argument(offset)) => StreamAt::Argument(kept.wrapping_add(offset).cast()),
            Some(StreamPlace::Config(_)) | None => StreamAt::Known(0),
        };
        let start = clock::monotonic();
        current.start.set(start);
        // SAFETY: marked above; on the thread's own stack or in the room, so that it stays mapped even if the call is left.
        unsafe { open_call::begin((id, start), kept, stream, api.is_launch()) };
        kept
    });
    entered.unwrap_or(ptr::null_mut())
}

/// The arguments of the call that began with `data` are there now.
///
/// # Safety
/// `data` is what [`enter`] was given for a call that it took, with its size, and that call is under way.
pub(super) unsafe fn filled(data: *const u8, size: usize) {
    let _ = CURRENT.try_with(|current| {
        let Some(api) = current.recorded().filter(|_| current.frame.get().is_of(data)) else { return };
        let room = current.room.get().cast::<u8>();
        if ptr::eq(current.data.get(), room) {
            // SAFETY: the caller's promise; `enter` has seen to it that the room is large enough.
            unsafe { ptr::copy_nonoverlapping(data, room, size) };
        }
        look_into_config(current, api);
    });
}

/// The arguments of the call that [`enter`] took are where it said.
pub(super) fn stands() {
    let _ = CURRENT.try_with(|current| {
        if let Some(api) = current.recorded() {
            look_into_config(current, api);
        }
    });
}

/// Looks at once into a structure that names the stream: it is the application's until the call returns, however that comes about.
fn look_into_config(current: &CurrentCall, api: &Api) {
    let Some(StreamPlace::Config(offset)) = api.stream else { return };
    // SAFETY: an argument's place.
    let config = unsafe { current.argument(offset) } as *const u8;
    // A call that is given none fails.
    if !config.is_null() {
        // SAFETY: what the call that begins now launches by.
        let stream = unsafe { config.add(LAUNCH_CONFIG_STREAM).cast::<u64>().read_unaligned() };
        open_call::found_stream(stream);
    }
}

/// Finds out which kernel the call that this thread is in is to launch, where commands cannot tell it themselves.
pub(super) fn find_kernel() {
    let _ = CURRENT.try_with(|current| {
        let Some(api) = current.recorded() else { return };
        if current.kernel.get() != NO_KERNEL {
            return;
        }
        let mut room = Room::new();
        // SAFETY: the data was filled just now, at the beginning of this very call.
        let bytes = unsafe { room.keep(api, current.data.get(), CallState::Open) };
        let argument = |role| argument(api, bytes, role);
        current.kernel.set(kernel::named_by(
            api,
            argument(ArgumentRole::Function),
            argument(ArgumentRole::Stream),
        ));
    });
}

/// What a command that this thread creates now should know of its call.
pub(super) fn created() -> Created {
    let mut created = Created::by(correlation::NONE, clock::monotonic());
    let _ = CURRENT.try_with(|current| {
        let Some(api) = current.recorded() else { return };
        created.call = current.id.get();
        created.launch = api.is_launch();
        if !matches!(api.row, RowKind::Kernel | RowKind::Copy { .. }) {
            return;
        }
        let mut room = Room::new();
        // SAFETY: mapped, whatever has become of the call: the thread may have left it, and be in one that is not recorded.
        let bytes = unsafe { room.keep(api, current.data.get(), CallState::MaybeLeft) };
        if let Some(copy) = transfer(api, bytes) {
            let ends = pointer::CopyEnds::of(&copy);
            created.ends = Some((ends.dst_gpu, ends.src_gpu));
        } else {
            let launch = launch(api, bytes);
            (created.stream, created.kernel) = (launch.stream, current.kernel.get());
            (created.grid, created.workgroup, created.shared) =
                (launch.grid, launch.workgroup, launch.shared);
        }
    });
    created
}

/// A call of function `index` that [`enter`] took, with `data`, is about to return. One that was taken for left, and returns after all, is
/// not the one that is open now.
pub(super) fn exit(index: u16, data: *const u8) {
    let _ = CURRENT.try_with(|current| {
        let (id, Some((open, api))) = (current.id.get(), current.api.get()) else { return };
        let is_open = open == index && (data.is_null() || current.frame.get().is_of(data));
        if id == correlation::NONE || !is_open {
            return;
        }
        current.id.set(correlation::NONE);
        let submitted = open_call::end();
        let Some(recorder) = recorder::get() else { return };
        let start = current.start.get();
        let commanded = current.commanded.get() || api.is_launch() && activity::may_have_been_silent(start);
        let mut call = records::Call {
            start,
            end: clock::monotonic(),
            correlation: id,
            arguments: 0,
            function: index,
            source: functions::SOURCE,
            reserved: 0,
            kernel: current.kernel.get(),
            submitted: submitted.into(),
            dst_gpu: records::NO_GPU,
            src_gpu: records::NO_GPU,
            pinned: 0,
            commanded: commanded.into(),
            tid: 0,
        };
        // SAFETY: the data of this very call, which has not returned yet.
        unsafe { record(recorder, api, current.data.get(), &mut call) };
    });
}

/// # Safety
/// `data` is HIP's data of a call to `api` that is about to return.
unsafe fn record(recorder: &'static Recorder, api: &Api, data: *const u8, call: &mut records::Call) {
    let mut room = Room::new();
    // SAFETY: the caller's promise.
    let bytes = unsafe { room.keep(api, data, CallState::Open) };
    call.arguments = bytes.len() as u32;
    let argument = |role| argument(api, bytes, role);
    match api.row {
        // A dispatch knows its kernel better; only a launch without one (a captured one, one that failed) must say it.
        RowKind::Kernel if call.submitted == 0 && call.kernel == NO_KERNEL => {
            let (function, stream) = (argument(ArgumentRole::Function), argument(ArgumentRole::Stream));
            call.kernel = cancellation::rarely(|| kernel::named_by(api, function, stream));
        }
        RowKind::Copy { .. } => {
            let copy = transfer(api, bytes).unwrap_or_default();
            let ends = cancellation::rarely(|| pointer::CopyEnds::of(&copy));
            (call.dst_gpu, call.src_gpu, call.pinned) = (ends.dst_gpu, ends.src_gpu, ends.pinned.into());
        }
        _ => {}
    }
    match &recorder.stacks {
        None => thread::end_call(recorder, call, [bytes, &[]]),
        Some(stacks) => {
            let mut words = [0; stack::MOST];
            let frames = cancellation::rarely(|| stack::frames(stacks, &mut words));
            thread::end_call(recorder, call, [bytes, bytemuck::cast_slice(frames)]);
        }
    }
}

/// The argument of a call to `api` that has that role, 0 without one.
fn argument(api: &Api, bytes: &[u8], role: ArgumentRole) -> u64 {
    let mut each = Arguments::new(api, bytes).each();
    each.find(|(field, _)| field.role == Some(role)).map_or(0, |(_, bytes)| unsigned(bytes))
}
