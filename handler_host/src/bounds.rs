//! Limits of a handler's process.

#![allow(unsafe_code)]

/// Bytes of memory.
const MEMORY: u64 = 16 << 30;

/// Limits the memory of this process, which ends with the one that has started it.
pub(crate) fn set() {
    let memory = libc::rlimit { rlim_cur: MEMORY, rlim_max: MEMORY };
    // SAFETY: a limit, and a number. Where the system refuses, the process has no such bounds.
    unsafe {
        libc::setrlimit(libc::RLIMIT_AS, &memory);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
    }
}
