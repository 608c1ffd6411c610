//! A service that launches from four threads is recorded a hundred times, for a moment each.

use std::time::Duration;

use super::{ask, check, descriptors, end, service, status, threads};
use crate::harness::{Dir, Running};

/// Cycles of start and stop; 1000 with RPD_SOAK=1.
fn cycles() -> usize {
    if std::env::var_os("RPD_SOAK").is_some_and(|value| value == "1") { 1000 } else { 100 }
}

/// CLOCK_MONOTONIC, ns.
fn now() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// One stretch of recording: what began after the start was acknowledged and ended before the stop was asked for is in the
/// file; what ended before the start was asked for or began after the stop was acknowledged is not.
struct Stretch {
    asked: i64,
    begun: i64,
    end_asked: i64,
    ended: i64,
}

/// KiB of memory that are the process's own.
fn memory(running: &Running) -> i64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", running.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn cycle(running: &Running) -> Stretch {
    let asked = now();
    ask("start", &["--wait"], running).done();
    let begun = now();
    std::thread::sleep(Duration::from_millis(10));
    let end_asked = now();
    ask("stop", &["--wait"], running).done();
    Stretch { asked, begun, end_asked, ended: now() }
}

fn recorded_in_stretches(channel: &str) {
    let dir = Dir::new();
    let mut running = service(&dir).env("RPD_REMOTE", channel).start();
    running.wait_for_output("ready");
    let (mut stretches, mut footprint) = (vec![], None);
    for number in 0..cycles() {
        stretches.push(cycle(&running));
        // By then everything that comes once has come.
        if number == 20 {
            footprint = Some((threads(&running), descriptors(&running), memory(&running)));
        }
    }
    let (names, open, before) = footprint.unwrap();
    assert_eq!(threads(&running), names);
    assert_eq!(descriptors(&running), open);
    let grown = memory(&running) - before;
    assert!(grown < 16 << 10, "{grown} KiB more after {} cycles", cycles());
    assert_eq!(status(&running)["lost"], 0);
    end(&dir);
    running.finish().expect(0).expect_silent();

    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    assert_eq!(trace.session_count(), 1);
    let mut marks = trace.texts("select args from api where apiName = 'UserMarker'");
    marks.sort();
    let log = std::fs::read_to_string(dir.path("steps")).unwrap();
    let mut expected = 0;
    for line in log.lines() {
        let fields: Vec<i64> = line.split(' ').map(|field| field.parse().unwrap()).collect();
        let (mark, before, after) = (format!("{}.{}", fields[0], fields[1]), fields[2], fields[3]);
        let is_there = marks.binary_search(&mark).is_ok();
        let must = stretches.iter().any(|one| one.begun <= before && after <= one.end_asked);
        let may = stretches.iter().any(|one| one.asked <= after && before <= one.ended);
        assert!(is_there || !must, "mark {mark} is missing");
        assert!(may || !is_there, "mark {mark} was made when nothing was recorded");
        expected += usize::from(must);
    }
    assert!(expected >= cycles(), "{expected} marks in {} stretches", cycles());
    let several = marks.windows(2).find(|two| two[0] == two[1]);
    assert_eq!(several, None, "once each");
}

#[test]
fn a_hundred_times_by_the_flag() {
    recorded_in_stretches("flag");
}

#[test]
fn a_hundred_times_by_signals() {
    recorded_in_stretches("signal");
}
