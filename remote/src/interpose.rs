//! The program's own `sigaction` and `signal`, in front of the C library's: where the loader has SIGUSR1 and SIGUSR2, the
//! program's handlers for those two are kept and called by it. Everything else goes straight through.

use std::ffi::c_int;
use std::mem::zeroed;

use crate::signal;

unsafe extern "C" {
    /// glibc's `signal` under a name that this library does not interpose.
    fn ssignal(signal: c_int, handler: libc::sighandler_t) -> libc::sighandler_t;
}

/// sigaction(2).
///
/// # Safety
/// That of sigaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigaction(
    number: c_int,
    new: *const libc::sigaction,
    old: *mut libc::sigaction,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe {
        if signal::is_held_here(number) {
            signal::keep(number, new, old)
        } else {
            signal::system(number, new, old)
        }
    }
}

/// signal(3) with glibc's meaning: the handler stays, and interrupted calls go on.
///
/// # Safety
/// That of signal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn signal(number: c_int, handler: libc::sighandler_t) -> libc::sighandler_t {
    if !signal::is_held_here(number) {
        // SAFETY: the caller's promise.
        return unsafe { ssignal(number, handler) };
    }
    // SAFETY: all-zero is a valid action: an empty mask, to which the signal itself is added.
    let (mut new, mut old): (libc::sigaction, libc::sigaction) = unsafe { zeroed() };
    new.sa_sigaction = handler;
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: valid places, and a handler that the caller vouches for.
    unsafe {
        libc::sigaddset(&mut new.sa_mask, number);
        match signal::keep(number, &new, &mut old) {
            0 => old.sa_sigaction,
            _ => libc::SIG_ERR,
        }
    }
}
