//! The tracer's own C interface (include/rpd_tracer.h), under the names the original gave it.
//!
//! Every function may be called from any thread, before or after the GPU runtime exists, and does nothing where recording is
//! not possible.

use std::ffi::{CStr, c_char};

use crate::guard::guard;
use crate::record::Stack;
use crate::recorder::{self, Recorder};
use crate::{finish, marker};

/// One more wish to record: recording runs while there were more starts than stops. RPDT_AUTOSTART=1 counts as one.
#[unsafe(no_mangle)]
pub extern "C" fn rpdstart() {
    with(|recorder| recorder.switch.start());
}

/// One wish to record less.
#[unsafe(no_mangle)]
pub extern "C" fn rpdstop() {
    with(|recorder| recorder.switch.stop());
}

/// Returns when all that was recorded and completed before the call is in the file, or after 10 s.
#[unsafe(no_mangle)]
pub extern "C" fn rpdflush() {
    with(finish::flush);
}

/// An instant. Schema 2 has no place for the domain.
///
/// # Safety
/// The arguments are NUL-terminated strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_mark(_domain: *const c_char, api_name: *const c_char, args: *const c_char) {
    // SAFETY: the caller's promise.
    let (name, args) = unsafe { (bytes(api_name), bytes(args)) };
    with(|recorder| marker::mark(recorder, name, args));
}

/// A range of the calling thread begins. Schema 2 has no place for the domain.
///
/// # Safety
/// The arguments are NUL-terminated strings or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rpd_rangePush(_domain: *const c_char, api_name: *const c_char, args: *const c_char) {
    // SAFETY: the caller's promise.
    let (name, args) = unsafe { (bytes(api_name), bytes(args)) };
    with(|recorder| marker::push(recorder, Stack::RPD, name, args));
}

/// The innermost range of the calling thread ends.
#[unsafe(no_mangle)]
pub extern "C" fn rpd_rangePop() {
    with(|recorder| marker::pop(recorder, Stack::RPD));
}

fn with(act: impl FnOnce(&'static Recorder)) {
    guard((), || {
        if let Some(recorder) = recorder::get() {
            act(recorder);
        }
    });
}

/// # Safety
/// `text` is null or NUL-terminated and stays as it is for the caller's use of the result.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    if text.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_bytes()
}
