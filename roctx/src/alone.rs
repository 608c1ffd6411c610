//! Return values where neither a recorder nor AMD's library listens: programs may print or check them.

use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicU64, Ordering};

thread_local! {
    /// Open ranges of this thread. No destructor: a thread may push while it ends.
    static LEVEL: Cell<c_int> = const { Cell::new(0) };
}

/// How many ranges were open before.
pub(crate) fn push() -> c_int {
    LEVEL.replace(LEVEL.get() + 1)
}

/// How many are open afterwards, -1 when there was none.
pub(crate) fn pop() -> c_int {
    let level = LEVEL.get() - 1;
    LEVEL.set(level.max(0));
    level
}

/// An id, from 1.
pub(crate) fn start() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_ids_are_amds() {
        assert_eq!([pop(), push(), push(), pop(), pop(), pop(), push()], [-1, 0, 1, 1, 0, -1, 0]);
        assert!(start() >= 1 && start() > 1);
    }
}
