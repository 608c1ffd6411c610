//! The bounds of a thread's stack.

use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes of a stack at most. Where the first thread's may grow without limit, the system means all memory up to the next mapping, and
/// others will be made there.
const MOST: u64 = 1 << 30;

/// The calling thread's own stack, lowest address first; of the first thread as far as it may grow. Asks the system, and may
/// allocate: to be kept.
pub fn of_this_thread() -> Option<Range<u64>> {
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    // SAFETY: a place for the attributes, which the call fills when it succeeds.
    if unsafe { libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr()) } != 0 {
        return None;
    }
    let (mut low, mut size, mut guard) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the attributes were filled above, and are not used after they are destroyed.
    let known = unsafe {
        let known = libc::pthread_attr_getstack(attributes.as_ptr(), &mut low, &mut size) == 0;
        libc::pthread_attr_getguardsize(attributes.as_ptr(), &mut guard);
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
        known
    };
    let (low, end) = (low as u64 + guard as u64, low as u64 + size as u64);
    (known && size > guard).then(|| low.max(end.saturating_sub(MOST))..end)
}
