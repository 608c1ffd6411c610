//! RPDT_LIBRARIES: the libraries whose calls are recorded.

use std::sync::OnceLock;

use rpd_settings::library;
use rpd_transport::env::Env;

use crate::library_call::{self, Library};

static WANTED: OnceLock<Vec<&'static str>> = OnceLock::new();

/// The names that the user gave.
pub(super) fn wanted() -> &'static [&'static str] {
    WANTED.get().map_or(&[], Vec::as_slice)
}

/// Whether calls of `library` are recorded.
pub(super) fn is_wanted(library: Library) -> bool {
    wanted().iter().any(|name| library.names().contains(name))
}

/// Reads the variable.
pub(super) fn configure(env: &mut Env<'_>) {
    let wanted = read(env);
    if !wanted.is_empty() {
        // Now, not at the first call: that may be in a signal handler, or in the child of a fork meanwhile, which would wait for itself.
        library_call::read_description();
    }
    WANTED.get_or_init(|| wanted);
}

fn read(env: &mut Env<'_>) -> Vec<&'static str> {
    let Some(text) = env.text("RPDT_LIBRARIES").filter(|text| text != "none") else { return Vec::new() };
    let text = text.to_string_lossy();
    let (wanted, unknown) = library::list(&text);
    if !unknown.is_empty() {
        env.complain(format!(
            "RPDT_LIBRARIES: {} ignored; it is all, none, or names with commas between them: {}",
            unknown.join(" and "),
            library::NAMES.join(", ")
        ));
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_understood_is_one_line() {
        let read = |value: &str| {
            let get = |name: &str| (name == "RPDT_LIBRARIES").then(|| value.into());
            let mut env = Env::new(&get);
            (read(&mut env), env.complaints().to_vec())
        };
        assert_eq!(read("rccl,rocblas"), (vec!["rccl", "rocblas"], vec![]));
        assert_eq!(read("none"), (vec![], vec![]));
        let (wanted, complaints) = read("rocblas,tensile");
        assert_eq!(wanted, ["rocblas"]);
        assert!(complaints[0].starts_with("RPDT_LIBRARIES: tensile ignored; it is all, none, or names"));
    }
}
