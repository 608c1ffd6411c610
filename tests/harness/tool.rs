//! Commands that tests start: none sees anything of the environment that the tests were started in that would change what is tested, as
//! RPDT_*, HSA_*, LD_PRELOAD, COLUMNS, a locale or a user's ~/.sqliterc would.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::artifacts::newer_rocm;

/// `program` with an environment of its own.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.env_clear().env("PATH", path).env("HOME", "/dev/null").env("LC_ALL", "C.UTF-8");
    command
}

/// Runs a tool of the system and returns its standard output.
///
/// # Panics
/// When the tool is not installed, saying how to install it, or does not end with status 0.
#[track_caller]
pub(crate) fn tool(name: &str, arguments: &[impl AsRef<OsStr>]) -> String {
    // hipcc leaves its directories behind.
    let temporary = tempfile::tempdir().unwrap();
    output(command(name).args(arguments).env("TMPDIR", temporary.path()))
}

/// Runs `make` in the repository, with the environment of whoever started the tests: that is where its cargo is found.
#[track_caller]
pub(crate) fn make(arguments: &[impl AsRef<OsStr>]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut make = Command::new("make");
    make.env_remove("LD_PRELOAD").env_remove("MAKEFLAGS").arg("--silent").arg("-C").arg(root);
    output(make.args(arguments));
}

#[track_caller]
fn output(command: &mut Command) -> String {
    let output = command.output();
    let output =
        output.unwrap_or_else(|error| panic!("{command:?}: {error}; `make setup` installs what tests need"));
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "\n$ {command:?}\n{}\n{stdout}\n{stderr}", output.status);
    stdout
}

/// The LLVM whose tools the tests call, its version and the library's name: those of newer trees know more processors.
pub(crate) fn llvm() -> (&'static str, [&'static str; 2]) {
    let newer = [("21", ["--llvm", "libLLVM.so.21.1"]), ("17", ["--llvm", "libLLVM-17.so.1"])];
    let newer = newer.into_iter().filter(|_| newer_rocm());
    let mut there = newer.filter(|(version, _)| Path::new(&format!("/usr/bin/llvm-mc-{version}")).exists());
    there.next().unwrap_or(("15", ["--llvm", "libLLVM-15.so.1"]))
}

/// One of its tools.
pub(crate) fn llvm_tool(name: &str) -> String {
    format!("{name}-{}", llvm().0)
}

/// The code object for `gfx` of a bundle, for tools that do not read bundles.
pub(crate) fn unbundled(bundle: &Path, gfx: &str) -> PathBuf {
    let object = bundle.with_extension("co");
    let unbundle = [
        "--unbundle".to_string(),
        "--type=o".into(),
        format!("--targets=hipv4-amdgcn-amd-amdhsa--{gfx}"),
        format!("--input={}", bundle.display()),
        format!("--output={}", object.display()),
    ];
    tool("clang-offload-bundler-15", &unbundle);
    object
}
