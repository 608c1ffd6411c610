//! Code objects out of source in assembly, by clang.

use std::fs;
use std::process::Command;

/// The code object for gfx906 that source in assembly makes.
///
/// # Panics
/// When it makes none.
pub(crate) fn assemble(source: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let (from, to) = (dir.path().join("source.s"), dir.path().join("object.co"));
    fs::write(&from, source).expect("a file");
    let mut command = Command::new("clang-15");
    command.args(["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", "-mcode-object-version=4", "-nogpulib"]);
    let output = command.arg("-o").args([&to, &from]).output();
    let output =
        output.unwrap_or_else(|error| panic!("cannot run clang-15 ({error}); install the package clang-15"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(to).expect("an object")
}
