//! What stands between the loader and the program on the program's threads: no panic crosses, no thread is cancelled inside.

use std::panic::{UnwindSafe, catch_unwind};

use rpd_process::cancellation;

/// Runs `body`. If it panics, what it was at is left undone.
pub(crate) fn guard(body: impl FnOnce() + UnwindSafe) {
    cancellation::disabled(|| drop(catch_unwind(body)));
}
