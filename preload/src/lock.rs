//! Locks that outlive a panic: a poisoned lock is taken as it is, because the recorder goes on (or off) rather than down.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};
use std::time::{Duration, Instant};

/// Locks `mutex`.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `mutex` unless that takes longer than `patience`: for the end of the process, which may come in a signal handler
/// that interrupted the holder of the lock.
pub fn lock_within<T>(mutex: &Mutex<T>, patience: Duration) -> Option<MutexGuard<'_, T>> {
    let begin = Instant::now();
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if begin.elapsed() > patience => return None,
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_micros(100)),
        }
    }
}

/// Locks `lock` for reading.
pub fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// Locks `lock` for writing.
pub fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// Sets `flag` until the result is dropped, also by a panic. Nothing where it is set.
#[inline]
pub fn take(flag: &AtomicBool) -> Option<TakenFlag<'_>> {
    (!flag.swap(true, Ordering::Acquire)).then_some(TakenFlag(flag))
}

/// See [`take`].
pub struct TakenFlag<'a>(&'a AtomicBool);

impl Drop for TakenFlag<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_one_holders_until_that_is_gone_also_by_a_panic() {
        let flag = AtomicBool::new(false);
        let held = take(&flag);
        assert!(held.is_some() && take(&flag).is_none());
        drop(held);
        let holder = std::panic::AssertUnwindSafe(|| {
            let _held = take(&flag).expect("it is free");
            panic!("of the test");
        });
        assert!(std::panic::catch_unwind(holder).is_err());
        assert!(take(&flag).is_some());
    }
}
