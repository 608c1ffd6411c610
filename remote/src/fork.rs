//! Forking a process with a loader: the child has a block and a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::fork::Gate;

use crate::guard::guard;
use crate::presence;

/// No fork happens while the recorder is being loaded.
static LOADING: Gate = Gate::new();
/// This process was forked while its parent loaded the recorder: the dynamic loader may be in the middle of it for ever.
static UNSURE: AtomicBool = AtomicBool::new(false);

/// Has the three steps below called around every fork, from the first call on.
pub(crate) fn watch() {
    static WATCHED: AtomicBool = AtomicBool::new(false);
    if !WATCHED.swap(true, Ordering::Relaxed) {
        // SAFETY: the handlers live as long as the process: the library is never unloaded.
        unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
    }
}

/// Runs `load` with no fork in it; nothing where it could not be trusted to end.
pub(crate) fn without<T>(load: impl FnOnce() -> T) -> Option<T> {
    (!UNSURE.load(Ordering::Relaxed)).then(|| LOADING.without(load))
}

unsafe extern "C" fn before() {
    guard(|| LOADING.before());
}

unsafe extern "C" fn parent() {
    guard(|| LOADING.parent());
}

unsafe extern "C" fn child() {
    guard(|| {
        if !LOADING.child() {
            UNSURE.store(true, Ordering::Relaxed);
        }
        presence::inherit();
    });
}
