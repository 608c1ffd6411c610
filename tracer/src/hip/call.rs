//! The call that this thread is in: from HIP's word that it begins to the record of it.
//!
//! Only the outermost call is recorded; what HIP calls of itself inside is part of it. Operations that the thread submits meanwhile
//! refer to it. Cost: two clock readings, the arguments' bytes, one ring push.

use std::cell::{Cell, UnsafeCell};
use std::ptr;

use super::arguments::{self, Arguments, MOST, unsigned};
use super::description::{Api, Role, Row};
use super::launch::Transfer;
use super::{function, pointer};
use crate::recorder::{self, Recorder};
use crate::{clock, correlation, record, stack, thread};

/// u64s of the room for HIP's data of one call: more than any version known writes there (1520 bytes in 6.x).
pub(super) const ROOM: usize = 256;

struct Current {
    /// Id of the call, `correlation::NONE` outside.
    id: Cell<u64>,
    start: Cell<u64>,
    api: Cell<Option<(u16, &'static Api)>>,
    /// HIP's hip_api_data_t of the call.
    data: Cell<*const u8>,
    /// Kernels that it has handed to the hardware.
    kernels: Cell<u32>,
    room: UnsafeCell<[u64; ROOM]>,
}

thread_local! {
    static CURRENT: Current = const {
        Current {
            id: Cell::new(correlation::NONE),
            start: Cell::new(0),
            api: Cell::new(None),
            data: Cell::new(ptr::null()),
            kernels: Cell::new(0),
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
    /// The call launches one kernel, and this is the first.
    launches: bool,
}

impl Cause {
    /// No call.
    pub(crate) const NONE: Cause = Cause { call: correlation::NONE, stream: 0, launches: false };

    /// A kernel of the application is being submitted: whether it is the one that the call is there to launch.
    #[inline]
    pub(crate) fn launch(&mut self) -> bool {
        if self.call == correlation::NONE {
            return false;
        }
        let _ = CURRENT.try_with(|current| current.kernels.set(current.kernels.get() + 1));
        std::mem::take(&mut self.launches)
    }
}

/// The call that this thread is in.
#[inline]
pub(crate) fn cause() -> Cause {
    let cause = CURRENT.try_with(|current| {
        let (call, Some((_, api))) = (current.id.get(), current.api.get()) else { return Cause::NONE };
        if call == correlation::NONE {
            return Cause::NONE;
        }
        // SAFETY: HIP keeps its data until the call ends, and has filled it before anything is submitted.
        let stream = unsafe { stream(api, current.data.get()) };
        Cause { call, stream, launches: api.row == Row::Kernel && current.kernels.get() == 0 }
    });
    cause.unwrap_or(Cause::NONE)
}

/// # Safety
/// `data` is HIP's data of a call to `api`, filled.
unsafe fn stream(api: &Api, data: *const u8) -> u64 {
    let Some(offset) = api.stream else { return 0 };
    // SAFETY: the stream's place in that data.
    unsafe { data.add(offset).cast::<u64>().read_unaligned() }
}

/// A call begins. `data`: where HIP keeps its arguments, or null for room of ours; that place, or null when the call is not recorded:
/// recording is paused, this is inside another call, or the thread is ending.
pub(super) fn enter(index: u16, api: &'static Api, data: *mut u8) -> *mut u8 {
    let Some(recorder) = recorder::get().filter(|recorder| recorder.switch.is_on()) else {
        return ptr::null_mut();
    };
    let entered = CURRENT.try_with(|current| {
        if current.id.get() != correlation::NONE {
            return ptr::null_mut();
        }
        let Some(id) = thread::begin_call(recorder) else { return ptr::null_mut() };
        let data = if data.is_null() { current.room.get().cast() } else { data };
        current.id.set(id);
        current.api.set(Some((index, api)));
        current.data.set(data);
        current.kernels.set(0);
        current.start.set(clock::monotonic());
        data
    });
    entered.unwrap_or(ptr::null_mut())
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
            kernel: record::NO_KERNEL,
            kernels: current.kernels.get(),
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
    let argument = |role: Role| {
        let mut each = Arguments::new(api, bytes).each();
        each.find(|(field, _)| field.role == Some(role)).map_or(0, |(_, bytes)| unsigned(bytes))
    };
    match api.row {
        // A dispatch knows its kernel better; only a launch without one (a captured one, one that failed) must say it.
        Row::Kernel if call.kernels == 0 => {
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
