//! libroctx64.so.4 and librocprofiler-sdk-roctx.so.1 for machines without AMD's: programs that link or open these names find the
//! recorder behind them when it is in the process, AMD's library otherwise, and AMD's return values without either.
//!
//! - `forward`: where a call goes, decided at the first one and again when a recorder arrives
//! - `real`: AMD's library, if there is one
//! - `alone`: levels and ids where nobody listens

mod alone;
mod forward;
mod real;

use std::ffi::{c_char, c_int, c_void};

use forward::Forward;
use rpd_preload::{cancellation, threads};

/// What the functions that only accept something return.
const DONE: c_int = 0;

/// The function of that name in AMD's library, null where there is none: the recorder hands calls on to it.
///
/// # Safety
/// `name` is NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn rpd_roctx_next(name: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    cancellation::disabled(|| real::function(unsafe { std::ffi::CStr::from_ptr(name) }))
}

/// A recorder was loaded into the process: the next calls go to it.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn rpd_roctx_refresh() {
    forward::look_again();
}

/// Major version of the interface (roctx.h of roctracer: 4).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctx_version_major() -> u32 {
    static FORWARD: Forward<extern "C-unwind" fn() -> u32> = Forward::new(c"roctx_version_major");
    FORWARD.get().map_or(4, |version| version())
}

/// Minor version of the interface (roctx.h of roctracer: 1).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctx_version_minor() -> u32 {
    static FORWARD: Forward<extern "C-unwind" fn() -> u32> = Forward::new(c"roctx_version_minor");
    FORWARD.get().map_or(1, |version| version())
}

/// An instant.
///
/// # Safety
/// `message` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxMarkA(message: *const c_char) {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char)> = Forward::new(c"roctxMarkA");
    if let Some(mark) = FORWARD.get() {
        // SAFETY: the caller's promise.
        unsafe { mark(message) };
    }
}

/// A range of the calling thread begins. Returns how many were open before it.
///
/// # Safety
/// `message` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxRangePushA(message: *const c_char) -> c_int {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char) -> c_int> =
        Forward::new(c"roctxRangePushA");
    // SAFETY: the caller's promise.
    FORWARD.get().map_or_else(alone::push, |push| unsafe { push(message) })
}

/// The innermost range of the calling thread ends. Returns how many are open after it, -1 when there was none.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxRangePop() -> c_int {
    static FORWARD: Forward<extern "C-unwind" fn() -> c_int> = Forward::new(c"roctxRangePop");
    FORWARD.get().map_or_else(alone::pop, |pop| pop())
}

/// A range begins that any thread may stop by the id returned.
///
/// # Safety
/// `message` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxRangeStartA(message: *const c_char) -> u64 {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char) -> u64> =
        Forward::new(c"roctxRangeStartA");
    // SAFETY: the caller's promise.
    FORWARD.get().map_or_else(alone::start, |start| unsafe { start(message) })
}

/// The range of that id ends.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxRangeStop(id: u64) {
    static FORWARD: Forward<extern "C-unwind" fn(u64)> = Forward::new(c"roctxRangeStop");
    if let Some(stop) = FORWARD.get() {
        stop(id);
    }
}

/// Asks AMD's library to call `callback` for each marker; without that library nobody is called.
///
/// # Safety
/// As AMD's library demands (roctracer_roctx.h).
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxRegisterTracerCallback(callback: *const c_void) {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_void)> =
        Forward::new(c"roctxRegisterTracerCallback");
    if let Some(register) = FORWARD.get() {
        // SAFETY: the caller's promise.
        unsafe { register(callback) };
    }
}

/// The calling thread's id. Returns 0.
///
/// # Safety
/// `tid` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxGetThreadId(tid: *mut u64) -> c_int {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*mut u64) -> c_int> =
        Forward::new(c"roctxGetThreadId");
    if let Some(thread_id) = FORWARD.get() {
        // SAFETY: the caller's promise.
        return unsafe { thread_id(tid) };
    }
    if !tid.is_null() {
        // SAFETY: the caller's promise.
        unsafe { *tid = threads::id() as u64 };
    }
    DONE
}

/// Pauses the recorder. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxProfilerPause(tid: u64) -> c_int {
    static FORWARD: Forward<extern "C-unwind" fn(u64) -> c_int> = Forward::new(c"roctxProfilerPause");
    FORWARD.get().map_or(DONE, |pause| pause(tid))
}

/// Resumes the recorder. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxProfilerResume(tid: u64) -> c_int {
    static FORWARD: Forward<extern "C-unwind" fn(u64) -> c_int> = Forward::new(c"roctxProfilerResume");
    FORWARD.get().map_or(DONE, |resume| resume(tid))
}

/// Names the calling thread. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameOsThread(name: *const c_char) -> c_int {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char) -> c_int> =
        Forward::new(c"roctxNameOsThread");
    // SAFETY: the caller's promise.
    FORWARD.get().map_or(DONE, |call| unsafe { call(name) })
}

/// Names an agent. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated, `agent` null or a live `hsa_agent_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameHsaAgent(name: *const c_char, agent: *const c_void) -> c_int {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char, *const c_void) -> c_int> =
        Forward::new(c"roctxNameHsaAgent");
    // SAFETY: the caller's promise.
    FORWARD.get().map_or(DONE, |call| unsafe { call(name, agent) })
}

/// Names a device. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameHipDevice(name: *const c_char, device: c_int) -> c_int {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char, c_int) -> c_int> =
        Forward::new(c"roctxNameHipDevice");
    // SAFETY: the caller's promise.
    FORWARD.get().map_or(DONE, |call| unsafe { call(name, device) })
}

/// Names a stream. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated, `stream` null or a live stream.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameHipStream(name: *const c_char, stream: *const c_void) -> c_int {
    static FORWARD: Forward<unsafe extern "C-unwind" fn(*const c_char, *const c_void) -> c_int> =
        Forward::new(c"roctxNameHipStream");
    // SAFETY: the caller's promise.
    FORWARD.get().map_or(DONE, |call| unsafe { call(name, stream) })
}
