//! What the user asked for: logduration's variables, and those of the recorder for what logduration did not have.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use rpd_transport::env::Env;

use super::ON;
use super::choice::Alternate;

/// See the module.
pub(super) struct Config {
    /// The directory with the candidates.
    pub(super) cache: PathBuf,
    /// The file that says of which libraries kernels may be replaced.
    pub(super) libraries: Option<PathBuf>,
    /// Whether the original and the candidates run by turns.
    pub(super) alternate: Alternate,
}

static CONFIG: OnceLock<Config> = OnceLock::new();

/// What was asked for; nothing before [`read`], or without a cache.
pub(super) fn get() -> Option<&'static Config> {
    CONFIG.get()
}

/// Reads the variables.
pub(crate) fn read(env: &mut Env<'_>) {
    let alternate = Alternate::read(env);
    // The program may change its working directory.
    let path = |name| {
        let path = env.text(name).map(PathBuf::from)?;
        Some(std::path::absolute(&path).unwrap_or(path))
    };
    let Some(cache) = path("LOGDUR_KERNEL_CACHE") else { return };
    let libraries = path("LOGDUR_LIBRARY_FILTER");
    if CONFIG.set(Config { cache, libraries, alternate }).is_ok() {
        ON.store(true, Ordering::Relaxed);
    }
}
