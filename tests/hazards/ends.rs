//! How a process may end.

use super::{assert_clean, ended_sessions, marker_count, markers, recorded};
use crate::harness::{Dir, Run};

#[test]
fn nothing_is_lost_when_a_process_ends_by_itself() {
    for (way, status, marks) in [
        ("return", 5, 100),
        ("exit", 5, 100),
        ("_exit", 5, 100),
        ("_Exit", 5, 100),
        ("quick_exit", 5, 100),
        ("atexit", 5, 101),
        // The process ends when its last thread does; the recorder's do not count.
        ("pthread_exit", 0, 101),
    ] {
        let dir = Dir::new();
        let ran = recorded(&dir, "ends").arg(way).run();
        ran.expect(status).expect_silent();
        assert_eq!(ran.stdout, "marked\n", "{ran}");
        assert_eq!(marker_count(&assert_clean(&dir, 1)), marks, "{way}");
    }
}

#[test]
fn an_exit_in_a_handler_that_interrupted_a_push() {
    for _ in 0..5 {
        let dir = Dir::new();
        recorded(&dir, "ends").arg("exit_in_handler").run().expect(7).expect_silent();
        let markers = markers(&assert_clean(&dir, 1));
        assert_eq!(markers.len(), 101, "0 to 99, and busy");
        assert!(markers.values().all(|count| *count > 0));
    }
}

/// The ways that give nobody a chance to do anything: what is a second old is there, and the process ends as it would.
#[test]
fn a_process_that_is_killed_keeps_what_it_had() {
    let ways = ["abort", "throw", "SIGTERM", "SIGINT", "SIGKILL", "SIGSEGV", "exec"];
    let dirs: Vec<_> =
        ways.iter().flat_map(|way| [(way, true), (way, false)]).map(|w| (w, Dir::new())).collect();
    let runs: Vec<_> = dirs
        .iter()
        .map(|((way, with), dir)| {
            let run = if *with { recorded(dir, "ends") } else { Run::new(dir, super::hazard("ends")) };
            run.arg(**way)
        })
        .collect();
    let ran: Vec<_> = Run::start_all(&runs).into_iter().map(|running| running.finish()).collect();
    for (((way, _), dir), pair) in dirs.iter().step_by(2).zip(ran.chunks(2)) {
        let (with, plain) = (&pair[0], &pair[1]);
        assert_eq!(
            (with.status, &with.stdout, &with.stderr),
            (plain.status, &plain.stdout, &plain.stderr),
            "{with}"
        );
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert_eq!((marker_count(&trace), ended_sessions(&trace)), (100, 0), "{way}");
    }
}
