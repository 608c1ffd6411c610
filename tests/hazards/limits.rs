//! RPDT_MAX_MB, RPDT_DELAY, RPDT_DURATION: runs of days leave files of a size. Containers with little memory.

use std::fs;
use std::path::{Path, PathBuf};

use super::build::hazard;
use super::{assert_clean, marker_count, recorded};
use crate::harness::{Dir, Loading, Run, not_tested};

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

#[test]
fn a_delay_and_a_duration() {
    let dir = Dir::new();
    // Some three seconds of marks.
    let storm = || recorded(&dir, "storm").arg("1").arg("3000").arg("100000");
    storm().env("RPDT_DELAY", "0.7").env("RPDT_DURATION", "0.9").run().expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    let began: i64 =
        trace.metadata("session::0::start_monotonic_ns").into_values().next().unwrap().parse().unwrap();
    let outside = |condition: &str, edge: i64| {
        let edge = began + edge;
        trace.number(&format!(
            "select count(*) from api where apiName = 'UserMarker' and start {condition} {edge}"
        ))
    };
    // Nothing outside the window, but for a mark that was under way when it ended.
    assert_eq!(outside("<", 700_000_000), 0);
    assert!(outside(">", 1_600_000_000) <= 1);
    let marks = marker_count(&trace);
    assert!((100..3000).contains(&marks), "{marks}");
}

#[test]
fn a_program_that_ends_before_recording_begins() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("100").env("RPDT_DELAY", "60").run().expect(0).expect_silent();
    assert_eq!(dir.names(), Vec::<String>::new());
}

/// A control group that may have so many bytes of memory. None where this user or this machine cannot make one.
struct Group(PathBuf);

impl Group {
    fn new(bytes: u64) -> Option<Group> {
        let name = format!("rpd-test-{}", std::process::id());
        // Version 2, and version 1 beside it.
        [("/sys/fs/cgroup", "memory.max"), ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")]
            .iter()
            .find_map(|(place, limit)| {
                let group = Group(Path::new(place).join(&name));
                fs::create_dir(&group.0).ok()?;
                // A directory where no hierarchy is mounted has no such file.
                (group.0.join(limit).exists() && fs::write(group.0.join(limit), bytes.to_string()).is_ok())
                    .then_some(group)
            })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel takes a moment to see that the last process is gone.
        for _ in 0..500 {
            if fs::remove_dir(&self.0).is_ok() || !self.0.exists() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn buffers_are_small_where_the_control_group_has_little_memory() {
    let Some(group) = Group::new(64 << 20) else {
        return not_tested("no control group with a limit of memory can be made");
    };
    let dir = Dir::new();
    let limited = |marks: &str| {
        let script = "echo $$ > \"$0\" && exec \"$@\"";
        let run = Run::new(&dir, "sh").arg("-c").arg(script).arg(group.0.join("cgroup.procs"));
        run.arg(hazard("storm")).arg("1").arg(marks).recorded(Loading::Preload)
    };
    let ran = limited("100").env("RPDT_LOG", "1").run();
    assert!(
        ran.expect(0).stderr.contains("8192 KiB of buffers, an eighth of the control group's memory"),
        "{ran}"
    );
    assert_eq!(marker_count(&assert_clean(&dir, 1)), 100);
    // Nothing can be written: 200 MB of marks wait or are counted, and the kernel does not kill the program for them.
    let lock = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    lock.execute_batch("begin exclusive").unwrap();
    let ran = limited("2000000").env("RPDT_WAIT_MS", "0").env("RPDT_EXIT_MS", "100").run();
    assert_eq!(ran.expect(0).stdout, "2000000 marks\n", "{ran}");
    drop(lock);
    let ran = limited("100").env("RPDT_LOG", "1").env("RPDT_BUFFER_MB", "16").run();
    assert!(!ran.expect(0).stderr.contains("KiB of buffers"), "who says how much gets it: {ran}");
}
