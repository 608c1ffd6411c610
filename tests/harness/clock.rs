//! The host's clocks: the file counts CLOCK_MONOTONIC, the device's log CLOCK_BOOTTIME.

fn read(clock: libc::clockid_t) -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live timespec; both clocks asked for exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Now, as the file counts it: ns.
pub(crate) fn monotonic() -> i64 {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_BOOTTIME minus CLOCK_MONOTONIC in ns: how long the host has been suspended since it booted. Good to the time
/// between two readings of a clock, some 50 ns.
pub(crate) fn boot_minus_monotonic() -> i64 {
    let bracket = |_| {
        let before = read(libc::CLOCK_MONOTONIC);
        let boot = read(libc::CLOCK_BOOTTIME);
        let after = read(libc::CLOCK_MONOTONIC);
        (after - before, boot - before - (after - before) / 2)
    };
    // The shortest bracket is the one in which nothing came between the readings.
    (0..100).map(bracket).min().map_or(0, |(_, offset)| offset)
}
