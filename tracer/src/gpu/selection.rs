//! Which kernels the user means (LOGDUR_FILTER): those that may be replaced, and those in the log of durations.

use std::sync::OnceLock;

use regex::Regex;
use rpd_transport::env::Env;

static SELECTION: OnceLock<Regex> = OnceLock::new();

/// Reads the variable.
pub(crate) fn configure(env: &mut Env<'_>) {
    let Some(text) = env.text("LOGDUR_FILTER") else { return };
    let text = text.to_string_lossy();
    match Regex::new(&text) {
        Ok(regex) => {
            let _ = SELECTION.set(regex);
        }
        Err(_) => {
            env.complain(format!("LOGDUR_FILTER={text} is not a regular expression; it selects every kernel"))
        }
    }
}

/// Whether a kernel of that demangled name is meant.
pub(crate) fn has(name: &str) -> bool {
    SELECTION.get().is_none_or(|selection| selection.is_match(name))
}
