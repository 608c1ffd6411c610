//! Graphs of a real HIP program, captured and put together by hand, as `rpd graph` finds them in what was recorded.

use crate::harness::{Dir, Loading, Run, program, rpd, tool};

#[test]
fn a_captured_graph_has_its_kernels_and_launches() {
    let dir = Dir::new();
    Run::new(&dir, program("graph")).recorded(Loading::Preload).run().expect(0);
    tool(rpd().to_str().unwrap(), &["graph", dir.path("trace.rpd").to_str().unwrap()]);
    let trace = dir.trace("trace.rpd");
    // A graph's handle is an address, and the second graph may have that of the first, which is gone: then they share the view's rows.
    let kernels = trace.texts(
        "SELECT DISTINCT sequence || ' ' || kernelName FROM graphKernel ORDER BY kernelName, sequence",
    );
    let mut expected: Vec<_> = (1..=50).map(|number| format!("{number} captured_step(int*, int)")).collect();
    // The other graph's one kernel is known by its launches only.
    expected.push("1 explicit_square(int const*, int*, int)".to_string());
    assert_eq!(kernels, expected);
    let graphs = "SELECT G.graph = 'composed', (SELECT count(*) FROM ext_graph_kernelapis WHERE graph_id = G.id) || ' ' ||
        (SELECT count(*) FROM ext_graph_kernelops WHERE graph_id = G.id) FROM ext_graph G ORDER BY 1";
    let graphs = trace.rows(graphs, |row| Ok((row.get::<_, bool>(0)?, row.get::<_, String>(1)?)));
    assert_eq!(graphs, [(false, "50 0".to_string()), (true, "0 1".to_string())]);
    let launches = "SELECT O.description LIKE 'explicit_square%', count(DISTINCT L.id) FROM graphLaunch L
        JOIN rocpd_api_ops P ON P.api_id = L.id JOIN op O ON O.id = P.op_id WHERE O.opType = 'KernelExecution' GROUP BY 1 ORDER BY 1";
    let launches = trace.rows(launches, |row| Ok((row.get::<_, bool>(0)?, row.get::<_, i64>(1)?)));
    assert_eq!(launches, [(false, 20), (true, 5)]);
    let wrong = "SELECT count(*) FROM graphLaunch WHERE gpuTime > opDuration + 1 OR opDuration < 0";
    assert_eq!(trace.number(wrong), 0, "kernels of one stream do not overlap");
}
