//! What is known of the runtime in this process: its GPUs and its clock, once it has offered its tables or was found.

use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use rpd_transport::recorder;

use super::abi::Agent;
use super::agent::{Gpu, Gpus};
use super::inquiry::Inquiry;
use super::time::SystemClock;

/// See the module. Never freed: hooks may hold it on any thread.
pub(crate) struct Known {
    pub(crate) gpus: Gpus,
    pub(crate) clock: SystemClock,
}

impl Known {
    /// Asks the runtime.
    fn ask(inquiry: &Inquiry) -> Known {
        Known { gpus: Gpus::find(inquiry), clock: SystemClock::measure(inquiry.system_get_info) }
    }
}

/// By the tables that the runtime has offered, in its latest life.
static OFFERED: AtomicPtr<Known> = AtomicPtr::new(ptr::null_mut());
/// Of a runtime that was initialised before the recorder came and offers no tables.
static LATE: OnceLock<Known> = OnceLock::new();

/// The runtime offers its tables.
pub(crate) fn offered(inquiry: &Inquiry) -> &'static Known {
    let known: &'static Known = Box::leak(Box::new(Known::ask(inquiry)));
    OFFERED.store(ptr::from_ref(known).cast_mut(), Ordering::Release);
    known
}

/// It offers none, and was found all the same.
pub(super) fn found_late(inquiry: &Inquiry) {
    LATE.get_or_init(|| {
        // HIP takes times of copies, but not every version asks the runtime for them.
        // SAFETY: the runtime's own function, and it is initialised.
        unsafe { (inquiry.async_copy_enable)(true) };
        Known::ask(inquiry)
    });
}

/// Whether a runtime has offered its tables.
pub(crate) fn is_offered() -> bool {
    !OFFERED.load(Ordering::Acquire).is_null()
}

/// Whether one was found that was there before the recorder.
pub(super) fn is_late() -> bool {
    LATE.get().is_some()
}

fn get() -> Option<&'static Known> {
    // SAFETY: null or a leaked box.
    unsafe { OFFERED.load(Ordering::Acquire).as_ref() }.or_else(|| LATE.get())
}

/// The GPUs of the node that this process sees.
pub(crate) fn gpus() -> &'static [Gpu] {
    get().map_or(&[], |known| known.gpus.all())
}

/// Index among the GPUs of the node of the agent with that handle; nothing for a CPU.
pub(crate) fn gpu_of(agent: u64) -> Option<u32> {
    get()?.gpus.of(Agent(agent)).map(|gpu| gpu.index)
}

/// Index among the GPUs of the node of the one that the driver's topology calls `node`.
pub(crate) fn gpu_of_node(node: u32) -> Option<u32> {
    get()?.gpus.at_node(node).map(|gpu| gpu.index)
}

/// A time of the runtime's system clock as ns of CLOCK_MONOTONIC; nothing before the runtime is known.
pub(crate) fn monotonic(system: u64) -> Option<u64> {
    let clock = &get()?.clock;
    clock.refresh();
    Some(clock.monotonic(system))
}

/// The runtime is there: what is built upon it may be there too.
pub(crate) fn notice() {
    if let Some(recorder) = recorder::get() {
        recorder.setup.sources.iter().for_each(|source| source.noticed());
    }
}
