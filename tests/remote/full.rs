//! A trace on a disk that is full: start, flush and stop say so, and what comes after there is room again is recorded.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use super::{ask, check, end, status};
use crate::harness::{Dir, Loading, Run, Running, command, not_tested, program, tool};

/// The words for it.
const FULL: &str = "no space left";

/// A file that takes all the room of the process's disk, as seen from here.
fn filler(running: &Running, dir: &Dir) -> PathBuf {
    let path = dir.path("disk/filler");
    PathBuf::from(format!("/proc/{}/root{}", running.pid(), path.display()))
}

fn can_mount() -> bool {
    let mount = "mount -t tmpfs none /tmp";
    let tried = command("unshare").args(["--mount", "sh", "-c", mount]).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

fn fill(running: &Running, dir: &Dir) {
    use std::io::Write;
    let mut file = fs::OpenOptions::new().create(true).append(true).open(filler(running, dir)).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
}

fn make_room(running: &Running, dir: &Dir) {
    fs::remove_file(filler(running, dir)).unwrap();
}

#[test]
fn every_verb_says_so() {
    if !can_mount() {
        return not_tested("no disk can be mounted");
    }
    let dir = Dir::new();
    let script = "mkdir disk && mount -t tmpfs -o size=2m none disk && exec \"$@\"";
    let large = format!("mark={}", "x".repeat(100_000));
    let acts = ["say=ready", "wait=one", &large, "say=first", "wait=two", &large, "say=second", "wait=three"];
    let run = Run::new(&dir, "unshare").arg("--mount").arg("sh").arg("-c").arg(script).arg("sh");
    let run = run.arg(program("control"));
    let run = acts.into_iter().chain(["mark=third", "say=third", "wait=end"]).fold(run, Run::arg);
    let run = run.recorded(Loading::Remote).env("RPD_REMOTE_FROM", "start");
    let trace = dir.path("disk/trace.rpd");
    let mut running = run.env("RPDT_FILENAME", &trace).start();
    running.wait_for_output("ready");

    fill(&running, &dir);
    ask("start", &["--wait"], &running).failed(FULL);
    assert_eq!(status(&running)["state"], "stopped");
    make_room(&running, &dir);
    ask("start", &["--wait"], &running).done();

    fill(&running, &dir);
    fs::write(dir.path("one"), "").unwrap();
    running.wait_for_output("first");
    ask("flush", &["--wait"], &running).failed(FULL);
    assert_eq!(status(&running)["state"], "recording");
    fs::write(dir.path("two"), "").unwrap();
    running.wait_for_output("second");
    ask("stop", &["--wait"], &running).failed(FULL);
    let stopped = status(&running);
    assert_eq!(stopped["state"], "stopped");
    assert!(stopped["problem"].as_str().unwrap().contains(FULL), "{stopped}");

    make_room(&running, &dir);
    ask("start", &["--wait"], &running).done();
    fs::write(dir.path("three"), "").unwrap();
    running.wait_for_output("third");
    ask("stop", &["--wait"], &running).done();
    let copy = format!("/proc/{}/root{}", running.pid(), trace.display());
    tool("cp", &[copy.as_ref(), dir.path("trace.rpd").as_os_str()]);
    end(&dir);
    let ran = running.finish();
    assert_eq!(ran.expect(0).stderr.lines().count(), 1, "said once a minute: {ran}");
    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert_eq!(trace.number("select count(*) from api where args = 'third'"), 1);
    let lost: i64 = trace.lost().values().map(|count| count.parse::<i64>().unwrap()).sum();
    assert_eq!(trace.number("select count(*) from api") + lost, 3, "{:?}", trace.lost());
}
