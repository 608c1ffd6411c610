//! The Python front, run by the real python3: rpdTracerControl as programs use it, the rocpd modules, the package that pip makes.

mod control;
mod package;
mod rocpd;

use std::path::{Path, PathBuf};

use crate::harness::{Dir, Run, aql_code_object, recorder, rpd};

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The Python sources.
fn sources() -> PathBuf {
    root().join("python")
}

/// `python3`, with the sources on its path, without the recorder.
fn python(dir: &Dir) -> Run<'_> {
    // Fronts look for the command where it is built.
    rpd();
    Run::new(dir, "python3")
        .env("PYTHONPATH", sources())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("RPD_TRACER_PATH", recorder())
}

/// A scene of tests/programs/python/scenes.py.
fn scene<'a>(dir: &'a Dir, name: &str) -> Run<'a> {
    let script = root().join("tests/programs/python/scenes.py");
    python(dir).arg(script).arg(name).env("CODE_OBJECT", aql_code_object("gfx900"))
}
