//! Symbol interposition: roctx under its own names. LD_PRELOAD puts these before those of libroctx64.so.4 and librocprofiler-sdk-roctx.so.1,
//! whatever version node a program has linked: a definition without a version satisfies every reference.

use std::ffi::{c_char, c_int, c_void};

use crate::sources::roctx;

/// Major version of the interface (roctx.h of roctracer: 4).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctx_version_major() -> u32 {
    roctx::version_major()
}

/// Minor version of the interface (roctx.h of roctracer: 1).
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctx_version_minor() -> u32 {
    roctx::version_minor()
}

/// An instant.
///
/// # Safety
/// `message` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxMarkA(message: *const c_char) {
    // SAFETY: the caller's promise.
    unsafe { roctx::mark(roctx::MARK.get(), message) }
}

/// A range of the calling thread begins. Returns how many were open before it.
///
/// # Safety
/// `message` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxRangePushA(message: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { roctx::range_push(roctx::RANGE_PUSH.get(), message) }
}

/// The innermost range of the calling thread ends. Returns how many are open after it, -1 when there was none.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxRangePop() -> c_int {
    roctx::range_pop(roctx::RANGE_POP.get())
}

/// A range begins that any thread may stop by the id returned.
///
/// # Safety
/// `message` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxRangeStartA(message: *const c_char) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { roctx::range_start(roctx::RANGE_START.get(), message) }
}

/// The range of that id ends.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxRangeStop(id: u64) {
    roctx::range_stop(roctx::RANGE_STOP.get(), id);
}

/// The calling thread's id. Returns 0.
///
/// # Safety
/// `tid` is null or may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxGetThreadId(tid: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { roctx::thread_id(tid) }
}

/// Pauses recording; `tid` 0 is the whole process, the only one that can be paused. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxProfilerPause(tid: u64) -> c_int {
    roctx::pause(roctx::PAUSE.get(), tid)
}

/// Resumes recording; see [`roctxProfilerPause`]. Returns 0.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn roctxProfilerResume(tid: u64) -> c_int {
    roctx::resume(roctx::RESUME.get(), tid)
}

/// Names the calling thread, for other tools. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameOsThread(name: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { roctx::name_os_thread(name) }
}

/// Names an agent, for other tools. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated, `agent` null or a live `hsa_agent_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameHsaAgent(name: *const c_char, agent: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { roctx::name_hsa_agent(name, agent) }
}

/// Names a device, for other tools. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameHipDevice(name: *const c_char, device: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { roctx::name_hip_device(name, device) }
}

/// Names a stream, for other tools. Returns 0.
///
/// # Safety
/// `name` is null or NUL-terminated, `stream` null or a live stream.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn roctxNameHipStream(name: *const c_char, stream: *const c_void) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { roctx::name_hip_stream(name, stream) }
}
