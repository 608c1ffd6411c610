//! Another profiler that takes HIP's callbacks (PyTorch's, roctracer's) is noticed by what they no longer tell: kernels follow each other
//! on queues that HIP has launched on, and none of them is known to be of a call.

use std::collections::HashSet;

use rpd_transport::correlation;
use rpd_transport::log;
use rpd_transport::recorder;
use rpd_transport::records::Dispatch;

use super::state::{self, HipEvent, HipState};
use super::{config, description};

/// Kernels without a call, one after the other, that are no coincidence.
const ENOUGH: u32 = 64;
/// ns that they go on for: a start of recording gives HIP up to 5.2 its callbacks while threads launch.
const LONG: u64 = 100_000_000;

/// What the writer has seen of kernels and their calls.
#[derive(Default)]
pub(super) struct Displacement {
    /// Queues that HIP's calls have launched on, by GPU: others belong to programs that use HSA themselves.
    queues: HashSet<(u32, u32)>,
    /// Kernels there since the last one of a call, and when the first of them was submitted.
    kernels: u32,
    since: u64,
}

impl Displacement {
    /// One more kernel. True: too many were of no call.
    pub(super) fn after(&mut self, kernel: &Dispatch) -> bool {
        let queue = (kernel.gpu, kernel.queue);
        if kernel.correlation != correlation::NONE {
            self.kernels = 0;
            self.queues.insert(queue);
        } else if self.queues.contains(&queue) {
            if self.kernels == 0 {
                self.since = kernel.submit_start;
            }
            self.kernels += 1;
            if self.kernels >= ENOUGH && kernel.submit_start.saturating_sub(self.since) >= LONG {
                self.kernels = 0;
                return true;
            }
        }
        false
    }
}

/// HIP's callbacks tell of nothing any more: calls are recorded by the names of its functions from now on, where those are preloaded.
#[cold]
pub(super) fn noticed() {
    // The writer comes here again and again where kernels are of no call.
    let Some(recorder) = recorder::get().filter(|_| state::current() == HipState::Callbacks) else { return };
    let mut launches = description::get().apis.iter().filter(|api| api.launches());
    // Otherwise the kernels are of calls that nobody wanted, or of lost ones.
    let all_recorded = launches.all(|api| config::get().apis.contains(api.name));
    if !all_recorded || recorder.counters.lost().records() > 0 {
        return;
    }
    let there = rpd_preload::library::is_loaded("librpd_hip.so");
    let (before, after) = state::apply(HipEvent::CallbacksTaken(there));
    if before == after {
        return;
    }
    log::problem(if after == HipState::DisplacedToSymbols {
        "another profiler seems to have taken HIP's callbacks: its calls are recorded by the names of its functions from now on"
    } else {
        "another profiler seems to have taken HIP's callbacks: its calls are not recorded from now on; with librpd_hip.so in LD_PRELOAD they would be"
    });
}
