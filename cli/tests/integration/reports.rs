//! `rpd top --by`, `rpd copies`, `rpd markers`, `rpd queues`: numbers against slow, obvious SQL and code that looks at every nanosecond.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::generated::{drop_views, generated, to_schema_3};
use crate::harness::{Dir, RPD, golden, ran};
use crate::idle::{CALLS, Call, Op, PROCESSES, api_id, holds, trace_of};

fn report(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let json = dir.run(&[arguments, &["--json"]].concat());
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key}: {value}"))
}

/// The shortest that so many percent do not exceed.
fn percentile(sorted: &[i64], percent: usize) -> u64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1].unsigned_abs()
}

/// Operations with their call, as SQL has them; barriers are no work.
const OPS: &str =
    "(SELECT O.*, (SELECT min(api_id) FROM rocpd_api_ops WHERE op_id = O.id) AS call FROM rocpd_op O
     WHERE id NOT IN (SELECT op_ptr_id FROM rocpd_barrierop))";

/// What each place is called, as SQL.
const PLACES: [(&str, &str); 5] = [
    ("gpu", "'GPU ' || gpuId"),
    ("queue", "'GPU ' || gpuId || ' queue ' || queueId"),
    ("session", "'session ' || (O.id >> 32)"),
    ("thread", "coalesce('process ' || A.pid || ' thread ' || A.tid, '(no call in the file launched it)')"),
    (
        "stream",
        "coalesce('process ' || A.pid || ' stream ' || coalesce(
             (SELECT stream FROM rocpd_kernelapi WHERE api_ptr_id = A.id), (SELECT stream FROM rocpd_copyapi WHERE api_ptr_id = A.id)),
         '(no stream in the file)')",
    ),
];

#[test]
fn operations_by_place_are_those_of_sql() {
    let dir = Dir::new();
    let mut traces = vec![dir.fixture("matmul_result.rpd")];
    for seed in 0..3 {
        traces.push(generated(&dir, &format!("{seed}.rpd"), seed, 200));
    }
    for trace in &traces {
        for (by, place) in PLACES {
            let mut expected: BTreeMap<String, Vec<i64>> = BTreeMap::new();
            let connection = dir.open(trace);
            let query = format!(
                "SELECT {place}, O.\"end\" - O.start FROM {OPS} O LEFT JOIN rocpd_api A ON A.id = O.call ORDER BY 2"
            );
            let mut rows = connection.prepare(&query).unwrap();
            let mut rows = rows.query([]).unwrap();
            while let Some(row) = rows.next().unwrap() {
                expected.entry(row.get(0).unwrap()).or_default().push(row.get(1).unwrap());
            }
            let found = report(&dir, &["top", "--percentiles", "--instrumented", "--by", by, trace]);
            assert_eq!(found.len(), expected.len(), "{trace} {by}: {found:?} {expected:?}");
            for row in found {
                let durations = &expected[row["name"].as_str().unwrap()];
                let keys = ["calls", "total_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns"];
                let numbers = [
                    durations.len() as u64,
                    durations.iter().sum::<i64>().unsigned_abs(),
                    durations[0].unsigned_abs(),
                    durations[durations.len() - 1].unsigned_abs(),
                    percentile(durations, 50),
                    percentile(durations, 90),
                    percentile(durations, 99),
                ];
                assert_eq!(keys.map(|key| number(&row, key)), numbers, "{trace} {by}: {row}");
            }
        }
    }
}

#[test]
fn the_gpus_of_the_footer_are_those_of_gaps() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let footer = dir.run(&["top", "-n", "1", &trace]);
    let footer = footer.expect(0).stdout.split("\n\n").nth(1).unwrap().to_string();
    assert!(footer.contains("2  453.0 ms  416.6 ms  92.0  36.34 ms  1.894 ms  CopyHostToDevice"), "{footer}");
    let longest = &report(&dir, &["gaps", &trace])[0]["longest"][0];
    assert_eq!(
        (number(longest, "idle_ns"), longest["before"].as_str()),
        (1_893_760, Some("CopyHostToDevice"))
    );
}

#[test]
fn reports_of_a_part_are_those_of_a_trace_that_has_no_more() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 5, 250);
    let part = dir.fixture("matmul_result.rpd");
    std::fs::copy(dir.path(&trace), dir.path(&part)).unwrap();
    // No call of the other session, and so no operation of it.
    dir.open(&part)
        .execute_batch(
            "DELETE FROM rocpd_op WHERE id >> 32 <> 2 OR gpuId <> 1; DELETE FROM rocpd_api WHERE id >> 32 <> 2",
        )
        .unwrap();
    for verb in [
        &["top"][..],
        &["top", "--by", "stream", "--percentiles"],
        &["top", "--by", "kernel"],
        &["gaps"],
        &["overlap"],
        &["copies"],
        &["queues"],
        &["categories"],
    ] {
        let of_part = dir
            .run(&[&verb[..1], &[&*trace], &verb[1..], &["--json", "--session", "2", "--gpu", "1"]].concat());
        let whole = dir.run(&[&verb[..1], &[&*part], &verb[1..], &["--json"]].concat());
        assert_eq!(of_part.expect(0).stdout, whole.expect(0).stdout, "{verb:?}");
        assert!(of_part.stdout.len() > 100, "{of_part}");
    }
    let calls = |arguments: &[&str]| {
        dir.run(&[&["api", "--csv"], arguments].concat()).expect(0).stdout.lines().count()
    };
    assert_eq!(calls(&["--session", "2", &trace]) > 200, calls(&[&part]) > 200);
    assert!(calls(&["--session", "2", "--gpu", "1", &trace]) < calls(&[&trace]));
    let dispatches =
        |arguments: &[&str]| dir.run(&[&["durations"], arguments].concat()).expect(0).stdout.clone();
    assert_eq!(dispatches(&["--session", "2", "--gpu", "1", &trace]), dispatches(&[&part]));
}

#[test]
fn all_markers_are_in_a_part_that_is_about_operations() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let whole = report(&dir, &["markers", &trace]);
    assert!(
        whole.iter().any(|node| node["name"] == "run_to_completion"),
        "a marker that has its text as its name"
    );
    // All operations are of that GPU.
    assert_eq!(report(&dir, &["markers", "--gpu", "2", &trace]), whole);
    assert_eq!(report(&dir, &["markers", "--kernel", ".", &trace]), whole);
}

#[test]
fn ranks_and_nodes_are_parts_of_a_trace() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 6, 100);
    let connection = dir.open(&trace);
    for (session, rank) in [(0, 3), (2, 7)] {
        let tag = format!("session::{session}::env::RANK");
        connection.execute("INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)", (tag, rank)).unwrap();
    }
    let json = |arguments: &[&str]| {
        dir.run(&[&["top", "--json", &trace], arguments].concat()).expect(0).stdout.clone()
    };
    assert_eq!(json(&["--rank", "7"]), json(&["--session", "2"]));
    assert_eq!(json(&["--rank", "7", "--rank", "3"]), json(&[]));
    let by_rank = json(&["--by", "rank"]);
    assert!(
        by_rank.contains("rank 3") && by_rank.contains("rank 7") && !by_rank.contains("no rank"),
        "{by_rank}"
    );
    assert_eq!(
        by_rank.replace("rank 3", "session 0").replace("rank 7", "session 2"),
        json(&["--by", "session"])
    );
    dir.run(&["top", "--rank", "8", &trace]).expect(1).says(&["no session has the rank 8"]);
    dir.run(&["top", "--node", "1", &trace]).expect(1).says(&["the trace has no nodes"]);
    connection
        .execute_batch(
            "INSERT INTO rocpd_metadata (tag, value) VALUES ('pid_stride', '1000'), ('gpu_stride', '10');
             UPDATE rocpd_api SET pid = pid + 1000 WHERE id >> 32 = 2; UPDATE rocpd_op SET gpuId = gpuId + 10 WHERE id >> 32 = 2;",
        )
        .unwrap();
    assert_eq!(json(&["--node", "1"]), json(&["--session", "2"]));
    assert_eq!(json(&["--node", "0"]), json(&["--session", "0"]));
    assert_eq!(json(&["--in", "25%..75%"]), json(&["--start", "25%", "--end", "75%"]));
    assert_ne!(json(&["--in", "25%..75%"]), json(&[]));
}

#[test]
fn copies_are_those_of_sql() {
    let dir = Dir::new();
    let mut traces = vec![dir.fixture("matmul_result.rpd"), dir.unpacked("mytrace_raw.rpd")];
    traces.push(generated(&dir, "1.rpd", 1, 300));
    traces.push(dir.generated("2.rpd", &["--events", "3000", "--edge"]));
    for trace in &traces {
        let csv = dir.run(&["sql", "--csv", trace, "copies"]);
        let mut expected: BTreeMap<String, (u64, u64, f64)> = BTreeMap::new();
        for line in csv.expect(0).stdout.lines().skip(1) {
            let cells: Vec<&str> = line.split(',').collect();
            let sums = expected.entry(cells[0].to_string()).or_default();
            sums.0 += cells[2].parse::<u64>().unwrap();
            sums.1 += cells[3].parse::<u64>().unwrap_or(0);
            sums.2 += cells[4].parse::<f64>().unwrap();
        }
        let found = report(&dir, &["copies", trace]);
        assert_eq!(found.len(), expected.len(), "{trace}: {found:?} {expected:?}");
        for kind in found {
            let (copies, bytes, us) = expected[kind["kind"].as_str().unwrap()];
            assert_eq!((number(&kind, "copies"), number(&kind, "bytes")), (copies, bytes), "{trace}: {kind}");
            assert!((number(&kind, "total_ns") as f64 / 1e3 - us).abs() < 0.01, "{trace}: {kind}");
            for key in ["copies", "bytes", "total_ns", "sized_ns"] {
                let sizes: u64 = kind["sizes"].as_array().unwrap().iter().map(|size| number(size, key)).sum();
                assert_eq!(sizes, number(&kind, key), "{trace}: {kind}");
            }
        }
    }
}

#[test]
fn a_call_that_became_several_copies_shares_its_bytes() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMemcpy'), (3, 'CopyHostToDevice'), (4, 'CopyDeviceToHost');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 10, 20, 2, 1);
         INSERT INTO rocpd_copyapi VALUES (1, '0x0', 10000, 0, 0, 1, '', '', 0, 0, 1, 0);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 20, 30, 1, 3), (2, 0, 0, 0, '', 30, 50, 1, 3), (3, 0, 0, 0, '', 50, 60, 1, 4);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3);",
    );
    let found = report(&dir, &["copies", &trace]);
    let bytes: Vec<(&str, u64)> =
        found.iter().map(|kind| (kind["kind"].as_str().unwrap(), number(kind, "bytes"))).collect();
    assert_eq!(bytes, [("CopyHostToDevice", 6666), ("CopyDeviceToHost", 3334)]);
    assert_eq!(found[0]["gb_per_s"].as_f64(), Some(6666.0 / 30.0));
    assert_eq!(found[0]["best_gb_per_s"].as_f64(), Some(333.3));
}

/// The place of a call in the order of its thread, outer ranges first.
fn order(at: usize, call: &Call) -> (i64, i64, i64) {
    (call.start, -(call.start + call.length), api_id(at, call))
}

/// The texts of markers of [`as_markers`].
const TEXTS: [&str; 3] = ["gemm", "ncclDevKernel_AllReduce", "softmax"];

/// Makes markers of every second call, with texts of which there are few.
fn as_markers(dir: &Dir, trace: &str) {
    dir.open(trace)
        .execute_batch(
            "UPDATE rocpd_api SET apiName_id = 14, args_id = CASE id % 3 WHEN 0 THEN 20 WHEN 1 THEN 21 ELSE 24 END WHERE id % 2 = 0",
        )
        .unwrap();
}

/// The name of a call as a marker, if it is one.
fn marker(at: usize, call: &Call) -> Option<&'static str> {
    let id = api_id(at, call);
    if id % 2 == 0 {
        return Some(TEXTS[usize::try_from(id % 3).unwrap()]);
    }
    (CALLS[call.name].0 == "UserMarker").then_some("UserMarker")
}

/// By path: ranges, operations, CPU and GPU time that is their own.
type OwnTimes = BTreeMap<Vec<String>, [u64; 4]>;

fn own_times(calls: &[Call], ops: &[Op]) -> OwnTimes {
    let thread = |call: &Call| (PROCESSES[call.session], call.tid);
    let ranges: Vec<(usize, &Call)> =
        calls.iter().enumerate().filter(|(at, call)| marker(*at, call).is_some()).collect();
    let innermost = |of: &Call, time: i64| {
        let open = ranges.iter().filter(|(_, range)| {
            thread(range) == thread(of) && range.start <= time && time < range.start + range.length
        });
        open.max_by_key(|(at, range)| order(*at, range)).copied()
    };
    let path = |(at, range): (usize, &Call)| {
        let mut path = vec![marker(at, range).unwrap().to_string()];
        let mut inner = (at, range);
        loop {
            let (at, range) = inner;
            let end = range.start + range.length;
            let around = ranges.iter().filter(|(other, around)| {
                let until = around.start + around.length;
                thread(around) == thread(range)
                    && order(*other, around) < order(at, range)
                    && until >= end
                    && until > range.start
            });
            let Some(around) = around.max_by_key(|(at, range)| order(*at, range)) else { break };
            inner = *around;
            path.insert(0, marker(inner.0, inner.1).unwrap().to_string());
        }
        path
    };
    let mut found = OwnTimes::new();
    for range in &ranges {
        found.entry(path(*range)).or_default()[0] += 1;
        for time in range.1.start..range.1.start + range.1.length {
            if innermost(range.1, time).is_some_and(|(at, _)| at == range.0) {
                found.entry(path(*range)).or_default()[2] += 1;
            }
        }
    }
    let mut by_start: Vec<(usize, &Op)> = ops.iter().enumerate().collect();
    by_start.sort_by_key(|(at, op)| (op.start, op.start + op.length, *at));
    let mut taken = BTreeSet::new();
    for (_, op) in by_start {
        let ns = (op.start..op.start + op.length).filter(|ns| taken.insert((op.gpu, *ns))).count() as u64;
        let owner = calls.get(op.call).and_then(|call| innermost(call, call.start));
        let path = owner.map_or_else(|| vec!["(no marker)".to_string()], path);
        let times = found.entry(path).or_default();
        times[1] += 1;
        times[3] += ns;
    }
    found
}

#[test]
fn times_of_markers_are_those_of_every_ns() {
    holds(|calls, ops| {
        let dir = Dir::new();
        let trace = trace_of(&dir, calls, ops);
        as_markers(&dir, &trace);
        let nodes = report(&dir, &["markers", &trace]);
        let own = own_times(calls, ops);
        let mut paths: Vec<Vec<String>> = Vec::new();
        for node in &nodes {
            let mut path =
                node["parent"].as_u64().map_or_else(Vec::new, |parent| paths[parent as usize].clone());
            path.push(node["name"].as_str().unwrap_or("(no marker)").to_string());
            paths.push(path);
        }
        assert_eq!(paths.iter().cloned().collect::<BTreeSet<_>>(), own.keys().cloned().collect());
        for (node, path) in nodes.iter().zip(&paths) {
            let of_node = own[path];
            let all = own.iter().filter(|(below, _)| below.starts_with(path));
            let all = all.fold([0; 4], |sum: [u64; 4], (_, own)| std::array::from_fn(|at| sum[at] + own[at]));
            let keys = ["ranges", "operations", "cpu_own_ns", "cpu_ns", "gpu_own_ns", "gpu_ns"];
            let expected = [of_node[0], all[1], of_node[2], all[2], of_node[3], all[3]];
            assert_eq!(keys.map(|key| number(node, key)), expected, "{path:?}: {node}");
            for share in ["cpu_percent", "gpu_percent"] {
                assert!((0.0..=100.0 + 1e-9).contains(&node[share].as_f64().unwrap()), "{node}");
            }
        }
        let gpu: u64 =
            nodes.iter().filter(|node| node["parent"].is_null()).map(|node| number(node, "gpu_ns")).sum();
        let busy: u64 = report(&dir, &["gaps", &trace]).iter().map(|gpu| number(gpu, "busy_ns")).sum();
        assert_eq!(gpu, busy);
    });
}

#[test]
fn operators_of_pytorch_are_one_row_each() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let (few, all) = (report(&dir, &["markers", &trace]), report(&dir, &["markers", "--exact", &trace]));
    assert!(few.len() * 20 < all.len(), "{} {}", few.len(), all.len());
    let sum = |nodes: &[Value], key| nodes.iter().map(|node| number(node, key)).sum::<u64>();
    for key in ["ranges", "cpu_own_ns", "gpu_own_ns"] {
        assert_eq!(sum(&few, key), sum(&all, key), "{key}");
    }
    assert_eq!(sum(&few, "ranges"), sum(&report(&dir, &["top", "--by", "marker", &trace]), "calls"));
    assert!(few.iter().any(|node| node["name"] == "aten::_scaled_mm"), "{few:?}");
}

#[test]
fn depths_and_delays_are_those_of_every_ns() {
    holds(|calls, ops| {
        let dir = Dir::new();
        let trace = trace_of(&dir, calls, ops);
        let places: BTreeSet<(i64, i64)> = ops.iter().map(|op| (op.gpu, op.queue)).collect();
        let found = report(&dir, &["queues", &trace]);
        assert_eq!(found.len(), places.len());
        for (queue, place) in found.iter().zip(places) {
            let mut of_queue: Vec<(usize, &Op)> =
                ops.iter().enumerate().filter(|(_, op)| (op.gpu, op.queue) == place).collect();
            of_queue.sort_by_key(|(at, op)| (op.start, op.start + op.length, *at));
            let launch = |op: &Op| calls.get(op.call).map(|call| (call.start, call.start + call.length));
            let begin = |op: &Op| launch(op).map_or(op.start, |(begin, _)| begin.min(op.start));
            let first = of_queue.iter().map(|(_, op)| begin(op)).min().unwrap();
            let last = of_queue.iter().map(|(_, op)| op.start + op.length).max().unwrap();
            let depths: Vec<usize> = (first..last)
                .map(|ns| {
                    of_queue.iter().filter(|(_, op)| (begin(op)..op.start + op.length).contains(&ns)).count()
                })
                .collect();
            let delays = |only_empty: bool| {
                let mut delays: Vec<i64> = of_queue
                    .iter()
                    .enumerate()
                    .filter_map(|(nth, (_, op))| {
                        let (_, launched) = launch(op)?;
                        let is_empty =
                            of_queue[..nth].iter().all(|(_, other)| other.start + other.length <= launched);
                        (is_empty || !only_empty).then_some((op.start - launched).max(0))
                    })
                    .collect();
                delays.sort_unstable();
                delays
            };
            assert_eq!(number(queue, "operations"), of_queue.len() as u64);
            assert_eq!(number(queue, "span_ns"), (last - first).unsigned_abs());
            let mean = depths.iter().sum::<usize>() as f64 / depths.len().max(1) as f64;
            assert!((queue["depth_mean"].as_f64().unwrap() - mean).abs() < 1e-9, "{mean}: {queue}");
            if !depths.is_empty() && of_queue.iter().all(|(_, op)| op.length > 0) {
                assert_eq!(number(queue, "depth_max"), *depths.iter().max().unwrap() as u64, "{queue}");
            }
            for (key, delays) in [("delay", delays(false)), ("empty", delays(true))] {
                let of = &queue[key];
                assert_eq!(number(of, "operations"), delays.len() as u64, "{key}: {queue}");
                if !delays.is_empty() {
                    let keys = ["total_ns", "p50_ns", "p90_ns", "max_ns"];
                    let expected = [
                        delays.iter().sum::<i64>().unsigned_abs(),
                        percentile(&delays, 50),
                        percentile(&delays, 90),
                        delays[delays.len() - 1].unsigned_abs(),
                    ];
                    assert_eq!(keys.map(|key| number(of, key)), expected, "{key}: {queue}");
                }
            }
            let bins: u64 =
                queue["bins"].as_array().unwrap().iter().map(|bin| number(bin, "operations")).sum();
            assert_eq!(bins, number(&queue["delay"], "operations"));
        }
    });
}

const VERBS: [&str; 5] = ["copies", "markers", "queues", "categories", "memory"];

#[test]
fn real_traces_in_every_form() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let allocating = dir.fixture("matmul_result.rpd");
    for verb in VERBS {
        let trace = if verb == "memory" { &allocating } else { &trace };
        for columns in [60, 100, 200] {
            let result = ran(dir.rpd(&[verb, trace]).env("COLUMNS", columns.to_string()));
            golden(&format!("{verb}-{columns}.txt"), &result.expect(0).stdout);
            for line in result.stdout.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
        golden(&format!("{verb}.csv"), &dir.run(&[verb, "--csv", trace]).expect(0).stdout);
    }
}

#[test]
fn odd_traces_are_no_failure() {
    let dir = Dir::new();
    generated(&dir, "3.rpd", 4, 100);
    to_schema_3(&dir, "3.rpd");
    let empty = dir.trace("empty.rpd", "");
    let evil = "\x1b]0;owned\x07x\ny\u{202e}=1";
    let hostile = generated(&dir, "hostile.rpd", 9, 100);
    let connection = dir.open(&hostile);
    connection
        .execute("UPDATE rocpd_string SET string = ?1 || id || string WHERE string GLOB 'kernel*' OR string GLOB 'argument*'", [evil])
        .unwrap();
    connection
        .execute_batch(
            "UPDATE rocpd_string SET string = 'Copy' || char(27) || '[31m' WHERE string = 'CopyHostToDevice';
             UPDATE rocpd_op SET gpuId = 'x' WHERE id % 7 = 0; UPDATE rocpd_api SET tid = '' WHERE id % 5 = 0;
             UPDATE rocpd_copyapi SET size = 'much' WHERE api_ptr_id % 3 = 0; UPDATE rocpd_copyapi SET size = -5 WHERE api_ptr_id % 3 = 1;
             UPDATE rocpd_kernelapi SET stream = x'ff1b5b'; UPDATE rocpd_op SET queueId = 1.5 WHERE id % 13 = 0;
             UPDATE rocpd_op SET description_id = 987654 WHERE id % 11 = 0; UPDATE rocpd_api SET start = 'soon' WHERE id % 13 = 0;",
        )
        .unwrap();
    let few = dir.fixture("matmul_result.rpd");
    drop_views(&dir, &few);
    dir.open(&few)
        .execute_batch("DROP TABLE rocpd_api_ops; DROP TABLE rocpd_barrierop; DROP TABLE rocpd_copyapi; DROP TABLE rocpd_kernelapi")
        .unwrap();
    for verb in VERBS {
        assert!(dir.run(&[verb, &empty]).expect(0).says(&["empty.rpd holds no "]).stdout.is_empty());
        assert_eq!(dir.run(&[verb, "--json", &empty]).expect(0).stdout, "[]\n");
    }
    for verb in [
        &["copies"][..],
        &["categories"],
        &["memory"],
        &["kernel", "."],
        &["markers"],
        &["queues"],
        &["top", "--by", "stream"],
        &["top", "--by", "thread"],
        &["top", "--by", "marker"],
    ] {
        for form in [&[][..], &["--csv"], &["--json"]] {
            let result = dir.run(&[&verb[..1], &[&hostile], &verb[1..], form].concat());
            let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!result.expect(0).stdout.contains(harmful), "{result}");
            dir.run(&[&verb[..1], &[&few], &verb[1..], form].concat()).expect(0);
            assert!(
                verb[0] == "memory"
                    || !dir
                        .run(&[&verb[..1], &["3.rpd"], &verb[1..], form].concat())
                        .expect(0)
                        .stdout
                        .is_empty()
            );
        }
    }
}

#[test]
fn a_kernel_is_what_top_and_sql_say_of_it() {
    let dir = Dir::new();
    let traces = [
        dir.fixture("matmul_result.rpd"),
        dir.unpacked("mytrace_raw.rpd"),
        dir.generated("2.rpd", &["--events", "4000", "--kernels", "9"]),
        dir.generated("3.rpd", &["--events", "4000", "--kernels", "9", "--schema", "3"]),
        generated(&dir, "g.rpd", 3, 200),
    ];
    for trace in &traces {
        let ranking = report(&dir, &["top", "--percentiles", "--by", "kernel", "-n", "6", trace]);
        assert!(ranking.len() > 1);
        for row in ranking {
            let name = row["name"].as_str().unwrap();
            let json = dir.run(&["kernel", "--json", trace, name]);
            let kernel: Value = serde_json::from_str(&json.expect(0).stdout).unwrap();
            for key in
                ["name", "calls", "total_ns", "average_ns", "min_ns", "max_ns", "p50_ns", "p90_ns", "p99_ns"]
            {
                assert_eq!(kernel[key], row[key], "{trace} {name} {key}");
            }
            for (rows, keys) in [
                ("histogram", &["calls"][..]),
                ("geometries", &["calls", "total_ns"]),
                ("launchers", &["calls", "total_ns"]),
                ("trend", &["calls", "total_ns"]),
            ] {
                for key in keys {
                    let sum: u64 = kernel[rows].as_array().unwrap().iter().map(|row| number(row, key)).sum();
                    assert_eq!(sum, number(&kernel, key), "{trace} {name} {rows} {key}");
                }
            }
            let (first, last) =
                (&kernel["histogram"][0], kernel["histogram"].as_array().unwrap().last().unwrap());
            assert_eq!(first["from_ns"], kernel["min_ns"]);
            assert!(last["to_ns"].is_null() || number(last, "to_ns") > number(&kernel, "max_ns"), "{kernel}");
            // Launched one by one, with the arguments of the call.
            let mut sql: Vec<(i64, i64)> = Vec::new();
            let connection = dir.open(trace);
            let has_dispatches: bool = connection
                .query_row(
                    "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'ext_dispatch')",
                    [],
                    |row| row.get(0),
                )
                .unwrap();
            if !has_dispatches {
                let query = "SELECT count(*), sum(O.\"end\" - O.start) FROM rocpd_op O JOIN rocpd_string N ON N.id = O.description_id
                    LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY 1) L ON L.op_id = O.id
                    LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = L.api_id CODE_OBJECTS
                    WHERE N.string = ?1 GROUP BY gridX, gridY, gridZ, workgroupX, workgroupY, workgroupZ, groupSegmentSize,
                        privateSegmentSize, vgpr, sgpr ORDER BY 1, 2";
                // Schema 3 has none of them.
                let code_objects = match trace.ends_with("3.rpd") {
                    true => "JOIN (SELECT NULL AS vgpr, NULL AS sgpr)",
                    false => "LEFT JOIN rocpd_kernelcodeobject C ON C.id = K.codeObject_id",
                };
                let query = query.replace("CODE_OBJECTS", code_objects);
                let mut rows = connection.prepare(&query).unwrap();
                sql.extend(
                    rows.query_map([name], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap),
                );
                let mut found: Vec<(i64, i64)> = kernel["geometries"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|row| (row["calls"].as_i64().unwrap(), row["total_ns"].as_i64().unwrap()))
                    .collect();
                found.sort_unstable();
                assert_eq!(found, sql, "{trace} {name}");
            }
        }
    }
    let table = dir.run(&["kernel", "mytrace_raw.rpd", "^Cijk"]);
    assert!(table.expect(0).stderr.contains("other kernels match"), "{table}");
    dir.run(&["kernel", "mytrace_raw.rpd", "no such"]).expect(1).says(&["no such kernel as no such"]);
    dir.run(&["kernel", "mytrace_raw.rpd", "f(int*"]).expect(1).says(&["no such kernel as f(int*"]);
    for columns in [60, 100, 200] {
        let result = ran(dir
            .rpd(&["kernel", "matmul_result.rpd", "Cijk|elementwise"])
            .env("COLUMNS", columns.to_string()));
        golden(&format!("kernel-{columns}.txt"), &result.expect(0).stdout);
        for line in result.stdout.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
}

#[test]
fn categories_are_those_of_every_ns() {
    // Of the last in the file: gemm is of C, though A has it too.
    let rules = r#"{"A": ["gemm", "nccl"], "B": ["^Copy", "softmax"], "C": ["^gemm$"], "none": ["nowhere"]}"#;
    let category = |op: &Op| ["C", "A", "B", "_Other", "B"][op.name];
    holds(|calls, ops| {
        let dir = Dir::new();
        let trace = trace_of(&dir, calls, ops);
        dir.write("rules.json", rules);
        let mut expected: BTreeMap<String, [u64; 3]> = BTreeMap::new();
        let mut by_start: Vec<(usize, &Op)> = ops.iter().enumerate().collect();
        by_start.sort_by_key(|(at, op)| (op.start, op.start + op.length, *at));
        let mut taken = BTreeSet::new();
        for (_, op) in by_start {
            let ns = (op.start..op.start + op.length).filter(|ns| taken.insert((op.gpu, *ns))).count() as u64;
            let sums = expected.entry(category(op).to_string()).or_default();
            *sums = [sums[0] + 1, sums[1] + op.length.unsigned_abs(), sums[2] + ns];
        }
        let gaps = report(&dir, &["gaps", &trace]);
        let idle: u64 = gaps.iter().map(|gpu| number(gpu, "idle_ns")).sum();
        if !ops.is_empty() {
            expected.insert("_GPU_Idle".to_string(), [0, idle, idle]);
        }
        let found = report(&dir, &["categories", "--rules", "rules.json", &trace]);
        let shares: f64 = found.iter().map(|row| row["percent"].as_f64().unwrap()).sum();
        let span: u64 = gaps.iter().map(|gpu| number(gpu, "span_ns")).sum();
        assert!(span == 0 || (shares - 100.0).abs() < 1e-6, "{shares}");
        let found: BTreeMap<String, [u64; 3]> = found
            .iter()
            .map(|row| {
                (
                    row["category"].as_str().unwrap().to_string(),
                    ["calls", "total_ns", "busy_ns"].map(|key| number(row, key)),
                )
            })
            .collect();
        assert_eq!(found, expected);
    });
}

#[test]
fn rules_are_read_and_what_is_wrong_is_said() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let shown = dir.run(&["categories", "--show-rules"]).expect(0).stdout.clone();
    dir.write("rules.json", &shown);
    let built_in = dir.run(&["categories", "--json", &trace]).expect(0).stdout.clone();
    assert_eq!(
        dir.run(&["categories", "--json", "--rules", "rules.json", &trace]).expect(0).stdout,
        built_in
    );
    let found = report(&dir, &["categories", &trace]);
    let gaps = &report(&dir, &["gaps", &trace])[0];
    let busy: u64 =
        found.iter().filter(|row| row["category"] != "_GPU_Idle").map(|row| number(row, "busy_ns")).sum();
    assert_eq!(busy, number(gaps, "busy_ns"));
    for (content, wrong) in [
        (&b"{\"a\": [\"(\"]}"[..], "unclosed group"),
        (b"{\"\x1b[31m\": [\"(\"]}", "no object"),
        (b"{\"_Other\": []}", "give yours another name"),
        (b"\xff", "cannot read bad.json"),
    ] {
        dir.write("bad.json", content);
        dir.run(&["categories", "--rules", "bad.json", &trace]).expect(1).says(&["bad.json", wrong]);
    }
    dir.run(&["categories", "--rules", "none.json", &trace]).expect(1).says(&["cannot read none.json"]);
    dir.run(&["categories"]).expect(2);
}

#[test]
fn memory_is_what_a_list_of_all_allocations_says() {
    let dir = Dir::new();
    let traces = [
        dir.fixture("matmul_result.rpd"),
        dir.generated("1.rpd", &["--events", "4000", "--threads", "1"]),
        dir.generated("2.rpd", &["--events", "4000", "--threads", "3", "--schema", "3"]),
    ];
    for trace in &traces {
        let connection = dir.open(trace);
        let args = if trace == "2.rpd" { "rocpd_ustring" } else { "rocpd_string" };
        let mut calls = connection
            .prepare(&format!(
                "SELECT N.string = 'hipMalloc', A.start, A.\"end\", G.string, A.id FROM rocpd_api A JOIN rocpd_string N ON N.id = A.apiName_id
                 JOIN {args} G ON G.id = A.args_id WHERE N.string IN ('hipMalloc', 'hipFree')"
            ))
            .unwrap();
        let mut calls: Vec<(i64, bool, i64, String)> = calls
            .query_map([], |row| {
                let allocates: bool = row.get(0)?;
                Ok((row.get(if allocates { 2 } else { 1 })?, allocates, row.get(4)?, row.get(3)?))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        calls.sort();
        let mut live: Vec<(String, u64)> = Vec::new();
        let (mut peak, mut at, mut allocated) = (0, 0, 0);
        for (time, allocates, _, text) in &calls {
            let of =
                |key: &str| text.split(" | ").find_map(|pair| pair.strip_prefix(key)).map(str::to_string);
            let address = of("ptr=").unwrap();
            live.retain(|(other, _)| *other != address);
            if *allocates {
                let size = u64::from_str_radix(&of("size=").unwrap()[2..], 16).unwrap();
                allocated += size;
                live.push((address, size));
            }
            let now = live.iter().map(|(_, size)| size).sum::<u64>();
            if now > peak {
                (peak, at) = (now, *time);
            }
        }
        let left: u64 = live.iter().map(|(_, size)| size).sum();
        let found = &report(&dir, &["memory", trace])[0];
        let keys = ["allocated_bytes", "peak_bytes", "peak_ns", "left", "left_bytes"];
        let expected = [allocated, peak, at.unsigned_abs(), live.len() as u64, left];
        assert_eq!(keys.map(|key| number(found, key)), expected, "{trace}");
        assert_eq!(number(found, "allocated_bytes") - number(found, "freed_bytes"), left, "{trace}");
        let most = found["over_time"].as_array().unwrap().iter().map(|part| number(part, "most_bytes")).max();
        assert_eq!(most, Some(peak), "{trace}");
    }
}

#[test]
fn memory_of_processes_with_equal_ids_is_kept_apart() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'hipMalloc'), (2, 'hipFree'), (3, 'ptr=0x10 | size=0x100'), (4, 'ptr=0x10'), (5, 'hipHostMalloc'),
             (6, 'ptr=0x20 | size=64'), (7, 'ptr=0x30'), (8, 'soon');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 10, 20, 1, 3), (2, 7, 7, 30, 40, 2, 4), (3, 7, 7, 50, 60, 5, 6), (4, 7, 7, 70, 80, 1, 8),
             (4294967297, 7, 7, 15, 25, 1, 3), (4294967298, 7, 7, 35, 45, 2, 7);",
    );
    let found = dir.run(&["memory", "--json", &trace]);
    found.expect(0).says(&["1 call is left out: no address, no size"]);
    let found: Vec<Value> = serde_json::from_str(&found.stdout).unwrap();
    let keys = ["session", "allocations", "freed", "unmatched_frees", "peak_bytes", "left_bytes"];
    let numbers: Vec<[u64; 6]> = found.iter().map(|of| keys.map(|key| number(of, key))).collect();
    assert_eq!(numbers, [[0, 1, 1, 0, 256, 0], [0, 1, 0, 0, 64, 64], [1, 1, 0, 1, 256, 256]]);
    assert_eq!(found[1]["place"], "host");
    assert_eq!(found[2]["largest_left"][0]["address"], "0x10");
    let parts = |of: &Value| {
        of["over_time"].as_array().unwrap().iter().map(|part| number(part, "most_bytes")).collect::<Vec<_>>()
    };
    assert_eq!(parts(&found[2])[3..], [256; 11][..parts(&found[2]).len() - 3]);
    let left = dir.run(&["memory", "--session", "1", "--csv", &trace]);
    assert!(left.expect(0).stdout.ends_with("7,1,device,1,256,0,0,1,256,25,1,256\n"), "{left}");
}

#[test]
fn barriers_are_no_work_wherever_time_is_added_up() {
    let dir = Dir::new();
    for seed in 0..2 {
        let trace = generated(&dir, &format!("{seed}.rpd"), seed, 200);
        let connection = dir.open(&trace);
        connection
            .execute_batch("INSERT INTO rocpd_barrierop SELECT id, 0, '', '' FROM rocpd_op WHERE id % 3 = 0")
            .unwrap();
        let (calls, total): (i64, i64) = connection
            .query_row(&format!("SELECT count(*), sum(\"end\" - start) FROM {OPS}"), [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        let (calls, total) = (calls.unsigned_abs(), total.unsigned_abs());
        let sums = |arguments: &[&str]| {
            let found = report(&dir, &[&["top", "--instrumented", &trace], arguments].concat());
            let sum = |key: &str| found.iter().map(|row| number(row, key)).sum::<u64>();
            (sum("calls"), sum("total_ns"))
        };
        assert_eq!(sums(&[]), (calls, total));
        assert_eq!(sums(&["--by", "gpu"]), (calls, total));
        assert_eq!(sums(&["--start", "0%"]), (calls, total));
        let top = dir.run(&["top", &trace]);
        assert!(top.stderr.contains("barriers are left out: a GPU that waits does no work"), "{top}");
        let gaps = report(&dir, &["gaps", &trace]);
        let asked = report(&dir, &["sql", &trace, "busy"]);
        let longest = report(&dir, &["sql", &trace, "longest_gaps"]);
        for (gpu, busy) in gaps.iter().zip(&asked) {
            assert_eq!(number(gpu, "busy_ns"), (busy["busy_us"].as_f64().unwrap() * 1000.0).round() as u64);
            assert_eq!(number(gpu, "operations"), number(busy, "ops"));
            let first = longest.iter().find(|gap| gap["gpu"] == gpu["gpu"]).unwrap();
            assert_eq!(
                number(gpu, "longest_ns"),
                (first["gap_us"].as_f64().unwrap() * 1000.0).round() as u64
            );
            let parts = gpu["over_time"].as_array().unwrap();
            assert_eq!(parts.iter().map(|part| number(part, "busy_ns")).sum::<u64>(), number(gpu, "busy_ns"));
        }
        // Schema 3 has no table of barriers.
        to_schema_3(&dir, &trace);
        assert!(!report(&dir, &["sql", &trace, "busy"]).is_empty());
    }
}

#[test]
fn the_chart_over_time_is_as_high_as_the_gpu_was_busy() {
    let dir = Dir::new();
    // Of 1 ms the first half is busy, then 1 us of each 2.
    let mut sql = String::from("INSERT INTO rocpd_string VALUES (1, 'k'), (2, 'KernelExecution');");
    sql += "INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 1000000, 1500000, 1, 2), (2, 1, 0, 0, '', 1999000, 2000000, 1, 2);";
    for at in 0..250 {
        let start = 1_501_000 + 2_000 * at;
        sql += &format!(
            "INSERT INTO rocpd_op VALUES ({}, 0, 0, 0, '', {start}, {}, 1, 2);",
            10 + at,
            start + 1000
        );
    }
    let trace = dir.trace("t.rpd", &sql);
    let table = dir.run(&["gaps", &trace]).expect(0).stdout.clone();
    let chart: Vec<&str> = table.lines().skip_while(|line| !line.contains("busy over time")).collect();
    assert_eq!(chart[1].trim_end(), format!("  0  {}{}", "█".repeat(50), "▄".repeat(50)), "{table}");
    assert_eq!(chart[2].trim_end(), format!("  1  {}▁", " ".repeat(99)), "{table}");
    assert_eq!(chart[3], "a column is 10.00 us", "{table}");
    let narrow = ran(dir.rpd(&["gaps", &trace]).env("COLUMNS", "60"));
    assert!(narrow.expect(0).stdout.contains("▄"), "{narrow}");
}

#[test]
fn what_a_kernel_says_of_its_launch_goes_before_what_its_call_says() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'hipLaunchCooperativeKernel'), (2, 'k'), (3, 'KernelExecution'), (4, '');
         INSERT INTO rocpd_api VALUES (1, 7, 9, 10, 20, 1, 4);
         INSERT INTO rocpd_kernelapi VALUES (1, '', 8, 1, 1, 64, 1, 1, 0, 0, '', '', '', 0, 2);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 50, 60, 2, 3), (2, 0, 0, 1, '', 60, 80, 2, 3);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 1, 2);
         INSERT INTO ext_dispatch VALUES (2, 2, 3, 1, 1, 32, 1, 1, 0, 0, '', 0);",
    );
    let kernel = dir.run(&["kernel", "--json", &trace, "k"]).expect(0).stdout.clone();
    let kernel: Value = serde_json::from_str(&kernel).unwrap();
    let geometries: Vec<String> = kernel["geometries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| format!("{} {} {}", row["grid"], row["workgroup"], row["total_ns"]))
        .collect();
    assert_eq!(geometries, ["[3,1,1] [32,1,1] 20", "[8,1,1] [64,1,1] 10"]);
}

/// Two sessions of containers, whose processes and threads have the same ids.
#[test]
fn every_verb_keeps_threads_with_equal_ids_apart() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'hipLaunchKernel'), (2, 'k'), (3, 'KernelExecution'), (4, ''), (5, 'hipMalloc'),
             (6, 'ptr=0x10 | size=0x100');
         INSERT INTO rocpd_api VALUES (1, 7, 9, 10, 20, 1, 4), (4294967297, 7, 9, 11, 21, 1, 4), (2, 7, 9, 30, 40, 5, 6),
             (4294967298, 7, 9, 31, 41, 5, 6);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 50, 60, 2, 3), (4294967297, 1, 0, 0, '', 50, 70, 2, 3);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 4294967297, 4294967297);",
    );
    let labels = ["session 0 process 7 thread 9", "session 1 process 7 thread 9"];
    let text = |arguments: &[&str]| dir.run(&[arguments, &[&trace]].concat()).expect(0).stdout.clone();
    let kernel = dir.run(&["kernel", &trace, "k"]).expect(0).stdout.clone();
    for label in labels {
        for output in [&kernel, &text(&["top", "--by", "thread"]), &text(&["api"])] {
            assert!(output.contains(label), "{label}: {output}");
        }
        let process = label.split(" thread").next().unwrap();
        assert_eq!(text(&["memory"]).matches(process).count(), 3, "{process}: {}", text(&["memory"]));
    }
    let kernel = dir.run(&["kernel", "--json", &trace, "k"]).expect(0).stdout.clone();
    let kernel: Value = serde_json::from_str(&kernel).unwrap();
    let sessions: Vec<u64> =
        kernel["launchers"].as_array().unwrap().iter().map(|of| number(of, "session")).collect();
    assert_eq!(sessions, [1, 0]);
    let csv = dir.run(&["kernel", "--csv", &trace, "k"]).expect(0).stdout.clone();
    assert!(csv.lines().next().unwrap().ends_with(",session"), "{csv}");
    assert!(csv.lines().any(|line| line.contains(labels[1]) && line.ends_with(",1")), "{csv}");
    let calls: Vec<u64> = report(&dir, &["api", &trace]).iter().map(|call| number(call, "session")).collect();
    assert_eq!(calls, [0, 1, 0, 1]);
    assert!(text(&["api", "--csv"]).lines().nth(2).unwrap().ends_with(",1"));
    // Where ids are enough there is no session.
    let one = dir.run(&["kernel", &trace, "k", "--session", "1"]).expect(0).stdout.clone();
    assert!(one.contains("hipLaunchKernel, process 7 thread 9"), "{one}");
    assert!(text(&["api", "--session", "1"]).starts_with("9 "));
}

#[test]
fn an_empty_part_is_not_an_empty_file() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for verb in [
        &["top"][..],
        &["gaps"],
        &["overlap"],
        &["top", "--by", "gpu"],
        &["queues"],
        &["categories"],
        &["copies"],
    ] {
        let of = |options: &[&str]| dir.run(&[verb, options, &[&trace]].concat());
        of(&["--gpu", "99"]).expect(0).says(&["in the named part: the file has nothing of --gpu 99"]);
        of(&["--queue", "98765", "--gpu", "99"])
            .expect(0)
            .says(&["the file has nothing of --gpu 99 and --queue 98765"]);
        of(&["--stream", "0xdead"]).expect(0).says(&["nothing of --stream 0xdead"]);
        of(&["--kernel", "no such"]).expect(0).says(&["nothing of --kernel no such"]);
        of(&["--pid", "1"]).expect(0).says(&["nothing of --pid 1"]);
        let early = of(&["--end", "0"]);
        assert!(early.expect(0).stderr.contains("in the named part; rpd info shows"), "{early}");
        assert!(!early.stderr.contains("holds no"), "{early}");
    }
    let kernel = dir.run(&["kernel", &trace, ".", "--gpu", "99"]);
    kernel.expect(1).says(&["no such kernel in the named part", "nothing of --gpu 99"]);
    let empty = dir.trace("empty.rpd", "");
    for (verb, what) in [
        ("gaps", "GPU operations"),
        ("queues", "GPU operations"),
        ("categories", "GPU operations"),
        ("copies", "copies"),
        ("markers", "markers"),
    ] {
        let said = format!("empty.rpd holds no {what}; rpd info shows what it holds");
        dir.run(&[verb, &empty]).expect(0).says(&[said.as_str()]);
    }
    for option in ["--gpu", "--queue", "--stream", "--kernel"] {
        dir.run(&["memory", option, "0", &trace]).expect(2).says(&[option, "does not serve here"]);
    }
}

#[test]
fn ranges_that_overlap_without_nesting_are_said() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, 'UserMarker'), (2, 'a'), (3, 'b');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 1000, 1100, 1, 2), (2, 7, 7, 1050, 1150, 1, 3), (3, 7, 7, 1060, 1070, 1, 2), (4, 7, 7, 1150, 1160, 1, 2);",
    );
    let found = dir.run(&["markers", "--json", &trace]);
    found.expect(0).says(&["1 range ends inside of a later one of the thread"]);
    let nested = dir.run(&["markers", "--json", "--start", "1050", &trace]);
    assert!(!nested.expect(0).stderr.contains("inside of a later one"), "{nested}");
}

#[test]
fn markers_in_the_ranking_have_the_gpu_time_of_the_tree() {
    let dir = Dir::new();
    let mut traces = vec![dir.unpacked("mytrace_raw.rpd")];
    for seed in 0..2 {
        let trace = generated(&dir, &format!("{seed}.rpd"), seed, 200);
        as_markers(&dir, &trace);
        traces.push(trace);
    }
    for trace in &traces {
        let nodes = report(&dir, &["markers", "--exact", trace]);
        let name = |node: &Value| node["name"].as_str().unwrap_or_default().to_string();
        let mut expected: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for node in nodes.iter().filter(|node| node["name"].is_string()) {
            let of = expected.entry(name(node)).or_default();
            of[1] += number(node, "gpu_own_ns");
            let mut around = node;
            let is_inside = loop {
                let Some(parent) = around["parent"].as_u64() else { break false };
                around = &nodes[usize::try_from(parent).unwrap()];
                if name(around) == name(node) {
                    break true;
                }
            };
            if !is_inside {
                of[0] += number(node, "gpu_ns");
            }
        }
        let found = report(&dir, &["top", "--by", "marker", trace]);
        let found: BTreeMap<String, [u64; 2]> = found
            .iter()
            .map(|row| (name(row), ["gpu_ns", "gpu_own_ns"].map(|key| number(row, key))))
            .collect();
        assert_eq!(found, expected, "{trace}");
        assert!(found.values().any(|[all, own]| all > own), "{found:?}");
        let csv = dir.run(&["top", "--by", "marker", "--csv", trace]).expect(0).stdout.clone();
        assert!(csv.starts_with("name,calls,total_ns,self_ns,gpu_ns,gpu_own_ns,average_ns,"), "{csv}");
        let table = dir.run(&["top", "--by", "marker", trace]).expect(0).stdout.clone();
        assert!(table.lines().next().unwrap().contains("gpu"), "{table}");
    }
}

#[test]
fn a_number_that_cannot_be_is_said_in_words() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for verb in ["top", "gaps", "markers", "api", "table", "energy", "variability", "replacements"] {
        for wrong in ["0", "-1", "many"] {
            dir.run(&[verb, "-n", wrong, &trace]).expect(2).says(&[
                "-n <N>",
                wrong,
                "must be a number, 1 or more",
            ]);
        }
        for option in ["--gpu", "--queue", "--pid", "--tid", "--session", "--node"] {
            dir.run(&[verb, option, "x", &trace]).expect(2).says(&[option, "x: must be a number"]);
        }
    }
    dir.run(&["top", "-n", "1", "--gpu", "-1", &trace]).expect(0).says(&["nothing of --gpu -1"]);
    dir.run(&["diff", &trace, &trace, "--skip", "-1"]).expect(2).says(&["must be a number, 0 or more"]);
}

/// 100,000 markers inside of one, each with a long text of its own, without digits; every 50th launches an operation.
const MANY_TEXTS: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipLaunchKernel'), (4, 'KernelExecution'), (5, 'k'), (6, 'around');
    CREATE TEMP TABLE n AS WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) SELECT i FROM n;
    INSERT INTO rocpd_string SELECT 100 + i,
        char(97 + i % 26, 97 + i / 26 % 26, 97 + i / 676 % 26, 97 + i / 17576 % 26) || replace(hex(zeroblob(500)), '0', 'x') FROM n;
    INSERT INTO rocpd_api VALUES (1, 1, 8, 1000, 99999999, 2, 6);
    INSERT INTO rocpd_api SELECT 10 + i, 1, 8, 2000 + 100 * i, 2050 + 100 * i + i % 3, 2, 100 + i FROM n;
    INSERT INTO rocpd_api SELECT 200000 + i, 1, 8, 2010 + 100 * i, 2020 + 100 * i, 3, 1 FROM n WHERE i % 50 = 0;
    INSERT INTO rocpd_op SELECT 1 + i, 0, 0, 0, '', 2030 + 100 * i, 2040 + 100 * i, 5, 4 FROM n WHERE i % 50 = 0;
    INSERT INTO rocpd_api_ops SELECT 1 + i, 200000 + i, 1 + i FROM n WHERE i % 50 = 0;";

/// Runs the command behind it and writes how much memory it had at most, kB.
const PEAK: &str = "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
";

#[test]
fn memory_does_not_grow_with_the_texts_of_markers() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", MANY_TEXTS);
    let nodes = report(&dir, &["markers", "--exact", &trace]);
    assert_eq!(nodes.len(), 100_001);
    let of = |node: &Value| ["gpu_ns", "cpu_ns", "operations", "ranges"].map(|key| number(node, key));
    assert_eq!(of(&nodes[0]), [20_000, 99_998_999, 2000, 1]);
    assert_eq!(number(&nodes[0], "cpu_own_ns"), 99_998_999 - 100_000 * 50 - 99_999);
    let order = |node: &Value| {
        let [gpu_ns, cpu_ns, ..] = of(node);
        (!gpu_ns, !cpu_ns, node["name"].as_str().unwrap().to_string())
    };
    assert!(nodes[1..].windows(2).all(|two| order(&two[0]) < order(&two[1])));
    assert!(nodes[1..].iter().all(|node| node["parent"] == 0 && number(node, "ranges") == 1));
    let ranked = report(&dir, &["top", "--by", "marker", &trace]);
    assert_eq!(ranked.len(), 100_001);
    let with_gpu_time = ranked.iter().filter(|group| group["gpu_own_ns"] == 10).count();
    assert_eq!((with_gpu_time, number(&ranked[0], "gpu_ns")), (2000, 20_000));
    for report in [
        &["markers", "--exact", &trace][..],
        &["markers", "--exact", "--json", &trace],
        &["top", "--by", "marker", "--json", &trace],
        &["export", "html", &trace],
    ] {
        let measured = ran(dir.command("python3").args(["-c", PEAK, RPD]).args(report));
        let peak: u64 = measured.expect(0).stdout.trim().parse().unwrap();
        assert!(peak < 140_000, "{report:?}: {peak} kB");
    }
}
