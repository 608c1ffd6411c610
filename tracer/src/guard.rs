//! The border between the recorder and its host: no panic crosses, errno stays as it was, no thread is cancelled inside.

use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::cancellation;
use rpd_transport::log;
use rpd_transport::provoked;
use rpd_transport::recorder::{self, Recorder};

/// Runs `body`, in which the thread cannot be cancelled. If it panics, recording ends for this process with one line, and the caller
/// gets `otherwise`.
#[inline]
pub(crate) fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    rpd_preload::guard::guard(|| disabled(otherwise), || provoked_around(body))
}

/// The same for a hook that is called very often, whose `body` has no cancellation point but inside [`cancellation::rarely`].
#[inline]
pub(crate) fn guard_without_points<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    rpd_preload::guard::guard_without_points(|| disabled(otherwise), || provoked_around(body))
}

fn disabled<T>(otherwise: T) -> T {
    recorder::disable();
    otherwise
}

#[inline]
fn provoked_around<T>(body: impl FnOnce() -> T) -> T {
    provoked::panic("hook");
    let value = body();
    provoked::panic("hook");
    value
}

/// Runs `act` on the recorder, inside the guard, where there is one.
pub(crate) fn with_recorder(act: impl FnOnce(&'static Recorder)) {
    guard((), || {
        if let Some(recorder) = recorder::get() {
            act(recorder);
        }
    });
}

/// The same for a function that is called very often, see [`guard_without_points`].
#[inline]
pub(crate) fn with_recorder_without_points(act: impl FnOnce(&'static Recorder)) {
    guard_without_points((), || {
        if let Some(recorder) = recorder::get() {
            act(recorder);
        }
    });
}

/// The bytes of a text that a program gives an exported function.
///
/// # Safety
/// `text` is null or NUL-terminated and stays as it is for the caller's use of the result.
pub(crate) unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: the caller's promise.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// From here on a panic of the recorder, on any of its threads and in any hook, is one line, once, in place of the several that
/// the standard library writes. The panics of a host written in Rust are not affected: it has a standard library of its own.
pub(crate) fn speak_for_panics() {
    static SAID: AtomicBool = AtomicBool::new(false);
    std::panic::set_hook(Box::new(|panic| {
        if !SAID.swap(true, Ordering::Relaxed) {
            let place = panic.location().map(ToString::to_string).unwrap_or_default();
            cancellation::rarely(|| {
                log::problem(&format!(
                    "internal error at {place}: recording is off for this process, the program goes on; please report this"
                ));
            });
        }
    }));
}
