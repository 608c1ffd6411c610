//! `pthread_cancel` on a thread of the program that is in a function of ours.
//!
//! A cancellation unwinds the thread's stack. It must not begin inside our code: nothing there expects it, and what catches our panics
//! would abort the process. So our functions run with cancellation disabled. Deferred cancellation then takes effect at the program's
//! next cancellation point, as without us, and asynchronous cancellation when the function of ours returns.

use std::ffi::c_int;
use std::ptr;

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

/// PTHREAD_CANCEL_DISABLE.
const DISABLED: c_int = 1;
/// PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS.
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;

/// Runs `body`, in which the calling thread cannot be cancelled; `body` must not panic. Where asynchronous cancellation is to be
/// possible, the caller has nothing that is to be dropped, and its own callers are `extern "C-unwind"`.
#[inline]
pub fn disabled<T>(body: impl FnOnce() -> T) -> T {
    let (mut kind, mut state) = (DEFERRED, 0);
    // SAFETY: known values and writable places.
    unsafe {
        pthread_setcanceltype(DEFERRED, &mut kind);
        pthread_setcancelstate(DISABLED, &mut state);
    }
    let value = body();
    // SAFETY: what the thread had. An asynchronous cancellation that came meanwhile unwinds from the second call; where enabling it does,
    // glibc 2.36 forgets that the thread's result is PTHREAD_CANCELED.
    unsafe {
        pthread_setcancelstate(state, ptr::null_mut());
        if kind == ASYNCHRONOUS {
            pthread_setcanceltype(ASYNCHRONOUS, ptr::null_mut());
        }
    }
    value
}
