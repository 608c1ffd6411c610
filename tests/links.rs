//! Ops, calls, launches and threads lead to each other. What the tests of oracle.rs record is checked too.

use std::collections::BTreeSet;

use crate::harness::{Dir, Loading, Ran, Run, Trace, program};

/// Every op has one call, which came first and says the same. Threads that submitted something.
pub(crate) fn check_links(trace: &Trace, pid: u32) -> BTreeSet<u32> {
    let (apis, calls) = (trace.apis(), trace.calls_of_ops());
    let (dispatches, kernel_apis, copy_apis) = (trace.dispatches(), trace.kernel_apis(), trace.copy_apis());
    let ops = trace.ops();
    let mut called = BTreeSet::new();
    for op in &ops {
        let [call] = calls.get(&op.id).map_or(&[][..], Vec::as_slice) else {
            panic!("not one call: {op:?}: {:?}", calls.get(&op.id));
        };
        assert!(called.insert(*call), "two ops of one call: {op:?}");
        let api = &apis[call];
        assert_eq!(api.pid, pid, "{api:?}");
        assert!(api.start <= api.end, "{api:?}");
        assert!(op.start <= op.end && op.start >= api.start, "{op:?} of {api:?}");
        let by_engine = op.queue == 0;
        if by_engine {
            assert!(api.name.starts_with("hsa_amd_memory_async_copy"), "{api:?} of {op:?}");
        } else {
            assert_eq!((&*api.name, &*api.args), ("hsaDispatch", ""), "{api:?} of {op:?}");
        }
        assert_eq!(copy_apis.contains_key(call), by_engine, "{op:?}");
        let is_kernel = op.op_type == "KernelExecution";
        assert_eq!(dispatches.contains_key(&op.id), is_kernel, "{op:?}");
        assert_eq!(kernel_apis.get(call), dispatches.get(&op.id), "{op:?}");
    }
    // No call without an op either: everything completed.
    assert_eq!(apis.keys().copied().collect::<BTreeSet<_>>(), called);
    assert_eq!(kernel_apis.len(), dispatches.len());
    apis.values().map(|api| api.tid).collect()
}

fn recorded(dir: &Dir, run: Run<'_>) -> (Ran, Trace) {
    let ran = run.recorded(Loading::Preload).run();
    ran.expect(0);
    (ran, dir.trace("trace.rpd"))
}

#[test]
fn a_program_with_one_thread() {
    let dir = Dir::new();
    let (ran, trace) = recorded(&dir, Run::new(&dir, program("graph")));
    assert_eq!(check_links(&trace, ran.pid), BTreeSet::from([ran.pid]));
}

#[test]
fn a_program_with_many_threads() {
    let dir = Dir::new();
    let (ran, trace) = recorded(&dir, Run::new(&dir, program("streams")).gpus(2));
    let threads = check_links(&trace, ran.pid);
    assert_eq!(threads.len(), 8, "2 GPUs with 4 threads each: {threads:?}");
    assert!(!threads.contains(&ran.pid), "main launches nothing");
}
