//! The call that a packet belongs to.
//!
//! Streams share queues, and whoever rings the doorbell hands over all packets that lie in the queue by then, those of other
//! threads included. So a packet's call is not that of the thread that hands it over, but of the thread that took its place: each
//! taking of places goes through here.

mod place;

use std::cell::RefCell;
use std::sync::atomic::{self, AtomicU32, Ordering};

use rpd_preload::cancellation;
use rpd_transport::correlation;

use place::Place;

use super::queue::HwQueue;
use super::state::get;
use crate::call::{self, CausingCall};
use crate::guard::guard_without_points;
use crate::hsa_runtime::abi::Queue;

/// Set in a place's call: the call launches one kernel.
const LAUNCHES: u64 = 1 << 63;

/// The calls of a queue's packets.
pub(super) struct Reservations(Box<[Place]>);

impl Reservations {
    /// For a queue of `size` packets, a power of two. Threads may take places one ring ahead of execution.
    pub(super) fn new(size: usize) -> Reservations {
        Reservations(std::iter::repeat_with(Place::default).take(2 * size).collect())
    }

    fn place(&self, index: u64) -> &Place {
        &self.0[index as usize & (self.0.len() - 1)]
    }

    fn put(&self, index: u64, cause: &CausingCall) {
        let call = cause.call | if cause.launches { LAUNCHES } else { 0 };
        self.place(index).put(index, [call, cause.stream]);
    }

    /// What is known of packet `index`.
    pub(super) fn cause(&self, index: u64) -> CausingCall {
        let Some([call, stream]) = self.place(index).get(index) else { return CausingCall::NONE };
        CausingCall { call: call & !LAUNCHES, stream, launches: call & LAUNCHES != 0 }
    }
}

/// Changes whenever an address may mean another queue than before.
static GENERATION: AtomicU32 = AtomicU32::new(1);

/// A queue was made or destroyed.
pub(super) fn queues_changed() {
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Queues that a thread used last, by address.
struct Recent {
    generation: u32,
    queues: [(usize, Option<&'static HwQueue>); Recent::PLACES],
}

impl Recent {
    const PLACES: usize = 8;

    fn find(&mut self, queue: *const Queue) -> Option<&'static HwQueue> {
        let generation = GENERATION.load(Ordering::Acquire);
        if generation != self.generation {
            *self = Recent { generation, queues: [(0, None); Recent::PLACES] };
        }
        // The runtime's queues lie on pages of their own.
        let place = &mut self.queues[(queue as usize >> 12) % Recent::PLACES];
        if place.0 != queue as usize {
            let hsa = get().filter(|hsa| hsa.usable())?;
            *place = (queue as usize, cancellation::rarely(|| hsa.queues.get(queue as usize)));
        }
        place.1
    }
}

thread_local! {
    static RECENT: RefCell<Recent> =
        const { RefCell::new(Recent { generation: 0, queues: [(0, None); Recent::PLACES] }) };
}

/// The calling thread has taken `count` places of `queue` from `index` on.
#[inline]
fn reserve(queue: *const Queue, index: u64, count: u64) {
    guard_without_points((), || {
        let cause = call::submits();
        if cause.call == correlation::NONE {
            return;
        }
        let found = RECENT.try_with(|recent| recent.try_borrow_mut().ok()?.find(queue));
        if let Ok(Some(queue)) = found {
            (index..index + count).for_each(|index| queue.reservations.put(index, &cause));
        }
    });
}

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        pub(super) unsafe extern "C-unwind" fn $name(queue: *const Queue, count: u64) -> u64 {
            let Some(hsa) = get() else { return 0 };
            // SAFETY: the caller's arguments, passed on.
            let index = unsafe { (hsa.originals.$name)(queue, count) };
            reserve(queue, index, count);
            index
        }
    )*};
}

hooks! {
    /// hsa_queue_add_write_index_scacq_screl.
    add_write_index_scacq_screl,
    /// hsa_queue_add_write_index_scacquire.
    add_write_index_scacquire,
    /// hsa_queue_add_write_index_relaxed.
    add_write_index_relaxed,
    /// hsa_queue_add_write_index_screlease.
    add_write_index_screlease,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_known_by_its_index() {
        let reservations = Reservations::new(4);
        let cause = |call| CausingCall { call, stream: 7, launches: call % 2 == 1 };
        reservations.put(3, &cause(31));
        reservations.put(11, &cause(40));
        assert_eq!(reservations.cause(3).call, correlation::NONE, "two rings later");
        let other = reservations.cause(11);
        assert_eq!((other.call, other.stream, other.launches), (40, 7, false));
        assert_eq!(reservations.cause(19).call, correlation::NONE);
        assert_eq!(reservations.cause(0).call, correlation::NONE);
    }
}
