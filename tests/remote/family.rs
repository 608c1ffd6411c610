//! Children, and the ends of processes.

use super::{ask, check, early, end, remote, with_loader};
use crate::harness::{Dir, Run, command, rpd, tool};

#[test]
fn a_forked_child_has_a_block_of_its_own() {
    let dir = Dir::new();
    let acts =
        ["say=ready", "wait=fork", "fork", "say=forked", "wait=go", "mark=x", "say=marked", "wait=end"];
    let mut running = acts.into_iter().fold(early(&dir, "control"), Run::arg).start();
    running.wait_for_output("ready");
    std::fs::write(dir.path("fork"), "").unwrap();
    running.wait_for_output("forked");
    let parent = running.pid().to_string();
    let child = tool("pgrep", &["-P", &parent]).trim().to_string();
    // The child alone.
    remote(&["start", "--wait", &child]).done();
    let reports = remote(&["status", "--tree", "--json", &parent]).done();
    let reports: Vec<serde_json::Value> = serde_json::from_str(&reports.stdout).unwrap();
    let states: Vec<_> = reports.iter().map(|one| (one["pid"].to_string(), one["state"].clone())).collect();
    assert_eq!(states, [(parent.clone(), "ready".into()), (child.clone(), "recording".into())]);
    // Both.
    let both = remote(&["start", "--wait", "--tree", &parent]).done();
    assert!(
        both.stdout.contains("recording into") && both.stdout.contains("is recording already"),
        "{both:?}"
    );
    std::fs::write(dir.path("go"), "").unwrap();
    end(&dir);
    running.finish().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert_eq!(trace.number("select count(distinct pid) from api where args = 'x'"), 2);
    assert_eq!((trace.session_count(), trace.metadata("session::%::end_monotonic_ns").len()), (2, 2));
}

#[test]
fn a_child_of_a_process_that_is_recorded_can_be_stopped() {
    let dir = Dir::new();
    let acts = ["say=ready", "wait=fork", "fork", "say=forked", "wait=go", "mark=x", "wait=end"];
    let mut running = acts.into_iter().fold(early(&dir, "control"), Run::arg).start();
    running.wait_for_output("ready");
    ask("start", &["--wait"], &running).done();
    std::fs::write(dir.path("fork"), "").unwrap();
    running.wait_for_output("forked");
    let child = tool("pgrep", &["-P", &running.pid().to_string()]);
    let stopped = remote(&["stop", "--wait", child.trim()]).done();
    assert!(stopped.stdout.contains("stopped"), "it goes on as its parent was: {stopped:?}");
    std::fs::write(dir.path("go"), "").unwrap();
    end(&dir);
    running.finish().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    assert_eq!(trace.number("select count(*) from api where args = 'x'"), 1, "the parent's");
}

#[test]
fn programs_that_a_recorded_one_starts_are_recorded_when_asked_for() {
    let dir = Dir::new();
    // Parent and grandchild by exec: each with the loader, none with the recorder but by request.
    let script =
        "echo ready; while [ ! -e go ]; do sleep 0.01; done; env | grep -c -e RPDT_LOADED -e librpd_tracer";
    let mut running = with_loader(&dir, "sh").env("RPD_REMOTE_FROM", "start").arg("-c").arg(script).start();
    running.wait_for_output("ready");
    ask("start", &["--wait"], &running).done();
    std::fs::write(dir.path("go"), "").unwrap();
    let ran = running.finish();
    assert_eq!(ran.stdout, "ready\n0\n", "nothing of the recorder in what children inherit{ran}");
}

#[test]
fn ends_of_processes() {
    for act in ["exit=0", "_exit=0"] {
        let dir = Dir::new();
        let acts = ["say=ready", "wait=go", "mark=x", act];
        let mut running = acts.into_iter().fold(early(&dir, "control"), Run::arg).start();
        running.wait_for_output("ready");
        ask("start", &["--wait"], &running).done();
        std::fs::write(dir.path("go"), "").unwrap();
        running.finish().expect(0).expect_silent();
        let trace = dir.trace("trace.rpd");
        assert_eq!(trace.number("select count(*) from api where args = 'x'"), 1, "{act}");
        assert_eq!(trace.metadata("session::%::end_monotonic_ns").len(), 1, "{act}");
    }
}

#[test]
fn a_program_whose_first_thread_ends_first() {
    for start in [false, true] {
        let dir = Dir::new();
        let mut running = early(&dir, "first_leaves").start();
        running.wait_for_output("ready");
        if start {
            ask("start", &["--wait"], &running).done();
        }
        end(&dir);
        let ran = running.finish();
        assert_eq!(ran.expect(0).expect_silent().stdout, "ready\nlast\n");
    }
}

#[test]
fn rpd_remote_is_the_same_command() {
    let dir = Dir::new();
    let mut running = early(&dir, "control").arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    let output =
        command(rpd()).args(["remote", "start", "--wait", &running.pid().to_string()]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("recording into"));
    let output = command(rpd()).args(["remote", "stop", "4194305"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"rpd remote: 4194305: there is no such process\n");
    end(&dir);
    running.finish().expect(0).expect_silent();
}
