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

/// What a call launches by itself is said once, in the call's row; what a graph launches has rows of its own.
#[test]
fn only_kernels_that_no_call_describes_have_a_row_of_their_own() {
    for (name, of_graphs, others) in [("graph", 1005, 0), ("streams", 0, 4000)] {
        let dir = Dir::new();
        Run::new(&dir, program(name)).recorded(Loading::Preload).run().expect(0);
        let trace = dir.trace("trace.rpd");
        let kernels = |condition: &str| {
            trace.number(&format!(
                "select count(*) from rocpd_op O join rocpd_api_ops L on L.op_id = O.id join api on api.id = L.api_id
                 join rocpd_string T on T.id = O.opType_id where T.string = 'KernelExecution' and apiName {condition} 'hipGraphLaunch'"
            ))
        };
        assert_eq!((kernels("="), kernels("<>")), (of_graphs, others), "{name}");
        assert_eq!(trace.number("select count(*) from ext_dispatch"), of_graphs, "{name}");
        let described =
            "select count(*) from rocpd_kernelapi where api_ptr_id in (select api_id from rocpd_api_ops)";
        assert_eq!(trace.number(described), others, "{name}");
        assert_eq!(trace.number("select count(*) from dispatch"), of_graphs + others, "{name}");
    }
}
