//! A runtime that was initialised before the recorder came, and never offers its tables: what it says of GPUs and of time.

use std::sync::OnceLock;

use super::agent::Gpus;
use super::inquiry::Inquiry;
use super::time::SystemClock;

/// See the module.
pub(super) struct Late {
    pub(super) gpus: Gpus,
    pub(super) clock: SystemClock,
}

static LATE: OnceLock<Late> = OnceLock::new();

/// The runtime, once [`look`] has found it.
pub(super) fn get() -> Option<&'static Late> {
    LATE.get()
}

/// Whether there is one. To be asked only of a process in which nothing of HSA is being initialised.
pub(super) fn look() -> bool {
    let inquiry = Inquiry::exported().filter(|inquiry| SystemClock::runs(inquiry.system_get_info));
    let Some(inquiry) = inquiry else { return false };
    LATE.get_or_init(|| {
        // HIP takes times of copies, but not every version asks the runtime for them.
        // SAFETY: the runtime's own function, and it is initialised.
        unsafe { (inquiry.async_copy_enable)(true) };
        Late { gpus: Gpus::find(&inquiry), clock: SystemClock::measure(inquiry.system_get_info) }
    });
    true
}
