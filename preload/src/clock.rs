//! Time in nanoseconds. Every time in the file is CLOCK_MONOTONIC of the recording host.

/// A POSIX clock the recorder reads.
#[derive(Clone, Copy)]
#[repr(i32)]
pub enum Clock {
    /// The clock of the file.
    Monotonic = libc::CLOCK_MONOTONIC,
    /// The same with the time in which the machine slept: the clock of drivers.
    Boottime = libc::CLOCK_BOOTTIME,
    /// Wall-clock time, for aligning hosts.
    Realtime = libc::CLOCK_REALTIME,
    /// CPU time of the calling thread.
    ThreadCpu = libc::CLOCK_THREAD_CPUTIME_ID,
}

/// Reads `clock`, in nanoseconds.
#[inline]
pub fn read(clock: Clock) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; the clocks of the enum exist on every Linux.
    unsafe { libc::clock_gettime(clock as libc::clockid_t, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CLOCK_MONOTONIC, in nanoseconds.
#[inline]
pub fn monotonic() -> u64 {
    read(Clock::Monotonic)
}
