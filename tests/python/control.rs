//! rpdTracerControl. No scene is run with LD_PRELOAD of the recorder unless it says so.

use super::{python, scene};
use crate::harness::{Dir, Loading, newer_rocm};

/// Grids of the kernels in a trace, in the order of their submission.
fn grids(dir: &Dir, file: &str) -> Vec<i64> {
    let trace = dir.trace(file);
    trace.check_integrity();
    trace.rows("select gridX from dispatch order by start", |row| row.get(0))
}

/// Texts of the markers in a trace, sorted.
fn marks(dir: &Dir, file: &str) -> Vec<String> {
    dir.trace(file).texts("select args from api where apiName = 'UserMarker' order by 1")
}

/// How many sessions have ended well.
fn ended(dir: &Dir, file: &str) -> usize {
    dir.trace(file).metadata("session::%::end_monotonic_ns").len()
}

#[test]
fn sections_by_start_and_stop_and_as_a_context() {
    let dir = Dir::new();
    scene(&dir, "start_stop").run().expect(0).expect_silent();
    assert_eq!(dir.names(), ["own.rpd"]);
    assert_eq!(grids(&dir, "own.rpd"), [2, 4]);
    assert_eq!(marks(&dir, "own.rpd"), ["in a section"]);
    assert_eq!(ended(&dir, "own.rpd"), 1);
}

#[test]
fn loading_the_recorder_when_the_gpu_was_used_already() {
    let dir = Dir::new();
    let ran = scene(&dir, "late").run();
    assert_eq!(ran.expect(0).stderr.lines().count(), usize::from(!newer_rocm()), "{ran}");
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.rows("select gridX from kernel order by start", |row| row.get::<_, i64>(0)), [2, 3]);
    assert_eq!(ended(&dir, "trace.rpd"), 1);
}

#[test]
fn sections_nest() {
    let dir = Dir::new();
    scene(&dir, "nested").run().expect(0).expect_silent();
    assert_eq!(grids(&dir, "trace.rpd"), [1, 2, 3]);
}

#[test]
fn processes_of_multiprocessing_write_one_file() {
    for method in ["spawn", "fork", "forkserver"] {
        let dir = Dir::new();
        let ran = scene(&dir, "processes").arg(method).run();
        assert_eq!(ran.expect(0).expect_silent().stdout, "[0, 0, 0]\n", "{method}: {ran}");
        let mut names = dir.names();
        // The software GPU's memory, of children that end by _exit.
        names.retain(|name| !name.starts_with("simgpu-"));
        assert_eq!(names, ["own.rpd"], "{method}");
        let mut numbers = grids(&dir, "own.rpd");
        numbers.sort_unstable();
        assert_eq!(numbers, [1, 2, 3], "{method}");
        assert_eq!(marks(&dir, "own.rpd"), ["main", "worker 1", "worker 2", "worker 3"], "{method}");
        assert_eq!(dir.trace("own.rpd").session_count(), 4, "{method}");
        assert_eq!(ended(&dir, "own.rpd"), 4, "{method}: each process ends its session");
    }
}

#[test]
fn the_main_process_names_the_file() {
    let dir = Dir::new();
    let ran = scene(&dir, "rename_in_a_process").run();
    assert_eq!(
        ran.expect(0).expect_silent().stdout,
        "the name of the trace is the main process's to change\n"
    );
}

#[test]
fn a_flush_in_the_middle() {
    let dir = Dir::new();
    let ran = scene(&dir, "flush").run();
    assert_eq!(ran.expect(0).expect_silent().stdout, "[1, 2]\n[1, 2, 3]\n");
}

#[test]
fn appending_and_replacing() {
    let dir = Dir::new();
    for _ in 0..2 {
        scene(&dir, "append").run().expect(0).expect_silent();
    }
    assert_eq!(marks(&dir, "own.rpd"), ["appended", "appended"]);
    assert_eq!(dir.trace("own.rpd").session_count(), 2);
    scene(&dir, "replace").run().expect(0).expect_silent();
    assert_eq!(marks(&dir, "own.rpd"), ["alone"]);
    assert_eq!(dir.trace("own.rpd").session_count(), 1);
}

#[test]
fn each_section_in_a_file_of_its_own() {
    let dir = Dir::new();
    scene(&dir, "another_file").run().expect(0).expect_silent();
    assert_eq!(dir.names(), ["1.rpd", "2.rpd", "3.rpd"]);
    assert_eq!(
        [grids(&dir, "1.rpd"), grids(&dir, "2.rpd"), grids(&dir, "3.rpd")],
        [vec![1, 4], vec![2], vec![3]]
    );
    assert_eq!(["1.rpd", "2.rpd", "3.rpd"].map(|file| ended(&dir, file)), [2, 1, 1]);
}

#[test]
fn a_file_removed_and_created_anew_before_each_section() {
    let dir = Dir::new();
    let ran = scene(&dir, "sections_of_a_server").run();
    let rows: Vec<_> = ["[1, 10]", "[2, 20]", "[3, 30]"]
        .map(|grids| format!("{grids} ['launch', 'rpd profile range']\n"))
        .into();
    assert_eq!(ran.expect(0).expect_silent().stdout, rows.concat(), "{ran}");
}

#[test]
fn functions_become_ranges() {
    let dir = Dir::new();
    scene(&dir, "python_trace").run().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    let count = |what: &str| trace.number(&format!("select count(*) from api where {what}"));
    // Four on the main thread, two on the one started later; none after the end, none on the one that ran before.
    assert_eq!(count("apiName = 'deep'"), 6);
    assert_eq!(count("apiName = 'deep' and args like '%/scenes.py:%'"), 6);
    assert_eq!(count("apiName = 'failing'"), 1, "left by an exception");
    assert_eq!(count("apiName = 'annotated'"), 2, "a generator is entered twice");
    assert_eq!(count("apiName like '\\_\\_%' escape '\\' or args like '%rpdTracerControl%'"), 0);
    // The generator's return must not end the range that it has pushed.
    let held = "select count(*) from api a join api b on a.tid = b.tid and a.args = 'held by a generator' \
         and b.apiName = '<genexpr>' and a.start <= b.start and b.end <= a.end";
    assert_eq!(trace.number(held), 3, "a generator expression of two is entered three times");
    assert_eq!(count("end < start"), 0);
}

#[test]
fn skipping_the_load_is_doing_nothing() {
    let dir = Dir::new();
    let ran = scene(&dir, "skip_load").run();
    assert_eq!(ran.expect(0).expect_silent().stdout, "None False\n");
    // The recorder is there: it works.
    let ran = scene(&dir, "skip_load").recorded(Loading::Preload).run();
    ran.expect(0).expect_silent();
    assert_eq!(marks(&dir, "trace.rpd"), ["never"]);
}

#[test]
fn under_rpd_record_its_file_is_used() {
    let dir = Dir::new();
    let ran = scene(&dir, "start_stop").recorded(Loading::RpdRecord).record_option("--no-start").run();
    ran.expect(0);
    assert!(ran.stderr.contains("UserWarning: RPDT_FILENAME is set: recording goes to "), "{ran}");
    assert_eq!(dir.names(), ["trace.rpd"]);
    assert_eq!(grids(&dir, "trace.rpd"), [2, 4]);
}

#[test]
fn what_is_no_trace_is_left_alone() {
    let dir = Dir::new();
    let ran = scene(&dir, "somebody_elses_file").run();
    let path = dir.path("notes.txt");
    let expected =
        format!("{} is there and is no trace: it is left alone; name another file\nmine\n", path.display());
    assert_eq!(ran.expect(0).expect_silent().stdout, expected, "{ran}");
}

#[test]
fn texts_that_are_no_utf_8() {
    let dir = Dir::new();
    scene(&dir, "odd_texts").run().expect(0).expect_silent();
    let texts = marks(&dir, "trace.rpd");
    assert_eq!(texts, ["half \u{fffd}\u{fffd}\u{fffd} and a \u{fffd} in it", "umlaut \u{e4}"]);
}

#[test]
fn without_a_recorder_the_message_says_where_it_was_looked_for() {
    let dir = Dir::new();
    let ran = scene(&dir, "no_recorder").env("RPD_TRACER_PATH", "/no/such/place").run();
    let expected = "cannot find the recorder librpd_tracer.so: searched /no/such/place, \
         /no/such/place/librpd_tracer.so; set RPD_TRACER_PATH to where it is\n";
    assert_eq!(ran.expect(0).expect_silent().stdout, expected);
    // A library that is none.
    std::fs::write(dir.path("librpd_tracer.so"), "not a library").unwrap();
    let ran = python(&dir)
        .arg("-c")
        .arg("from rpdTracerControl import rpdTracerControl; rpdTracerControl()")
        .env("RPD_TRACER_PATH", dir.path(""))
        .run();
    ran.expect(1);
    assert!(ran.stderr.contains("RuntimeError: cannot load the recorder: "), "{ran}");
}
