//! `pthread_cancel` on a thread of the program that is in a function of ours.
//!
//! A cancellation unwinds the thread's stack. It must not begin inside our code: nothing there expects it, and what catches our panics
//! would abort the process. So our functions run with cancellation disabled. Deferred cancellation then takes effect at the program's
//! next cancellation point, as without us, and asynchronous cancellation when the function of ours returns.
//!
//! To disable it and to enable it again are two atomic operations, which together take as long as a clock reading. A function that is called
//! very often can do without: where cancellation is deferred, as on nearly all threads, nothing happens in code that has no cancellation point.

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr;

unsafe extern "C-unwind" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    fn syscall(number: libc::c_long, ...) -> libc::c_long;
}

/// PTHREAD_CANCEL_DISABLE.
const DISABLED: c_int = 1;
/// PTHREAD_CANCEL_DEFERRED, PTHREAD_CANCEL_ASYNCHRONOUS.
const DEFERRED: c_int = 0;
const ASYNCHRONOUS: c_int = 1;
/// SIGCANCEL, the first real-time signal, which glibc keeps for itself: 32.
const SIGCANCEL: u64 = 1 << 31;

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
    if kind == ASYNCHRONOUS {
        return held_back(state, body);
    }
    let value = body();
    // SAFETY: what the thread had.
    unsafe { pthread_setcancelstate(state, ptr::null_mut()) };
    value
}

/// Runs `body`, in which the calling thread is not cancelled, because `body` has no cancellation point but inside [`rarely`]. As for
/// [`disabled`], `body` must not panic.
#[inline]
pub fn without_points<T>(body: impl FnOnce() -> T) -> T {
    let mut kind = DEFERRED;
    // Reads it, where it is deferred already.
    // SAFETY: known values and writable places.
    unsafe { pthread_setcanceltype(DEFERRED, &mut kind) };
    if kind == ASYNCHRONOUS {
        let mut state = 0;
        // SAFETY: as above.
        unsafe { pthread_setcancelstate(DISABLED, &mut state) };
        return held_back(state, body);
    }
    body()
}

/// What [`without_points`] does rarely, with all the cancellation points that it likes. A panic goes through.
#[cold]
pub fn rarely<T>(body: impl FnOnce() -> T) -> T {
    disabled(|| catch_unwind(AssertUnwindSafe(body))).unwrap_or_else(|panic| resume_unwind(panic))
}

/// The same on a thread with asynchronous cancellation, whose cancellation may be on its way as a signal that was sent before it was
/// disabled. In each of the C library's cancellation points the handler of that signal takes the thread for one that may be cancelled,
/// whatever its state is (glibc 2.36 nptl/cancellation.c, pthread_cancel.c). So the signal is blocked. The type is asynchronous meanwhile:
/// with another one a cancellation point would wait for the signal.
#[cold]
fn held_back<T>(state: c_int, body: impl FnOnce() -> T) -> T {
    let mut before = 0;
    // SAFETY: known values and a writable place; the signal's state is put back below.
    unsafe {
        set_mask(libc::SIG_BLOCK, &mut before);
        pthread_setcanceltype(ASYNCHRONOUS, ptr::null_mut());
    }
    let value = body();
    // SAFETY: what the thread had. A cancellation that came meanwhile unwinds from here: by the signal, or where the type is set for the
    // second time. Where it does so by the state, glibc 2.36 forgets that the thread's result is PTHREAD_CANCELED.
    unsafe {
        if before & SIGCANCEL == 0 {
            set_mask(libc::SIG_UNBLOCK, &mut before);
        }
        pthread_setcanceltype(DEFERRED, ptr::null_mut());
        pthread_setcancelstate(state, ptr::null_mut());
        pthread_setcanceltype(ASYNCHRONOUS, ptr::null_mut());
    }
    value
}

/// pthread_sigmask, which leaves SIGCANCEL out.
///
/// # Safety
/// Nothing on the stack is to be dropped: a signal that is unblocked may unwind it.
unsafe fn set_mask(how: c_int, before: &mut u64) {
    // SAFETY: two sets of the kernel's size, one of them writable.
    unsafe {
        syscall(
            libc::SYS_rt_sigprocmask,
            how,
            &raw const SIGCANCEL_SET,
            ptr::from_mut(before),
            size_of::<u64>(),
        )
    };
}

static SIGCANCEL_SET: u64 = SIGCANCEL;
