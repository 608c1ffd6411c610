//! The ends of a process that the recorder, loaded late, does not see by itself, because the program's calls are bound to the C
//! library by then: `_exit`, by which workers end, and a first thread that ends before the others.

use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::guard::guard;
use crate::{presence, recorder};

/// The functions of these names behind ours.
static EXIT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static THREAD_EXIT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// The program's first thread has ended, and the process goes on without it.
static FIRST_LEFT: AtomicBool = AtomicBool::new(false);

/// Looks up what stands behind ours: later, in a signal handler, it could not be done.
pub(crate) fn watch() {
    for (place, name) in [(&EXIT, c"_exit"), (&THREAD_EXIT, c"pthread_exit")] {
        place.store(next(name), Ordering::Relaxed);
    }
}

fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a NUL-terminated name.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Ends the process at once; what was recorded reaches the file first.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    end(status)
}

/// The same under its C99 name.
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    end(status)
}

fn end(status: c_int) -> ! {
    if presence::is_own_process() {
        guard(recorder::finish);
    }
    let next = EXIT.load(Ordering::Relaxed);
    if !next.is_null() {
        // SAFETY: a function of that name, and so of that type.
        unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(next)(status) };
    }
    loop {
        // SAFETY: what the C library's _exit does: every thread ends here.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// Ends the calling thread. Where that is the first, the process ends with the last of the others, and our thread must not be
/// that one for ever: from here on it looks whether it is alone.
///
/// # Safety
/// That of pthread_exit, which unwinds through the caller.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn pthread_exit(value: *mut c_void) -> ! {
    // SAFETY: no arguments, cannot fail.
    if unsafe { libc::gettid() } as u32 == std::process::id() {
        FIRST_LEFT.store(true, Ordering::Relaxed);
        if let Some(block) = presence::block() {
            block.ring();
        }
    }
    let mut behind = THREAD_EXIT.load(Ordering::Relaxed);
    if behind.is_null() {
        behind = next(c"pthread_exit");
    }
    // SAFETY: a function of that name, and so of that type; the C library always has it.
    unsafe { std::mem::transmute::<*mut c_void, extern "C-unwind" fn(*mut c_void) -> !>(behind)(value) }
}

/// Whether the program's first thread has ended before the others.
pub(crate) fn first_left() -> bool {
    FIRST_LEFT.load(Ordering::Relaxed)
}

/// Whether nothing is left of the program but our threads and the recorder's: all are called `rpd-...`. The first thread is still
/// listed when it has ended.
pub(crate) fn is_alone() -> bool {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return false };
    let first = std::process::id().to_string();
    !tasks.flatten().any(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        *task.file_name() != *first && !name.is_empty() && !name.starts_with("rpd-")
    })
}
