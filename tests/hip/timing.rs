use crate::harness::{Dir, Loading, Run, Trace, newer_rocm, program};

fn recorded(dir: &Dir, name: &str, timing: &str) -> Trace {
    let run = Run::new(dir, program(name)).gpus(2).recorded(Loading::Preload).env("RPDT_TIMING", timing);
    let ran = run.run();
    ran.expect(0);
    assert_eq!(ran.stderr, "");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!(trace.metadata("session::0::timing").into_values().collect::<Vec<_>>(), [timing]);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    trace
}

/// How many operations of each type, GPU and name each function caused. HIP 5.2 does not say which kernels a graph runs.
fn operations(trace: &Trace) -> Vec<String> {
    // HIP 6 makes small copies to the host by a kernel, which does not say where its buffers lie.
    let kind = if newer_rocm() { "iif(opType like 'Copy%', 'Copy', opType)" } else { "opType" };
    trace.texts(&format!(
        "select {kind} || ' ' || gpuId || ' ' || iif(apiName = 'hipGraphLaunch', '', description) || ' ' || apiName || ' ' || \
         count(*) from op join rocpd_api_ops on op_id = op.id join api on api.id = api_id \
         group by {kind}, gpuId, iif(apiName = 'hipGraphLaunch', '', description), apiName order by 1"
    ))
}

#[test]
fn both_give_the_same_operations() {
    for name in ["demo", "streams", "graph"] {
        let (one, other) = (Dir::new(), Dir::new());
        let (hsa, hip) = (recorded(&one, name, "hsa"), recorded(&other, name, "hip"));
        assert_eq!(operations(&hsa), operations(&hip), "{name}");
        let launches = "select count(*) || ' ' || sum(gridX) || ' ' || sum(workgroupX) || ' ' || count(distinct kernelName_id) \
             from rocpd_kernelapi";
        assert_eq!(hsa.texts(launches), hip.texts(launches), "{name}");
        // How a kernel was launched is said once. HIP knows of dynamic LDS only, and not which kernels a graph runs.
        let twice = "select count(*) from ext_dispatch D join rocpd_api_ops L on L.op_id = D.op_id join rocpd_kernelapi on api_ptr_id = api_id";
        assert_eq!((hsa.number(twice), hip.number(twice)), (0, 0), "{name}");
        let shown = "select D.kernelName || ' ' || D.gridX || ' ' || D.gridY || ' ' || D.workgroupX || ' ' || count(*) from dispatch D \
             join rocpd_api_ops on op_id = D.id join api on api.id = api_id where apiName <> 'hipGraphLaunch' \
             group by D.kernelName, D.gridX, D.gridY, D.workgroupX order by 1";
        assert_eq!(hsa.texts(shown), hip.texts(shown), "{name}");
        assert_eq!(
            hip.number("select count(*) from dispatch"),
            hip.number("select count(*) from op where opType = 'KernelExecution'")
        );
        let busy = |trace: &Trace| trace.number("select sum(end - start) from dispatch") as f64;
        let ratio = busy(&hip) / busy(&hsa);
        // Simulated kernels take the same time in every run.
        assert!((0.99..1.01).contains(&ratio), "{name}: {ratio}");
    }
}

/// The summary says how many kernels HIP did not time, and does not guess that there were none.
#[test]
fn kernels_that_nobody_waited_for_are_launches_in_the_summary() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_not_waited")).recorded(Loading::RpdRecord);
    let ran = run.env("RPDT_TIMING", "hip").run();
    ran.expect(0);
    let timed = dir.trace("trace.rpd").number("select count(*) from rocpd_op");
    assert!(ran.stderr.contains(&format!("{timed} kernels, 0 copies, ")), "{ran}");
    if !newer_rocm() {
        assert!(ran.stderr.contains("3 launches without an operation"), "{ran}");
    }
    assert!(!ran.stderr.contains("dispatched no kernel"), "{ran}");
}

#[test]
fn an_unknown_word_is_one_line() {
    let dir = Dir::new();
    let ran = Run::new(&dir, program("graph")).recorded(Loading::Preload).env("RPDT_TIMING", "gpu").run();
    ran.expect(0);
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("RPDT_TIMING=gpu is not auto, hsa or hip"), "{ran}");
}
