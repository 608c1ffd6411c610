//! The tools of the system that tests use.

use std::ffi::OsStr;
use std::process::Command;

/// Runs a tool and returns its standard output.
///
/// # Panics
/// When the tool is not installed, saying how to install it, or does not end with status 0.
#[track_caller]
pub(crate) fn tool(name: &str, arguments: &[impl AsRef<OsStr>]) -> String {
    // hipcc leaves its directories behind.
    let temporary = tempfile::tempdir().unwrap();
    let mut command = Command::new(name);
    command.args(arguments).env_remove("LD_PRELOAD").env("TMPDIR", temporary.path());
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("cannot run {name}: {error}; `make setup` installs what tests need"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "\n$ {command:?}\n{}\n{stdout}\n{stderr}", output.status);
    stdout
}
