//! Our own libroctx64.so, for programs on machines without AMD's: found by name, with AMD's version node, and in front of a real one
//! where somebody puts it there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::roctx::{FORWARDED, RETURNED, assert_recorded, linked, opening, other};
use super::{markers, shipped};
use crate::harness::{Dir, Loading, Run, program, recorder};

/// A search path.
fn path(folders: &[PathBuf]) -> OsString {
    std::env::join_paths(folders).unwrap()
}

/// The linked program and, away from it, the library that it was linked with.
fn linked_away(dir: &Dir) -> (PathBuf, PathBuf) {
    let program = linked(dir);
    let away = dir.path("away");
    std::fs::create_dir(&away).unwrap();
    std::fs::rename(dir.path("libroctx64.so.4"), away.join("libroctx64.so.4")).unwrap();
    (program, away)
}

#[test]
fn without_a_recorder_it_returns_what_amds_does() {
    let dir = Dir::new();
    let (program, _) = linked_away(&dir);
    // Silent: the loader finds the version node it looks for.
    let ran = Run::new(&dir, program).env("LD_LIBRARY_PATH", shipped()).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, RETURNED, "{ran}");
    for name in
        ["libroctx64.so", "libroctx64.so.4", "librocprofiler-sdk-roctx.so", "librocprofiler-sdk-roctx.so.1"]
    {
        let ran = Run::new(&dir, opening(&dir)).arg(name).env("LD_LIBRARY_PATH", shipped()).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, RETURNED, "{name}: {ran}");
    }
    assert!(!dir.path("trace.rpd").exists());
}

#[test]
fn linked_and_opened_programs_are_recorded() {
    let dir = Dir::new();
    let (program, _) = linked_away(&dir);
    for run in [Run::new(&dir, program), Run::new(&dir, opening(&dir)).arg("libroctx64.so")] {
        let ran = run.env("LD_LIBRARY_PATH", shipped()).recorded(Loading::Preload).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, RETURNED, "{ran}");
        assert_recorded(&dir);
        std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    }
}

#[test]
fn rpd_record_puts_it_on_the_path() {
    shipped();
    let dir = Dir::new();
    let ran = Run::new(&dir, opening(&dir)).arg("libroctx64.so").recorded(Loading::RpdRecord).run();
    assert_eq!(ran.expect(0).stdout, RETURNED, "{ran}");
    assert_recorded(&dir);
    let dir = Dir::new();
    let script = "import ctypes; roctx = ctypes.CDLL('libroctx64.so'); print(roctx.roctxRangePushA(b'by ctypes'), roctx.roctxRangePop())";
    let ran = Run::new(&dir, "python3").arg("-c").arg(script).recorded(Loading::RpdRecord).run();
    assert_eq!(ran.expect(0).stdout, "0 0\n", "{ran}");
    assert_eq!(markers(&dir).len(), 1);
}

#[test]
fn rpd_record_leaves_the_path_alone_where_there_is_a_real_one() {
    let dir = Dir::new();
    other(&dir);
    let here = dir.path("").display().to_string();
    for (before, after) in [("/no/such", format!("/no/such:{}", shipped().display())), (&*here, here.clone())]
    {
        let run =
            Run::new(&dir, program("control")).arg("env=LD_LIBRARY_PATH").env("LD_LIBRARY_PATH", before);
        let ran = run.recorded(Loading::RpdRecord).run();
        assert_eq!(ran.expect(0).stdout, format!("{after}\n"), "{ran}");
    }
}

#[test]
fn in_front_of_a_real_one_each_call_arrives_there_once() {
    let dir = Dir::new();
    let (program, away) = linked_away(&dir);
    let search = path(&[shipped(), away]);
    let runs = || [Run::new(&dir, &program), Run::new(&dir, opening(&dir)).arg("libroctx64.so")];
    for run in runs() {
        let ran = run.env("LD_LIBRARY_PATH", &search).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, FORWARDED, "{ran}");
    }
    for run in runs() {
        let ran = run.env("LD_LIBRARY_PATH", &search).recorded(Loading::Preload).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, FORWARDED, "{ran}");
        assert_recorded(&dir);
        std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    }
}

#[test]
fn a_recorder_that_comes_later_gets_the_calls_from_then_on() {
    let dir = Dir::new();
    let script = "\
import ctypes, sys
roctx = ctypes.CDLL('libroctx64.so')
roctx.roctxMarkA(b'before')
from rpdTracerControl import rpdTracerControl
with rpdTracerControl():
    roctx.roctxMarkA(b'after')
    roctx.roctxRangeStartA(b'left open')
";
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("python");
    let run = Run::new(&dir, "python3")
        .arg("-c")
        .arg(script)
        .env("PYTHONPATH", sources)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    run.env("RPD_TRACER_PATH", recorder()).env("LD_LIBRARY_PATH", shipped()).run().expect(0).expect_silent();
    let texts: Vec<_> = markers(&dir).into_iter().map(|(text, ..)| text).collect();
    assert_eq!(texts, ["after", "left open"]);
}
