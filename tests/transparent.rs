//! A program's output and exit status are the same with and without the recorder, byte by byte, by every way of loading it;
//! and it records once, however often it is loaded.
//!
//! Nothing is normalised but the one line that `rpd record` itself adds to standard error.

use crate::harness::{Dir, Expected, Loading, Ran, Run, aql_code_object, program};

/// Makes `run` without the recorder, then in every way with it.
#[track_caller]
fn check(run: impl Fn(&Dir) -> Run<'_>) {
    let dir = Dir::new();
    let plain = run(&dir).run();
    plain.expect(0);
    assert_eq!(dir.names(), Vec::<String>::new(), "{plain}");
    for loading in Loading::ALL {
        let dir = Dir::new();
        let ran = run(&dir).recorded(loading).run();
        assert_same(&plain, &ran, loading);
        let logs = dir.logs();
        let trace = dir.trace("trace.rpd");
        assert_eq!(trace.session_count(), 1, "{ran}");
        Expected::of(&logs[0].1).assert_equals(&trace);
        assert_eq!(trace.lost().len(), 0, "{:?}", trace.lost());
    }
}

#[track_caller]
fn assert_same(plain: &Ran, ran: &Ran, loading: Loading) {
    let mut stderr = ran.stderr.clone();
    if loading == Loading::RpdRecord {
        let note = stderr.rfind("rpd: trace.rpd: ").unwrap_or_else(|| panic!("no summary{ran}"));
        assert_eq!(stderr[note..].lines().count(), 1, "{ran}");
        stderr.truncate(note);
    }
    assert_eq!(plain.status, ran.status, "{loading:?}{plain}{ran}");
    assert_eq!(plain.stdout, ran.stdout, "{loading:?}{plain}{ran}");
    assert_eq!(plain.stderr, stderr, "{loading:?}{plain}{ran}");
}

#[test]
fn demo() {
    check(|dir| Run::new(dir, program("demo")).gpus(2));
}

#[test]
fn streams() {
    check(|dir| Run::new(dir, program("streams")).gpus(2));
}

#[test]
fn graph() {
    check(|dir| Run::new(dir, program("graph")));
}

#[test]
fn copies() {
    check(|dir| Run::new(dir, program("copies")).gpus(2));
}

#[test]
fn events() {
    check(|dir| Run::new(dir, program("events")).arg("11000"));
}

#[test]
fn aql() {
    check(|dir| Run::new(dir, program("aql")).arg(aql_code_object("gfx900")).gpus(2));
}

#[test]
fn a_failing_program() {
    // Its own complaint, its own status.
    let run = |dir| Run::new(dir, program("streams")).arg("0");
    let (dir, with) = (Dir::new(), Dir::new());
    let plain = run(&dir).run();
    plain.expect(2);
    assert_same(&plain, &run(&with).recorded(Loading::Preload).run(), Loading::Preload);
}

#[test]
fn markers_without_a_gpu() {
    let plain = Run::new(&Dir::new(), program("marks")).run();
    plain.expect(0);
    for loading in Loading::ALL {
        let dir = Dir::new();
        let ran = Run::new(&dir, program("marks")).recorded(loading).run();
        assert_same(&plain, &ran, loading);
        // Without a GPU runtime nobody reads HSA_TOOLS_LIB.
        assert_eq!(dir.path("trace.rpd").exists(), loading != Loading::ToolsLib, "{ran}");
    }
}
