//! Dispatches in flight whose workgroups may wait for each other, counted or not, by GPU and queue. If two of them only just fit on a GPU together,
//! neither may get larger.
//!
//! A dispatch is in flight from before the GPU has it until the completion thread has seen its end: up to 20 ms longer than on the GPU, seldom more.
//! Where two cannot be told apart, they count as beside each other. Both make counting rarer, and let nothing hang. Kernels that the user has left out,
//! or that cannot be rewritten, are not known here.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::intercept::gate::DispatchPlace;

/// GPUs that have counts of their own. Two GPUs with the same counts are taken for one.
const GPUS: usize = 16;
/// Counts of a GPU, by the number of the queue.
const QUEUES: usize = 64;
/// Place of the count that all later queues share.
const SHARED: usize = QUEUES - 1;

/// How many there are.
pub(in crate::intercept) struct WaitingDispatches([[AtomicU32; QUEUES]; GPUS]);

impl Default for WaitingDispatches {
    fn default() -> WaitingDispatches {
        WaitingDispatches([const { [const { AtomicU32::new(0) }; QUEUES] }; GPUS])
    }
}

impl WaitingDispatches {
    /// One more at that place, until what is returned is dropped. `is_in_order`: it begins when all before it on its queue have ended.
    pub(super) fn enter(&'static self, (gpu, queue, _): DispatchPlace, is_in_order: bool) -> WaitingUse {
        let (of_gpu, queue) = (&self.0[gpu as usize % GPUS], (queue as usize).min(SHARED));
        // Whoever enters at the same time sees this one, or is seen.
        of_gpu[queue].fetch_add(1, Ordering::SeqCst);
        WaitingUse { of_gpu, queue, is_in_order: is_in_order && queue != SHARED }
    }
}

/// A dispatch in flight.
pub(in crate::intercept) struct WaitingUse {
    of_gpu: &'static [AtomicU32; QUEUES],
    queue: usize,
    /// None that has the same count runs beside it.
    is_in_order: bool,
}

impl WaitingUse {
    /// Whether others may run beside it on the GPU.
    pub(super) fn has_others(&self) -> bool {
        self.of_gpu.iter().enumerate().any(|(queue, count)| {
            let count = count.load(Ordering::SeqCst);
            match (queue == self.queue, self.is_in_order) {
                (false, _) => count > 0,
                (true, true) => false,
                // One is the dispatch itself.
                (true, false) => count > 1,
            }
        })
    }
}

impl Drop for WaitingUse {
    fn drop(&mut self) {
        self.of_gpu[self.queue].fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_are_those_of_other_queues_of_the_gpu() {
        let all: &WaitingDispatches = Box::leak(Box::default());
        let first = all.enter((0, 3, 1), true);
        let behind = all.enter((0, 3, 2), true);
        let elsewhere = all.enter((1, 4, 1), true);
        assert!(![&first, &behind, &elsewhere].iter().any(|used| used.has_others()));
        let beside = all.enter((0, 4, 1), true);
        assert!([&first, &behind, &beside].iter().all(|used| used.has_others()) && !elsewhere.has_others());
        drop(first);
        assert!(beside.has_others(), "one is left");
        drop(behind);
        assert!(!beside.has_others());
    }

    #[test]
    fn others_are_those_that_a_dispatch_does_not_wait_for() {
        let all: &WaitingDispatches = Box::leak(Box::default());
        let first = all.enter((0, 3, 1), false);
        assert!(!first.has_others());
        let at_once = all.enter((0, 3, 2), false);
        let behind = all.enter((0, 3, 3), true);
        assert!(at_once.has_others() && !behind.has_others());
    }

    #[test]
    fn queues_without_a_count_of_their_own_are_beside_each_other() {
        let all: &WaitingDispatches = Box::leak(Box::default());
        let first = all.enter((0, 3, 1), true);
        let late = all.enter((0, 3 + QUEUES as u32, 1), true);
        assert!(first.has_others() && late.has_others());
        drop(first);
        assert!(!late.has_others());
        let later = all.enter((0, 1000, 1), true);
        assert!(late.has_others() && later.has_others());
    }
}
