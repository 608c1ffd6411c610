//! One line on standard error by a raw write: no lock of stdio, no buffering, and no signal, whatever standard error is.
//!
//! Who writes to a pipe that nobody reads gets SIGPIPE, to a file at RLIMIT_FSIZE SIGXFSZ, and to a terminal from the background SIGTTOU.
//! All three would hit a program that may have written nothing itself.

use std::ffi::c_int;
use std::mem::zeroed;
use std::ptr;

use crate::cancellation;

/// How long a line waits for a pipe or terminal that takes nothing now; then it is left out.
const PATIENCE_MS: c_int = 100;

/// Writes `speaker[PID]: message` as one line of [`libc::PIPE_BUF`] bytes at most, which lines of other processes do not mix with.
/// errno, the signal mask and pending signals stay as they are. A line that cannot be written is left out.
pub fn write_line(speaker: &str, message: &str) {
    let mut line = format!("{speaker}[{}]: {}", std::process::id(), message.replace('\n', " "));
    let most = (0..libc::PIPE_BUF).rev().find(|end| line.is_char_boundary(*end));
    line.truncate(most.unwrap_or(0));
    line.push('\n');
    // SAFETY: the location is this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    cancellation::disabled(|| without_signals(|| write(line.as_bytes())));
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Runs `write`, whose result is an errno, with all signals blocked. A signal that the failed write has raised is taken away.
fn without_signals(write: impl FnOnce() -> c_int) {
    // SAFETY: all-zero sets are valid places for the calls to write to.
    let (mut all, mut mask, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
        unsafe { zeroed() };
    // SAFETY: valid sets; the caller's mask is put back below.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut mask);
        libc::sigpending(&mut pending);
    }
    let raised = match write() {
        libc::EPIPE => Some(libc::SIGPIPE),
        libc::EFBIG => Some(libc::SIGXFSZ),
        _ => None,
    };
    // One that was pending before is the program's: another of its kind is not kept beside it.
    // SAFETY: a set that was filled above.
    if let Some(signal) = raised.filter(|signal| unsafe { libc::sigismember(&pending, *signal) } == 0) {
        // SAFETY: all-zero is a valid place for a set.
        let mut only: libc::sigset_t = unsafe { zeroed() };
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: valid sets and a valid time. The kernel raises the signal for this thread, and gives a thread its own signals
        // before those of the process: one that somebody has just sent to the process stays pending.
        unsafe {
            libc::sigemptyset(&mut only);
            libc::sigaddset(&mut only, signal);
            libc::sigtimedwait(&only, ptr::null_mut(), &now);
        }
    }
    // SAFETY: the mask that the thread had.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask, ptr::null_mut()) };
}

/// Writes `line`, or not all of it; what went wrong, 0 for nothing.
fn write(line: &[u8]) -> c_int {
    let mut stderr = libc::pollfd { fd: libc::STDERR_FILENO, events: libc::POLLOUT, revents: 0 };
    // A pipe without reader and a closed descriptor are ready: the write says what is wrong with them.
    // SAFETY: one valid entry.
    if unsafe { libc::poll(&mut stderr, 1, PATIENCE_MS) } != 1 {
        return 0;
    }
    // SAFETY: pointer and length describe `line`.
    if unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) } >= 0 {
        return 0;
    }
    // SAFETY: the location is this thread's own errno.
    unsafe { *libc::__errno_location() }
}
