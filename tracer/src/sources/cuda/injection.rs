//! CUDA_INJECTION64_PATH: which tool the driver loads in the first cuInit. Where that is another than the recorder, the recorder stays out.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_preload::cuda_injection::{Named, claim};
use rpd_preload::library::own_path;
use rpd_preload::stderr;
use rpd_transport::source::Loading;

/// The loader of rpdRemote calls the recorder when the driver calls it.
const LOADER: &str = "librpd_remote.so";

static IS_ANOTHERS: AtomicBool = AtomicBool::new(false);
static ANOTHERS: OnceLock<Tool> = OnceLock::new();

/// The tool that was named when the recorder was loaded.
struct Tool {
    path: String,
    /// The process in which the recorder was loaded.
    process: u32,
    /// Its standard error then.
    stderr: Option<(u64, u64)>,
}

/// The recorder is loaded, and has the driver load it, unless the user names another tool. Who starts a recording from outside wants it whatever
/// else observes the process.
pub(super) fn prepare(at: Loading) {
    if let Some(own) = own_path().filter(|_| !at.by_remote)
        && claim(own, &[LOADER]) == Named::Another
    {
        let tool = std::env::var_os("CUDA_INJECTION64_PATH").unwrap_or_default();
        ANOTHERS.get_or_init(|| Tool {
            path: tool.to_string_lossy().into_owned(),
            process: std::process::id(),
            stderr: stderr::file(),
        });
        IS_ANOTHERS.store(true, Ordering::Relaxed);
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

/// That tool, in the process in which the recorder was loaded (others were forked from it), as long as its standard error is none of the program's
/// own files.
pub(super) fn tool() -> Option<&'static str> {
    let tool = ANOTHERS.get().filter(|_| is_anothers())?;
    (tool.process == std::process::id() && tool.stderr == stderr::file()).then_some(&tool.path)
}
