//! The value of `--libraries`: refused before the command runs where the recorder would leave a part of it out.

use std::env;

use rpd_settings::{library, tip};

/// Variables by which libraries emit ranges of their own, for those who have not set them.
const RANGES: [(&str, &str, &str); 2] = [
    // 2: the line for hipblaslt-bench around each launch.
    ("hipblaslt", "HIPBLASLT_ENABLE_MARKER", "2"),
    ("miopen", "MIOPEN_ENABLE_LOGGING_ROCTX", "1"),
];

/// The libraries whose calls are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LibraryList(Vec<&'static str>);

/// Names with commas between them, or `all`.
pub(crate) fn parse(text: &str) -> Result<LibraryList, String> {
    let (known, unknown) = library::list(text);
    let all = || library::NAMES.into_iter().chain(["all"]);
    let listed = library::NAMES.join(", ");
    match (unknown.first(), known.is_empty()) {
        (Some(wrong), _) => {
            Err(format!("there is no library {wrong:?}{}; there are {listed}", tip(wrong, all())))
        }
        (None, true) => Err(format!("names no library; there are {listed}")),
        (None, false) => Ok(LibraryList(known)),
    }
}

impl LibraryList {
    /// As RPDT_LIBRARIES has them.
    pub(crate) fn variable(&self) -> String {
        self.0.join(",")
    }

    /// What the environment lacks for libraries to emit ranges of their own.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let wanted = RANGES.into_iter().filter(|(library, ..)| self.0.contains(library));
        wanted.filter(|(_, name, _)| env::var_os(name).is_none()).map(|(_, name, value)| (name, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_or_all() {
        let variable = |text| parse(text).map(|libraries| libraries.variable());
        assert_eq!(variable("rccl, rocblas"), Ok("rccl,rocblas".into()));
        assert_eq!(variable("all").map(|all| all.split(',').count()), Ok(library::NAMES.len()));
        assert!(
            variable("rocblass")
                .is_err_and(|why| why.starts_with("there is no library \"rocblass\"; did you mean rocblas?"))
        );
        assert!(variable(",").is_err_and(|why| why.starts_with("names no library; there are rocblas,")));
    }
}
