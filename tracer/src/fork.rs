//! Forking a process that records.
//!
//! A child is a session of its own: the parent's locks, rings, threads and database connection are forgotten. SQLite's own state
//! in memory cannot be forgotten, so a fork waits until the writer is between two transactions; a child forked in the middle of
//! one (the wait has a deadline) records nothing.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::guard::guard;
use crate::sync::{lock, lock_within};
use crate::{log, recorder, writer};

/// Held by the writer while it uses SQLite.
static WRITING: Mutex<()> = Mutex::new(());
/// Forks that wait for the writer: it leaves them the lock.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// How long a fork waits for the writer, and the writer for forks.
const PATIENCE: Duration = Duration::from_millis(500);

thread_local! {
    /// The lock: on the thread that forks from before the fork to after it, on the writer while it must not be forked.
    static HELD: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}
/// The last fork found the writer in a transaction.
static IN_TRANSACTION: AtomicBool = AtomicBool::new(false);

/// Runs `act` with no fork in it, except where it lets them pass.
pub(crate) fn without<T>(act: impl FnOnce() -> T) -> T {
    /// Also when `act` panics.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            drop(HELD.try_with(RefCell::take));
        }
    }
    let _leave = Leave;
    let_pass();
    act()
}

/// Whether a fork waits for the writer.
#[inline]
pub(crate) fn is_waiting() -> bool {
    WAITING.load(Ordering::Relaxed) > 0
}

/// Forks that wait happen now. For the writer, inside [`without`] and between two transactions.
pub(crate) fn let_pass() {
    drop(HELD.try_with(RefCell::take));
    let begin = Instant::now();
    while is_waiting() && begin.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_micros(200));
    }
    let writing = lock(&WRITING);
    let _ = HELD.try_with(|place| place.replace(Some(writing)));
}

/// Has the three steps below called around every fork.
pub(crate) fn watch() {
    // SAFETY: the handlers live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

unsafe extern "C" fn before() {
    guard((), || {
        WAITING.fetch_add(1, Ordering::Relaxed);
        let held = lock_within(&WRITING, PATIENCE);
        WAITING.fetch_sub(1, Ordering::Relaxed);
        IN_TRANSACTION.store(held.is_none(), Ordering::Relaxed);
        let _ = HELD.try_with(|place| place.replace(held));
    });
}

unsafe extern "C" fn parent() {
    guard((), || drop(HELD.try_with(RefCell::take)));
}

unsafe extern "C" fn child() {
    guard((), || {
        drop(HELD.try_with(RefCell::take));
        WAITING.store(0, Ordering::Relaxed);
        let Some(parent) = recorder::get() else { return };
        if IN_TRANSACTION.load(Ordering::Relaxed) {
            recorder::forget();
            return log::problem("forked while the trace was being written: this child is not recorded");
        }
        writer::close_inherited();
        recorder::inherit(parent);
    });
}
