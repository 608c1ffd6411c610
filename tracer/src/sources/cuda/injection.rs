//! CUDA_INJECTION64_PATH: which tool the driver loads in the first cuInit. Where that is another than the recorder, the recorder stays out.

use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::cuda_injection::{Named, claim};
use rpd_preload::library::own_path;
use rpd_transport::source::Loading;

/// The loader of rpdRemote calls the recorder when the driver calls it.
const LOADER: &str = "librpd_remote.so";

static IS_ANOTHERS: AtomicBool = AtomicBool::new(false);

/// The recorder is loaded, and has the driver load it, unless the user names another tool. Who starts a recording from outside wants it whatever
/// else observes the process.
pub(super) fn prepare(at: Loading) {
    if let Some(own) = own_path().filter(|_| !at.by_remote) {
        IS_ANOTHERS.store(claim(own, &[LOADER]) == Named::Another, Ordering::Relaxed);
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
