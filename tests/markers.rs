//! Markers of other APIs than the recorder's own: what programs say through roctx and NVTX, by every way they find it.

mod nvtx;
mod roctx;
mod shipped;

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::harness::{Dir, recorder, tool};

/// A file of tests/programs/markers.
fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/markers").join(name)
}

/// Compiles a source of tests/programs/markers into `dir`.
fn compile(dir: &Dir, source_name: &str, output: &str, options: &[&str]) -> PathBuf {
    let (source, output) = (source(source_name), dir.path(output));
    let mut arguments = vec!["-O2".to_string(), source.display().to_string(), "-o".into()];
    arguments.push(output.display().to_string());
    arguments.extend(options.iter().map(ToString::to_string));
    tool("cc", &arguments);
    output
}

/// The directory of our own libroctx64.so, linked as `make build` does it.
fn shipped() -> PathBuf {
    static MADE: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let release = recorder().parent().unwrap().to_path_buf();
        crate::harness::make(&["roctx"]);
        release.join("roctx")
    };
    MADE.get_or_init(make).clone()
}

/// Rows of markers: text, thread, start, end; in the order of their beginnings, the longer first.
fn markers(dir: &Dir) -> Vec<(String, u32, i64, i64)> {
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let sql =
        "select args, tid, start, end from api where apiName = 'UserMarker' order by start, end desc, id";
    trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
}
