//! Sleeping on a word of shared memory, in whichever processes it is mapped.

use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while `word` holds `seen`, for `patience` at most. May return early.
pub fn wait(word: &AtomicU32, seen: u32, patience: Option<Duration>) {
    let time = patience.map(|patience| libc::timespec {
        tv_sec: patience.as_secs().min(i32::MAX as u64) as libc::time_t,
        tv_nsec: i64::from(patience.subsec_nanos()),
    });
    let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: a live, aligned word and a time that is null or valid. Without the private flag the kernel tells the word by its
    // file and place, so that other processes' mappings count.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, time) };
}

/// Wakes everybody who sleeps on `word`. May be called in a signal handler: one system call.
pub fn wake(word: &AtomicU32) {
    // SAFETY: a live, aligned word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
