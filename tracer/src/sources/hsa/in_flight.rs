//! Operations that the device has, where their times will be, and dispatches on their way to the completion thread.

use std::sync::Arc;

use rpd_transport::records;

use super::app_signal::{OperationTimes, SignalTimes};
use super::signal;
use crate::hsa_runtime::abi::Signal;
use crate::intercept::packet::InUse;

/// Where the times of a dispatch will be.
pub(super) enum TimesFrom {
    /// In a signal of ours.
    Own(Signal),
    /// In the application's signal.
    Application(Arc<SignalTimes>),
}

impl TimesFrom {
    /// What has become of the dispatch.
    pub(super) fn outcome(&self) -> OperationTimes {
        match self {
            // SAFETY: our own signal of a live runtime.
            TimesFrom::Own(own) => match unsafe { signal::completed(*own) } {
                Some((start, end)) => OperationTimes::Done(start, end),
                None => OperationTimes::Pending,
            },
            TimesFrom::Application(times) => times.outcome(),
        }
    }
}

/// A dispatch that the hardware has.
pub(super) struct InFlight {
    pub(super) record: records::Dispatch,
    pub(super) timing: TimesFrom,
    /// False: submitted while recording was paused, watched only to know how far execution is.
    pub(super) recorded: bool,
    /// What runs in the place of the application's kernel, until it has completed.
    pub(super) in_use: Option<Box<InUse>>,
}

impl InFlight {
    fn nothing() -> InFlight {
        let record = bytemuck::Zeroable::zeroed();
        InFlight { record, timing: TimesFrom::Own(Signal(0)), recorded: false, in_use: None }
    }
}

/// A copy that the runtime has.
pub(super) struct CopyInFlight {
    pub(super) record: records::Copy,
    pub(super) times: Arc<SignalTimes>,
}

/// Dispatches that go by memory which is used again and again. The completion thread takes them every millisecond, and comes earlier where they
/// are many.
const NEAR: usize = 2048;

/// The interceptor's end of a queue of dispatches. A dispatch goes by a small ring, whose memory stays in the processor's cache. What finds that
/// full goes by a large one, whose memory the system gives page by page: a launch takes three times as long where it is the first to use a page.
/// So does all that comes behind it until the large one is empty.
pub(super) struct InFlightSender {
    near: rtrb::Producer<InFlight>,
    far: rtrb::Producer<InFlight>,
    /// Something was put into `far` that may be there still.
    overflows: bool,
}

/// The completion thread's end.
pub(super) struct InFlightReceiver {
    near: rtrb::Consumer<InFlight>,
    far: rtrb::Consumer<InFlight>,
}

/// A queue with room for `capacity` dispatches.
pub(super) fn in_flight_queue(capacity: usize) -> (InFlightSender, InFlightReceiver) {
    let ((mut near, mut near_end), (far, far_end)) =
        (rtrb::RingBuffer::new(NEAR), rtrb::RingBuffer::new(capacity));
    // The system gives the memory of the small one now, and not to the first launches.
    while near.push(InFlight::nothing()).is_ok() {}
    while near_end.pop().is_ok() {}
    let sender = InFlightSender { near, far, overflows: false };
    (sender, InFlightReceiver { near: near_end, far: far_end })
}

impl InFlightSender {
    /// So many more dispatches find room.
    #[inline]
    pub(super) fn slots(&self) -> usize {
        self.far.slots()
    }

    /// Whether the completion thread should come at once.
    #[inline]
    pub(super) fn is_pressed(&self) -> bool {
        match self.overflows {
            false => self.near.slots() < NEAR / 4,
            true => self.far.slots() < self.far.buffer().capacity() / 2,
        }
    }

    /// The caller has made sure of the room.
    #[inline]
    pub(super) fn push(&mut self, dispatch: InFlight) {
        self.overflows = self.overflows && self.far.slots() < self.far.buffer().capacity();
        let refused = match self.overflows {
            true => dispatch,
            false => match self.near.push(dispatch) {
                Ok(()) => return,
                Err(rtrb::PushError::Full(dispatch)) => dispatch,
            },
        };
        self.overflows = true;
        let _ = self.far.push(refused);
    }
}

impl InFlightReceiver {
    /// Hands what is there to `each`, in the order in which it came.
    pub(super) fn drain(&mut self, mut each: impl FnMut(InFlight)) {
        // It came behind all that `near` has, which gets no more before these are taken. What comes into `far` later may be behind
        // something that comes into `near` now.
        let later = self.far.slots();
        while let Ok(dispatch) = self.near.pop() {
            each(dispatch);
        }
        for dispatch in (0..later).map_while(|_| self.far.pop().ok()) {
            each(dispatch);
        }
    }

    /// Nothing is there, and nothing will come.
    pub(super) fn is_over(&self) -> bool {
        self.far.is_abandoned() && self.near.is_abandoned() && self.near.is_empty() && self.far.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(sequence: u64) -> InFlight {
        let mut dispatch = InFlight::nothing();
        dispatch.record.sequence = sequence;
        dispatch
    }

    #[test]
    fn dispatches_arrive_in_order_by_whichever_ring() {
        let total = 300_000;
        let (mut sender, mut receiver) = in_flight_queue(2 * NEAR);
        let pushing = std::thread::spawn(move || {
            let mut overflown = 0;
            for sequence in 0..total {
                while sender.slots() == 0 {
                    std::thread::yield_now();
                }
                sender.push(numbered(sequence));
                overflown += u64::from(sender.overflows);
            }
            overflown
        });
        let (mut next, mut rounds) = (0, 0_u64);
        while !receiver.is_over() {
            receiver.drain(|dispatch| {
                assert_eq!(dispatch.record.sequence, next);
                next += 1;
            });
            // Sometimes late, so that more has come than the small ring holds.
            rounds += 1;
            if rounds.is_multiple_of(8) {
                std::thread::sleep(std::time::Duration::from_micros(rounds % 300));
            }
        }
        let overflown = pushing.join().unwrap();
        assert_eq!(next, total);
        assert!(0 < overflown && overflown < total, "{overflown} by the large ring");
    }

    #[test]
    fn as_many_find_room_as_was_said() {
        let (mut sender, mut receiver) = in_flight_queue(2 * NEAR);
        let mut pushed = 0;
        while sender.slots() > 0 {
            sender.push(numbered(pushed));
            pushed += 1;
        }
        assert_eq!((pushed, sender.is_pressed()), (3 * NEAR as u64, true));
        let mut next = 0;
        receiver.drain(|dispatch| {
            assert_eq!(dispatch.record.sequence, next);
            next += 1;
        });
        sender.push(numbered(pushed));
        assert_eq!((next, sender.overflows), (pushed, false));
        drop(sender);
        assert!(!receiver.is_over());
        receiver.drain(|dispatch| assert_eq!(dispatch.record.sequence, pushed));
        assert!(receiver.is_over());
    }
}
