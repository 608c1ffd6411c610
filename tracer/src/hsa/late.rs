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

/// What may be asked of one. To be asked for only in a process in which nothing of HSA is being initialised.
pub(super) fn inquiry() -> Option<Inquiry> {
    Inquiry::exported().filter(|inquiry| SystemClock::runs(inquiry.system_get_info))
}

/// Whether there is one, which from now on takes times of copies. As [`inquiry`].
pub(super) fn look() -> bool {
    let Some(inquiry) = inquiry() else { return false };
    LATE.get_or_init(|| {
        // HIP takes times of copies, but not every version asks the runtime for them.
        // SAFETY: the runtime's own function, and it is initialised.
        unsafe { (inquiry.async_copy_enable)(true) };
        Late { gpus: Gpus::find(&inquiry), clock: SystemClock::measure(inquiry.system_get_info) }
    });
    true
}
