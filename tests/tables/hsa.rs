//! HSA's tables of eight versions, by OnLoad and by rocprofiler_set_api_table.

use std::path::PathBuf;

use super::{compile, file};
use crate::harness::{Dir, Loading, Ran, Run};

/// Entries that are replaced when the tables come by OnLoad; as registered tables two more, which say when the runtime ends.
const VERSIONS: [(&str, u32); 8] = [
    ("5.2", 19),
    ("5.5", 19),
    ("5.6", 20),
    ("6.0", 20),
    ("6.1", 20),
    ("6.2", 20),
    ("2025-08", 20),
    ("2026-08", 23),
];
/// Dispatches that hsa.c submits in any version.
const DISPATCHES: u32 = 492;

fn list(version: &str) -> PathBuf {
    file("fixtures/tables").join(format!("hsa-{version}.txt"))
}

/// Plays that version's runtime in `dir`, offering in these ways in turn.
fn offer(dir: &Dir, version: &str, origins: &str, cut: Option<&str>) -> Ran {
    let program = dir.path("hsa");
    let program = if program.exists() { program } else { compile(dir, "hsa.c", "hsa", &["-ldl"]) };
    let run = Run::new(dir, program).arg(list(version)).arg(origins).recorded(Loading::Preload);
    let run = run.env("RPDT_FILENAME", format!("{version}-{origins}.rpd"));
    match cut {
        Some(cut) => run.arg(format!("cut={cut}")).run(),
        None => run.run(),
    }
}

#[track_caller]
fn assert_recorded(dir: &Dir, version: &str, origins: &str, dispatches: u32, copies: u32) {
    let trace = dir.trace(&format!("{version}-{origins}.rpd"));
    // Not check_integrity: kernels of no code object have none to refer to.
    assert_eq!(trace.texts("pragma integrity_check"), ["ok"]);
    let count = |what: &str| trace.number(&format!("select count(*) from op where opType like '{what}%'"));
    assert_eq!((count("Kernel"), count("Copy")), (dispatches.into(), copies.into()), "{version} {origins}");
    // The n-th packet of a batch has a grid of n workgroups: none is mixed up with another.
    let odd = "select count(*) from dispatch where gridX != 1 and (gridX - 1) % 3 = 2";
    assert_eq!(trace.number(odd), 0, "{version} {origins}: a barrier became a dispatch");
    // A batch of five copies has one signal.
    let lost: Vec<_> = trace.lost().into_iter().map(|(fact, count)| format!("{fact} {count}")).collect();
    match version {
        "2026-08" => assert!(lost.len() == 1 && lost[0].ends_with("::shared_signal 5"), "{lost:?}"),
        _ => assert!(lost.is_empty(), "{lost:?}"),
    }
}

/// The newest runtime has calls whose operations cannot be recorded.
#[track_caller]
fn assert_said(ran: &Ran, version: &str) {
    if version != "2026-08" {
        ran.expect_silent();
        return;
    }
    let said = ran.stderr.contains("counted queues of the HSA runtime: their kernels are not recorded");
    assert!(said && ran.stderr.lines().count() == 1, "{ran}");
}

#[test]
fn every_version_by_every_table() {
    let dir = Dir::new();
    for (version, hooks) in VERSIONS {
        let newest = version == "2026-08";
        let described = if newest { "described 4\n" } else { "" };
        // Copies on a chosen engine came with 5.6. One more dispatch runs between two hsa_shut_down.
        let (copies, more) = (if hooks > 19 { 2 } else { 1 }, if newest { 4 } else { 0 });
        for (origins, answers, hooks, dispatches) in [
            ("tool", "", hooks, DISPATCHES),
            ("register", "register 0\nunknown name 0\n", hooks + 2, DISPATCHES + 1),
            ("tool,register", "register 0\nunknown name 0\n", hooks, DISPATCHES),
            ("register,tool", "register 0\nunknown name 0\n", hooks + 2, DISPATCHES + 1),
        ] {
            let ran = offer(&dir, version, origins, None);
            let expected = format!("{answers}dispatches {DISPATCHES}\n{described}hooks {hooks}\n");
            assert_eq!(ran.expect(0).stdout, expected, "{version} {origins}{ran}");
            assert_said(&ran, version);
            assert_recorded(&dir, version, origins, dispatches + more, copies);
        }
    }
}

#[test]
fn every_function_whose_calls_are_recorded_is_called_as_it_was() {
    let dir = Dir::new();
    let program = compile(&dir, "hsa.c", "hsa", &["-ldl"]);
    // All functions that the tables have.
    for (version, functions) in [
        ("5.2", 173),
        ("5.5", 176),
        ("5.6", 180),
        ("6.0", 192),
        ("6.1", 193),
        ("6.2", 195),
        ("2025-08", 199),
        ("2026-08", 216),
    ] {
        for (origin, more) in [("tool", 1), ("register", 2)] {
            let run = Run::new(&dir, &program).arg(list(version)).arg(origin).recorded(Loading::Preload);
            let trace = format!("{version}-{origin}.rpd");
            let ran = run.env("RPDT_FILENAME", &trace).env("RPDT_HSA_APIS", "all").run();
            ran.expect(0);
            assert_said(&ran, version);
            assert!(ran.stdout.ends_with(&format!("hooks {functions}\n")), "{version} {origin}{ran}");
            // Two of them are called twice.
            let rows = dir.trace(&trace).number("select count(*) from libraryCall where domain = 'hsa'");
            assert_eq!(rows, functions + more, "{version} {origin}");
        }
    }
}

#[test]
fn a_table_that_is_too_short_is_left_alone() {
    let dir = Dir::new();
    for (version, cut, missing) in [
        ("5.2", "AmdExtTable:304", "intercept_register"),
        ("5.5", "AmdExtTable:264", "amd_signal_create"),
        ("2025-08", "CoreApiTable:976", "executable_load_agent_code_object"),
        ("2026-08", "AmdExtTable:16", "set_profiler_enabled"),
    ] {
        for (origin, answers) in [("tool", ""), ("register", "register 1\nunknown name 0\n")] {
            let ran = offer(&dir, version, origin, Some(cut));
            assert_eq!(ran.expect(0).stdout, format!("{answers}hooks 0\n"), "{version} {cut}{ran}");
            let said = format!("this HSA runtime has no {missing}: kernels and copies are not recorded\n");
            assert!(ran.stderr.ends_with(&said) && ran.stderr.lines().count() == 1, "{version} {cut}{ran}");
        }
    }
}

#[test]
fn a_second_runtime_in_the_process_is_left_alone() {
    let dir = Dir::new();
    let ran = offer(&dir, "6.2", "tool,copy", None);
    let expected = format!("register 1\nunknown name 0\ndispatches {DISPATCHES}\nhooks 20\n");
    assert_eq!(ran.expect(0).stdout, expected, "{ran}");
    assert!(ran.stderr.contains("a second HSA runtime in this process"), "{ran}");
    assert_recorded(&dir, "6.2", "tool,copy", DISPATCHES, 2);
}

#[test]
fn entries_at_the_end_of_a_table_of_unknown_size_are_not_guessed() {
    // The same table, said to end behind hsa_amd_queue_create: another version, where that entry may be another function.
    let dir = Dir::new();
    let ran = offer(&dir, "2026-08", "tool", Some("AmdExtTable:712"));
    ran.expect(1);
    assert!(ran.stderr.contains("hsa_amd_queue_create is not replaced"), "{ran}");
}
