//! Work that a fork must not interrupt, because the child could never finish it: a transaction of SQLite, the loading of a library. The
//! fork waits for the work, and new work waits for the fork. Each of them waits for a bounded time.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a fork waits for the work, and the work for forks.
const PATIENCE: Duration = Duration::from_millis(500);
/// Time between two tries to get the lock.
const ASK: Duration = Duration::from_micros(100);

/// A lock between forks and one piece of work. The handlers of `pthread_atfork` call [`Gate::before`], [`Gate::parent`] and
/// [`Gate::child`].
///
/// It knows the thread that holds it, which is what a forked child asks: the child has one thread of its parent's, which is the holder or
/// is not. Nothing of it lies in thread-local storage, so it can be held from one handler to the next on a thread that ends.
pub struct Gate {
    /// `pthread_self` of the holder, the same in a forked child; 0: nobody.
    holder: AtomicUsize,
    /// How often the holder has it beyond once: a signal handler may fork where a fork has just begun.
    depth: AtomicU32,
    /// Forks that wait.
    waiting: AtomicU32,
}

impl Gate {
    /// Open.
    pub const fn new() -> Gate {
        Gate { holder: AtomicUsize::new(0), depth: AtomicU32::new(0), waiting: AtomicU32::new(0) }
    }

    /// Runs `work` with no fork in it, except where it lets them pass.
    pub fn without<T>(&self, work: impl FnOnce() -> T) -> T {
        /// Also when `work` panics.
        struct Leave<'a>(&'a Gate);
        impl Drop for Leave<'_> {
            fn drop(&mut self) {
                self.0.leave();
            }
        }
        let _leave = Leave(self);
        self.let_pass();
        work()
    }

    /// Whether a fork waits for the work.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Forks that wait happen now. Inside [`Gate::without`], where the work can stand still.
    pub fn let_pass(&self) {
        self.leave();
        let begin = Instant::now();
        while self.is_waiting() && begin.elapsed() < PATIENCE {
            std::thread::sleep(2 * ASK);
        }
        self.take(Duration::MAX);
    }

    /// A fork begins on this thread: it waits for the work, for a while.
    pub fn before(&self) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.take(PATIENCE);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// The fork of this thread is done, in the process that forked.
    pub fn parent(&self) {
        self.leave();
    }

    /// In a forked child, which has no other thread: nobody holds the gate. Whether the child was forked while no work was going on.
    pub fn child(&self) -> bool {
        let was_mine = self.is_mine();
        self.depth.store(0, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
        self.holder.store(0, Ordering::Release);
        was_mine
    }

    fn me() -> usize {
        // SAFETY: no arguments, cannot fail; never 0.
        unsafe { libc::pthread_self() as usize }
    }

    fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Acquire) == Gate::me()
    }

    /// Takes the lock unless that takes longer than `patience`.
    fn take(&self, patience: Duration) -> bool {
        if self.is_mine() {
            self.depth.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        let begin = Instant::now();
        while self.holder.compare_exchange(0, Gate::me(), Ordering::AcqRel, Ordering::Relaxed).is_err() {
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
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gate as `act` leaves it on a thread of its own.
    fn elsewhere<T: Send>(act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| scope.spawn(act).join().unwrap())
    }

    #[test]
    fn each_of_two_forks_at_once_knows_whether_it_has_the_gate() {
        let gate = Gate::new();
        let soon = Duration::from_millis(1);
        assert!(elsewhere(|| gate.take(soon)), "the writer, in a transaction");
        assert!(!gate.take(soon), "one fork has waited in vain");
        gate.holder.store(0, Ordering::Release);
        elsewhere(|| {
            assert!(gate.take(soon), "the other has not");
            assert!(!elsewhere(|| gate.is_mine()), "which tells the first one nothing");
            assert!(!elsewhere(|| {
                gate.leave();
                gate.take(soon)
            }));
            assert!(gate.take(soon) && gate.is_mine(), "a handler that forks in the middle of it");
            gate.leave();
            assert!(gate.is_mine());
            assert!(gate.child(), "its child");
        });
        assert!(gate.take(soon), "a child's next fork need not wait for a thread that it does not have");
        assert!(elsewhere(|| !gate.child()), "a child of the thread that waited in vain");
        assert!(gate.take(soon));
    }
}
