//! `rpd --version`: what the command was built from.

use std::sync::LazyLock;

/// The lines of `rpd --version` behind the command's name.
pub(super) fn long() -> &'static str {
    static LINES: LazyLock<String> = LazyLock::new(lines);
    &LINES
}

fn lines() -> String {
    let commit = match env!("RPD_COMMIT") {
        "" => "commit not known (built outside of a checkout)".to_string(),
        commit => match commit.strip_suffix('+') {
            Some(commit) => format!("commit {commit}, with changes"),
            None => format!("commit {commit}"),
        },
    };
    format!(
        "{}\n{commit}\n{}, {}\nSQLite {}",
        env!("CARGO_PKG_VERSION"),
        env!("RPD_TARGET"),
        env!("RPD_PROFILE"),
        rusqlite::version()
    )
}
