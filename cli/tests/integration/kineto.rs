//! `rpd export kineto`: what tools of PyTorch make of it is compared with SQL and with `rpd overlap`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use rusqlite::Connection;
use serde_json::Value;

use crate::export::{AnyCall, any_calls, expected, links, with_launch_attributes, write};
use crate::generated::{generated, to_schema_3};
use crate::harness::{Dir, not_installed, ran};
use crate::property::holds;

/// The whole file.
fn exported(dir: &Dir, trace: &str, options: &[&str]) -> Value {
    let output = dir.rpd(&[&["export", "kineto", trace], options].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn events(file: &Value) -> &Vec<Value> {
    file["traceEvents"].as_array().unwrap()
}

/// A time in ns, which is exact in these traces when it is rounded.
fn ns(event: &Value, key: &str) -> i64 {
    (event[key].as_f64().unwrap() * 1000.0).round() as i64
}

fn category(event: &Value) -> &str {
    event["cat"].as_str().unwrap_or("")
}

fn is_op(event: &&Value) -> bool {
    ["kernel", "gpu_memcpy", "gpu_memset", "cuda_sync"].contains(&category(event))
}

fn is_call(event: &&Value) -> bool {
    ["cuda_runtime", "cuda_driver", "cpu_op", "user_annotation"].contains(&category(event))
}

fn text(connection: &Connection, query: &str) -> BTreeMap<i64, String> {
    let mut query = connection.prepare(query).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().collect::<Result<_, _>>().unwrap()
}

/// Everything that must hold for the export of a whole trace.
fn check(dir: &Dir, trace: &str) {
    let connection = dir.open(trace);
    let file = exported(dir, trace, &[]);
    let zero = file["baseTimeNanoseconds"].as_i64().unwrap();
    let events = events(&file);
    // Tools number events by their place and take a link to number 0 for none.
    assert!(events.first().is_none_or(|first| first["ph"] == "M"));
    let times = |event: &Value| {
        let start = ns(event, "ts") + zero;
        (start, if event["ph"] == "i" { start } else { start + ns(event, "dur") })
    };
    let (calls, ops) = expected(&connection);
    let mut all: Vec<(i64, i64)> = calls.iter().map(|call| (call.3, call.4)).collect();
    let mut found: Vec<(i64, i64)> = events.iter().filter(is_call).map(times).collect();
    all.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, all);
    let mut all: Vec<(i64, i64, i64, i64)> = ops.iter().map(|op| (op.0, op.1, op.3, op.4)).collect();
    let mut found: Vec<(i64, i64, i64, i64)> = events
        .iter()
        .filter(is_op)
        .map(|event| {
            let number = |key: &str| event["args"][key].as_i64().unwrap();
            if category(event) != "cuda_sync" {
                assert_eq!(number("stream"), number("queue") + 1);
            }
            let (start, end) = times(event);
            (number("device"), number("queue"), start, end)
        })
        .collect();
    all.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, all);
    // One arrow leaves each call that caused something, and reaches all of that.
    let of = |ph: &str| -> Vec<&Value> { events.iter().filter(|event| event["ph"] == ph).collect() };
    let links = links(&connection);
    let causing: BTreeSet<i64> = links.iter().map(|link| link.1).collect();
    let left: Vec<i64> = of("s").iter().map(|event| event["id"].as_i64().unwrap()).collect();
    assert_eq!(left.len(), causing.len());
    assert_eq!(left.into_iter().collect::<BTreeSet<_>>(), causing);
    let starts = text(&connection, "SELECT id, CAST(start AS text) FROM rocpd_op");
    let mut reached: Vec<(i64, i64)> =
        of("f").iter().map(|event| (event["id"].as_i64().unwrap(), ns(event, "ts") + zero)).collect();
    let mut caused: Vec<(i64, i64)> =
        links.iter().map(|link| (link.1, starts[&link.2].parse().unwrap())).collect();
    reached.sort_unstable();
    caused.sort_unstable();
    assert_eq!(reached, caused);
    // What is looked up by correlation.
    let callers: HashMap<i64, &Value> = events
        .iter()
        .filter(is_call)
        .filter_map(|event| Some((event["args"]["correlation"].as_i64()?, event)))
        .collect();
    let markers = text(&connection, "SELECT id, args FROM api WHERE apiName = 'UserMarker'");
    for event in events.iter().filter(is_op) {
        if let Some(correlation) = event["args"]["correlation"].as_i64() {
            assert!(callers.contains_key(&correlation) || markers.contains_key(&correlation), "{event}");
        }
    }
}

/// What HolisticTraceAnalysis makes of it: the union of what has a stream, and of the computing part of that.
fn breakdown(file: &Value) -> [i64; 3] {
    let union = |kept: &dyn Fn(&Value) -> bool| {
        let mut ranges: Vec<(i64, i64)> = events(file)
            .iter()
            .filter(|event| event["args"]["stream"].as_i64().is_some_and(|stream| stream > 0) && kept(event))
            .map(|event| (ns(event, "ts"), ns(event, "ts") + ns(event, "dur")))
            .collect();
        ranges.sort_unstable();
        let (mut all, mut until) = (0, i64::MIN);
        for (start, end) in ranges {
            all += (end - start.max(until)).max(0);
            until = until.max(end);
        }
        all
    };
    let is_memory = |event: &Value| {
        ["Memcpy", "Memset"].iter().any(|prefix| event["name"].as_str().unwrap().starts_with(prefix))
    };
    [union(&|_| true), union(&|event| !is_memory(event)), union(&is_memory)]
}

#[test]
fn everything_of_real_traces_is_there_and_counts_as_in_rpd_overlap() {
    let dir = Dir::new();
    for (trace, busy) in [
        (dir.fixture("matmul_result.rpd"), None),
        (dir.unpacked("mytrace_raw.rpd"), Some([416_623_418, 407_137_122, 9_487_406])),
        (dir.unpacked("mytrace_as_shipped.rpd"), Some([416_623_418, 407_137_122, 9_487_406])),
    ] {
        check(&dir, &trace);
        let overlap = dir.run(&["overlap", "--json", &trace]).expect(0).stdout.clone();
        let overlap: Value = serde_json::from_str(&overlap).unwrap();
        let ours = ["busy_ns", "compute_ns", "copies_ns"].map(|key| overlap[0][key].as_i64().unwrap());
        let file = exported(&dir, &trace, &[]);
        assert_eq!(breakdown(&file), ours, "{trace}");
        assert!(busy.is_none_or(|busy| busy == ours), "{trace}: {ours:?}");
    }
}

/// Where `make setup` puts HolisticTraceAnalysis, and what it needs beside it.
const HTA: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../target/hta:", env!("CARGO_MANIFEST_DIR"), "/../target/pyarrow");

/// Writes what HolisticTraceAnalysis says of each rank of the traces in a folder.
const HTA_SAYS: &str = r#"
import sys
from hta.trace_analysis import TraceAnalysis
traces = TraceAnalysis(trace_dir=sys.argv[1])
ranks = traces.get_temporal_breakdown(visualize=False).merge(traces.get_comm_comp_overlap(visualize=False), on="rank")
print(ranks.to_json(orient="records"))
"#;

/// Two GPUs compute, communicate and copy; some of it at once.
const OVERLAPPING: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'CopyHostToDevice'), (4, 'gemm'), (5, 'ncclDevKernel_AllReduce'),
        (6, 'FillBuffer'), (7, 'hipLaunchKernel');
    INSERT INTO rocpd_api VALUES (1, 1, 8, 900000, 900100, 7, 1), (2, 1, 8, 900200, 900300, 7, 1);
    INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 2, 7);
    INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id) VALUES
        (1, 0, 0, 0, '', 1000001, 1700123, 4, 2), (2, 0, 1, 0, '', 1500007, 2100456, 5, 2), (3, 0, 2, 0, '', 2000003, 2300789, 1, 3),
        (4, 0, 0, 1, '', 2200011, 2250321, 4, 2), (5, 0, 0, 2, '', 2600013, 2600014, 4, 2), (6, 0, 0, 3, '', 2700000, 2700500, 1, 6),
        (7, 1, 0, 0, '', 1000500, 1400501, 5, 2), (8, 1, 0, 1, '', 1500000, 1600001, 4, 2);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::env::RANK', '3'), ('session::0::pid', '1');";

#[test]
fn holistic_trace_analysis_says_what_rpd_overlap_does() {
    let dir = Dir::new();
    let python = |script: &str, arguments: &[&str]| {
        let mut command = dir.command("python3");
        command
            .env("PYTHONPATH", HTA)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("HTA_DISABLE_NS_ROUNDING", "1");
        ran(command.args(["-c", script]).args(arguments))
    };
    if !python("from hta.trace_analysis import TraceAnalysis", &[]).status.success() {
        return not_installed("no HolisticTraceAnalysis");
    }
    for (trace, gpu, rank) in [
        (dir.unpacked("mytrace_raw.rpd"), "2", 0),
        (dir.trace("t.rpd", OVERLAPPING), "0", 3),
        (dir.path("t.rpd").to_string_lossy().into_owned(), "1", 3),
    ] {
        let folder = dir.path(&format!("gpu-{gpu}"));
        std::fs::create_dir(&folder).unwrap();
        let folder = folder.to_str().unwrap();
        dir.run(&["export", "kineto", "--gpu", gpu, "-o", &format!("{folder}/rank.json"), &trace]).expect(0);
        let said = python(HTA_SAYS, &[folder]);
        let said: Value = serde_json::from_str(said.expect(0).stdout.lines().last().unwrap()).unwrap();
        let overlap = dir.run(&["overlap", "--json", "--gpu", gpu, &trace]).expect(0).stdout.clone();
        let overlap: Value = serde_json::from_str(&overlap).unwrap();
        let ours = |key: &str| overlap[0][key].as_i64().unwrap();
        let exposed = ours("exposed_communication_ns") + ours("exposed_copies_ns");
        assert_eq!(said.as_array().map(Vec::len), Some(1), "{said}");
        assert_eq!(said[0]["rank"], rank, "{said}");
        assert_eq!(
            ["kernel_time(us)", "idle_time(us)", "compute_time(us)", "non_compute_time(us)"]
                .map(|key| ns(&said[0], key)),
            [ours("span_ns"), ours("idle_ns"), ours("compute_ns"), exposed],
            "{trace} {gpu}: {said} {overlap}"
        );
        // It has two decimals, and no number where nothing communicates.
        let (hidden, all) = (ours("hidden_communication_ns"), ours("communication_ns"));
        let percent = (all > 0).then(|| (10_000.0 * hidden as f64 / all as f64).round() / 100.0);
        assert_eq!(said[0]["comp_comm_overlap_pctg"].as_f64(), percent, "{trace} {gpu}: {overlap}");
    }
}

#[test]
fn everything_of_generated_traces_is_there() {
    for (seed, schema) in [(1, 2), (2, 3)] {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 300);
        if schema == 3 {
            to_schema_3(&dir, &trace);
        }
        check(&dir, &trace);
    }
}

#[test]
fn whatever_the_calls_and_operations_they_are_there() {
    holds(any_calls(), |calls: Vec<AnyCall>| {
        let dir = Dir::new();
        check(&dir, &write(&dir, &calls));
    });
}

/// A launch, a copy, a fill and a barrier of GPU 1, operators and a mark; process 1 has the number that GPU 1 would have.
const WORK: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipLaunchKernel'), (4, 'KernelExecution'), (5, 'CopyHostToDevice'),
        (6, 'FillBuffer'), (7, 'Barrier'), (8, 'k'), (9, 'aten::mm, seq = 5, op_id = 7, sizes = [[2, 3], []]'), (10, 'step'),
        (11, 'aten::x, sizes = [[a]]'), (12, 'hsa_init'), (13, 'decorated');
    INSERT INTO rocpd_kernelcodeobject VALUES (9, 32, 16, 0);
    INSERT INTO rocpd_api VALUES (1, 1, 8, 100, 400, 2, 9), (2, 1, 8, 110, 200, 3, 1), (3, 1, 8, 210, 300, 3, 1), (4, 1, 8, 310, 320, 2, 10),
        (5, 1, 8, 330, 330, 2, 10), (6, 1, 8, 340, 350, 2, 11), (7, 1, 8, 360, 370, 12, 1), (8, 1, 8, 380, 390, 13, 1);
    INSERT INTO rocpd_kernelapi VALUES (2, '0x1f', 4, 3, 2, 64, 2, 1, 512, 16, '', '', '', 9, 8);
    INSERT INTO rocpd_copyapi VALUES (3, '0x0', 4096, 0, 0, 1, '', '', 0, 0, 1, 0);
    INSERT INTO rocpd_op VALUES (1, 1, 0, 0, '', 150, 160, 8, 4), (2, 1, 0, 0, '', 250, 258, 1, 5), (3, 1, 2, 0, '', 270, 280, 8, 6),
        (4, 1, 2, 0, '', 280, 380, 1, 7);
    INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 3, 2), (3, 3, 3);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::env::RANK', '3'), ('session::0::pid', '1'), ('gpu::1::name', 'MI300X');";

#[test]
fn kernels_of_cuda_graphs_have_their_nodes() {
    let dir = Dir::new();
    let file = exported(&dir, &with_launch_attributes(&dir), &[]);
    let of = |name: &str| {
        let event = events(&file).iter().find(|event| event["name"] == name).unwrap();
        ["graph id", "graph node id", "cluster"].map(|key| event["args"][key].clone())
    };
    let none = serde_json::Value::Null;
    assert_eq!(of("node"), [5.into(), 21_474_836_481_i64.into(), none.clone()]);
    assert_eq!(of("clustered"), [none.clone(), none, serde_json::json!([2, 4, 1])]);
}

#[test]
fn names_categories_and_arguments_are_those_of_kineto() {
    let dir = Dir::new();
    let file = exported(&dir, &dir.trace("t.rpd", WORK), &[]);
    let text = file.to_string();
    assert!(text.contains("\"rank\":3"), "{text}");
    assert_eq!(file["deviceProperties"], serde_json::json!([{"id": 1, "name": "MI300X"}]));
    let named = |name: &str| events(&file).iter().find(|event| event["name"] == name).unwrap();
    let shown = |name: &str| (category(named(name)).to_string(), named(name)["args"].clone());
    assert_eq!(
        shown("k"),
        (
            "kernel".into(),
            serde_json::json!({"device": 1, "stream": 1, "queue": 0, "External id": 2, "correlation": 2, "desc": "KernelExecution",
                "grid": [4, 3, 2], "block": [64, 2, 1], "registers per thread": 32, "shared memory": 512, "hip_stream": "0x1f"})
        )
    );
    assert_eq!(
        shown("Memcpy HtoD (Host -> Device)"),
        (
            "gpu_memcpy".into(),
            serde_json::json!({"device": 1, "stream": 1, "queue": 0, "External id": 3, "correlation": 3, "desc": "CopyHostToDevice",
                "bytes": 4096, "memory bandwidth (GB/s)": 512.0, "hip_stream": "0x0"})
        )
    );
    assert_eq!(
        (shown("Memset (Device)").0, &shown("Memset (Device)").1["name"]),
        ("gpu_memset".into(), &"k".into())
    );
    assert_eq!(
        shown("Barrier"),
        ("cuda_sync".into(), serde_json::json!({"device": 1, "queue": 2, "desc": "Barrier"}))
    );
    assert_eq!(
        shown("aten::mm"),
        (
            "cpu_op".into(),
            serde_json::json!({"External id": 1, "Record function id": 7, "Sequence number": 5, "Input Dims": [[2, 3], []]})
        )
    );
    assert_eq!(shown("aten::x").1["Input Dims"], "[[a]]");
    assert_eq!([shown("step").0, shown("hipLaunchKernel").0], ["user_annotation", "cuda_runtime"]);
    assert_eq!([shown("hsa_init").0, shown("decorated").0], ["cuda_driver", "cpu_op"]);
    // The process has the number 1 already.
    assert_eq!(
        (named("hsa_init")["pid"].as_i64(), named("k")["pid"].as_i64()),
        (Some(1), Some(2_000_000_000))
    );
    let written = dir.run(&["export", "kineto", "t.rpd"]).expect(0).stdout.clone();
    assert!(written.contains("\"distributedInfo\":{\"rank\": 3}"));
}

#[test]
fn names_of_any_bytes_give_valid_json() {
    let dir = Dir::new();
    let hostile = r#"'a"b\c, seq = 1, sizes = [["]]' || char(10) || char(27) || '[2J' || char(0x202e) || '</script>' || char(0x7f, 0x9b, 8)"#;
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, {hostile}), (4, CAST(x'ff00fe41' AS TEXT)),
                 (5, 'a\"\\, sizes = [[\"\\]]'), (6, 'Copy\"\\' || char(27)), (7, printf('%.5000c', 'x'));
             INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 3), (2, 7, 7, 110, 120, 3, 4), (3, 7, 7, 130, 130, 2, 5),
                 (4, 7, 7, 140, 150, 2, 5), (5, 7, 7, 160, 170, 2, 7);
             INSERT INTO rocpd_op VALUES (1, 0, -5, 0, '', 150, 160, 3, 4), (2, 0, 0, 0, '', 170, 180, 3, 6), (3, 0, 0, 0, '', 190, 195, 1, 6);
             INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 2, 2);
             INSERT INTO rocpd_copyapi VALUES (2, {hostile}, -4096, 0, 0, 1, '', '', 0, 0, 1, 0);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::command', {hostile}), ('session::0::env::RANK', {hostile}),
                 ('gpu::0::name', {hostile});"
        ),
    );
    let ran = dir.run(&["export", "kineto", &trace]);
    assert!(!ran.expect(0).stdout.chars().any(|c| c != '\n' && rpd_escape::is_unsafe(c)), "{ran}");
    let file: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(file["distributedInfo"]["rank"], 0);
    let names: BTreeSet<&str> = events(&file).iter().filter_map(|event| event["name"].as_str()).collect();
    let text = "a\"b\\c, seq = 1, sizes = [[\"]]\n\u{1b}[2J\u{202e}</script>\u{7f}\u{9b}\u{8}";
    for name in [text, "Memcpy Copy\"\\\u{1b}", "\u{fffd}\0\u{fffd}A"] {
        let kept = names.contains(name) || events(&file).iter().any(|event| event["args"]["desc"] == name);
        assert!(kept, "{name:?}: {names:?}");
    }
}

#[test]
fn the_rank_is_that_of_the_process_that_is_exported() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 6, 60);
    for (session, rank) in [(0, "0"), (2, "3")] {
        let sql = "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)";
        dir.open(&trace).execute(sql, [&format!("session::{session}::env::RANK"), rank]).unwrap();
    }
    // Markers of both are read, because they name what the GPU does.
    for (options, rank) in [(&["--session", "2"][..], 3), (&["--pid", "100"], 0), (&[], 0)] {
        assert_eq!(exported(&dir, &trace, options)["distributedInfo"]["rank"], rank, "{options:?}");
    }
}

#[test]
fn several_processes_are_said_and_one_is_not() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 4, 30);
    dir.run(&["export", "kineto", &trace]).expect(0).says(&["2 processes", "--session"]);
    let one = dir.run(&["export", "kineto", "--session", "2", &trace]);
    assert!(one.expect(0).stderr.is_empty(), "{one}");
    dir.trace("empty.rpd", "");
    let empty = dir.run(&["export", "kineto", "empty.rpd"]);
    empty.expect(0).says(&["empty.rpd holds no calls and no operations"]);
    serde_json::from_str::<Value>(&empty.stdout).unwrap();
}
