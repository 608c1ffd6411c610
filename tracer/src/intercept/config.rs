//! What the user asked for: logduration's variables, and those of the recorder for what logduration did not have.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use regex::Regex;
use rpd_transport::env::Env;

use super::ON;
use super::choice::Alternate;

/// See the module.
pub(super) struct Config {
    /// The directory with the candidates.
    pub(super) cache: PathBuf,
    /// Which kernels may be replaced, by their demangled names.
    pub(super) kernels: Option<Regex>,
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
    let kernels = env.text("LOGDUR_FILTER").and_then(|text| {
        let text = text.to_string_lossy().into_owned();
        let regex = Regex::new(&text);
        if regex.is_err() {
            env.complain(format!(
                "LOGDUR_FILTER={text} is not a regular expression; every kernel may be replaced"
            ));
        }
        regex.ok()
    });
    let Some(cache) = env.text("LOGDUR_KERNEL_CACHE").map(PathBuf::from) else { return };
    // The program may change its working directory.
    let cache = std::path::absolute(&cache).unwrap_or(cache);
    if CONFIG.set(Config { cache, kernels, alternate }).is_ok() {
        ON.store(true, Ordering::Relaxed);
    }
}
