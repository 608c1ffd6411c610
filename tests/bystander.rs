//! Processes that do nothing with a GPU and push no marker inherit LD_PRELOAD all the time: no file, no thread, no word.

use crate::harness::{Dir, Loading, Run, program};

#[track_caller]
fn leaves_nothing(dir: &Dir, run: Run<'_>, stdout: &str) {
    let ran = run.recorded(Loading::Preload).run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, stdout, "{ran}");
    assert_eq!(dir.names(), Vec::<String>::new(), "{ran}");
}

#[test]
fn a_program_without_a_gpu() {
    let dir = Dir::new();
    leaves_nothing(&dir, Run::new(&dir, program("noop")), "nothing to do with a GPU\n");
}

#[test]
fn no_thread_is_started() {
    let dir = Dir::new();
    let threads = ["threads", "start", "stop", "flush", "threads"];
    let run = threads.into_iter().fold(Run::new(&dir, program("control")), Run::arg);
    leaves_nothing(&dir, run, "1\n1\n");
}

#[test]
fn tools_of_the_system() {
    let dir = Dir::new();
    leaves_nothing(&dir, Run::new(&dir, "true"), "");
}

#[test]
fn a_pipeline_of_a_shell() {
    let dir = Dir::new();
    let script = "printf 'b\\na\\n' | sort | (cat; ls) | tr a-z A-Z; exec true";
    leaves_nothing(&dir, Run::new(&dir, "sh").arg("-c").arg(script), "A\nB\n");
}

#[test]
fn wrong_values_are_not_complained_of() {
    let dir = Dir::new();
    leaves_nothing(
        &dir,
        Run::new(&dir, program("noop")).env("RPDT_BUFFER_MB", "x"),
        "nothing to do with a GPU\n",
    );
}
