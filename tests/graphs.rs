//! Graphs of a real HIP program, captured and put together by hand, as `rpd graph` finds them in what was recorded.

use crate::harness::{Dir, Loading, Run, program, rpd, tool};

#[test]
fn a_captured_graph_has_its_kernels_and_launches() {
    let dir = Dir::new();
    Run::new(&dir, program("graph")).recorded(Loading::Preload).run().expect(0);
    tool(rpd().to_str().unwrap(), &["graph", dir.path("trace.rpd").to_str().unwrap()]);
    let trace = dir.trace("trace.rpd");
    // 50 kernels captured; the other graph's one kernel is known by its launches only.
    let kernels = "SELECT G.graph = 'composed', K.sequence || ' ' || K.kernelName FROM ext_graph G
        JOIN graphKernel K ON K.graphExec = G.graphExec ORDER BY 1, K.sequence";
    let kernels = trace.rows(kernels, |row| Ok((row.get::<_, bool>(0)?, row.get::<_, String>(1)?)));
    let expected = (1..=50).map(|number| (false, format!("{number} captured_step(int*, int)")));
    let expected = expected.chain([(true, "1 explicit_square(int const*, int*, int)".to_string())]);
    assert_eq!(kernels, expected.collect::<Vec<_>>());
    let launches = "SELECT L.graphExec = (SELECT graphExec FROM ext_graph WHERE graph = 'composed'), count(*)
        FROM graphLaunch L GROUP BY 1";
    let launches = trace.rows(launches, |row| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?)));
    assert_eq!(launches, [(false, 20), (true, 5)]);
    let wrong = "SELECT count(*) FROM graphLaunch WHERE gpuTime > opDuration + 1 OR opDuration < 0";
    assert_eq!(trace.number(wrong), 0, "kernels of one stream do not overlap");
}
