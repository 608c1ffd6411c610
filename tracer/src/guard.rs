//! What stands between the recorder and its host: no panic crosses, errno stays as it was, no thread is cancelled inside.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_process::cancellation;

use crate::{log, provoked, recorder};

/// Runs `body`, in which the thread cannot be cancelled. If it panics, recording ends for this process with one line, and the caller
/// gets `otherwise`.
#[inline]
pub(crate) fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    cancellation::disabled(|| caught(otherwise, body))
}

/// A function of its own: its frame, and no frame of a caller, is one that a cancellation must not unwind.
#[inline(never)]
fn caught<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    // SAFETY: the location is this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let result = catch_unwind(AssertUnwindSafe(|| {
        provoked::panic("hook");
        let value = body();
        provoked::panic("hook");
        value
    }));
    let value = result.unwrap_or_else(|_| {
        recorder::disable();
        otherwise
    });
    // SAFETY: as above; a fork in between leaves the thread the same.
    unsafe { *libc::__errno_location() = errno };
    value
}

/// From here on a panic of the recorder, on any of its threads and in any hook, is one line, once, in place of the several that
/// the standard library writes. The panics of a host written in Rust are not affected: it has a standard library of its own.
pub(crate) fn speak_for_panics() {
    static SAID: AtomicBool = AtomicBool::new(false);
    std::panic::set_hook(Box::new(|panic| {
        if !SAID.swap(true, Ordering::Relaxed) {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            log::problem(&format!(
                "internal error at {place}: recording is off for this process, the program goes on; please report this"
            ));
        }
    }));
}
