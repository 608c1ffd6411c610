//! What the user asked for: logduration's variables, and those of the recorder for what logduration did not have.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rpd_transport::env::Env;

use super::alternate::Alternate;
use super::counting::CountingConfig;
use super::probe::ProbeConfig;
use super::validate::ValidationConfig;

pub(super) struct CacheConfig {
    /// The directory with the candidates. None where instrumented kernels of the application itself are all that was asked for.
    pub(super) cache: Option<PathBuf>,
    /// The file that says of which libraries kernels may be replaced.
    pub(super) libraries: Option<PathBuf>,
    /// Whether the original and the candidates run by turns.
    pub(super) alternate: Alternate,
    /// Whose results are compared.
    pub(super) validation: Option<ValidationConfig>,
    /// How kernels are instrumented.
    pub(super) probe: Option<ProbeConfig>,
    /// How their basic blocks are counted.
    pub(super) counting: Option<CountingConfig>,
}

/// Whether a kernel cache or instrumented kernels were asked for, and the recorder can make use of them.
pub(super) static ON: AtomicBool = AtomicBool::new(false);
static CONFIG: OnceLock<CacheConfig> = OnceLock::new();

/// What was asked for; nothing before [`read`], or without a cache.
pub(super) fn get() -> Option<&'static CacheConfig> {
    CONFIG.get()
}

pub(crate) fn read(env: &mut Env<'_>) {
    let alternate = Alternate::read(env);
    let validation = ValidationConfig::read(env);
    let probe = ProbeConfig::read(env);
    let mut counting = CountingConfig::read(env);
    let replaces = env.text("LOGDUR_KERNEL_CACHE").is_some() || probe.is_some();
    if counting.is_some() && replaces {
        env.complain("RPDT_COUNT_BLOCKS: blocks are not counted where other kernels run in the place of the program's own".into());
        counting = None;
    }
    // The program may change its working directory.
    let path = |name| {
        let path = env.text(name).map(PathBuf::from)?;
        Some(std::path::absolute(&path).unwrap_or(path))
    };
    let cache = path("LOGDUR_KERNEL_CACHE");
    if cache.is_none() && probe.is_none() && counting.is_none() {
        return;
    }
    let libraries = path("LOGDUR_LIBRARY_FILTER");
    let config = CacheConfig { cache, libraries, alternate, validation, probe, counting };
    if CONFIG.set(config).is_ok() {
        ON.store(true, Ordering::Relaxed);
    }
}
