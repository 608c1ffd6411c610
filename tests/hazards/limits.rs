//! RPDT_MAX_MB, RPDT_DELAY, RPDT_DURATION: runs of days leave files of a size.

use super::{assert_clean, marker_count, recorded};
use crate::harness::{Dir, Trace};

#[test]
fn the_largest_size_of_the_file() {
    let dir = Dir::new();
    let run = recorded(&dir, "storm").arg("1").arg("100000").arg("2000").env("RPDT_MAX_MB", "1");
    let ran = run.env("RPDT_AUTOFLUSH", "100").run();
    assert_eq!(ran.expect(0).stdout, "100000 marks\n");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("RPDT_MAX_MB=1: recording ends here"), "{ran}");
    let trace = assert_clean(&dir, 1);
    let marks = marker_count(&trace);
    assert!((1000..100_000).contains(&marks), "{marks}");
    // What is there is the beginning, without a gap.
    let last = format!("select count(*) from api where args like '%mark {}'", marks - 1);
    assert_eq!(trace.number(&last), 1);
    let size = std::fs::metadata(dir.path("trace.rpd")).unwrap().len();
    // The commit that reached it may be as large as the buffers' backlog.
    assert!((1 << 20..8 << 20).contains(&size), "{size} bytes");
}

/// Seconds from the loading of the library to the first and the last marker.
fn first_and_last(trace: &Trace) -> (f64, f64) {
    let began: f64 =
        trace.metadata("session::0::start_monotonic_ns").into_values().next().unwrap().parse().unwrap();
    let at = |which: &str| {
        trace.number(&format!("select {which}(start) from api where apiName = 'UserMarker'")) as f64
    };
    ((at("min") - began) / 1e9, (at("max") - began) / 1e9)
}

#[test]
fn a_delay_and_a_duration() {
    let dir = Dir::new();
    // Some three seconds of marks.
    let storm = || recorded(&dir, "storm").arg("1").arg("3000").arg("100000");
    storm().env("RPDT_DELAY", "0.7").env("RPDT_DURATION", "0.9").run().expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    let (first, last) = first_and_last(&trace);
    // Nothing outside the window; how near its edges is the machine's business.
    assert!(first >= 0.7 && last <= 1.6 + 0.3, "{first} to {last}");
    assert!(first < last && (100..3000).contains(&marker_count(&trace)), "{first} to {last}");
}

#[test]
fn a_program_that_ends_before_recording_begins() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("100").env("RPDT_DELAY", "60").run().expect(0).expect_silent();
    assert_eq!(dir.names(), Vec::<String>::new());
}
