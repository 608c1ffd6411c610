//! The kernels that the user means (LOGDUR_FILTER): those that may be replaced, and those in the log of durations.

use std::sync::OnceLock;

use rpd_transport::env::Env;
use rpd_transport::recorder::Recorder;

use super::name_pattern::NamePattern;

static SELECTION: OnceLock<NamePattern> = OnceLock::new();

/// Reads the variable.
pub(crate) fn configure(env: &mut Env<'_>) {
    if let Some(pattern) = NamePattern::read(env, "LOGDUR_FILTER", "it selects every kernel") {
        let _ = SELECTION.set(pattern);
    }
}

/// Whether a kernel of that demangled name is meant.
pub(crate) fn has(name: &str) -> bool {
    SELECTION.get().is_none_or(|selection| selection.is_in(name))
}

/// This is a forked child.
pub(crate) fn forked() {
    SELECTION.get().into_iter().for_each(NamePattern::forked);
}

/// The process ends: says that the user means none of its kernels, where it is so.
pub(crate) fn say_if_in_vain(recorder: &Recorder) {
    SELECTION.get().into_iter().for_each(|selection| selection.say_if_in_vain(recorder));
}
