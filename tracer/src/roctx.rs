//! roctx: the markers of AMD's libroctx64 and librocprofiler-sdk-roctx, with their return values whether or not either is there.
//!
//! Each call is recorded, and handed on to the library that the program would have called without us: what that one returns is
//! returned. Facts: roctracer inc/roctx.h, rocprofiler-sdk-roctx/roctx.h.

mod next;

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::guard::guard;
use crate::record::Stack;
use crate::recorder::{self, Recorder};
use crate::{marker, process_range, thread};
use next::Next;

type Text = *const c_char;
type Object = *const std::ffi::c_void;

static MARK: Next<unsafe extern "C" fn(Text)> = Next::new(c"roctxMarkA");
static RANGE_PUSH: Next<unsafe extern "C" fn(Text) -> c_int> = Next::new(c"roctxRangePushA");
static RANGE_POP: Next<extern "C" fn() -> c_int> = Next::new(c"roctxRangePop");
static RANGE_START: Next<unsafe extern "C" fn(Text) -> u64> = Next::new(c"roctxRangeStartA");
static RANGE_STOP: Next<extern "C" fn(u64)> = Next::new(c"roctxRangeStop");
static THREAD_ID: Next<unsafe extern "C" fn(*mut u64) -> c_int> = Next::new(c"roctxGetThreadId");
static PAUSE: Next<extern "C" fn(u64) -> c_int> = Next::new(c"roctxProfilerPause");
static RESUME: Next<extern "C" fn(u64) -> c_int> = Next::new(c"roctxProfilerResume");
static NAME_OS_THREAD: Next<unsafe extern "C" fn(Text) -> c_int> = Next::new(c"roctxNameOsThread");
static NAME_HSA_AGENT: Next<unsafe extern "C" fn(Text, Object) -> c_int> = Next::new(c"roctxNameHsaAgent");
static NAME_HIP_DEVICE: Next<unsafe extern "C" fn(Text, c_int) -> c_int> = Next::new(c"roctxNameHipDevice");
static NAME_HIP_STREAM: Next<unsafe extern "C" fn(Text, Object) -> c_int> = Next::new(c"roctxNameHipStream");

/// Version of the interface, where no library says another.
const VERSION: (u32, u32) = (4, 1);
static VERSION_MAJOR: Next<extern "C" fn() -> u32> = Next::new(c"roctx_version_major");
static VERSION_MINOR: Next<extern "C" fn() -> u32> = Next::new(c"roctx_version_minor");

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
pub(crate) unsafe fn mark(message: Text) {
    // SAFETY: the caller's promise.
    record(|recorder| marker::mark(recorder, marker::USER_MARKER.as_bytes(), unsafe { bytes(message) }));
    if let Some(next) = MARK.get() {
        // SAFETY: as above.
        unsafe { next(message) };
    }
}

/// A range of this thread begins: how many were open before it.
///
/// # Safety
/// `message` is null or NUL-terminated.
pub(crate) unsafe fn range_push(message: Text) -> c_int {
    record(|recorder| {
        // SAFETY: the caller's promise.
        let text = unsafe { bytes(message) };
        marker::push(recorder, Stack::ROCTX, marker::USER_MARKER.as_bytes(), text);
    });
    let level = guard(0, || marker::level_up(Stack::ROCTX));
    // SAFETY: the caller's promise.
    RANGE_PUSH.get().map_or(level, |next| unsafe { next(message) })
}

/// The innermost range of this thread ends: how many are open after it, -1 if there was none.
pub(crate) fn range_pop() -> c_int {
    let level = guard(None, || marker::level_down(Stack::ROCTX));
    if level.is_some() {
        record(|recorder| marker::pop(recorder, Stack::ROCTX));
    }
    RANGE_POP.get().map_or(level.unwrap_or(-1), |next| next())
}

/// A range begins that any thread may end: its id, from 1.
///
/// # Safety
/// `message` is null or NUL-terminated.
pub(crate) unsafe fn range_start(message: Text) -> u64 {
    let id = match RANGE_START.get() {
        // SAFETY: the caller's promise.
        Some(next) => unsafe { next(message) },
        None => LAST_RANGE.fetch_add(1, Ordering::Relaxed) + 1,
    };
    // SAFETY: as above.
    record(|recorder| process_range::start(recorder, id, unsafe { bytes(message) }));
    id
}

/// That range ends.
pub(crate) fn range_stop(id: u64) {
    record(|recorder| process_range::stop(recorder, id));
    if let Some(next) = RANGE_STOP.get() {
        next(id);
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
pub(crate) fn pause(tid: u64) -> c_int {
    if tid == 0 {
        record(|recorder| recorder.switch.pause());
    }
    PAUSE.get().map_or(0, |next| next(tid))
}

/// Recording goes on, or begins if nobody has asked for it yet.
pub(crate) fn resume(tid: u64) -> c_int {
    if tid == 0 {
        record(|recorder| recorder.switch.resume());
    }
    RESUME.get().map_or(0, |next| next(tid))
}

/// Names are for other tools: the format has no place for them.
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_os_thread(name: Text) -> c_int {
    // SAFETY: the caller's promise.
    NAME_OS_THREAD.get().map_or(0, |next| unsafe { next(name) })
}

/// See [`name_os_thread`].
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_hsa_agent(name: Text, agent: Object) -> c_int {
    // SAFETY: the caller's promise.
    NAME_HSA_AGENT.get().map_or(0, |next| unsafe { next(name, agent) })
}

/// See [`name_os_thread`].
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_hip_device(name: Text, device: c_int) -> c_int {
    // SAFETY: the caller's promise.
    NAME_HIP_DEVICE.get().map_or(0, |next| unsafe { next(name, device) })
}

/// See [`name_os_thread`].
///
/// # Safety
/// As the next library demands.
pub(crate) unsafe fn name_hip_stream(name: Text, stream: Object) -> c_int {
    // SAFETY: the caller's promise.
    NAME_HIP_STREAM.get().map_or(0, |next| unsafe { next(name, stream) })
}

/// Only what is ours runs inside the guard: the next library may do as it likes with errno and exceptions.
fn record(act: impl FnOnce(&'static Recorder)) {
    guard((), || {
        if let Some(recorder) = recorder::get() {
            act(recorder);
        }
    });
}

/// # Safety
/// `text` is null or NUL-terminated and stays as it is for the caller's use of the result.
unsafe fn bytes<'a>(text: Text) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}
