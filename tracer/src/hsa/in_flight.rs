//! Operations that the device has, and where their times will be.

use std::sync::Arc;

use super::abi::Signal;
use super::app_signal::{self, Harvest, Operation, Outcome};
use super::{Hsa, signal};
use crate::record;

/// Where the times of an operation will be.
pub(super) enum Timing {
    /// In a signal of ours.
    Own(Signal),
    /// In the application's signal, or passed on to it by somebody else.
    Application(Arc<Harvest>),
    /// In a signal of ours, and this thread passes them on to the application's.
    Relayed { own: Signal, target: Signal },
}

impl Timing {
    /// What has become of the operation; passes its completion on where that is ours to do.
    pub(super) fn outcome(&self, hsa: &Hsa, operation: Operation) -> Outcome {
        match self {
            // SAFETY: our own signal of a live runtime.
            Timing::Own(own) => match unsafe { signal::completed(*own) } {
                Some((start, end)) => Outcome::Done(start, end),
                None => Outcome::Pending,
            },
            Timing::Application(harvest) => harvest.outcome(),
            Timing::Relayed { own, target } => {
                // SAFETY: our own signal of a live runtime.
                if unsafe { signal::completed(*own) }.is_none() {
                    return Outcome::Pending;
                }
                // SAFETY: `own` has completed; the application keeps `target` until the operation that completes it has.
                let (start, end) = unsafe { app_signal::relay(hsa, *own, *target, operation) };
                Outcome::Done(start, end)
            }
        }
    }

    /// The signal of ours that is free when the operation is settled.
    pub(super) fn own(&self) -> Option<Signal> {
        match self {
            Timing::Own(own) | Timing::Relayed { own, .. } => Some(*own),
            Timing::Application(_) => None,
        }
    }
}

/// A dispatch that the hardware has.
pub(super) struct InFlight {
    pub(super) record: record::Dispatch,
    pub(super) timing: Timing,
    /// False: submitted while recording was paused, watched only to know how far execution is.
    pub(super) recorded: bool,
}

/// A copy that the runtime has.
pub(super) struct CopyInFlight {
    pub(super) record: record::Copy,
    pub(super) timing: Timing,
}
