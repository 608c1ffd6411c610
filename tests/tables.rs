//! Tables that no runtime of the distribution offers: API tables of every version known, offered to the recorder by programs that play the
//! library they belong to. Every entry that is replaced must call its original with what it was called with.

mod callbacks;
mod chain;
mod hip;
mod hsa;
mod roctx;

use std::path::{Path, PathBuf};

use crate::harness::{Dir, tool};

/// A file of the repository.
fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(name)
}

/// Compiles a source of tests/programs/tables into `dir`.
fn compile(dir: &Dir, source: &str, output: &str, options: &[&str]) -> PathBuf {
    let (source, output) = (file("tests/programs/tables").join(source), dir.path(output));
    let mut arguments = vec!["-O2".to_string(), "-Wall".into(), "-Wextra".into(), "-Werror".into()];
    arguments.extend([source.display().to_string(), "-o".into(), output.display().to_string()]);
    arguments.extend(options.iter().map(ToString::to_string));
    tool("cc", &arguments);
    output
}
