//! The border between the loader and the program on the program's threads: no panic crosses, no thread is cancelled inside.

/// Runs `body`. If it panics, what it was at is left undone.
pub(crate) fn guard(body: impl FnOnce()) {
    rpd_preload::guard::guard(|| (), body);
}
