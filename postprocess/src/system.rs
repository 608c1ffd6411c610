//! The system calls that the standard library has no safe form for: limits and clocks. All of this crate's unsafe code is here.

#![allow(unsafe_code)]

/// How large this process may make a file, bytes (`ulimit -f`).
pub(crate) fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is writable memory of the right type, and stays as it is if the call fails.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) };
    limit.rlim_cur
}

/// How many ticks a second the kernel counts in `/proc/PID/stat`; at least 1.
pub(crate) fn clock_ticks_per_second() -> u64 {
    // SAFETY: takes a constant and touches nothing of ours.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

/// How long this host has slept since it was booted, ns: what CLOCK_BOOTTIME counts and CLOCK_MONOTONIC does
/// not.
pub(crate) fn time_asleep_ns() -> u64 {
    clock_ns(libc::CLOCK_BOOTTIME).saturating_sub(clock_ns(libc::CLOCK_MONOTONIC))
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable memory of the right type.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}
