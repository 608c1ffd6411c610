//! The tables of rocprofiler-sdk-roctx: markers of programs that open the library themselves, and of those that link it.

use super::compile;
use crate::harness::{Dir, Loading, Run};

/// What roctx.c prints: each call arrives once, and the library's own values come back.
const SAID: &str = "offer 0\noffer 0\n<mark an instant>\n<push a range>\npush 40\n<pop>\npop 41\n<start an open range>\nstart 4200\n\
     <pause 0>\npause 45\n<mark in a pause>\n<resume 0>\nresume 46\n<stop 4200>\nthread 44 43\n<name main>\nname 47\n";

fn check(opened: bool) {
    let dir = Dir::new();
    let soname = "-Wl,-soname,librocprofiler-sdk-roctx.so.1";
    let library = compile(
        &dir,
        "roctx_library.c",
        "librocprofiler-sdk-roctx.so.1",
        &["-shared", "-fPIC", soname, "-ldl"],
    );
    let path = library.display().to_string();
    let mut options = vec!["-Wl,--no-as-needed", "-ldl"];
    if !opened {
        options.push(&path);
    }
    let program = compile(&dir, "roctx.c", "roctx", &options);
    let mut run = Run::new(&dir, program).env("LD_LIBRARY_PATH", dir.path("")).recorded(Loading::Preload);
    if opened {
        run = run.arg(&library);
    }
    let ran = run.run();
    assert_eq!(ran.expect(0).expect_silent().stdout, SAID, "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let texts: Vec<String> = trace
        .rows("select args from api where apiName = 'UserMarker' order by start, end desc", |row| row.get(0));
    assert_eq!(
        texts,
        ["an instant", "a range", "an open range", "an open range"],
        "opened: {opened}; a pause parts a range"
    );
}

#[test]
fn markers_of_a_program_that_opens_the_library() {
    check(true);
}

#[test]
fn markers_that_passed_the_recorders_own_symbols_are_recorded_once() {
    check(false);
}
