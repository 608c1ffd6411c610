//! The GPU's runtime at its worst. Kernels that never end are in misfortune.rs.

use std::collections::BTreeSet;

use super::{assert_clean, hazard, recorded};
use crate::harness::{Dir, Expected, Loading, Ran, Run, aql_code_object, program};
use crate::resources::{code_object, largest_workgroups};

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
    let places = "select count(distinct gpuId || ' ' || queueId || ' ' || sequenceId) from op";
    assert_eq!(trace.number(places), 300, "queues of different rounds have different numbers");
    // The device's counters begin anew with each round, so its ops are only counted.
    assert_eq!(trace.number("select count(*) from dispatch"), 300);
    assert_eq!(trace.number("select count(*) from op where start = 0 or end < start"), 0);
    assert_eq!(dir.logs().iter().map(|(_, log)| Expected::of(log).kernels()).sum::<usize>(), 300);
}

/// Each life of the runtime has threads of its own for the kernel cache. None of them is left in the end, or a process whose first thread
/// has left would wait for it.
#[test]
fn the_runtime_is_started_three_times_with_a_kernel_cache() {
    let (dir, cache) = (Dir::new(), Dir::new());
    let code = aql_code_object("gfx900");
    std::fs::copy(&code, cache.path("count.hsaco")).unwrap();
    let run = recorded(&dir, "again").arg(&code).arg("rpd-candidates").arg("notify");
    let ran = run.env("LOGDUR_KERNEL_CACHE", cache.path("")).run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "round 0: 100 dispatches\nround 1: 100 dispatches\nround 2: 100 dispatches\n");
    let trace = assert_clean(&dir, 1);
    assert_eq!(trace.number("select count(*) from ext_replacement"), 300);
}

/// Dispatches wait until their results are compared with another build's, and the queue goes meanwhile. Nobody reads their buffers then.
#[test]
fn queues_are_destroyed_while_their_dispatches_are_compared() {
    let (dir, cache) = (Dir::new(), Dir::new());
    let code = aql_code_object("gfx900");
    std::fs::copy(&code, cache.path("count.hsaco")).unwrap();
    let run = recorded(&dir, "destroyed").arg(&code).env("LOGDUR_KERNEL_CACHE", cache.path(""));
    let ran = run.env("RPDT_VALIDATE", "aql_count").env("RPDT_VALIDATE_CALLS", "1000").run();
    ran.expect(0);
    assert_eq!(ran.stdout, "all destroyed\n", "{ran}");
    dir.trace("trace.rpd").check_integrity();
}

#[test]
fn signals_that_several_kernels_count_down() {
    let dir = Dir::new();
    let ran = recorded(&dir, "countdown").arg(aql_code_object("gfx900")).env("RPDT_TICKS", "1").run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "600 kernels, every signal at 0 in time\n");
    assert_clean(&dir, 1);
    assert_eq!(equals_log(&dir), 600);
}

#[test]
fn code_objects_of_two_targets_in_one_executable() {
    let (dir, build) = (Dir::new(), Dir::new());
    let targets = program("hip_targets");
    let objects = ["gfx900", "gfx906"].map(|gfx| {
        let object = build.path(gfx);
        std::fs::rename(code_object(&build, &targets, gfx), &object).unwrap();
        object
    });
    let run = objects.into_iter().fold(recorded(&dir, "one_executable"), Run::arg);
    run.gpus(2).env("SIMGPU_GFX", "gfx900,gfx906").run().expect(0).expect_silent();
    assert_eq!(largest_workgroups(&assert_clean(&dir, 1)), ["0 256", "1 512"]);
}

#[test]
fn queues_of_every_size() {
    let run = |dir| Run::new(dir, hazard("queue_sizes")).arg(aql_code_object("gfx900"));
    let (dir, without) = (Dir::new(), Dir::new());
    let plain = run(&without).run();
    let plain = &plain.expect(0).stdout;
    let ran = run(&dir).recorded(Loading::Preload).env("RPDT_TICKS", "1").run();
    assert_eq!(&ran.expect(0).expect_silent().stdout, plain, "what is refused is refused as without");
    assert_clean(&dir, 1);
    let queues = plain.lines().filter(|line| line.ends_with(" kernels")).count();
    assert!(queues >= 5, "{plain}");
    assert_eq!(equals_log(&dir), 200 * queues);
}

#[test]
fn copies_that_are_refused() {
    let dir = Dir::new();
    let ran = recorded(&dir, "refused_copies").arg(aql_code_object("gfx900")).env("RPDT_TICKS", "1").run();
    assert_eq!(ran.expect(0).stdout, "40 kernels, 20 copies\n");
    assert!(ran.stderr.lines().all(|line| line.starts_with("HSA exception: ")), "{ran}");
    let trace = assert_clean(&dir, 1);
    assert_eq!(equals_log(&dir), 40);
    assert_eq!(trace.number("select count(*) from rocpd_copyapi"), 20, "a refused copy is no copy");
}

#[test]
fn a_queue_error_reaches_the_program() {
    let run = |dir| {
        let config = "[[fault]]\nkind = \"queue_error\"\npacket = 2\nerror = \"illegal_instruction\"\n";
        Run::new(dir, hazard("queue_error")).arg(aql_code_object("gfx900")).config(config)
    };
    let (dir, with) = (Dir::new(), Dir::new());
    let plain = run(&dir).run();
    let ran = run(&with).recorded(Loading::Preload).run();
    assert!(plain.stdout.contains("callback: status"), "{plain}");
    // The callback comes when the recorder has written: which line it follows is a matter of pace.
    let lines = |ran: &Ran| ran.stdout.lines().map(str::to_string).collect::<BTreeSet<_>>();
    assert_eq!((plain.status, lines(&plain)), (ran.status, lines(&ran)), "{plain}{ran}");
    let trace = with.trace("trace.rpd");
    Expected::of(&with.logs()[0].1).assert_equals(&trace);
    trace.check_integrity();
    let said = &trace.metadata("session::0::queue_error")["session::0::queue_error"];
    assert!(said.starts_with("queue 1 of GPU 0: HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION in "), "{said}");
    assert!(said.ends_with(" (packet 1)"), "{said}");
}

/// HIP and the HSA runtime abort then. The commits between come once a second.
#[test]
fn a_kernel_that_brings_the_program_down() {
    for (how, words) in [
        ("trap", "; failed: queue 1 of GPU 0: HSA_STATUS_ERROR_"),
        ("fault", "; not completed when it aborted: failing(int*, int) (queue 1 of GPU 0, packet "),
    ] {
        let (dir, without) = (Dir::new(), Dir::new());
        let plain = Run::new(&without, hazard("brought_down")).arg(how).run();
        plain.expect_signal(libc::SIGABRT);
        let run = Run::new(&dir, hazard("brought_down")).arg(how).env("RPDT_AUTOFLUSH", "1");
        let ran = run.recorded(Loading::RpdRecord).run();
        assert_eq!((ran.status, &ran.stdout), (plain.status, &plain.stdout), "{ran}");
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        let steps = "select count(*) from dispatch where kernelName like 'step(%'";
        assert_eq!(trace.number(steps), 100, "{how}: {ran}");
        let launches = "select count(*) from rocpd_kernelapi join rocpd_api on rocpd_api.id = api_ptr_id join rocpd_string N \
                        on N.id = kernelName_id where N.string like 'failing(%'";
        assert_eq!(trace.number(launches), 1, "{how}: the launch of what failed has its kernel: {ran}");
        assert_eq!(trace.number("select count(*) from rocpd_kernelapi"), 101, "{how}: once each: {ran}");
        let summary = ran.stderr.lines().last().unwrap_or_default();
        assert!(summary.starts_with("rpd: trace.rpd: 100 kernels, "), "{ran}");
        assert!(summary.contains(words) && summary.contains("failing(int*, int)"), "{ran}");
        assert!(summary.ends_with("; SIGABRT ended it"), "{ran}");
    }
}

/// HIP destroys its code objects in a child that only exits. Another thread of the parent was reading one at the fork.
#[test]
fn a_child_forked_while_a_code_object_is_read() {
    let dir = Dir::new();
    let ran = recorded(&dir, "forked_readers").arg(aql_code_object("gfx900")).run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "200 children\n");
}

#[test]
fn a_queue_that_is_destroyed_with_kernels_on_it() {
    let dir = Dir::new();
    let ran = recorded(&dir, "abandoned").arg(aql_code_object("gfx900")).run();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "2 kernels\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.lost().into_values().collect::<Vec<_>>(), ["2"], "{ran}");
    assert_eq!(trace.metadata("session::0::lost::incomplete").len(), 1);
    let calls =
        "select count(*), count(op_id) from rocpd_kernelapi left join rocpd_api_ops on api_id = api_ptr_id";
    assert_eq!(
        trace.rows(calls, |row| Ok((row.get(0)?, row.get(1)?))),
        [(4, 2)],
        "all are recorded, two have run"
    );
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
fn a_hundred_thousand_kernels_in_flight() {
    let run = |dir| Run::new(dir, hazard("in_flight")).arg(aql_code_object("gfx900"));
    // Events of the driver, and CPU time while all wait, ms.
    let printed = |ran: &Ran| {
        let words: Vec<&str> = ran.stdout.split([' ', ',']).collect();
        assert!(ran.stdout.ends_with(", 100000 kernels\n"), "{ran}");
        (words[0].parse::<u32>().unwrap(), words[3].parse::<u32>().unwrap())
    };
    let (dir, without) = (Dir::new(), Dir::new());
    let plain = run(&without).run();
    plain.expect(0);
    let ran = run(&dir).recorded(Loading::Preload).env("RPDT_TICKS", "1").run();
    ran.expect(0).expect_silent();
    let ((events, cpu), (plain_events, plain_cpu)) = (printed(&ran), printed(&plain));
    assert!((1..=plain_events + 256).contains(&events), "{plain}{ran}");
    assert!(cpu < plain_cpu + 300, "a thread that never rests would take a second: {plain}{ran}");
    assert_clean(&dir, 1);
    assert_eq!(equals_log(&dir), 100_000);
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
fn kernels_that_take_no_time() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("graph")).recorded(Loading::Preload).env("RPDT_TICKS", "1");
    run.config("[timing]\nkernel_ns = 0\n").run().expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    assert_eq!(equals_log(&dir), 1005);
    assert_eq!(trace.number("select count(*) from dispatch where end = start"), 1005);
}
