//! What stands between the recorder and its host: no panic crosses, errno stays as it was.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{log, recorder};

/// Runs `body`. If it panics, recording ends for this process with one line, and the caller gets `otherwise`.
#[inline]
pub(crate) fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    // SAFETY: the location is this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let result = catch_unwind(AssertUnwindSafe(body));
    // SAFETY: as above; a fork in between leaves the thread the same.
    unsafe { *libc::__errno_location() = errno };
    match result {
        Ok(value) => value,
        Err(_) => {
            recorder::disable();
            log::problem(
                "internal error: recording is off for this process; the program goes on (please report this)",
            );
            otherwise
        }
    }
}
