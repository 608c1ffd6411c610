//! File systems that lack something: shared mappings, locks, room in /dev/shm. Full ones are in full.rs; tests/filesystems/run has
//! most tests run on NFS.

use std::fs;

use super::full::{marks_of_full_file, reported_lost};
use super::{assert_clean, ended_sessions, hazard, in_own_mounts, markers, not_here};
use crate::harness::{Dir, Expected, Run, Trace, program, recorder};

/// Each of the processes that used a GPU is in the trace as its device's log has it.
#[track_caller]
fn equals_logs(dir: &Dir, trace: &Trace, processes: usize) {
    let logs = dir.logs();
    assert_eq!(logs.len(), processes);
    for (pid, log) in logs {
        let session = trace.sessions()[&pid];
        let ops: Vec<_> = trace.ops().into_iter().filter(|op| op.id >> 32 == session).collect();
        Expected::of(&log).assert_equals_ops(trace, &ops);
    }
}

/// A HIP program with kernels, copies and graphs.
fn mixed(run: Run<'_>) -> Run<'_> {
    ["2", "2", "200", "20", "5"].into_iter().fold(run.arg(hazard("mixed")), Run::arg).env("RPDT_TICKS", "1")
}

#[test]
fn without_shared_mappings() {
    let dir = Dir::new();
    let run = mixed(in_own_mounts(&dir, "no_mappings.sh")).env("RECORDER", recorder());
    let ran = run.env("RPDT_AUTOFLUSH", "20").run();
    if not_here(&ran) {
        return;
    }
    assert_eq!(ran.expect(0).expect_silent().stdout, "all counted\nall counted\n");
    let names: Vec<_> =
        fs::read_dir(dir.path("behind")).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(names, ["trace.rpd"]);
    let trace = dir.trace("behind/trace.rpd");
    trace.check_integrity();
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    assert_eq!((trace.session_count(), ended_sessions(&trace)), (2, 2));
    equals_logs(&dir, &trace, 2);
}

/// One that refuses every lock: nothing is written without one, since others might be writing.
#[test]
fn without_locks() {
    for error in [libc::ENOLCK, libc::ENOSYS, libc::EOPNOTSUPP] {
        let dir = Dir::new();
        let report = dir.path("report");
        fs::write(&report, "").unwrap();
        let run = Run::new(&dir, hazard("no_locks")).arg(error.to_string()).arg(program("control"));
        let run = ["mark=a", "flush", "mark=b", "say=end"].into_iter().fold(run, Run::arg);
        let run = run.env("PRELOAD", recorder()).env("RPDT_REPORT", &report);
        let ran = run.env("RPDT_EXIT_MS", "1000").run();
        assert_eq!(ran.expect(0).stdout, "end\n", "{ran}");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
        assert!(ran.stderr.contains("/trace.rpd: its file system has no locks"), "{ran}");
        assert_eq!(fs::metadata(dir.path("trace.rpd")).unwrap().len(), 0, "{ran}");
        assert_eq!(reported_lost(&fs::read_to_string(&report).unwrap()), 2, "{ran}");
        assert_eq!(dir.names(), ["report", "trace.rpd", "trace.rpd-lost"], "said beside it");
    }
}

/// Nothing of the recorder's lies there, so nothing runs out.
#[test]
fn a_full_dev_shm() {
    let dir = Dir::new();
    let ran = mixed(in_own_mounts(&dir, "small_shm.sh").arg("full")).env("RECORDER", recorder()).run();
    if not_here(&ran) {
        return;
    }
    assert_eq!(ran.expect(0).expect_silent().stdout, "all counted\n");
    equals_logs(&dir, &assert_clean(&dir, 1), 1);
}

/// A trace that lies there has 64 MB, about half of what this program marks.
#[test]
fn a_trace_in_a_small_dev_shm() {
    let dir = Dir::new();
    let report = dir.path("report");
    fs::write(&report, "").unwrap();
    let run = in_own_mounts(&dir, "small_shm.sh").arg("empty").arg(hazard("storm")).arg("4").arg("250000");
    let run = run.env("RECORDER", recorder()).env("RPDT_FILENAME", "/dev/shm/trace.rpd");
    let ran = run.env("RPDT_REPORT", &report).env("RPDT_AUTOFLUSH", "20").run();
    if not_here(&ran) {
        return;
    }
    assert_eq!(ran.expect(0).stdout, "1000000 marks\n");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("no space left"), "{ran}");
    let there = marks_of_full_file(&dir);
    let missing = reported_lost(&fs::read_to_string(report).unwrap());
    assert!(there > 0 && missing > 0, "{there} there, {missing} lost");
    assert_eq!(there + missing, 1_000_000);
    assert_eq!(markers(&dir.trace("trace.rpd")).len() as i64, there, "none twice");
}
