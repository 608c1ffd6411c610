//! Work that nobody waits for. A thread of ours does it: the thread starts when there is work, and ends when there was none for a while, so
//! that an idle process does not have it.

use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::lock::{lock, lock_within};
use crate::threads;

/// How long the thread waits for more.
const IDLE: Duration = Duration::from_secs(1);
/// How long a lock is waited for, which its holders keep for moments.
const PATIENCE: Duration = Duration::from_secs(1);

/// Pieces of work, in the order in which they came. A forked child, which has no such thread, makes its own.
pub struct Errands<T> {
    /// Of the thread.
    name: &'static CStr,
    /// What may wait and be under way, together.
    most: usize,
    /// Does what has come meanwhile.
    work: fn(Vec<T>),
    state: Mutex<ErrandState<T>>,
    /// There is work, or it is done.
    changed: Condvar,
}

struct ErrandState<T> {
    waiting: Vec<T>,
    /// Weight of what waits, and of what is under way.
    weight: usize,
    weight_under_way: usize,
    is_at_work: bool,
    /// There is a thread.
    runs: bool,
    /// It has panicked: nothing more is done.
    failed: bool,
}

impl<T> ErrandState<T> {
    fn is_busy(&self) -> bool {
        self.runs && (self.is_at_work || !self.waiting.is_empty())
    }
}

impl<T: Send> Errands<T> {
    /// Nothing waits; `most` is the weight that may.
    pub fn new(name: &'static CStr, most: usize, work: fn(Vec<T>)) -> Errands<T> {
        let state = ErrandState {
            waiting: Vec::new(),
            weight: 0,
            weight_under_way: 0,
            is_at_work: false,
            runs: false,
            failed: false,
        };
        Errands { name, most, work, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Waits up to `patience` until so much more may wait; whether it may.
    pub fn wait_for_room(&self, weight: usize, patience: Duration) -> bool {
        let begin = Instant::now();
        let Some(state) = lock_within(&self.state, patience) else { return false };
        let patience = patience.saturating_sub(begin.elapsed());
        let full = |state: &mut ErrandState<T>| !state.failed && !self.has_room_in(state, weight);
        let waited = self.changed.wait_timeout_while(state, patience, full);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.has_room_in(&state, weight)
    }

    fn has_room_in(&self, state: &ErrandState<T>, weight: usize) -> bool {
        let all = state.weight.saturating_add(state.weight_under_way).saturating_add(weight);
        !state.failed && all <= self.most
    }

    /// Has it done; false where there is no room for it, or no thread.
    pub fn add(&'static self, item: T, weight: usize) -> bool {
        let Some(mut state) = lock_within(&self.state, PATIENCE) else { return false };
        if !self.has_room_in(&state, weight) {
            return false;
        }
        if !state.runs {
            if threads::spawn(self.name, || self.run()).is_err() {
                return false;
            }
            state.runs = true;
        }
        state.waiting.push(item);
        state.weight += weight;
        if state.waiting.len() == 1 {
            self.changed.notify_all();
        }
        true
    }

    /// Waits up to `patience` until all is done; whether it is.
    pub fn finish(&self, patience: Duration) -> bool {
        let begin = Instant::now();
        let Some(state) = lock_within(&self.state, patience) else { return false };
        let left = patience.saturating_sub(begin.elapsed());
        let waited = self.changed.wait_timeout_while(state, left, |state| state.is_busy());
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.failed && !state.is_busy()
    }

    fn run(&self) {
        if catch_unwind(AssertUnwindSafe(|| self.serve())).is_err() {
            let mut state = lock(&self.state);
            (state.failed, state.runs) = (true, false);
            drop(state);
            self.changed.notify_all();
        }
    }

    fn serve(&self) {
        let mut state = lock(&self.state);
        loop {
            let waited = self.changed.wait_timeout_while(state, IDLE, |state| state.waiting.is_empty());
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if state.waiting.is_empty() {
                // Who adds something from here on starts another.
                state.runs = false;
                return;
            }
            let items = std::mem::take(&mut state.waiting);
            state.weight_under_way = std::mem::take(&mut state.weight);
            state.is_at_work = true;
            drop(state);
            (self.work)(items);
            state = lock(&self.state);
            (state.weight_under_way, state.is_at_work) = (0, false);
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn all_is_done_in_its_order_and_no_more_waits_than_may() {
        static DONE: Mutex<Vec<u32>> = Mutex::new(Vec::new());
        static HELD: AtomicBool = AtomicBool::new(true);
        static ERRANDS: LazyLock<Errands<u32>> = LazyLock::new(|| {
            Errands::new(c"rpd-test", 10, |items| {
                while HELD.load(Ordering::Acquire) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                lock(&DONE).extend(items);
            })
        });
        assert!(ERRANDS.finish(Duration::ZERO), "nothing has come yet");
        assert!(ERRANDS.add(1, 6));
        let has_room = |weight| ERRANDS.wait_for_room(weight, Duration::ZERO);
        assert!(!has_room(5) && has_room(4), "what is under way has its weight too");
        assert!(!ERRANDS.add(2, 5));
        assert!(ERRANDS.add(3, 4) && !ERRANDS.add(4, 1) && ERRANDS.add(5, 0));
        assert!(!ERRANDS.finish(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| ERRANDS.wait_for_room(10, LONG));
            HELD.store(false, Ordering::Release);
            assert!(waits.join().unwrap(), "there is room when all is done");
        });
        assert!(ERRANDS.finish(LONG));
        assert_eq!(*lock(&DONE), [1, 3, 5]);
        assert!(ERRANDS.add(6, 10), "there is room again");
        assert!(ERRANDS.finish(LONG));
    }

    #[test]
    fn the_thread_ends_when_nothing_comes_and_another_follows() {
        static DONE: AtomicUsize = AtomicUsize::new(0);
        static ERRANDS: LazyLock<Errands<()>> = LazyLock::new(|| {
            Errands::new(c"rpd-test", 10, |items| {
                DONE.fetch_add(items.len(), Ordering::Relaxed);
            })
        });
        for round in 1..=2 {
            assert!(ERRANDS.add((), 1) && ERRANDS.finish(LONG));
            assert_eq!(DONE.load(Ordering::Relaxed), round);
            let begin = Instant::now();
            while lock(&ERRANDS.state).runs {
                assert!(begin.elapsed() < LONG);
                std::thread::sleep(Duration::from_millis(10));
            }
        }
    }

    #[test]
    fn who_has_no_patience_does_not_wait_for_the_lock_either() {
        static ERRANDS: LazyLock<Errands<()>> = LazyLock::new(|| Errands::new(c"rpd-test", 10, |_| {}));
        let (held, begin) = (lock(&ERRANDS.state), Instant::now());
        for _ in 0..1000 {
            assert!(!ERRANDS.wait_for_room(1, Duration::ZERO) && begin.elapsed() < LONG);
        }
        drop(held);
        assert!(ERRANDS.wait_for_room(1, Duration::ZERO));
    }

    #[test]
    fn a_panic_is_the_end_of_it_and_nobody_waits() {
        static ERRANDS: LazyLock<Errands<()>> =
            LazyLock::new(|| Errands::new(c"rpd-test", 10, |_| panic!("as the test wants")));
        assert!(ERRANDS.add((), 1));
        assert!(!ERRANDS.finish(LONG));
        assert!(!ERRANDS.add((), 1) && !ERRANDS.wait_for_room(1, LONG));
    }
}
