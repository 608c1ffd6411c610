//! Graphs: matched within a process and by time, whatever handles are used again; composed where nothing else is known.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::harness::Dir;

/// Every row of a query, values joined by blanks.
fn rows(trace: &Connection, query: &str) -> Vec<String> {
    let mut select = trace.prepare(query).unwrap();
    let columns = select.column_count();
    let rows = select.query_map([], |row| {
        let values = (0..columns).map(|column| {
            Ok(match row.get::<_, Value>(column)? {
                Value::Null => "-".to_string(),
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => text,
                other => format!("{other:?}"),
            })
        });
        Ok(values.collect::<rusqlite::Result<Vec<_>>>()?.join(" "))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

const GRAPHS: &str = r#"SELECT graph, graphExec, stream, start, "end" FROM ext_graph ORDER BY id"#;
const KERNELS: &str = "SELECT G.graphExec, A.sequence, A.api_id FROM ext_graph_kernelapis A
    JOIN ext_graph G ON G.id = A.graph_id ORDER BY A.graph_id, A.sequence";

/// Calls of a trace that is written down line by line.
#[derive(Default)]
struct Calls {
    sql: String,
    texts: Vec<String>,
    session: i64,
    pid: i64,
    tid: i64,
    now: i64,
}

impl Calls {
    fn new() -> Calls {
        Calls { pid: 1, tid: 1, texts: vec![String::new()], ..Calls::default() }
    }

    fn text(&mut self, text: &str) -> usize {
        let known = self.texts.iter().position(|known| known == text);
        1 + known.unwrap_or_else(|| {
            self.texts.push(text.to_string());
            self.texts.len() - 1
        })
    }

    /// A call of 10 ns, 10 ns after the one before; its id is its start.
    fn call(&mut self, name: &str, args: &str) -> i64 {
        self.now += 20;
        let (name, args) = (self.text(name), self.text(args));
        let (id, start) = ((self.session << 32) + self.now, self.now);
        let (pid, tid, end) = (self.pid, self.tid, start + 10);
        self.sql +=
            &format!("INSERT INTO rocpd_api VALUES ({id}, {pid}, {tid}, {start}, {end}, {name}, {args});\n");
        id
    }

    /// A launch of a kernel on a stream.
    fn launch(&mut self, stream: &str) -> i64 {
        let id = self.call("hipLaunchKernel", "");
        self.arguments(id, stream);
        id
    }

    fn arguments(&mut self, id: i64, stream: &str) {
        let name = self.text("kern<int>(float*)");
        self.sql += &format!(
            "INSERT INTO rocpd_kernelapi VALUES ({id}, '{stream}', 1, 2, 3, 4, 5, 6, 7, 8, '', '', '', '', {name});\n"
        );
    }

    /// Something that a call ran.
    fn op(&mut self, api: i64, (start, end): (i64, i64), kind: &str, name: &str) {
        let (kind, name) = (self.text(kind), self.text(name));
        self.sql += &format!(
            "INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (3, 1, 0, '', {start}, {end}, {name}, {kind});
             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({api}, last_insert_rowid());\n"
        );
    }

    /// Makes the trace, runs the pass, and gives what it said.
    fn run(mut self) -> (Connection, String, Dir) {
        for (at, text) in self.texts.iter().enumerate() {
            let text = text.replace('\'', "''");
            self.sql += &format!("INSERT INTO rocpd_string VALUES ({}, '{text}');\n", at + 1);
        }
        let dir = Dir::new();
        let trace = dir.trace("graph.rpd", &self.sql);
        let ran = dir.run(&["graph", &trace]);
        ran.expect(0);
        dir.run(&["check", &trace]).expect(0);
        (dir.open(&trace), ran.stderr, dir)
    }
}

#[test]
fn a_handle_means_what_its_process_made_of_it_last() {
    let mut calls = Calls::new();
    let mut expected = Vec::new();
    // The same handles twice in one process, and in another one in between.
    for (round, pid) in [(1, 1), (2, 9), (3, 1)] {
        calls.pid = pid;
        calls.call("hipStreamBeginCapture", "stream = 0x5 | mode = 1");
        for _ in 0..round {
            expected.push(format!("0xe {} {}", expected.len(), calls.launch("0x5")));
        }
        calls.call("hipStreamEndCapture", "stream=0x5 | graph=0x9");
        calls.call("hipGraphInstantiate", "graphExec = 0xe | graph = 0x9");
    }
    let (trace, notes, _dir) = calls.run();
    let mut found = rows(
        &trace,
        "SELECT G.graphExec, A.sequence, A.api_id FROM ext_graph_kernelapis A JOIN ext_graph G ON G.id = A.graph_id ORDER BY A.api_id",
    );
    let sequences: Vec<&str> = found.iter().map(|row| row.split(' ').nth(1).unwrap()).collect();
    assert_eq!(sequences, ["1", "1", "2", "1", "2", "3"]);
    for (at, row) in found.iter_mut().enumerate() {
        let parts: Vec<&str> = row.split(' ').collect();
        *row = format!("{} {at} {}", parts[0], parts[2]);
    }
    assert_eq!(found, expected);
    assert_eq!(rows(&trace, GRAPHS).len(), 3);
    assert_eq!(notes.lines().count(), 1, "nothing to remark: {notes}");
}

#[test]
fn a_graph_may_be_instantiated_often_or_never() {
    let mut calls = Calls::new();
    calls.call("cudaStreamBeginCapture_ptsz_v10000", "stream = 0x5 | mode = 1");
    let kernel = calls.launch("0x5");
    calls.call("cudaStreamEndCapture_v10000", "stream = 0x5 | graph = 0x9");
    calls.call("cudaGraphInstantiate_v10000", "graphExec = 0xa | graph = 0x9");
    calls.call("cudaGraphInstantiateWithFlags_v11040", "graphExec = 0xb | graph = 0x9");
    calls.call("hipStreamBeginCapture", "stream = 0x5 | mode = 1");
    calls.launch("0x5");
    calls.call("hipStreamEndCapture", "stream = 0x5 | graph = 0x9");
    let (trace, notes, _dir) = calls.run();
    assert_eq!(rows(&trace, GRAPHS), ["0x9 0xa 0x5 20 70", "0x9 0xb 0x5 20 70"]);
    assert_eq!(rows(&trace, KERNELS), [format!("0xa 1 {kernel}"), format!("0xb 1 {kernel}")]);
    assert_eq!(
        rows(&trace, "SELECT * FROM graphKernel"),
        ["0xa 1 kern<int>(float*) 1 2 3 4 5 6 7 8", "0xb 1 kern<int>(float*) 1 2 3 4 5 6 7 8"]
    );
    assert_eq!(rows(&trace, "SELECT apiName, stream, graph, graphExec FROM graphapi ORDER BY id").len(), 6);
    assert!(notes.contains("1 unused-graphs"), "{notes}");
}

#[test]
fn captures_may_overlap_and_fork() {
    let mut calls = Calls::new();
    calls.call("hipStreamBeginCapture", "stream = 0x5 | mode = 1");
    let forked_alone = calls.launch("0x77");
    let running = calls.launch("0x77");
    calls.op(running, (1000, 1100), "KernelExecution", "k");
    calls.tid = 2;
    calls.call("hipStreamBeginCapture", "stream = 0x6 | mode = 1");
    let in_six = calls.launch("0x6");
    let forked_by_thread_2 = calls.launch("0x77");
    calls.tid = 3;
    calls.launch("0x88");
    calls.tid = 1;
    let in_five = calls.launch("0x5");
    let forked_by_thread_1 = calls.launch("0x77");
    calls.pid = 2;
    calls.launch("0x5");
    calls.pid = 1;
    calls.call("hipStreamEndCapture", "stream = 0x5 | graph = 0x15");
    calls.tid = 2;
    calls.call("hipStreamEndCapture", "stream = 0x6 | graph = 0x16");
    calls.launch("0x77");
    calls.call("hipGraphInstantiate", "graphExec = 0x25 | graph = 0x15");
    calls.call("hipGraphInstantiate", "graphExec = 0x26 | graph = 0x16");
    let (trace, notes, _dir) = calls.run();
    let expected = [
        format!("0x25 1 {forked_alone}"),
        format!("0x25 2 {in_five}"),
        format!("0x25 3 {forked_by_thread_1}"),
        format!("0x26 1 {in_six}"),
        format!("0x26 2 {forked_by_thread_2}"),
    ];
    assert_eq!(rows(&trace, KERNELS), expected);
    assert!(notes.contains("1 ambiguous-launches"), "{notes}");
}

#[test]
fn a_graph_may_be_put_together_by_hand() {
    let mut calls = Calls::new();
    let mut nodes = Vec::new();
    calls.call("hipGraphCreate", "pGraph=0x9 | flags=0");
    for _ in 0..2 {
        let node = calls.call("hipGraphAddKernelNode", "pGraphNode=0x1 | graph=0x9 | numDependencies=0x0");
        calls.arguments(node, "");
        nodes.push(node);
    }
    calls.call("hipGraphInstantiateWithFlags", "graphExec = 0xa | graph = 0x9");
    // Of this one not even the kernels' names are known: it is composed of its launches.
    calls.call("hipGraphCreate", "pGraph=0x9 | flags=0");
    calls.call("hipGraphAddKernelNode", "pGraphNode=0x1 | graph=0x9 | numDependencies=0x0");
    calls.call("hipGraphInstantiate", "graphExec = 0xb | graph = 0x9");
    let known = calls.call("hipGraphLaunch", "graphExec = 0xa | stream = 0x0");
    calls.op(known, (1000, 1100), "Task", "k");
    let unknown = calls.call("hipGraphLaunch", "graphExec = 0xb | stream = 0x0");
    calls.op(unknown, (2000, 2100), "Task", "k");
    let (trace, ..) = calls.run();
    assert_eq!(rows(&trace, KERNELS), [format!("0xa 1 {}", nodes[0]), format!("0xa 2 {}", nodes[1])]);
    let graphs = rows(&trace, "SELECT graph, graphExec, stream FROM ext_graph ORDER BY id");
    assert_eq!(graphs, ["0x9 0xa ", "composed 0xb 0x0"]);
}

#[test]
fn launches_alone_make_a_composed_graph() {
    let mut calls = Calls::new();
    let cut_off = calls.call("hipGraphLaunch", "graphExec = 0xa | stream = 0x5");
    calls.op(cut_off, (1000, 1100), "Task", "second");
    let whole = calls.call("hipGraphLaunch", "graphExec = 0xa | stream = 0x5");
    calls.op(whole, (3000, 4500), "Task", "second");
    calls.op(whole, (2000, 3000), "Task", "first");
    calls.op(whole, (4500, 5000), "CopyDeviceToDevice", "");
    calls.pid = 2;
    calls.call("hipGraphLaunch", "graphExec = 0xb | stream = 0x5");
    let (trace, notes, _dir) = calls.run();
    assert_eq!(rows(&trace, GRAPHS), ["composed 0xa 0x5 40 50"]);
    assert_eq!(
        rows(&trace, "SELECT * FROM graphKernel"),
        ["0xa 1 first - - - - - - - -", "0xa 2 second - - - - - - - -"]
    );
    assert_eq!(
        rows(&trace, "SELECT * FROM graphLaunch ORDER BY id"),
        [
            format!("{cut_off} 1 1 hipGraphLaunch 0xa 0x5 3 1 0 0 0 0 0 0"),
            format!("{whole} 1 1 hipGraphLaunch 0xa 0x5 3 1 0 3 3 0 3 3")
        ]
    );
    assert!(notes.contains("1 composed-graphs") && notes.contains("1 different-launches"), "{notes}");
}

#[test]
fn what_is_cut_off_or_fails_is_reported() {
    let mut calls = Calls::new();
    calls.call("hipStreamEndCapture", "stream = 0x4 | graph = 0x9");
    calls.call("hipGraphInstantiate", "graphExec = 0xa | graph = 0x9");
    calls.call("hipStreamBeginCapture", "stream = 0x5 | mode = 1");
    calls.call("hipStreamEndCapture", "stream = 0x5 | graph = 0x0");
    calls.call("hipStreamBeginCapture", "stream = 0x5 | mode = 1");
    calls.launch("0x5");
    let (trace, notes, _dir) = calls.run();
    assert!(rows(&trace, GRAPHS).is_empty() && rows(&trace, KERNELS).is_empty());
    assert!(notes.contains("2 unfinished-captures") && notes.contains("1 failed-captures"), "{notes}");
}

#[test]
fn a_real_trace_without_captures_has_its_launches_and_kernels() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    dir.run(&["graph", &trace]).expect(0);
    let trace = dir.open(&trace);
    assert_eq!(rows(&trace, "SELECT count(*), sum(stream = '0x0') FROM rocpd_graphLaunchapi"), ["20 20"]);
    assert_eq!(rows(&trace, "SELECT graph, graphExec FROM ext_graph"), ["composed 0x24922d90"]);
    let by_hand = r#"SELECT L.id, (max(O."end") - min(O.start)) / 1000, sum(O."end" - O.start) / 1000
        FROM api L JOIN rocpd_api_ops P ON P.api_id = L.id JOIN rocpd_op O ON O.id = P.op_id
        WHERE L.apiName = 'hipGraphLaunch' GROUP BY L.id ORDER BY L.id"#;
    assert_eq!(
        rows(&trace, "SELECT id, opDuration, gpuTime FROM graphLaunch ORDER BY id"),
        rows(&trace, by_hand)
    );
    let first = r#"SELECT O.description FROM op O JOIN rocpd_api_ops P ON P.op_id = O.id
        WHERE P.api_id = (SELECT min(api_ptr_id) FROM rocpd_graphLaunchapi) AND O.opType IN ('Task', 'KernelExecution')
        ORDER BY O.start, O.id"#;
    let kernels = rows(&trace, "SELECT kernelName FROM graphKernel ORDER BY sequence");
    assert_eq!(kernels.len(), 386, "the other 32 operations of a launch are copies");
    assert!(kernels == rows(&trace, first));
}

#[test]
fn schemas_2_and_3_give_the_same_answers() {
    let dir = Dir::new();
    let answers = ["2", "3"].map(|schema| {
        let arguments =
            ["--schema", schema, "--events", "9000", "--processes", "2", "--graph-ops", "20", "--edge"];
        let trace = dir.generated(&format!("{schema}.rpd"), &arguments);
        dir.run(&["graph", &trace]).expect(0);
        let connection = dir.open(&trace);
        [
            "SELECT * FROM ext_graph",
            KERNELS,
            "SELECT * FROM graphKernel",
            "SELECT * FROM graphLaunch",
            "SELECT * FROM graphapi ORDER BY 1",
            "SELECT * FROM graphLaunchapi ORDER BY 1",
        ]
        .map(|query| rows(&connection, query))
    });
    assert!(answers[0].iter().all(|rows| !rows.is_empty()));
    assert!(answers[0] == answers[1]);
    // Two captures by each of two threads of two processes, of 20 kernels each.
    assert_eq!((answers[0][0].len(), answers[0][1].len()), (8, 160));
    dir.run(&["passes", "3.rpd"]).expect(0);
}
