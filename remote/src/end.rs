//! The ends of a process that the recorder, loaded late, does not see by itself, because the program's calls are bound to the C
//! library by then: `_exit`, by which workers end, and a first thread that ends before the others.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::next::Next;
use rpd_preload::threads;

use crate::guard::guard;
use crate::{presence, recorder};

static EXIT: Next = Next::new(c"_exit");
static THREAD_EXIT: Next = Next::new(c"pthread_exit");
/// The program's first thread has ended, and the process goes on without it.
static FIRST_LEFT: AtomicBool = AtomicBool::new(false);

/// Looks up what is behind ours.
pub(crate) fn watch() {
    EXIT.look_up();
    THREAD_EXIT.look_up();
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
    // SAFETY: a function of that name, and so of that type.
    if let Some(next) = unsafe { EXIT.get::<extern "C" fn(c_int)>() } {
        next(status);
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
    if threads::id() as u32 == std::process::id() {
        FIRST_LEFT.store(true, Ordering::Relaxed);
        if let Some(block) = presence::block() {
            block.ring();
        }
    }
    // SAFETY: a function of that name, and so of that type.
    let find = || unsafe { THREAD_EXIT.get::<extern "C-unwind" fn(*mut c_void) -> !>() };
    let late = || {
        THREAD_EXIT.look_up();
        find()
    };
    // The C library always has it.
    find().or_else(late).unwrap_or_else(|| std::process::abort())(value)
}

/// Whether the program's first thread has ended before the others.
pub(crate) fn first_left() -> bool {
    FIRST_LEFT.load(Ordering::Relaxed)
}
