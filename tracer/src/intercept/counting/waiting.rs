//! Dispatches in flight whose workgroups may wait for each other, counted or not, by GPU and queue: two of them on a GPU that only just hold all
//! their workgroups at once must not get larger.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::intercept::gate::DispatchPlace;

/// GPUs and queues that have a number of their own. Two queues with one number are taken for one.
const GPUS: usize = 16;
const QUEUES: usize = 64;

/// How many there are.
pub(in crate::intercept) struct WaitingDispatches([[AtomicU32; QUEUES]; GPUS]);

impl Default for WaitingDispatches {
    fn default() -> WaitingDispatches {
        WaitingDispatches([const { [const { AtomicU32::new(0) }; QUEUES] }; GPUS])
    }
}

impl WaitingDispatches {
    /// One more at that place, until what is returned is dropped.
    pub(super) fn enter(&'static self, (gpu, queue, _): DispatchPlace) -> WaitingUse {
        let (of_gpu, queue) = (&self.0[gpu as usize % GPUS], queue as usize % QUEUES);
        // Whoever enters at the same time sees this one, or is seen.
        of_gpu[queue].fetch_add(1, Ordering::SeqCst);
        WaitingUse { of_gpu, queue }
    }
}

/// A dispatch in flight.
pub(in crate::intercept) struct WaitingUse {
    of_gpu: &'static [AtomicU32; QUEUES],
    queue: usize,
}

impl WaitingUse {
    /// Whether others are in flight on other queues of the GPU. Those of one queue come one after the other.
    pub(super) fn has_others(&self) -> bool {
        let others = self.of_gpu.iter().enumerate().filter(|(queue, _)| *queue != self.queue);
        others.into_iter().any(|(_, count)| count.load(Ordering::SeqCst) > 0)
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
        let first = all.enter((0, 3, 1));
        let behind = all.enter((0, 3, 2));
        let elsewhere = all.enter((1, 4, 1));
        assert!(![&first, &behind, &elsewhere].iter().any(|used| used.has_others()));
        let beside = all.enter((0, 4, 1));
        assert!([&first, &behind, &beside].iter().all(|used| used.has_others()) && !elsewhere.has_others());
        drop(first);
        assert!(beside.has_others(), "one is left");
        drop(behind);
        assert!(!beside.has_others());
    }
}
