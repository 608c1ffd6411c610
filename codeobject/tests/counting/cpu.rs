//! The processor's time of this thread: what something costs where others use the machine, too.
#![allow(unsafe_code)]

use std::time::Duration;

/// So far.
pub(crate) fn time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a place for the time, which every Linux has of the calling thread.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(status, 0);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}
