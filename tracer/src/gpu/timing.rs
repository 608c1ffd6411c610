//! The source that times kernels and copies: the HSA runtime's queues or HIP's own records of its commands. One of them in a
//! process, never both: a copy whose signal the recorder watches has no times for HIP, and whatever both timed would be in the
//! file twice.

use std::sync::atomic::{AtomicU8, Ordering};

use rpd_transport::env::Env;

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

const ALL: [Timing; 2] = [Timing::Hsa, Timing::Hip];

/// RPDT_TIMING; 0 for whatever can.
static WANTED: AtomicU8 = AtomicU8::new(0);
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// Reads RPDT_TIMING.
pub(crate) fn configure(env: &mut Env<'_>) {
    let wanted = env.choice("RPDT_TIMING", ALL.map(Timing::name)).map_or(0, |place| ALL[place] as u8);
    WANTED.store(wanted, Ordering::Relaxed);
}

/// What RPDT_TIMING asks for.
pub(crate) fn wanted() -> Option<Timing> {
    of(&WANTED)
}

fn of(place: &AtomicU8) -> Option<Timing> {
    ALL.into_iter().find(|timing| *timing as u8 == place.load(Ordering::Relaxed))
}

/// What this process is timed by; nothing before something could be.
pub(crate) fn chosen() -> Option<Timing> {
    of(&CHOSEN)
}

/// The HSA runtime offers its tables: whether its queues are to be intercepted.
pub(crate) fn by_hsa() -> bool {
    wanted() != Some(Timing::Hip) && choose(Timing::Hsa)
}

/// HIP could record its commands: whether it is to do so. `late`: nothing else can.
pub(crate) fn by_hip(late: bool) -> bool {
    match wanted() {
        Some(Timing::Hsa) => false,
        Some(Timing::Hip) => choose(Timing::Hip),
        None => late && choose(Timing::Hip),
    }
}

fn choose(timing: Timing) -> bool {
    let first = CHOSEN.compare_exchange(0, timing as u8, Ordering::Relaxed, Ordering::Relaxed);
    first.is_ok() || first == Err(timing as u8)
}
