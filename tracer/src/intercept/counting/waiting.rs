//! Dispatches in flight whose workgroups may wait for each other, counted or not, by GPU and queue. If two of them only just fit on a GPU together,
//! neither may get larger.
//!
//! A dispatch is in flight from before the GPU has it until the completion thread has seen its end: up to 20 ms longer than on the GPU, seldom more.
//! Where two cannot be told apart, they count as beside each other. Both make counting rarer, and let nothing hang. Kernels that the user has left out,
//! or that cannot be rewritten, are not known here.
//!
//! A kernel that waits for another one is beside it each time. So its first dispatch, which runs as it is, shows whether it gets larger later: no dispatch
//! has to be known before it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use crate::intercept::gate::DispatchPlace;

/// GPUs that have counts of their own. Two GPUs with the same counts are taken for one.
const GPUS: usize = 16;
/// Counts of a GPU, by the number of the queue.
const QUEUES: usize = 64;
/// Place of the count that all later queues share.
const SHARED: usize = QUEUES - 1;

/// How many there are.
pub(in crate::intercept) struct WaitingDispatches([WaitingOnGpu; GPUS]);

/// Those of a GPU.
struct WaitingOnGpu {
    in_flight: [AtomicU32; QUEUES],
    /// How many have begun beside others; whoever was in flight then was beside one too.
    meetings: AtomicU32,
}

impl Default for WaitingDispatches {
    fn default() -> WaitingDispatches {
        let none = |_| WaitingOnGpu {
            in_flight: [const { AtomicU32::new(0) }; QUEUES],
            meetings: AtomicU32::new(0),
        };
        WaitingDispatches(std::array::from_fn(none))
    }
}

/// What the dispatches of one kernel that have ended tell of later ones.
#[derive(Default)]
pub(super) struct WaitingHistory {
    was_alone: AtomicBool,
    was_beside: AtomicBool,
}

/// What runs beside a dispatch on its GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// No dispatch of its kernel has ended yet, so it may be one that another kernel joins.
    Unknown,
    /// None, as far as dispatches of its kernel tell.
    Nobody,
    /// Another dispatch whose workgroups may wait, now or beside an earlier dispatch of its kernel.
    Others,
}

impl WaitingDispatches {
    /// One more at that place, until what is returned is dropped. `is_in_order`: it begins when all before it on its queue have ended. `history`: its
    /// kernel's.
    pub(super) fn enter(
        &'static self,
        (gpu, queue, _): DispatchPlace,
        is_in_order: bool,
        history: &Arc<WaitingHistory>,
    ) -> WaitingUse {
        let (of_gpu, queue) = (&self.0[gpu as usize % GPUS], (queue as usize).min(SHARED));
        // Whoever enters at the same time sees this one, or is seen.
        of_gpu.in_flight[queue].fetch_add(1, Ordering::SeqCst);
        let meetings = of_gpu.meetings.load(Ordering::SeqCst);
        let is_in_order = is_in_order && queue != SHARED;
        let used = WaitingUse { of_gpu, queue, is_in_order, meetings, history: Arc::clone(history) };
        if used.has_others() {
            of_gpu.meetings.fetch_add(1, Ordering::SeqCst);
            used.history.was_beside.store(true, Ordering::Relaxed);
        }
        used
    }
}

/// A dispatch in flight.
pub(in crate::intercept) struct WaitingUse {
    of_gpu: &'static WaitingOnGpu,
    queue: usize,
    /// None that has the same count runs beside it.
    is_in_order: bool,
    /// The GPU's when it began.
    meetings: u32,
    history: Arc<WaitingHistory>,
}

impl WaitingUse {
    /// Whether others run beside it on the GPU, or will.
    pub(super) fn company(&self) -> Company {
        match (&self.history.was_beside, &self.history.was_alone) {
            (beside, _) if beside.load(Ordering::Relaxed) => Company::Others,
            (_, alone) if alone.load(Ordering::Relaxed) => Company::Nobody,
            _ => Company::Unknown,
        }
    }

    fn has_others(&self) -> bool {
        self.of_gpu.in_flight.iter().enumerate().any(|(queue, count)| {
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
        let was_joined = self.of_gpu.meetings.load(Ordering::SeqCst) != self.meetings;
        let WaitingHistory { was_alone, was_beside } = &*self.history;
        (if was_joined { was_beside } else { was_alone }).store(true, Ordering::Relaxed);
        self.of_gpu.in_flight[self.queue].fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Company::{Nobody, Others, Unknown};

    /// Enters dispatches of kernels that were never seen before.
    fn entering() -> impl Fn(DispatchPlace, bool) -> WaitingUse {
        let all: &WaitingDispatches = Box::leak(Box::default());
        move |place, is_in_order| all.enter(place, is_in_order, &Arc::default())
    }

    #[test]
    fn others_are_those_of_other_queues_of_the_gpu() {
        let enter = entering();
        let first = enter((0, 3, 1), true);
        let behind = enter((0, 3, 2), true);
        let elsewhere = enter((1, 4, 1), true);
        assert!(![&first, &behind, &elsewhere].iter().any(|used| used.has_others()));
        let beside = enter((0, 4, 1), true);
        assert!([&first, &behind, &beside].iter().all(|used| used.has_others()) && !elsewhere.has_others());
        drop(first);
        assert!(beside.has_others(), "one is left");
        drop(behind);
        assert!(!beside.has_others());
    }

    #[test]
    fn others_are_those_that_a_dispatch_does_not_wait_for() {
        let enter = entering();
        let first = enter((0, 3, 1), false);
        assert!(!first.has_others());
        let at_once = enter((0, 3, 2), false);
        let behind = enter((0, 3, 3), true);
        assert!(at_once.has_others() && !behind.has_others());
    }

    #[test]
    fn queues_without_a_count_of_their_own_are_beside_each_other() {
        let enter = entering();
        let first = enter((0, 3, 1), true);
        let late = enter((0, 3 + QUEUES as u32, 1), true);
        assert!(first.has_others() && late.has_others());
        drop(first);
        assert!(!late.has_others());
        let later = enter((0, 1000, 1), true);
        assert!(late.has_others() && later.has_others());
    }

    /// The second comes while the first is in flight, or the other way round: both know it from then on.
    #[test]
    fn dispatches_that_have_ended_tell_of_later_ones() {
        let all: &WaitingDispatches = Box::leak(Box::default());
        let [alone, first, second, elsewhere] = [(); 4].map(|()| Arc::default());
        for _ in 0..2 {
            let (one, other) = (all.enter((0, 1, 1), true, &alone), all.enter((0, 1, 2), true, &alone));
            drop((one, other));
        }
        assert_eq!(all.enter((0, 1, 3), true, &alone).company(), Nobody);
        let early = all.enter((0, 1, 4), true, &first);
        let of_other_gpu = all.enter((1, 1, 1), true, &elsewhere);
        assert_eq!((early.company(), of_other_gpu.company()), (Unknown, Unknown));
        let late = all.enter((0, 2, 1), true, &second);
        assert_eq!(late.company(), Others);
        drop((early, late, of_other_gpu));
        let later = |history| all.enter((0, 1, 5), true, history).company();
        assert_eq!([&first, &second, &elsewhere, &alone].map(later), [Others, Others, Nobody, Nobody]);
        // Also one that was alone before, for good.
        let (early, late) = (all.enter((0, 1, 6), true, &alone), all.enter((0, 2, 2), true, &second));
        drop((late, early));
        drop(all.enter((0, 1, 7), true, &alone));
        assert_eq!(later(&alone), Others);
    }

    /// A packet without a barrier bit does not wait for the one in front of it, which does.
    #[test]
    fn one_that_does_not_wait_is_beside_the_one_in_front_of_it() {
        let all: &WaitingDispatches = Box::leak(Box::default());
        let [front, behind] = [(); 2].map(|()| Arc::default());
        let early = all.enter((0, 3, 1), true, &front);
        let late = all.enter((0, 3, 2), false, &behind);
        drop((early, late));
        assert_eq!(
            [&front, &behind].map(|history| all.enter((0, 3, 3), true, history).company()),
            [Others; 2]
        );
    }
}
