//! The border between a library of ours and its host: no panic crosses it, errno stays as it was, no thread is cancelled inside.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::cancellation;

/// Runs `body`, in which the thread cannot be cancelled. Where it panics, the caller gets what `panicked` returns.
#[inline]
pub fn guard<T>(panicked: impl FnOnce() -> T, body: impl FnOnce() -> T) -> T {
    cancellation::disabled(|| caught(panicked, body))
}

/// The same for a `body` that has no cancellation point but inside [`cancellation::rarely`].
#[inline]
pub fn guard_without_points<T>(panicked: impl FnOnce() -> T, body: impl FnOnce() -> T) -> T {
    cancellation::without_points(|| caught(panicked, body))
}

/// A function of its own: its frame, and no frame of a caller, is one that a cancellation must not unwind.
#[inline(never)]
fn caught<T>(panicked: impl FnOnce() -> T, body: impl FnOnce() -> T) -> T {
    // SAFETY: the location is this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let value = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| panicked());
    // SAFETY: as above; a fork in between leaves the thread the same.
    unsafe { *libc::__errno_location() = errno };
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_ends_at_the_border_and_errno_stays() {
        let errno = || std::io::Error::last_os_error().raw_os_error();
        // SAFETY: the location is this thread's own errno.
        unsafe { *libc::__errno_location() = libc::EXDEV };
        let fail = || -> u32 {
            // SAFETY: as above.
            unsafe { *libc::__errno_location() = libc::EPERM };
            std::panic::resume_unwind(Box::new(()))
        };
        assert_eq!(guard(|| 7, fail), 7);
        assert_eq!(errno(), Some(libc::EXDEV));
        assert_eq!(guard_without_points(|| 8, || cancellation::rarely(fail)), 8);
        assert_eq!(errno(), Some(libc::EXDEV));
    }
}
