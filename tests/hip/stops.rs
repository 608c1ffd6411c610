//! Recording that is started and stopped: HIP times its commands only in between.

use crate::harness::{Dir, Loading, Run, hip_symbols, newer_rocm, program, recorder};

/// Launches without their kernels, and how many the session says.
const ALONE: &str = "select count(*) from api where apiName = 'hipLaunchKernel' and id not in (select api_id from rocpd_api_ops)";
const COUNTED: &str =
    "select coalesce(sum(value), 0) from rocpd_metadata where tag = 'session::0::launches_without_op'";

/// `warnings`: lines that the recorder has to say.
fn started_and_stopped(run: Run<'_>, dir: &Dir, timing: &str, warnings: usize) {
    let run = run.env("RPDT_AUTOSTART", "0").env("RPDT_FILENAME", dir.path("trace.rpd"));
    let ran = run.config("[timing]\nkernel_ns = 500000\n[[kernel]]\nmatch = \"storm\"\nns = 2000\n").run();
    assert_eq!(ran.expect(0).stderr.lines().count(), warnings, "{ran}");
    let trace = dir.trace("trace.rpd");
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    // A stop comes between the beginning of a launch and its packet, which another thread may hand over. HIP is told that it need not
    // time its commands any more.
    let alone = trace.number(ALONE);
    assert_eq!(trace.number(COUNTED), alone, "launches without their kernels are counted");
    assert!(timing == "hip" || alone == 0, "{alone} launches without their kernels");
    assert_eq!(trace.metadata("session::0::timing").into_values().collect::<Vec<_>>(), [timing]);
    // Kernels that were launched between a start and a stop, also when they ended behind it, each by its own call.
    let kernels = trace.texts(
        "select description || ' ' || count(*) from op join rocpd_api_ops on op_id = op.id join api on api.id = api_id \
         where apiName = 'hipLaunchKernel' and description not like 'storm%' group by description order by 1",
    );
    assert_eq!(kernels, ["first(int*) 20", "last(int*) 20", "nested(int*) 20", "second(int*) 20"]);
    let dangling = "select count(*) from rocpd_api_ops where api_id not in (select id from rocpd_api) \
         or op_id not in (select id from rocpd_op)";
    assert_eq!(trace.number(dangling), 0);
    let begins_early = "select printf('%s %s: op %d from %d to %d, call %d at %d', apiName, description, op.id, op.start, op.end, \
         api.id, api.start) from op join rocpd_api_ops on op_id = op.id join api on api.id = api_id \
         where op.start < api.start or op.end < op.start";
    assert_eq!(trace.texts(begins_early), [""; 0], "times of another kernel");
    // The wait that the second stop came into, and the one that the recorded callback was called in.
    assert!(trace.number("select count(*) from api where apiName = 'hipStreamSynchronize'") >= 2);

    let log = dir.logs().remove(0).1;
    let signals = |name: &str| {
        let packets = log.iter().filter(|packet| packet.name.contains(name));
        packets.map(|packet| packet.signal != 0).collect::<Vec<_>>()
    };
    for recorded in ["5first", "6second", "6nested", "4last"] {
        assert_eq!(signals(recorded), [true; 20], "{recorded}");
    }
    // Packets of an intercepted queue have signals of the recorder's at all times before ROCr 6.0; later versions of HIP go on.
    if timing == "hip" && !newer_rocm() {
        assert_eq!(signals("unrecorded"), [false; 85], "timed for nothing");
    }
}

#[test]
fn with_intercepted_queues() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_stops")).recorded(Loading::Preload).env("RPDT_TIMING", "hsa");
    started_and_stopped(run, &dir, "hsa", 0);
}

#[test]
fn with_intercepted_queues_by_symbols() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_stops")).preload(&[recorder(), hip_symbols()]);
    started_and_stopped(run.env("RPDT_HIP_CALLS", "symbols").env("RPDT_TIMING", "hsa"), &dir, "hsa", 0);
}

#[test]
fn by_hips_own_times() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_stops")).recorded(Loading::Preload).env("RPDT_TIMING", "hip");
    started_and_stopped(run, &dir, "hip", 0);
}

#[test]
fn with_a_recorder_that_came_late() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_stops")).env("RECORDER", recorder());
    started_and_stopped(run, &dir, "hip", usize::from(!newer_rocm()));
}
