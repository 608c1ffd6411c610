//! What times kernels and copies: the HSA runtime's queues or HIP's own records of its commands. One of them in a process, never
//! both: a copy whose signal the recorder watches has no times for HIP, and whatever both timed would be in the file twice.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::recorder::Recorder;

/// Where times come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Timing {
    /// Intercepted queues and copies (`hsa`).
    Hsa = 1,
    /// HIP's records of its commands (`hip`).
    Hip = 2,
}

impl Timing {
    /// The word for it, in RPDT_TIMING and in the file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Timing::Hsa => "hsa",
            Timing::Hip => "hip",
        }
    }
}

static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// What this process is timed by; nothing before something could be.
pub(crate) fn chosen() -> Option<Timing> {
    [Timing::Hsa, Timing::Hip].into_iter().find(|timing| *timing as u8 == CHOSEN.load(Ordering::Relaxed))
}

/// The HSA runtime offers its tables: whether its queues are to be intercepted.
pub(crate) fn by_hsa(recorder: &Recorder) -> bool {
    recorder.config.timing != Some(Timing::Hip) && choose(Timing::Hsa)
}

/// HIP could record its commands: whether it is to do so. `late`: nothing else can.
pub(crate) fn by_hip(recorder: &Recorder, late: bool) -> bool {
    match recorder.config.timing {
        Some(Timing::Hsa) => false,
        Some(Timing::Hip) => choose(Timing::Hip),
        None => late && choose(Timing::Hip),
    }
}

fn choose(timing: Timing) -> bool {
    let first = CHOSEN.compare_exchange(0, timing as u8, Ordering::Relaxed, Ordering::Relaxed);
    first.is_ok() || first == Err(timing as u8)
}
