//! One line on standard error, or at the end of a file in its place, by a raw write: no lock of stdio, no buffering, and no signal, whatever it goes to.
//!
//! Who writes to a pipe that nobody reads gets SIGPIPE, to a file at RLIMIT_FSIZE SIGXFSZ, and to a terminal from the background SIGTTOU.
//! All three would hit a program that may have written nothing itself.

use std::ffi::{CStr, c_int};
use std::mem::zeroed;
use std::ptr;

use crate::cancellation;

/// How long a line waits for a pipe or terminal that takes nothing now; then it is left out.
const PATIENCE_MS: c_int = 100;

/// Writes `speaker[PID]: message` as one line of [`libc::PIPE_BUF`] bytes at most, which lines of other processes do not mix with.
/// errno, the signal mask and pending signals stay as they are. A line that cannot be written is left out.
pub fn write_line(speaker: &str, message: &str) {
    unnoticed(speaker, message, |line| write(libc::STDERR_FILENO, line));
}

/// The same at the end of `file`, which is made when it is missing. It is opened for this line alone: a program that closes all descriptors
/// takes none from us. False: it cannot be written.
pub fn write_line_into(file: &CStr, speaker: &str, message: &str) -> bool {
    unnoticed(speaker, message, |line| match open(file) {
        Ok(descriptor) => {
            let failed = write(descriptor, line);
            // SAFETY: opened by `open`, and nobody else's.
            unsafe { libc::close(descriptor) };
            failed
        }
        Err(failed) => failed,
    }) == 0
}

/// Which file is standard error now, by its device and number; nothing where it is closed.
pub fn file() -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid stat, which fstat fills.
    unsafe {
        let mut found: libc::stat = zeroed();
        (libc::fstat(libc::STDERR_FILENO, &raw mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}

/// Opens a file to add to it, by a number that is none of the standard streams'.
fn open(file: &CStr) -> Result<c_int, c_int> {
    let flags =
        libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NONBLOCK | libc::O_NOCTTY;
    // SAFETY: a NUL-terminated name, and the mode that O_CREAT needs.
    let descriptor = unsafe { libc::open(file.as_ptr(), flags, 0o666) };
    if descriptor < 0 {
        return Err(errno());
    }
    if descriptor > libc::STDERR_FILENO {
        return Ok(descriptor);
    }
    // SAFETY: a descriptor that was just opened, and is closed below.
    let moved = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, libc::STDERR_FILENO + 1) };
    let failed = errno();
    // SAFETY: as above.
    unsafe { libc::close(descriptor) };
    if moved < 0 { Err(failed) } else { Ok(moved) }
}

fn errno() -> c_int {
    // SAFETY: the location is this thread's own errno.
    unsafe { *libc::__errno_location() }
}

/// Runs `write` with the line; its result, an errno.
fn unnoticed(speaker: &str, message: &str, write: impl FnOnce(&[u8]) -> c_int) -> c_int {
    let mut line = format!("{speaker}[{}]: {}", std::process::id(), message.replace('\n', " "));
    let most = (0..libc::PIPE_BUF).rev().find(|end| line.is_char_boundary(*end));
    line.truncate(most.unwrap_or(0));
    line.push('\n');
    let before = errno();
    let failed = cancellation::disabled(|| without_signals(|| write(line.as_bytes())));
    // SAFETY: the location is this thread's own errno.
    unsafe { *libc::__errno_location() = before };
    failed
}

/// Runs `write`, whose result is an errno, with all signals blocked. A signal that the failed write has raised is taken away.
fn without_signals(write: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: all-zero sets are valid places for the calls to write to.
    let (mut all, mut mask, mut pending): (libc::sigset_t, libc::sigset_t, libc::sigset_t) =
        unsafe { zeroed() };
    // SAFETY: valid sets; the caller's mask is put back below.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut mask);
        libc::sigpending(&mut pending);
    }
    let failed = write();
    let raised = match failed {
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
    failed
}

/// Writes `line`, or not all of it; what went wrong, 0 for nothing.
fn write(descriptor: c_int, line: &[u8]) -> c_int {
    let mut output = libc::pollfd { fd: descriptor, events: libc::POLLOUT, revents: 0 };
    // A pipe without reader and a closed descriptor are ready: the write says what is wrong with them.
    // SAFETY: one valid entry.
    if unsafe { libc::poll(&mut output, 1, PATIENCE_MS) } != 1 {
        return 0;
    }
    // SAFETY: pointer and length describe `line`.
    if unsafe { libc::write(descriptor, line.as_ptr().cast(), line.len()) } >= 0 {
        return 0;
    }
    errno()
}
