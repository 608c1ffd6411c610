//! `rpd record`, `rpd info` and `rpd top` on what really was recorded.

use serde_json::Value;

use crate::harness::{Dir, Expected, Loading, Ran, Run, Trace, program, rpd, tool};

/// `rpd` with these arguments, in the directory.
fn run(dir: &Dir, arguments: &[&str]) -> Ran {
    arguments.iter().fold(Run::new(dir, rpd()), |run, argument| run.arg(*argument)).run()
}

#[track_caller]
fn summary(ran: &Ran) -> &str {
    ran.stderr
        .lines()
        .last()
        .and_then(|line| line.strip_prefix("rpd: "))
        .unwrap_or_else(|| panic!("no summary{ran}"))
}

/// The summary names what the log has.
#[track_caller]
fn check_summary(ran: &Ran, expected: &Expected, times: usize) {
    let counts =
        [(expected.kernels(), "kernels"), (expected.copies(), "copies"), (expected.fills(), "fills")];
    let counts: Vec<_> = counts.iter().map(|(n, what)| format!("{} {what}", n * times)).collect();
    let begin = format!("trace.rpd: {}, 0 records lost, ", counts.join(", "));
    assert!(summary(ran).starts_with(&begin) && summary(ran).ends_with(" s recorder CPU"), "{begin}{ran}");
}

#[test]
fn numbers_of_the_summary_are_those_of_the_file() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::RpdRecord).run();
    let expected = Expected::of(&dir.logs()[0].1);
    ran.expect(0);
    check_summary(&ran, &expected, 1);
    expected.assert_equals(&dir.trace("trace.rpd"));
}

#[test]
fn a_second_recording_is_refused_appended_or_replaces() {
    let dir = Dir::new();
    let record = || Run::new(&dir, program("graph")).recorded(Loading::RpdRecord);
    record().run().expect(0);
    let expected = Expected::of(&dir.logs()[0].1);
    let refused = record().run();
    refused.expect(1);
    assert_eq!(refused.stdout, "", "the program has not run{refused}");
    assert!(refused.stderr.contains("--append") && refused.stderr.contains("--force"), "{refused}");
    assert_eq!(dir.trace("trace.rpd").session_count(), 1);
    // What was recorded by this run, not what is in the file.
    let appended = record().record_option("--append").run();
    appended.expect(0);
    check_summary(&appended, &expected, 1);
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), trace.number("select count(*) from dispatch")), (2, 2 * 1005));
    trace.check_integrity();
    record().record_option("--force").run().expect(0);
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.session_count(), trace.number("select count(*) from dispatch")), (1, 1005));
}

#[test]
fn without_a_start_nothing_is_recorded() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::RpdRecord).record_option("--no-start").run();
    ran.expect(0);
    assert!(
        summary(&ran).starts_with("trace.rpd: 0 kernels") && summary(&ran).contains("rpdstart()"),
        "{ran}"
    );
    let dir = Dir::new();
    let acts = ["mark=a", "start", "mark=b"];
    let control = acts.iter().fold(Run::new(&dir, program("control")), |run, act| run.arg(*act));
    control.recorded(Loading::RpdRecord).record_option("--no-start").run().expect(0);
    let marks = dir.trace("trace.rpd").texts("select args from api");
    assert_eq!(marks, ["b"]);
}

#[test]
fn an_empty_trace_is_explained() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("noop")).recorded(Loading::RpdRecord).run();
    ran.expect(0);
    assert!(summary(&ran).contains("no HSA runtime") || summary(&ran).contains("GPU runtime"), "{ran}");

    let dir = Dir::new();
    tool(
        "cc",
        &[
            "-static".into(),
            "-x".into(),
            "c".into(),
            source("noop.c"),
            "-o".into(),
            dir.path("static").into(),
        ],
    );
    let ran = Run::new(&dir, dir.path("static")).recorded(Loading::RpdRecord).run();
    ran.expect(0);
    assert!(summary(&ran).contains("static"), "{ran}");
}

fn source(name: &str) -> std::ffi::OsString {
    format!("{}/../fixtures/programs/{name}", env!("CARGO_MANIFEST_DIR")).into()
}

/// The trace of the demo on two GPUs, and what the device did.
fn demo(dir: &Dir) -> (Trace, Expected) {
    Run::new(dir, program("demo")).gpus(2).recorded(Loading::RpdRecord).run().expect(0);
    (dir.trace("trace.rpd"), Expected::of(&dir.logs()[0].1))
}

#[test]
fn what_tools_tell_of_the_demo() {
    let dir = Dir::new();
    let (trace, expected) = demo(&dir);
    trace.check_integrity();
    let ops = expected.kernels() + expected.copies() + expected.fills();

    let info = run(&dir, &["info", "trace.rpd", "--json"]);
    let info: Value = serde_json::from_str(&info.expect(0).stdout).unwrap();
    let operations = info["operations"].as_array().unwrap();
    for (kind, count) in
        [("kernel", expected.kernels()), ("copy", expected.copies()), ("fill", expected.fills())]
    {
        let rows = operations.iter().filter(|row| row["kind"] == kind);
        let sum: u64 = rows.map(|row| row["count"].as_u64().unwrap()).sum();
        assert_eq!(sum as usize, count, "{kind}: {info:#}");
    }
    assert!(run(&dir, &["info", "trace.rpd"]).expect(0).stdout.contains("gfx900"));

    let top = run(&dir, &["top", "trace.rpd", "--json"]);
    let top: Value = serde_json::from_str(&top.expect(0).stdout).unwrap();
    let rows = top.as_array().unwrap();
    let calls: u64 = rows.iter().map(|row| row["calls"].as_u64().unwrap()).sum();
    assert_eq!(calls as usize, ops, "{top:#}");
    let saxpy = rows.iter().find(|row| row["name"].as_str().unwrap().starts_with("saxpy(")).unwrap();
    assert_eq!(saxpy["calls"], 2 * (2 * 10 + 200), "{top:#}");

    // The tools that everybody has.
    let file = trace.path.display().to_string();
    let count = "select count(*) from rocpd_op";
    assert_eq!(tool("sqlite3", &[&file, count]).trim(), ops.to_string());
    let script = format!("import sqlite3; print(sqlite3.connect({file:?}).execute({count:?}).fetchone()[0])");
    assert_eq!(tool("python3", &["-c", &script]).trim(), ops.to_string());
    let top = tool("sqlite3", &[&file, "select sum(TotalCalls) from top"]);
    assert_eq!(top.trim(), ops.to_string(), "the view top");
    let busy = tool("sqlite3", &[&file, "select count(*) from busy where Busy > 0"]);
    assert_eq!(busy.trim(), "2", "GPUs in the view busy");
}
