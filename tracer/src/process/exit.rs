//! The ends of a process that run no destructor: `_exit` and `_Exit`, by which data-loader and worker processes end, `abort` and a
//! failed `assert`, by interposition (LD_PRELOAD, or late: see [`got`]); `quick_exit`, by a handler.

use std::ffi::{c_char, c_int, c_uint};

use rpd_preload::got::{self, GotEntry};
use rpd_preload::next::Next;

use crate::guard::guard;
use crate::process::finish;

static EXIT: Next = Next::new(c"_exit");
static EXIT_C99: Next = Next::new(c"_Exit");
static ABORT: Next = Next::new(c"abort");
static ASSERT_FAIL: Next = Next::new(c"__assert_fail");

/// Looks for the next function. Where the program's calls pass `ours` by and go to the same function: what is to be replaced for them to
/// come here first. Where they go to somebody else's, that may pass them on to us.
fn look_up(next: &Next, ours: usize) -> Option<GotEntry> {
    let theirs = next.look_up()?;
    // SAFETY: a NUL-terminated name.
    let passed_by = theirs.as_ptr() == unsafe { libc::dlsym(libc::RTLD_DEFAULT, next.name().as_ptr()) };
    passed_by.then(|| GotEntry { name: next.name(), theirs: theirs.addr().get(), ours })
}

/// Looks up what stands behind ours, and asks to be called at `quick_exit`.
pub(super) fn watch() {
    let ours = [
        (&EXIT, exit_now as *const () as usize),
        (&EXIT_C99, exit_c99_now as *const () as usize),
        (&ABORT, abort_now as *const () as usize),
        (&ASSERT_FAIL, assertion_failed as *const () as usize),
    ];
    let late: Vec<GotEntry> = ours.into_iter().filter_map(|(next, ours)| look_up(next, ours)).collect();
    if !late.is_empty() {
        got::replace(&late);
    }
    extern "C-unwind" fn handler() {
        guard((), finish::process_end);
    }
    // SAFETY: the handler lives as long as the process: the library is never unloaded.
    unsafe { at_quick_exit(handler) };
}

/// Asks to be called when main returns or `exit` is called. The C library runs the handler that was registered last first. A program
/// registers those by which HIP lets go of its kernels before main, so this one, which is registered when recording begins, runs before them.
pub(super) fn watch_return() {
    extern "C" fn handler() {
        guard((), finish::main_returned);
    }
    // SAFETY: the handler lives as long as the process: the library is never unloaded.
    unsafe { libc::atexit(handler) };
}

unsafe extern "C" {
    fn at_quick_exit(handler: extern "C-unwind" fn()) -> c_int;
}

/// Ends the process at once; what was recorded reaches the file first.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn _exit(status: c_int) -> ! {
    exit_now(status)
}

/// The same under its C99 name.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn _Exit(status: c_int) -> ! {
    exit_c99_now(status)
}

/// Ends the process by SIGABRT: an uncaught exception of C++, HIP where a queue has failed, the HSA runtime where memory was not the
/// GPU's. What was recorded reaches the file first.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn abort() -> ! {
    abort_now()
}

/// A failed `assert`, which ends the process by an `abort` of the C library's own.
///
/// # Safety
/// NUL-terminated strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __assert_fail(
    assertion: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) -> ! {
    // SAFETY: the caller's arguments.
    unsafe { assertion_failed(assertion, file, line, function) }
}

// The functions themselves have no exported names: the address of an exported one is the one that the program finds under that name,
// which need not be ours.

extern "C-unwind" fn exit_now(status: c_int) -> ! {
    end(&EXIT, status)
}

extern "C-unwind" fn exit_c99_now(status: c_int) -> ! {
    end(&EXIT_C99, status)
}

fn end(next: &Next, status: c_int) -> ! {
    guard((), finish::process_end);
    // SAFETY: a function of that name, and so of that type.
    if let Some(next) = unsafe { next.get::<extern "C-unwind" fn(c_int)>() } {
        next(status);
    }
    loop {
        // SAFETY: what the C library's _exit does: every thread ends here (not SYS_exit, which ends only the caller).
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

extern "C-unwind" fn abort_now() -> ! {
    guard((), finish::abort);
    // SAFETY: a function of that name, and so of that type.
    if let Some(next) = unsafe { ABORT.get::<extern "C-unwind" fn()>() } {
        next();
    }
    loop {
        // SAFETY: no pointers; what abort comes down to where nobody handles the signal.
        unsafe {
            libc::signal(libc::SIGABRT, libc::SIG_DFL);
            libc::raise(libc::SIGABRT);
        }
    }
}

type AssertFail = unsafe extern "C-unwind" fn(*const c_char, *const c_char, c_uint, *const c_char);

unsafe extern "C-unwind" fn assertion_failed(
    assertion: *const c_char,
    file: *const c_char,
    line: c_uint,
    function: *const c_char,
) -> ! {
    guard((), finish::abort);
    // SAFETY: a function of that name, and so of that type.
    if let Some(next) = unsafe { ASSERT_FAIL.get::<AssertFail>() } {
        // SAFETY: the caller's arguments.
        unsafe { next(assertion, file, line, function) };
    }
    abort_now()
}
