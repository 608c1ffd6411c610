//! roctx: the markers of AMD's libroctx64 and librocprofiler-sdk-roctx, with their return values whether or not either is there.
//!
//! Each call is recorded, and handed on to the library that the program would have called without us: what that one returns is
//! returned. Calls arrive by our own symbols or through the library's registered table, where one that was handed on arrives a
//! second time and is not recorded again. Facts: roctracer inc/roctx.h, rocprofiler-sdk-roctx/roctx.h.

pub mod export;
mod next;
mod table;

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use rpd_transport::marker;
use rpd_transport::process_range;
use rpd_transport::records::Stack;
use rpd_transport::source::{Answer, Loading, Offer, Source};
use rpd_transport::thread;

use crate::guard::{bytes, guard_without_points, with_recorder, with_recorder_without_points};
use next::NextFunction;

/// The source of roctx's markers.
pub(crate) struct Roctx;

impl Source for Roctx {
    fn name(&self) -> &'static str {
        "roctx"
    }

    fn number(&self) -> u8 {
        3
    }

    fn loaded(&self, _: Loading) {
        next::arrived();
    }

    fn offered(&self, offer: &Offer<'_>) -> Answer {
        let (b"roctx", [core, control, ..]) = (offer.name, offer.tables) else { return Answer::NotMine };
        // SAFETY: rocprofiler-sdk-roctx offers its own tables.
        unsafe { table::patch(offer.instance, *core, *control) };
        Answer::Taken
    }
}

/// roctxMarkA.
pub(crate) type Mark = unsafe extern "C-unwind" fn(*const c_char);
/// roctxRangePushA.
pub(crate) type RangePush = unsafe extern "C-unwind" fn(*const c_char) -> c_int;
/// roctxRangePop.
pub(crate) type RangePop = extern "C-unwind" fn() -> c_int;
/// roctxRangeStartA.
pub(crate) type RangeStart = unsafe extern "C-unwind" fn(*const c_char) -> u64;
/// roctxRangeStop.
pub(crate) type RangeStop = extern "C-unwind" fn(u64);
/// roctxProfilerPause, roctxProfilerResume.
pub(crate) type ProfilerControl = extern "C-unwind" fn(u64) -> c_int;

// What is behind our own symbols.
pub(crate) static MARK: NextFunction<Mark> = NextFunction::new(c"roctxMarkA");
pub(crate) static RANGE_PUSH: NextFunction<RangePush> = NextFunction::new(c"roctxRangePushA");
pub(crate) static RANGE_POP: NextFunction<RangePop> = NextFunction::new(c"roctxRangePop");
pub(crate) static RANGE_START: NextFunction<RangeStart> = NextFunction::new(c"roctxRangeStartA");
pub(crate) static RANGE_STOP: NextFunction<RangeStop> = NextFunction::new(c"roctxRangeStop");
static THREAD_ID: NextFunction<unsafe extern "C-unwind" fn(*mut u64) -> c_int> =
    NextFunction::new(c"roctxGetThreadId");
pub(crate) static PAUSE: NextFunction<ProfilerControl> = NextFunction::new(c"roctxProfilerPause");
pub(crate) static RESUME: NextFunction<ProfilerControl> = NextFunction::new(c"roctxProfilerResume");
static NAME_OS_THREAD: NextFunction<unsafe extern "C-unwind" fn(*const c_char) -> c_int> =
    NextFunction::new(c"roctxNameOsThread");
static NAME_HSA_AGENT: NextFunction<unsafe extern "C-unwind" fn(*const c_char, *const c_void) -> c_int> =
    NextFunction::new(c"roctxNameHsaAgent");
static NAME_HIP_DEVICE: NextFunction<unsafe extern "C-unwind" fn(*const c_char, c_int) -> c_int> =
    NextFunction::new(c"roctxNameHipDevice");
static NAME_HIP_STREAM: NextFunction<unsafe extern "C-unwind" fn(*const c_char, *const c_void) -> c_int> =
    NextFunction::new(c"roctxNameHipStream");

/// Version of the interface, where no library says another.
const VERSION: (u32, u32) = (4, 1);
static VERSION_MAJOR: NextFunction<extern "C-unwind" fn() -> u32> = NextFunction::new(c"roctx_version_major");
static VERSION_MINOR: NextFunction<extern "C-unwind" fn() -> u32> = NextFunction::new(c"roctx_version_minor");

/// The last id given to a range that `roctxRangeStop` ends.
static LAST_RANGE: AtomicU64 = AtomicU64::new(0);

/// Major version.
pub(crate) fn version_major() -> u32 {
    VERSION_MAJOR.get().map_or(VERSION.0, |next| next())
}

/// Minor version.
pub(crate) fn version_minor() -> u32 {
    VERSION_MINOR.get().map_or(VERSION.1, |next| next())
}

/// An instant.
///
/// # Safety
/// `message` is null or NUL-terminated.
pub(crate) unsafe fn mark(next: Option<Mark>, message: *const c_char) {
    with_recorder_without_points(|recorder| {
        // SAFETY: the caller's promise.
        marker::mark(recorder, marker::USER_MARKER.as_bytes(), unsafe { bytes(message) });
    });
    if let Some(next) = next {
        // SAFETY: as above.
        hand_on(|| unsafe { next(message) });
    }
}

/// A range of this thread begins: how many were open before it.
///
/// # Safety
/// `message` is null or NUL-terminated.
pub(crate) unsafe fn range_push(next: Option<RangePush>, message: *const c_char) -> c_int {
    with_recorder_without_points(|recorder| {
        // SAFETY: the caller's promise.
        let text = unsafe { bytes(message) };
        marker::push(recorder, Stack::ROCTX, marker::USER_MARKER.as_bytes(), text);
    });
    let level = guard_without_points(0, || marker::level_up(Stack::ROCTX));
    // SAFETY: the caller's promise.
    next.map_or(level, |next| hand_on(|| unsafe { next(message) }))
}

/// The innermost range of this thread ends: how many are open after it, -1 if there was none.
pub(crate) fn range_pop(next: Option<RangePop>) -> c_int {
    let level = guard_without_points(None, || marker::level_down(Stack::ROCTX));
    if level.is_some() {
        with_recorder_without_points(|recorder| marker::pop(recorder, Stack::ROCTX));
    }
    next.map_or(level.unwrap_or(-1), |next| hand_on(|| next()))
}

/// A range begins that any thread may end: its id, from 1.
///
/// # Safety
/// `message` is null or NUL-terminated.
pub(crate) unsafe fn range_start(next: Option<RangeStart>, message: *const c_char) -> u64 {
    let id = match next {
        // SAFETY: the caller's promise.
        Some(next) => hand_on(|| unsafe { next(message) }),
        None => LAST_RANGE.fetch_add(1, Ordering::Relaxed) + 1,
    };
    // SAFETY: as above.
    with_recorder(|recorder| process_range::start(recorder, id, unsafe { bytes(message) }));
    id
}

/// That range ends.
pub(crate) fn range_stop(next: Option<RangeStop>, id: u64) {
    with_recorder(|recorder| process_range::stop(recorder, id));
    if let Some(next) = next {
        hand_on(|| next(id));
    }
}

/// The calling thread's id, to `tid`: 0.
///
/// # Safety
/// `tid` is null or may be written.
pub(crate) unsafe fn thread_id(tid: *mut u64) -> c_int {
    if let Some(next) = THREAD_ID.get() {
        // SAFETY: the caller's promise.
        return unsafe { next(tid) };
    }
    if !tid.is_null() {
        // SAFETY: as above.
        unsafe { *tid = thread::tid().into() };
    }
    0
}

/// Recording pauses until [`resume`]. Only whole processes can: asked for one thread, nothing happens.
pub(crate) fn pause(next: Option<ProfilerControl>, tid: u64) -> c_int {
    if tid == 0 {
        with_recorder(|recorder| recorder.switch.pause());
    }
    next.map_or(0, |next| hand_on(|| next(tid)))
}

/// Recording goes on, or begins if nobody has asked for it yet.
pub(crate) fn resume(next: Option<ProfilerControl>, tid: u64) -> c_int {
    if tid == 0 {
        with_recorder(|recorder| {
            recorder.switch.resume();
            recorder.setup.sources.iter().for_each(|source| source.started(recorder));
        });
    }
    next.map_or(0, |next| hand_on(|| next(tid)))
}

/// Names are for other tools: the format has no place for them.
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_os_thread(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    NAME_OS_THREAD.get().map_or(0, |next| unsafe { next(name) })
}

/// See [`name_os_thread`].
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_hsa_agent(name: *const c_char, agent: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    NAME_HSA_AGENT.get().map_or(0, |next| unsafe { next(name, agent) })
}

/// See [`name_os_thread`].
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_hip_device(name: *const c_char, device: c_int) -> c_int {
    // SAFETY: the caller's promise.
    NAME_HIP_DEVICE.get().map_or(0, |next| unsafe { next(name, device) })
}

/// See [`name_os_thread`].
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_hip_stream(name: *const c_char, stream: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    NAME_HIP_STREAM.get().map_or(0, |next| unsafe { next(name, stream) })
}

thread_local! {
    static HANDED_ON: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is inside a call that was handed on to another library: what arrives by that library's table is the same call.
pub(crate) fn is_handed_on() -> bool {
    HANDED_ON.get()
}

/// Outside of the guard: the next library may do as it likes with errno and exceptions.
fn hand_on<T>(call: impl FnOnce() -> T) -> T {
    let outer = HANDED_ON.replace(true);
    let result = call();
    HANDED_ON.set(outer);
    result
}
