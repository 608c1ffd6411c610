use std::collections::{BTreeMap, BTreeSet};

use crate::harness::{Dir, Loading, Run, program};

/// Thread and number of the launch that has a kernel of that many workgroups (tests/programs/hip/links.hip).
fn launch_of(grid: u32) -> (u32, u32) {
    (grid / 1000 - 1, grid % 1000)
}

/// Every kernel's grid says which thread launched it and how many launches that thread had made before.
fn check(timing: &str, loading: Loading) {
    let dir = Dir::new();
    let run = Run::new(&dir, program("hip_links")).gpus(1).recorded(loading).env("RPDT_TIMING", timing);
    run.run().expect(0);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let (apis, dispatches, calls) = (trace.apis(), trace.dispatches(), trace.calls_of_ops());
    // The calls of each thread in order; captured launches come first and have no op.
    let with_op: BTreeSet<i64> = calls.values().flatten().copied().collect();
    let mut places = BTreeMap::new();
    let mut counts = BTreeMap::<u32, u32>::new();
    for (id, api) in apis.iter().filter(|(id, api)| api.name == "hipLaunchKernel" && with_op.contains(id)) {
        let count = counts.entry(api.tid).or_default();
        places.insert(*id, (api.tid, *count));
        *count += 1;
    }
    assert_eq!(counts.values().copied().collect::<Vec<_>>(), [300; 4]);
    let mut tids = BTreeMap::new();
    let mut graph_kernels = 0;
    for op in trace.ops() {
        let [call] = calls[&op.id][..] else { panic!("not one call: {op:?}") };
        let grid = dispatches[&op.id].grid[0];
        if apis[&call].name == "hipGraphLaunch" {
            // HIP's own records do not say how large a graph's kernels are.
            assert!(grid == 0 && timing == "hip" || grid % 100 == 0 && grid < 1000, "{op:?}");
            graph_kernels += 1;
            continue;
        }
        let (thread, number) = launch_of(grid);
        let (tid, place) = places[&call];
        assert_eq!((*tids.entry(thread).or_insert(tid), number), (tid, place), "{op:?}");
    }
    assert_eq!(tids.values().collect::<BTreeSet<_>>().len(), 4, "each thread its own");
    assert_eq!(graph_kernels, 4 * 30 * 2);
    let per_launch = "select min(n) || ' ' || max(n) || ' ' || count(*) from (select count(*) as n from rocpd_api_ops \
         join api on api.id = api_id where apiName = 'hipGraphLaunch' group by api_id)";
    assert_eq!(trace.texts(per_launch), ["2 2 120"]);
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
}

#[test]
fn by_intercepted_queues() {
    for loading in Loading::BOTH {
        check("hsa", loading);
    }
}

#[test]
fn by_hips_own_records() {
    for loading in Loading::BOTH {
        check("hip", loading);
    }
}
