//! Panics of the recorder, provoked in each hook and on each of its threads: the program is unharmed, recording is off, one line.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use super::build::{root, target};
use super::{hazard, soak};
use crate::harness::{Dir, Ran, Run, program};

/// The recorder with panics on demand, built apart from the one that is used.
fn panicking() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(root()).args(["build", "--quiet", "--release", "-p", "rpd-tracer"]);
        cargo.args(["--features", "panic-in-hooks", "--target-dir"]).arg(target().join("panic"));
        cargo.env_remove("LD_LIBRARY_PATH").env_remove("RUSTFLAGS");
        let output = cargo.output().unwrap();
        assert!(output.status.success(), "{cargo:?}\n{}", String::from_utf8_lossy(&output.stderr));
        target().join("panic/release/librpd_tracer.so")
    })
}

/// Whether that passage of that place was reached, and so panicked.
#[track_caller]
fn unharmed(dir: &Dir, ran: &Ran, place: &str) -> bool {
    assert_eq!(ran.expect(0).stdout, "sum 6\n", "{place}: {ran}");
    if dir.path("trace.rpd").exists() {
        let trace = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
        let sound: String = trace.query_row("pragma integrity_check", [], |row| row.get(0)).unwrap();
        assert_eq!(sound, "ok", "{place}: {ran}");
    }
    match ran.stderr.lines().count() {
        0 => false,
        1 => {
            assert!(
                ran.stderr.contains("internal error at ") && ran.stderr.contains("recording is off"),
                "{place}: {ran}"
            );
            true
        }
        _ => panic!("{place}: more than one line: {ran}"),
    }
}

/// Provokes a panic in every `step`-th passage of `place`, to one that is not reached or `most`; how many panics that were.
fn everywhere(place: &str, step: usize, most: usize) -> usize {
    const AT_ONCE: usize = 4;
    let mut panics = 0;
    let turns: Vec<_> = (1..=most).step_by(step).collect();
    for turns in turns.chunks(AT_ONCE) {
        let dirs: Vec<_> = turns.iter().map(|turn| (format!("{place}:{turn}"), Dir::new())).collect();
        let run = |(turn, dir)| {
            let run = Run::new(dir, hazard("hooks")).preload(&[panicking().into()]);
            run.env("RPDT_PANIC_IN", turn).env("RPDT_AUTOFLUSH", "100")
        };
        let runs: Vec<_> = dirs.iter().map(|(turn, dir)| run((turn, dir))).collect();
        for ((turn, dir), running) in dirs.iter().zip(Run::start_all(&runs)) {
            if !unharmed(dir, &running.finish(), turn) {
                return panics;
            }
            panics += 1;
        }
    }
    panics
}

#[test]
fn in_every_hook() {
    // Each hook has two passages, at its beginning and its end: an odd step meets both.
    let step = if soak() { 1 } else { 5 };
    let panics = everywhere("hook", step, 1000);
    assert!(panics * step > 100, "only {panics} panics: the program does not reach the hooks");
    println!("{panics} panics in hooks");
}

#[test]
fn on_the_threads_of_the_recorder() {
    let most = if soak() { 40 } else { 4 };
    for thread in ["writer", "completion"] {
        assert!(everywhere(thread, 1, most) > 0, "the thread {thread} never ran");
    }
}

/// Kernels that wait for room get it from a reader that has panicked, and nobody waits for analyzers that have.
#[test]
fn on_the_threads_that_read_instrumented_kernels() {
    for turn in ["messages:1", "messages:30", "messages:300", "analysis:1", "analysis:7"] {
        let dir = Dir::new();
        let run = Run::new(&dir, program("probe")).preload(&[panicking().into()]).arg("6");
        let run = run.env("LOGDUR_INSTRUMENTED", "true").env("RPDT_PANIC_IN", turn);
        let run = run.env("RPDT_PROBE_SUB_BUFFERS", "1").env("RPDT_PROBE_SUB_BUFFER_KB", "1");
        let ran = run.run();
        ran.expect(0);
        assert_eq!(ran.stderr.lines().count(), 1, "{turn}: {ran}");
        assert!(
            ran.stderr.contains("internal error at ") && ran.stderr.contains("recording is off"),
            "{turn}: {ran}"
        );
        dir.trace("trace.rpd").check_integrity();
    }
}
