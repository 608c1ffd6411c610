//! Operations that the device has, and where their times will be.

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
    pub(super) in_use: Option<InUse>,
}

/// A copy that the runtime has.
pub(super) struct CopyInFlight {
    pub(super) record: records::Copy,
    pub(super) times: Arc<SignalTimes>,
}
