//! SIGUSR1 and SIGUSR2, and programs that use them themselves.

use super::{ask, check, early, end, remote, service, status};
use crate::harness::{Dir, Running, wait_for};

/// The program that uses SIGUSR1 in that way, ready.
fn using(dir: &Dir, how: &str, channel: &str) -> Running {
    let mut running = early(dir, "signals").env("RPD_REMOTE", channel).arg(how).start();
    running.wait_for_output("ready\n");
    running
}

/// What it said but for its first and last line.
#[track_caller]
fn said(dir: &Dir, running: Running) -> Vec<String> {
    end(dir);
    let ran = running.finish();
    ran.expect(0).expect_silent();
    let lines = ran.stdout.strip_prefix("ready\n").and_then(|rest| rest.strip_suffix("ended\n"));
    lines.unwrap_or_else(|| panic!("{ran}")).lines().map(str::to_string).collect()
}

/// Waits until the process is in that state.
#[track_caller]
fn wait_for_state(running: &Running, state: &str) {
    wait_for(state, || (status(running)["state"] == state).then_some(()));
}

#[test]
fn plain_kill_as_the_originals_loader_has_it() {
    let dir = Dir::new();
    let mut running = service(&dir).env("RPD_REMOTE", "signal").start();
    running.wait_for_output("ready");
    for _ in 0..3 {
        running.signal(libc::SIGUSR1);
        wait_for_state(&running, "recording");
        running.signal(libc::SIGUSR2);
        wait_for_state(&running, "stopped");
    }
    end(&dir);
    running.finish().expect(0).expect_silent();
    check(&dir.trace("trace.rpd"));
}

#[test]
fn a_start_before_the_gpu_is_used_is_remembered() {
    let dir = Dir::new();
    // No GPU and no block: the signal does not end the program, and nothing else happens.
    let run = super::with_loader(&dir, crate::harness::program("control")).env("RPD_REMOTE", "signal");
    let mut running = run.arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    running.signal(libc::SIGUSR1);
    running.signal(libc::SIGUSR2);
    ask("start", &[], &running).failed("no GPU runtime has called it yet");
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert_eq!(dir.names(), ["end"]);
}

#[test]
fn handlers_of_the_program_are_called() {
    for (how, lines) in [
        ("signal", vec!["got SIGUSR1"; 3]),
        ("sigaction", vec!["got SIGUSR1"; 3]),
        ("siginfo", vec!["got SIGUSR1 with its context"; 3]),
        ("once", vec!["got SIGUSR1"]),
        ("ignored", vec![]),
        ("default", vec![]),
    ] {
        let dir = Dir::new();
        let running = using(&dir, how, "signal");
        // rpdRemote's own signals are not shown to the program.
        ask("start", &["--wait"], &running).done();
        ask("stop", &["--wait"], &running).done();
        let handler = !lines.is_empty();
        let owner = status(&running)["signals"][0].as_str().unwrap().to_string();
        assert_eq!(owner.contains("passed on to the program's handler"), handler, "{how}: {owner}");
        // Anybody else's start recording and are passed on.
        for _ in 0..3 {
            running.signal(libc::SIGUSR1);
            wait_for_state(&running, "recording");
            ask("stop", &["--wait"], &running).done();
        }
        assert_eq!(said(&dir, running), lines, "{how}");
    }
}

#[test]
fn what_a_program_sends_to_itself_is_its_own() {
    let dir = Dir::new();
    let running = using(&dir, "raise", "signal");
    assert_eq!(status(&running)["state"], "ready", "nothing was started");
    end(&dir);
    let ran = running.finish();
    assert_eq!(ran.expect(0).expect_silent().stdout, "got SIGUSR1\ngot SIGUSR1\nready\nended\n");
}

#[test]
fn a_signal_that_the_program_has_for_itself_is_left_to_it() {
    for (how, why, line) in [
        ("signalfd", "it reads it by signalfd", Some("read SIGUSR1")),
        ("sigwait", "all its threads block it", Some("waited for SIGUSR1")),
        ("blocked", "all its threads block it", None),
        ("unseen", "its own handler is in the place of the loader's", Some("got SIGUSR1")),
    ] {
        let dir = Dir::new();
        let mut running = using(&dir, how, "signal");
        ask("start", &["--wait"], &running).failed(why);
        let owner = status(&running)["signals"][0].as_str().unwrap().to_string();
        assert!(owner.contains("taken by the program") && owner.contains(why), "{how}: {owner}");
        // Its own signals reach it.
        running.signal(libc::SIGUSR1);
        if let Some(line) = line {
            running.wait_for_output(line);
        }
        assert_eq!(status(&running)["state"], "ready", "{how}");
        assert_eq!(said(&dir, running), line.into_iter().collect::<Vec<_>>(), "{how}");
    }
}

#[test]
fn the_flag_works_where_signals_are_taken() {
    for (how, channel) in [("signalfd", "both"), ("sigwait", "flag"), ("blocked", "both"), ("unseen", "flag")]
    {
        let dir = Dir::new();
        let running = using(&dir, how, channel);
        ask("start", &["--wait"], &running).done();
        assert_eq!(status(&running)["state"], "recording");
        ask("stop", &["--wait"], &running).done();
        assert_eq!(said(&dir, running), Vec::<String>::new(), "{how}");
    }
}

#[test]
fn without_being_asked_for_signals_are_the_programs() {
    let dir = Dir::new();
    let mut running = early(&dir, "control").arg("say=ready").arg("wait=end").start();
    running.wait_for_output("ready");
    running.signal(libc::SIGUSR1);
    running.finish().expect_signal(libc::SIGUSR1);
}

#[test]
fn what_a_signal_cannot_say() {
    let dir = Dir::new();
    let running = using(&dir, "default", "signal");
    let pid = running.pid().to_string();
    for arguments in [&["start", "--for", "1s"][..], &["start", "-o", "x.rpd"], &["flush"]] {
        remote(&[arguments, &[&pid]].concat()).failed("needs more than a signal can say");
    }
    assert_eq!(said(&dir, running), Vec::<String>::new());
}
