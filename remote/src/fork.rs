//! Forking a process with a loader: the child has a block and a thread of its own.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::guard::guard;
use crate::presence;

/// The recorder is being loaded, or a fork keeps that from beginning.
static LOADING: AtomicBool = AtomicBool::new(false);
/// This process was forked while its parent loaded the recorder: the dynamic loader may be in the middle of it for ever.
static UNSURE: AtomicBool = AtomicBool::new(false);
/// How long a fork waits for the recorder to be loaded.
const PATIENCE: Duration = Duration::from_millis(500);

thread_local! {
    /// The fork on this thread has taken LOADING.
    static TAKEN: Cell<bool> = const { Cell::new(false) };
}

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
    if UNSURE.load(Ordering::Relaxed) {
        return None;
    }
    // Forks hold it for as long as the system takes to copy a process.
    while LOADING.swap(true, Ordering::Acquire) {
        std::thread::sleep(Duration::from_micros(200));
    }
    /// Also when `load` panics.
    struct GiveBack;
    impl Drop for GiveBack {
        fn drop(&mut self) {
            LOADING.store(false, Ordering::Release);
        }
    }
    let _give_back = GiveBack;
    Some(load())
}

extern "C" fn before() {
    guard(|| {
        let begin = Instant::now();
        let mut taken = !LOADING.swap(true, Ordering::Acquire);
        while !taken && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_micros(200));
            taken = !LOADING.swap(true, Ordering::Acquire);
        }
        let _ = TAKEN.try_with(|place| place.set(taken));
    });
}

fn give_back() -> bool {
    let taken = TAKEN.try_with(|place| place.replace(false)).unwrap_or_default();
    if taken {
        LOADING.store(false, Ordering::Release);
    }
    taken
}

extern "C" fn parent() {
    give_back();
}

extern "C" fn child() {
    guard(|| {
        if !give_back() {
            UNSURE.store(true, Ordering::Relaxed);
        }
        LOADING.store(false, Ordering::Relaxed);
        presence::inherit();
    });
}
