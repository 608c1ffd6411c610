//! CUDA_INJECTION64_PATH: which tool the driver loads in the first cuInit. Where that is another than the recorder, the recorder stays out.

use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::environment::put;
use rpd_preload::library::own_path;
use rpd_transport::source::Loading;

static IS_ANOTHERS: AtomicBool = AtomicBool::new(false);

/// The recorder is loaded, and has the driver load it, unless the user names another tool. Who starts a recording from outside wants it whatever
/// else observes the process.
pub(super) fn prepare(at: Loading) {
    let tool = std::env::var_os("CUDA_INJECTION64_PATH").filter(|tool| !tool.is_empty());
    match (tool, own_path()) {
        _ if at.by_remote => {}
        (None, None) => {}
        (None, Some(own)) => put(c"CUDA_INJECTION64_PATH", own),
        (Some(tool), own) => {
            let is_own = own.is_some_and(|own| tool.as_encoded_bytes() == own.to_bytes());
            IS_ANOTHERS.store(!is_own, Ordering::Relaxed);
        }
    }
}

/// The driver calls the recorder, so it was named, by whatever path.
pub(super) fn happened() {
    IS_ANOTHERS.store(false, Ordering::Relaxed);
}

/// Whether the driver is to load another tool, which has its way.
pub(super) fn is_anothers() -> bool {
    IS_ANOTHERS.load(Ordering::Relaxed)
}
