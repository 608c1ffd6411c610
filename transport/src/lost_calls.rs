//! Calls that the writer has to hear of because a record was lost. If the record of the call itself was lost, the writer links no
//! operation to it. If the record of a launch's operation was lost, the writer waits for no operation of that launch.

use std::sync::Mutex;

use rpd_preload::lock::lock;

/// So many are remembered at most, the latest: a writer whose disk hangs hears of none for hours.
pub const MOST: usize = 100_000;

/// See the module.
#[derive(Default)]
pub struct LostCalls(Mutex<Vec<u64>>);

impl LostCalls {
    /// That record will never come.
    #[cold]
    pub fn add(&self, call: u64) {
        let mut calls = lock(&self.0);
        if calls.len() >= MOST {
            calls.drain(..MOST / 2);
        }
        calls.push(call);
    }

    /// Those since this was last asked.
    pub fn take(&self) -> Vec<u64> {
        std::mem::take(&mut lock(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_remembered_and_not_more_than_that() {
        let lost = LostCalls::default();
        let most = MOST as u64;
        (0..3 * most).for_each(|call| lost.add(call));
        let calls = lost.take();
        assert!((MOST / 2..=MOST).contains(&calls.len()), "{}", calls.len());
        assert!(calls.iter().copied().eq(3 * most - calls.len() as u64..3 * most));
        assert!(lost.take().is_empty());
    }
}
