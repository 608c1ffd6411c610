//! Many processes and one file; a long kernel beside many short ones.

use std::collections::BTreeSet;

use crate::harness::{Dir, Expected, Loading, Run, Trace, program};

/// Every session has exactly the ops of its process.
#[track_caller]
fn check_sessions(dir: &Dir, trace: &Trace, processes: usize) {
    let logs = dir.logs();
    let sessions = trace.sessions();
    assert_eq!((logs.len(), sessions.len(), trace.session_count()), (processes, processes, processes));
    let ops = trace.ops();
    for (pid, log) in &logs {
        let own: Vec<_> = ops.iter().filter(|op| op.id >> 32 == sessions[pid]).cloned().collect();
        Expected::of(log).assert_equals_ops(trace, &own);
        let pids =
            format!("select count(*) from rocpd_api where id >> 32 = {} and pid != {pid}", sessions[pid]);
        assert_eq!(trace.number(&pids), 0);
    }
    trace.check_integrity();
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
}

#[test]
fn eight_ranks_with_one_gpu_each() {
    let dir = Dir::new();
    let rank = |rank: u32| {
        let run = Run::new(&dir, program("graph")).gpus(8).recorded(Loading::Preload);
        run.env("ROCR_VISIBLE_DEVICES", rank.to_string()).env("RANK", rank.to_string())
    };
    let runs: Vec<_> = (0..8).map(rank).collect();
    for running in Run::start_all(&runs) {
        running.finish().expect(0).expect_silent();
    }
    let trace = dir.trace("trace.rpd");
    check_sessions(&dir, &trace, 8);
    let gpus: BTreeSet<u32> = trace.ops().iter().map(|op| op.gpu).collect();
    assert_eq!(gpus, (0..8).collect());
    // A rank's variable and its GPU are in the same session.
    let ranks = trace.metadata("session::%::env::RANK");
    assert_eq!(ranks.len(), 8);
    for (tag, rank) in ranks {
        let session = tag.split("::").nth(1).unwrap();
        let gpus = trace
            .texts(&format!("select distinct cast(gpuId as text) from rocpd_op where id >> 32 = {session}"));
        assert_eq!(gpus, [rank], "session {session}");
    }
}

#[test]
fn one_process_after_the_other() {
    let dir = Dir::new();
    for _ in 0..2 {
        Run::new(&dir, program("graph")).recorded(Loading::Preload).run().expect(0).expect_silent();
    }
    check_sessions(&dir, &dir.trace("trace.rpd"), 2);
}

const SHORT: &str = "select count(*) from dispatch where kernelName like 'short_kernel(%'";
const LONG: &str = "select count(*) from op where description like 'long_kernel(%'";

#[test]
fn a_long_kernel_holds_back_no_short_one() {
    let dir = Dir::new();
    // It never ends: whatever is readable was not held back by it.
    let config = "[[fault]]\nkind = \"hang\"\nkernel = \"long_kernel\"\n\
        [[kernel]]\nmatch = \"short_kernel\"\nns = 1000\n";
    let run = Run::new(&dir, program("long")).config(config).recorded(Loading::Preload);
    let mut running = run.start();
    running.wait_for_output("short done\n");
    dir.wait_for_rows("trace.rpd", SHORT, 100_000);
    assert!(running.is_alive());
    running.signal(libc::SIGKILL);
    running.finish().expect_signal(libc::SIGKILL).expect_silent();
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.number(LONG), trace.number(SHORT)), (0, 100_000));
}

#[test]
fn a_long_kernel_beside_many_short_ones() {
    let dir = Dir::new();
    let config = "[[kernel]]\nmatch = \"long_kernel\"\nns = 2000000000\n\
        [[kernel]]\nmatch = \"short_kernel\"\nns = 1000\n";
    let ran = Run::new(&dir, program("long")).config(config).recorded(Loading::Preload).run();
    assert_eq!(ran.expect(0).expect_silent().stdout, "short done\nlong done\n", "{ran}");
    let trace = dir.trace("trace.rpd");
    assert_eq!((trace.number(LONG), trace.number(SHORT)), (1, 100_000));
    // What was told of the long one while it ran is not said again at its end.
    let twice = "select count(*) from ext_dispatch D join rocpd_api_ops L on L.op_id = D.op_id join rocpd_kernelapi on api_ptr_id = api_id";
    assert_eq!(trace.number(twice), 0);
    Expected::of(&dir.logs()[0].1).assert_equals(&trace);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
}
