//! The GPU and its runtime at their worst.

use super::{assert_clean, recorded};
use crate::harness::{Dir, Expected, Loading, Run, aql_code_object, program};

/// The file of the one process equals the device's log; how many kernels there were.
#[track_caller]
fn equals_log(dir: &Dir) -> usize {
    let logs = dir.logs();
    assert_eq!(logs.len(), 1);
    let expected = Expected::of(&logs[0].1);
    expected.assert_equals(&dir.trace("trace.rpd"));
    expected.kernels()
}

#[test]
fn the_runtime_is_started_three_times() {
    let dir = Dir::new();
    let run = recorded(&dir, "again").arg(aql_code_object("gfx900"));
    let ran = run.run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "round 0: 100 dispatches\nround 1: 100 dispatches\nround 2: 100 dispatches\n");
    let trace = assert_clean(&dir, 1);
    // Each round's queue and device counters begin anew, so its ops are only counted.
    assert_eq!(trace.number("select count(*) from ext_dispatch"), 300);
    assert_eq!(trace.number("select count(*) from op where start = 0 or end < start"), 0);
    assert_eq!(dir.logs().iter().map(|(_, log)| Expected::of(log).kernels()).sum::<usize>(), 300);
}

#[test]
fn queues_that_wait_for_each_other() {
    let dir = Dir::new();
    let ran = recorded(&dir, "crossed").arg(aql_code_object("gfx900")).env("RPDT_TICKS", "1").run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "100 kernels on queues that wait for each other\n");
    assert_clean(&dir, 1);
    assert_eq!(equals_log(&dir), 100);
}

#[test]
fn kernels_from_atexit_handlers() {
    for when in ["early", "late"] {
        let dir = Dir::new();
        let ran = recorded(&dir, "atexit_kernels").arg(when).env("RPDT_TICKS", "1").run();
        ran.expect(0).expect_silent();
        assert_eq!(ran.stdout, "15 kernels at the end\n");
        assert_clean(&dir, 1);
        assert_eq!(equals_log(&dir), 15, "{when}");
    }
}

#[test]
fn a_kernel_that_never_ends() {
    for way in ["exit", "_exit"] {
        let dir = Dir::new();
        let hang = "[[fault]]\nkind = \"hang\"\nkernel = \"hanging_kernel\"\n";
        let run = Run::new(&dir, program("hang")).recorded(Loading::Preload).config(hang).arg(way);
        // Its own end, ours of 2 s and room for a slow machine; a recorder that waits for the kernel never ends.
        let ran = run.timeout(20).run();
        ran.expect(3);
        assert_eq!(ran.stdout, "launched\n");
        assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
        assert!(ran.stderr.contains("1 GPU operations had not completed"), "{ran}");
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        let lost: Vec<_> = trace.lost().into_iter().collect();
        assert_eq!(lost, [("session::0::lost::incomplete".to_string(), "1".to_string())]);
        let kernels = |table: &str| trace.number(&format!("select count(*) from {table}"));
        assert_eq!((kernels("ext_dispatch"), kernels("rocpd_kernelapi")), (8, 9), "its call is there, no op");
    }
}

#[test]
fn a_queue_that_fails() {
    let dir = Dir::new();
    let fault = "[[fault]]\nkind = \"queue_error\"\npacket = 2\nerror = \"illegal_instruction\"\n";
    let run = |with: bool| {
        let run = Run::new(&dir, program("queue_error")).config(fault).arg(aql_code_object("gfx900"));
        if with { run.recorded(Loading::Preload).run() } else { run.run() }
    };
    let (plain, ran) = (run(false), run(true));
    assert_eq!((ran.status, &ran.stdout), (plain.status, &plain.stdout), "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.number("select count(*) from ext_dispatch"), 1, "what ran before");
    assert_eq!(trace.number("select count(*) from rocpd_kernelapi"), 3);
    let lost: Vec<_> = trace.lost().into_values().collect();
    assert_eq!(lost, ["2"], "{ran}");
}

#[test]
fn kernels_that_take_no_time() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("graph")).recorded(Loading::Preload).env("RPDT_TICKS", "1");
    run.config("[timing]\nkernel_ns = 0\n").run().expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    assert_eq!(equals_log(&dir), 1005);
    assert_eq!(
        trace.number("select count(*) from op join ext_dispatch on op_id = op.id where end = start"),
        1005
    );
}
