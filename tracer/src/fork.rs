//! Forking a process that records.
//!
//! A child is a session of its own: the parent's locks, rings, threads and database connection are forgotten. SQLite's own state
//! in memory cannot be forgotten, so a fork waits until the writer is between two transactions; a child forked in the middle of
//! one (the wait has a deadline) records nothing.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::guard::guard;
use crate::{log, recorder, writer};

/// Held by the writer while it uses SQLite, and by each thread that forks.
static WRITING: Lock = Lock { holder: AtomicUsize::new(0), depth: AtomicU32::new(0) };
/// Forks that wait for the writer: it leaves them the lock.
static WAITING: AtomicU32 = AtomicU32::new(0);
/// How long a fork waits for the writer, and the writer for forks.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two tries to get the lock.
const ASK: Duration = Duration::from_micros(100);

/// A lock that knows the thread that holds it, which is what a forked child asks: it has one thread of its parent's, which is the
/// holder or is not. Nothing of it lies in thread-local storage, so it can be held from one call to the next on a thread that ends.
struct Lock {
    /// `pthread_self` of the holder, the same in a forked child; 0: nobody.
    holder: AtomicUsize,
    /// How often the holder has it beyond once: a signal handler may fork where a fork has just begun.
    depth: AtomicU32,
}

impl Lock {
    fn me() -> usize {
        // SAFETY: no arguments, cannot fail; never 0.
        unsafe { libc::pthread_self() as usize }
    }

    fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Acquire) == Lock::me()
    }

    /// Takes the lock unless that takes longer than `patience`.
    fn take(&self, patience: Duration) -> bool {
        if self.is_mine() {
            self.depth.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let begin = Instant::now();
        while self.holder.compare_exchange(0, Lock::me(), Ordering::AcqRel, Ordering::Relaxed).is_err() {
            if begin.elapsed() > patience {
                return false;
            }
            std::thread::sleep(ASK);
        }
        true
    }

    /// Gives back what this thread took; nothing when it has not.
    fn leave(&self) {
        if !self.is_mine() {
            return;
        }
        match self.depth.load(Ordering::Relaxed) {
            0 => self.holder.store(0, Ordering::Release),
            depth => self.depth.store(depth - 1, Ordering::Relaxed),
        }
    }

    /// In a forked child, which has no other thread: nobody holds it. Whether its one thread did.
    fn reset(&self) -> bool {
        let was_mine = self.is_mine();
        self.depth.store(0, Ordering::Relaxed);
        self.holder.store(0, Ordering::Release);
        was_mine
    }
}

/// Runs `act` with no fork in it, except where it lets them pass.
pub(crate) fn without<T>(act: impl FnOnce() -> T) -> T {
    /// Also when `act` panics.
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            WRITING.leave();
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
    WRITING.leave();
    let begin = Instant::now();
    while is_waiting() && begin.elapsed() < PATIENCE {
        std::thread::sleep(2 * ASK);
    }
    WRITING.take(Duration::MAX);
}

/// Has the three steps below called around every fork.
pub(crate) fn watch() {
    // SAFETY: the handlers live as long as the process: the library is never unloaded.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

unsafe extern "C" fn before() {
    guard((), || {
        WAITING.fetch_add(1, Ordering::Relaxed);
        WRITING.take(PATIENCE);
        WAITING.fetch_sub(1, Ordering::Relaxed);
    });
}

unsafe extern "C" fn parent() {
    guard((), || WRITING.leave());
}

unsafe extern "C" fn child() {
    guard((), || {
        let between_transactions = WRITING.reset();
        WAITING.store(0, Ordering::Relaxed);
        // Whether or not this child records: an open file keeps its locks while anybody has a descriptor of it.
        writer::close_inherited();
        let Some(parent) = recorder::get() else { return };
        if !between_transactions {
            recorder::forget();
            return log::problem("forked while the trace was being written: this child is not recorded");
        }
        recorder::inherit(parent);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lock as `act` leaves it on a thread of its own.
    fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(act).join().unwrap())
    }

    #[test]
    fn each_of_two_forks_at_once_knows_whether_it_has_the_lock() {
        let lock = Lock { holder: AtomicUsize::new(0), depth: AtomicU32::new(0) };
        let soon = Duration::from_millis(1);
        assert!(elsewhere(|| lock.take(soon)), "the writer, in a transaction");
        assert!(!lock.take(soon), "one fork has waited in vain");
        lock.holder.store(0, Ordering::Release);
        elsewhere(|| {
            assert!(lock.take(soon), "the other has not");
            assert!(!elsewhere(|| lock.is_mine()), "which tells the first one nothing");
            assert!(!elsewhere(|| {
                lock.leave();
                lock.take(soon)
            }));
            assert!(lock.take(soon) && lock.is_mine(), "a handler that forks in the middle of it");
            lock.leave();
            assert!(lock.is_mine());
            assert!(lock.reset(), "its child");
        });
        assert!(lock.take(soon), "a child's next fork need not wait for a thread that it does not have");
        assert!(elsewhere(|| !lock.reset()), "a child of the thread that waited in vain");
        assert!(lock.take(soon));
    }
}
