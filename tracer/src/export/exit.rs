//! The ends of a process that run no destructor: `_exit` and `_Exit`, by interposition (LD_PRELOAD), and `quick_exit`, by a
//! handler. Data-loader and worker processes end that way.

use std::ffi::c_int;

use crate::finish;
use crate::guard::guard;

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
    guard((), finish::process_end);
    loop {
        // SAFETY: what the C library's _exit does: every thread ends here (not SYS_exit, which ends only the caller).
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

unsafe extern "C" {
    fn at_quick_exit(handler: extern "C" fn()) -> c_int;
}

/// Asks to be called at `quick_exit`.
pub(super) fn watch_quick_exit() {
    extern "C" fn handler() {
        guard((), finish::process_end);
    }
    // SAFETY: the handler lives as long as the process: the library is never unloaded.
    unsafe { at_quick_exit(handler) };
}
