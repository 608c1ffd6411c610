//! The kernels that may run in the place of one of the application's.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use rpd_codeobject::{Launch, Plan};
use rpd_transport::log;
use rpd_transport::records::KernelId;

use super::alternate::{Alternate, mix};
use super::counting::{CountingKernel, Uncounted};
use super::kernargs::Slots;
use super::probe::Probe;
use super::runtime::LoadedCandidate;
use super::validate::Validation;
use crate::gpu::kernels;

/// Launch geometries of one kernel that have turns of their own.
const GEOMETRIES: usize = 64;

/// A kernel of a candidate.
pub(super) struct Planned {
    pub(super) plan: Plan,
    /// Address of its descriptor on the device.
    pub(super) object: u64,
    /// Its number in records.
    pub(super) kernel: KernelId,
    pub(super) loaded: Arc<LoadedCandidate>,
    /// LDS of a workgroup at most, bytes.
    pub(super) most_lds: u32,
    /// Memory for its arguments, where they are made anew.
    pub(super) slots: Option<Arc<Slots>>,
    /// How its results are compared, where that was asked for.
    pub(super) validation: Option<Arc<Validation>>,
    /// Which of its dispatches run, and stream messages out, where it is instrumented.
    pub(super) probe: Option<Arc<Probe>>,
    /// Which of its dispatches run, and with which descriptor, where its basic blocks are counted.
    pub(super) counting: Option<Arc<CountingKernel>>,
    /// The first launch in which it cannot run.
    pub(super) refused: OnceLock<Launch>,
    /// That was said.
    pub(super) said: AtomicBool,
}

/// What may run where the application launches one kernel.
pub(super) struct Choice {
    alternate: Alternate,
    /// In the order of their turns; at least one, but where the application's kernel runs.
    pub(super) planned: Vec<Planned>,
    /// What is to be known of dispatches that run the application's kernel.
    pub(super) uncounted: Option<Uncounted>,
    turns: [AtomicU32; GEOMETRIES],
}

impl Choice {
    /// One or more candidates, in the place of what was chosen `before`: what goes on as it was is not begun anew.
    pub(super) fn new(alternate: Alternate, planned: Vec<Planned>, before: Option<&Choice>) -> Choice {
        let turns = [const { AtomicU32::new(0) }; GEOMETRIES];
        let Some(before) = before else { return Choice { alternate, planned, uncounted: None, turns } };
        if before.planned.iter().map(|one| one.kernel).eq(planned.iter().map(|one| one.kernel)) {
            for (turn, then) in turns.iter().zip(&before.turns) {
                turn.store(then.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        Choice { alternate, planned, uncounted: None, turns }
    }

    /// The application's kernel.
    pub(super) fn uncounted(uncounted: Uncounted) -> Choice {
        Choice { uncounted: Some(uncounted), ..Choice::new(Alternate::Never, Vec::new(), None) }
    }

    /// Says how many dispatches came before the kernel was rewritten.
    pub(super) fn say_early(&self) {
        if let Some(early) = self.uncounted.as_ref().and_then(|uncounted| uncounted.early.as_ref()) {
            early.say();
        }
    }

    /// Says in which launches candidates could not run: the first of each candidate, once.
    pub(super) fn say_refusals(&self) {
        for planned in &self.planned {
            let Some(launch) = planned.refused.get().filter(|_| !planned.said.swap(true, Ordering::Relaxed))
            else {
                continue;
            };
            let refused = planned.plan.fit(launch, planned.most_lds);
            if let (Err(why), Some(kernel)) = (refused, kernels::get(planned.kernel)) {
                log::problem(&format!("{} is not replaced in a launch: {why}", kernel.name()));
            }
        }
    }

    /// The candidate for this launch; none where it is the original's turn.
    pub(super) fn next(&self, launch: &Launch) -> Option<&Planned> {
        if self.alternate == Alternate::Never {
            return self.planned.first();
        }
        // A kernel may be launched by turns with two geometries: each of them gets the original and the candidates.
        let place = geometry(launch);
        let turn = self.turns[place % GEOMETRIES].fetch_add(1, Ordering::Relaxed);
        let whose = self.alternate.whose(turn, place as u64, self.planned.len() as u32 + 1);
        self.planned.get((whose as usize).checked_sub(1)?)
    }
}

/// A number for the geometry of a launch.
fn geometry(launch: &Launch) -> usize {
    let parts = launch.grid.into_iter().chain(launch.workgroup.map(u32::from));
    let mixed = parts.fold(launch.group_segment.into(), |hash: u64, part| mix(hash ^ u64::from(part)));
    (mixed >> 32) as usize
}
