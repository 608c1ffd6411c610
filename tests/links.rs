//! Ops, calls, launches and threads lead to each other. What the tests of oracle.rs record is checked too.

use std::collections::BTreeSet;

use crate::harness::{Dir, Loading, Ran, Run, Trace, program, rpd};

/// Calls by which HIP launches one kernel.
fn launches_one(name: &str) -> bool {
    name.contains("LaunchKernel") || name.contains("LaunchCooperativeKernel") && !name.contains("MultiDevice")
}

/// Every op has one call, which came first and says the same. Threads that submitted something.
pub(crate) fn check_links(trace: &Trace, pid: u32) -> BTreeSet<u32> {
    let (apis, calls) = (trace.apis(), trace.calls_of_ops());
    let (dispatches, kernel_apis, copy_apis) = (trace.dispatches(), trace.kernel_apis(), trace.copy_apis());
    let ops = trace.ops();
    let mut called = BTreeSet::new();
    let mut launched = BTreeSet::new();
    for op in &ops {
        let [call] = calls.get(&op.id).map_or(&[][..], Vec::as_slice) else {
            panic!("not one call: {op:?}: {:?}", calls.get(&op.id));
        };
        called.insert(*call);
        let api = &apis[call];
        assert_eq!(api.pid, pid, "{api:?}");
        assert!(api.start <= api.end, "{api:?}");
        assert!(op.start <= op.end && op.start >= api.start, "{op:?} of {api:?}");
        let is_kernel = op.op_type == "KernelExecution";
        assert_eq!(dispatches.contains_key(&op.id), is_kernel, "{op:?}");
        if is_kernel && (api.name == "hsaDispatch" || launches_one(&api.name)) {
            assert!(launched.insert(*call), "two kernels of one launch: {op:?}");
            assert_eq!(kernel_apis.get(call), dispatches.get(&op.id), "{op:?}");
        } else if is_kernel {
            assert!(api.name.starts_with("hipGraphLaunch") || api.name.contains("MultiDevice"), "{api:?}");
        }
        if op.op_type.starts_with("Copy") && api.name != "hsaDispatch" && api.name != "hipGraphLaunch" {
            assert!(copy_apis.contains_key(call), "{op:?} of {api:?}");
        }
        if !api.name.starts_with("hip") {
            let by_engine = op.queue == 0;
            assert_eq!(api.name.starts_with("hsa_amd_memory_async_copy"), by_engine, "{api:?} of {op:?}");
            assert_eq!((copy_apis.contains_key(call), &*api.args), (by_engine, ""), "{api:?} of {op:?}");
        }
    }
    for (id, api) in &apis {
        // Everything completed: only calls of HIP may have no op. A launch without one was captured.
        assert!(api.name.starts_with("hip") || called.contains(id), "{api:?} without an op");
        let one_kernel = api.name == "hsaDispatch" && kernel_apis.contains_key(id) || launches_one(&api.name);
        assert_eq!(kernel_apis.contains_key(id), one_kernel, "{api:?}");
    }
    assert!(kernel_apis.values().all(|launch| !launch.name.is_empty()), "every kernel has a name");
    called.iter().map(|call| apis[call].tid).collect()
}

fn recorded(dir: &Dir, run: Run<'_>, loading: Loading) -> (Ran, Trace) {
    let ran = run.recorded(loading).run();
    ran.expect(0);
    (ran, dir.trace("trace.rpd"))
}

#[test]
fn a_program_with_one_thread() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let (ran, trace) = recorded(&dir, Run::new(&dir, program("graph")), loading);
        assert_eq!(check_links(&trace, ran.pid), BTreeSet::from([ran.pid]));
    }
}

#[test]
fn a_program_with_many_threads() {
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let (ran, trace) = recorded(&dir, Run::new(&dir, program("streams")).gpus(2), loading);
        let threads = check_links(&trace, ran.pid);
        assert_eq!(threads.len(), 8, "2 GPUs with 4 threads each: {threads:?}");
        assert!(!threads.contains(&ran.pid), "main launches nothing");
    }
}

/// rocmProfileData's two examples for Julia. The pictures of docs/idle.md are of this program.
#[test]
fn a_program_that_waits_for_each_kernel_looks_different() {
    for (mode, pattern) in [("loop", "LS".repeat(10) + "S"), ("end", "L".repeat(10) + "S")] {
        let dir = Dir::new();
        Run::new(&dir, program("synchronised")).recorded(Loading::RpdRecord).arg(mode).run().expect(0);
        let export = Run::new(&dir, rpd()).arg("export").arg("chrome").arg("trace.rpd").run();
        let exported: serde_json::Value = serde_json::from_str(&export.expect(0).stdout).unwrap();
        let slices = exported["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X");
        let mut calls: Vec<(i64, char)> = slices
            .filter_map(|slice| {
                let letter = match slice["name"].as_str()? {
                    "hipLaunchKernel" => 'L',
                    "hipDeviceSynchronize" => 'S',
                    _ => return None,
                };
                Some((slice["args"]["begin_ns"].as_i64()?, letter))
            })
            .collect();
        calls.sort_unstable();
        assert_eq!(calls.into_iter().map(|(_, letter)| letter).collect::<String>(), pattern, "{mode}");
    }
}
