//! `rpd gaps` and `rpd overlap`: idle times and what hides behind what, against an implementation that looks at every nanosecond.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::generated::{drop_views, generated, to_schema_3};
use crate::harness::{Dir, golden, ran};

/// What calls are called, and the cause that idle time inside them has; `None`: the program itself.
pub(crate) const CALLS: [(&str, Option<&str>); 6] = [
    ("hipLaunchKernel", Some("launch")),
    ("hipStreamSynchronize", Some("sync")),
    ("hipMemcpy", Some("copy")),
    ("hipMalloc", Some("call")),
    ("UserMarker", None),
    ("run_to_completion", None),
];

/// Name and type of operations.
const OPS: [(&str, &str); 5] = [
    ("gemm", "KernelExecution"),
    ("ncclDevKernel_AllReduce", "Task"),
    ("", "CopyHostToDevice"),
    ("", "FillBuffer"),
    ("softmax", "KernelExecution"),
];

const CAUSES: [&str; 8] = ["launch", "sync", "copy", "call", "host", "queued", "unknown", "unrecorded"];

/// Sessions, and the process that each is of: the first and the last are of one.
pub(crate) const PROCESSES: [i64; 3] = [0, 1, 0];

#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) session: usize,
    pub(crate) tid: i64,
    pub(crate) start: i64,
    pub(crate) length: i64,
    pub(crate) name: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Op {
    pub(crate) gpu: i64,
    pub(crate) queue: i64,
    pub(crate) start: i64,
    pub(crate) length: i64,
    pub(crate) name: usize,
    /// The call that launched it, if it is one of those there are.
    pub(crate) call: usize,
}

/// Few values, so that ties are common. All processes and threads have the same ids.
pub(crate) fn any_events() -> impl Strategy<Value = (Vec<Call>, Vec<Op>)> {
    let call = (0..3_usize, 1..3_i64, 1..150_i64, 0..40_i64, 0..CALLS.len())
        .prop_map(|(session, tid, start, length, name)| Call { session, tid, start, length, name });
    let op = (0..2_i64, 0..2_i64, 1..150_i64, 0..12_i64, 0..OPS.len(), 0..30_usize)
        .prop_map(|(gpu, queue, start, length, name, call)| Op { gpu, queue, start, length, name, call });
    (prop::collection::vec(call, 0..25), prop::collection::vec(op, 0..25))
}

pub(crate) fn api_id(at: usize, call: &Call) -> i64 {
    ((call.session as i64) << 32) + 1 + at as i64
}

/// The events as a trace.
pub(crate) fn trace_of(dir: &Dir, calls: &[Call], ops: &[Op]) -> String {
    let mut sql = String::from("BEGIN; INSERT INTO rocpd_string (id, string) VALUES (1, '');");
    for (at, (name, _)) in CALLS.iter().enumerate() {
        sql += &format!("INSERT INTO rocpd_string (id, string) VALUES ({}, '{name}');", 10 + at);
    }
    for (at, (name, kind)) in OPS.iter().enumerate() {
        sql += &format!(
            "INSERT INTO rocpd_string (id, string) VALUES ({}, '{name}'), ({}, '{kind}');",
            20 + at,
            30 + at
        );
    }
    for (at, call) in calls.iter().enumerate() {
        let (start, end) = (call.start, call.start + call.length);
        sql += &format!(
            "INSERT INTO rocpd_api VALUES ({}, 7, {}, {start}, {end}, {}, 1);",
            api_id(at, call),
            call.tid,
            10 + call.name
        );
    }
    for (at, op) in ops.iter().enumerate() {
        let (id, end) = (at as i64 + 1, op.start + op.length);
        sql += &format!(
            "INSERT INTO rocpd_op VALUES ({id}, {}, {}, {id}, '', {}, {end}, {}, {});",
            op.gpu,
            op.queue,
            op.start,
            20 + op.name,
            30 + op.name
        );
        if let Some(call) = calls.get(op.call) {
            sql += &format!(
                "INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({}, {id});",
                api_id(op.call, call)
            );
        }
    }
    for (session, process) in PROCESSES.iter().enumerate() {
        for (key, value) in [("boot_id", 1), ("pid", 7), ("start_monotonic_ns", 5 + process)] {
            sql += &format!(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::{session}::{key}', '{value}');"
            );
        }
    }
    dir.trace("t.rpd", &(sql + "COMMIT;"))
}

/// Whether a process was not recorded at a ns.
type IsUnrecorded<'a> = &'a dyn Fn(i64, i64) -> bool;

/// What a thread does at each ns, as the cause of idle time: the outermost call, painted in the order of time. A call that began or ended while the
/// process was not recorded is as good as one that did when it was; of two that are as good as each other the longer one is outside.
fn painted(
    calls: &[Call],
    process: i64,
    tid: i64,
    is_unrecorded: IsUnrecorded<'_>,
) -> BTreeMap<i64, &'static str> {
    let mut of_thread: Vec<(i64, i64, i64, usize)> = calls
        .iter()
        .filter(|call| PROCESSES[call.session] == process && call.tid == tid)
        .filter_map(|call| {
            let mut recorded =
                (call.start..call.start + call.length).filter(|ns| !is_unrecorded(process, *ns));
            let first = recorded.next()?;
            let last = recorded.next_back().unwrap_or(first);
            Some((first, -(last + 1), -call.length, call.name))
        })
        .collect();
    of_thread.sort_unstable();
    let mut paint = BTreeMap::new();
    let mut covered = 0;
    for (start, not_end, _, name) in of_thread {
        if let Some(cause) = CALLS[name].1 {
            for ns in start.max(covered)..-not_end {
                paint.insert(ns, cause);
            }
            covered = covered.max(-not_end);
        }
    }
    paint
}

/// Of one GPU: `(span, busy, gaps, idle by cause, idle after each name, idle by bin)`.
#[derive(Debug, Default, PartialEq)]
struct Expected {
    span: i64,
    busy: i64,
    gaps: u64,
    causes: BTreeMap<&'static str, u64>,
    after: BTreeMap<String, (u64, u64)>,
}

fn name_of(op: &Op) -> String {
    let (name, kind) = OPS[op.name];
    if name.is_empty() { kind } else { name }.to_string()
}

fn expected_gaps(calls: &[Call], ops: &[Op], gpu: i64, is_unrecorded: IsUnrecorded<'_>) -> Expected {
    let mut of_gpu: Vec<(usize, &Op)> = ops.iter().enumerate().filter(|(_, op)| op.gpu == gpu).collect();
    of_gpu.sort_by_key(|(at, op)| (op.start, op.start + op.length, *at));
    let first = of_gpu.iter().map(|(_, op)| op.start).min().unwrap_or(0);
    let last = of_gpu.iter().map(|(_, op)| op.start + op.length).max().unwrap_or(0);
    let runs = |ns: i64| of_gpu.iter().any(|(_, op)| (op.start..op.start + op.length).contains(&ns));
    // An operation that takes no time ends one gap and begins another.
    let begins = |ns: i64| of_gpu.iter().any(|(_, op)| op.start == ns);
    let mut expected = Expected { span: last - first, ..Expected::default() };
    let mut ns = first;
    while ns < last {
        if runs(ns) {
            expected.busy += 1;
            ns += 1;
            continue;
        }
        let begin = ns;
        ns += 1;
        while ns < last && !runs(ns) && !begins(ns) {
            ns += 1;
        }
        expected.gaps += 1;
        // Of those that end there, the one that came last.
        let after = of_gpu
            .iter()
            .filter(|(_, op)| op.start + op.length == begin)
            .max_by_key(|(at, op)| (op.start, *at));
        let (gaps, idle) = expected.after.entry(name_of(after.unwrap().1)).or_default();
        *gaps += 1;
        *idle += (ns - begin).unsigned_abs();
        let (_, before) = of_gpu.iter().find(|(_, op)| op.start == ns).unwrap();
        let call = calls.get(before.call);
        // Operations are all of the first session.
        let process = call.map_or(0, |call| PROCESSES[call.session]);
        let paint = call.map(|call| painted(calls, process, call.tid, is_unrecorded)).unwrap_or_default();
        for moment in begin..ns {
            let cause = match call {
                _ if is_unrecorded(process, moment) => "unrecorded",
                None => "unknown",
                Some(call) if moment < call.start => paint.get(&moment).copied().unwrap_or("host"),
                Some(call) if moment < call.start + call.length => {
                    CALLS[call.name].1.filter(|cause| ["sync", "copy"].contains(cause)).unwrap_or("launch")
                }
                Some(_) => "queued",
            };
            *expected.causes.entry(cause).or_default() += 1;
        }
    }
    expected
}

/// Checks a property of many traces, and shrinks one for which it fails.
pub(crate) fn holds(property: impl Fn(&[Call], &[Op])) {
    holds_of(any_events(), |(calls, ops)| property(calls, ops));
}

fn holds_of<T: std::fmt::Debug>(any: impl Strategy<Value = T>, property: impl Fn(&T)) {
    let cases = if std::env::var_os("RPD_SOAK").is_some() { 5000 } else { 100 };
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let result = TestRunner::new(config).run(&any, |value| {
        property(&value);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

fn report(dir: &Dir, verb: &str, trace: &str) -> Vec<Value> {
    let json = dir.run(&[verb, "--json", trace]);
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// What must hold of any report: numbers that add up.
fn adds_up(gaps: &Value, overlap: &Value) {
    let sum =
        |rows: &Value, key: &str| rows.as_array().unwrap().iter().map(|row| number(row, key)).sum::<u64>();
    let (span, busy, idle) = (number(gaps, "span_ns"), number(gaps, "busy_ns"), number(gaps, "idle_ns"));
    assert_eq!(busy + idle, span);
    for rows in ["bins", "causes", "after"] {
        assert_eq!(sum(&gaps[rows], "idle_ns"), idle, "{rows}: {gaps}");
        assert_eq!(sum(&gaps[rows], "gaps"), number(gaps, "gaps"), "{rows}: {gaps}");
    }
    for key in ["gpu", "operations", "start_ns", "end_ns", "span_ns", "busy_ns", "idle_ns"] {
        assert_eq!(gaps[key], overlap[key], "{key}");
    }
    let exposed = number(overlap, "exposed_communication_ns") + number(overlap, "exposed_copies_ns");
    assert_eq!(number(overlap, "compute_ns") + exposed, busy, "{overlap}");
    for kind in ["communication", "copies"] {
        let parts =
            number(overlap, &format!("hidden_{kind}_ns")) + number(overlap, &format!("exposed_{kind}_ns"));
        assert_eq!(parts, number(overlap, &format!("{kind}_ns")));
    }
}

#[test]
fn gaps_are_those_that_a_look_at_every_ns_finds() {
    holds(|calls, ops| {
        let dir = Dir::new();
        let trace = trace_of(&dir, calls, ops);
        gaps_are_as_expected(&dir, &trace, (calls, ops), &|_, _| false);
    });
}

/// Times in which a session says that recording was stopped, and in which it lost records: session, which of the two, begin and length.
fn any_unrecorded() -> impl Strategy<Value = Vec<(usize, bool, i64, i64)>> {
    prop::collection::vec((0..3_usize, any::<bool>(), 1..150_i64, 0..60_i64), 0..5)
}

#[test]
fn time_that_was_not_recorded_is_no_cause_of_the_program() {
    holds_of((any_events(), any_unrecorded()), |((calls, ops), unrecorded)| {
        let dir = Dir::new();
        let trace = trace_of(&dir, calls, ops);
        for session in 0..PROCESSES.len() {
            for (is_loss, key) in [(false, "stopped"), (true, "lost_times")] {
                let times = unrecorded.iter().filter(|(of, loss, ..)| (*of, *loss) == (session, is_loss));
                let lost = if is_loss { ":buffer_full=3" } else { "" };
                let times: Vec<String> =
                    times.map(|(_, _, from, length)| format!("{from}-{}{lost}", from + length)).collect();
                dir.open(&trace)
                    .execute(
                        "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)",
                        [format!("session::{session}::{key}"), times.join(" ")],
                    )
                    .unwrap();
            }
        }
        gaps_are_as_expected(&dir, &trace, (calls, ops), &|process, ns| {
            unrecorded.iter().any(|(session, _, from, length)| {
                PROCESSES[*session] == process && (*from..from + length).contains(&ns)
            })
        });
    });
}

/// Idle time of the GPU by cause, of those that have any.
fn causes(dir: &Dir, trace: &str) -> Vec<(String, u64)> {
    let gpu = &report(dir, "gaps", trace)[0];
    let causes = gpu["causes"].as_array().unwrap().iter();
    let causes = causes.map(|cause| (cause["cause"].as_str().unwrap().to_string(), number(cause, "idle_ns")));
    causes.filter(|(_, idle)| *idle > 0).collect()
}

/// The clock of the process shows one time for both begins, and one for both ends.
#[test]
fn of_two_calls_that_begin_and_end_in_lost_time_the_longer_one_counts() {
    let dir = Dir::new();
    let call = |start, length, name| Call { session: 0, tid: 1, start, length, name };
    let op = |start, call| Op { gpu: 0, queue: 0, start, length: 10, name: 0, call };
    let (malloc, launch) = (3, 0);
    let calls = [call(110, 50, malloc), call(120, 35, launch), call(200, 10, launch)];
    let trace = trace_of(&dir, &calls, &[op(100, 99), op(210, 2)]);
    dir.open(&trace)
        .execute(
            "INSERT INTO rocpd_metadata (tag, value)
             VALUES ('session::0::lost_times', '105-125:buffer_full=3 150-165:buffer_full=3')",
            [],
        )
        .unwrap();
    let expected = [("launch", 10), ("call", 25), ("host", 35), ("unrecorded", 30)];
    assert_eq!(causes(&dir, &trace), expected.map(|(cause, idle)| (cause.to_string(), idle)));
}

/// Two runs in one file, a process that was killed, and a recording in parts of which one is gone.
#[test]
fn time_in_which_no_session_was_running_is_not_recorded() {
    let dir = Dir::new();
    let launch = |session, start| Call { session, tid: 1, start, length: 10, name: 0 };
    let op = |start, call| Op { gpu: 0, queue: 0, start, length: 10, name: 0, call };
    let trace_with = |facts: &[(usize, &str, &str)]| {
        let _ = std::fs::remove_file(dir.path("t.rpd"));
        let trace = trace_of(&dir, &[launch(0, 1000), launch(1, 9000)], &[op(1010, 0), op(9010, 1)]);
        let connection = dir.open(&trace);
        connection
            .execute_batch(
                "DELETE FROM rocpd_metadata; UPDATE rocpd_op SET id = id + (1 << 32) WHERE id = 2;
                 UPDATE rocpd_api_ops SET op_id = op_id + (1 << 32) WHERE op_id = 2;",
            )
            .unwrap();
        for (session, key, value) in facts {
            connection
                .execute(
                    "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)",
                    [&format!("session::{session}::{key}"), *value],
                )
                .unwrap();
        }
        trace
    };
    let found = |facts: &[(usize, &str, &str)]| {
        let trace = trace_with(facts);
        causes(&dir, &trace)
    };
    let as_expected = |host, unrecorded| {
        let causes = [("launch", 10), ("host", host), ("unrecorded", unrecorded)];
        let causes = causes.map(|(cause, idle)| (cause.to_string(), idle));
        causes.into_iter().filter(|(_, idle)| *idle > 0).collect::<Vec<_>>()
    };
    let runs = [
        (0, "start_monotonic_ns", "500"),
        (0, "end_monotonic_ns", "2000"),
        (1, "start_monotonic_ns", "8000"),
        (1, "end_monotonic_ns", "9500"),
    ];
    assert_eq!(found(&runs), as_expected(1980, 6000), "from the end of one to the begin of the other");
    let other = [
        runs[0],
        runs[1],
        runs[2],
        runs[3],
        (2, "start_monotonic_ns", "100"),
        (2, "end_monotonic_ns", "9999"),
    ];
    assert_eq!(found(&other), as_expected(7980, 0), "another process was recorded all the time");
    assert_eq!(
        found(&[runs[0], runs[2], runs[3]]),
        as_expected(1000, 6980),
        "killed after its last operation"
    );
    assert_eq!(found(&runs[1..]), as_expected(7980, 0), "nobody knows when the first one began");
    let parts = |next| {
        let common = [0, 1].map(|session| {
            [(session, "start_monotonic_ns", "500"), (session, "start_realtime_ns", "1000500")]
        });
        let own = [
            (0, "end_monotonic_ns", "2000"),
            (0, "part", "1"),
            (1, "part", next),
            (1, "part_began_realtime_ns", "1008000"),
        ];
        [common.as_flattened(), &own].concat()
    };
    assert_eq!(found(&parts("3")), as_expected(1980, 6000), "the part between them is not there");
    assert_eq!(found(&parts("2")), as_expected(7980, 0), "one went on where the other ended");
    let trace = trace_with(&runs);
    let table = dir.run(&["gaps", &trace]);
    assert!(table.expect(0).stdout.contains("unrecorded  not recorded: stopped"), "{table}");
    let csv = dir.run(&["gaps", "--csv", &trace]);
    assert!(csv.expect(0).stdout.contains("0,cause,unrecorded,1,6000,,75.0939"), "{csv}");
}

fn gaps_are_as_expected(
    dir: &Dir,
    trace: &str,
    (calls, ops): (&[Call], &[Op]),
    is_unrecorded: IsUnrecorded<'_>,
) {
    let found = report(dir, "gaps", trace);
    let gpus: BTreeSet<i64> = ops.iter().map(|op| op.gpu).collect();
    assert_eq!(found.iter().map(|gpu| gpu["gpu"].as_i64().unwrap()).collect::<BTreeSet<_>>(), gpus);
    for (gpu, overlap) in found.iter().zip(report(dir, "overlap", trace)) {
        adds_up(gpu, &overlap);
        let expected = expected_gaps(calls, ops, gpu["gpu"].as_i64().unwrap(), is_unrecorded);
        let causes = gpu["causes"].as_array().unwrap();
        assert_eq!(causes.iter().map(|cause| cause["cause"].as_str().unwrap()).collect::<Vec<_>>(), CAUSES);
        let causes = CAUSES
            .iter()
            .zip(causes)
            .map(|(name, cause)| (*name, number(cause, "idle_ns")))
            .filter(|(_, idle)| *idle > 0);
        let after = gpu["after"].as_array().unwrap().iter().map(|after| {
            let name = after["name"].as_str().unwrap().to_string();
            (name, (number(after, "gaps"), number(after, "idle_ns")))
        });
        let actual = Expected {
            span: number(gpu, "span_ns").cast_signed(),
            busy: number(gpu, "busy_ns").cast_signed(),
            gaps: number(gpu, "gaps"),
            causes: causes.collect(),
            after: after.collect(),
        };
        assert_eq!(actual, expected);
    }
}

#[test]
fn overlap_is_that_of_every_ns() {
    holds(|calls, ops| {
        let dir = Dir::new();
        let trace = trace_of(&dir, calls, ops);
        for found in report(&dir, "overlap", &trace) {
            let of_gpu: Vec<&Op> = ops.iter().filter(|op| found["gpu"] == op.gpu).collect();
            let mut expected: BTreeMap<&str, u64> = BTreeMap::new();
            let (start, end) = (number(&found, "start_ns"), number(&found, "end_ns"));
            for ns in start..end {
                let runs = |names: &[usize]| {
                    of_gpu.iter().any(|op| {
                        let times = op.start..op.start + op.length;
                        names.contains(&op.name) && times.contains(&ns.cast_signed())
                    })
                };
                let (compute, communication, copies) = (runs(&[0, 4]), runs(&[1]), runs(&[2, 3]));
                let mut add = |key, counts: bool| *expected.entry(key).or_default() += u64::from(counts);
                add("busy_ns", compute || communication || copies);
                add("compute_ns", compute);
                add("communication_ns", communication);
                add("hidden_communication_ns", communication && compute);
                add("exposed_communication_ns", communication && !compute);
                add("copies_ns", copies);
                add("hidden_copies_ns", copies && (compute || communication));
                add("exposed_copies_ns", copies && !compute && !communication);
            }
            for (key, expected) in expected {
                assert_eq!(number(&found, key), expected, "{key}");
            }
        }
    });
}

/// The query busy is slow and obvious: a window over all operations.
#[test]
fn busy_and_span_are_those_of_the_query() {
    let dir = Dir::new();
    let mut traces = vec![dir.fixture("matmul_result.rpd"), dir.unpacked("mytrace_raw.rpd")];
    traces.push(dir.unpacked("mytrace_as_shipped.rpd"));
    for seed in 0..4 {
        traces.push(generated(&dir, &format!("{seed}.rpd"), seed, 300));
    }
    to_schema_3(&dir, "3.rpd");
    for trace in &traces {
        let busy = dir.run(&["sql", "--csv", trace, "busy"]);
        let (gaps, overlaps) = (report(&dir, "gaps", trace), report(&dir, "overlap", trace));
        assert_eq!(gaps.len(), busy.expect(0).stdout.lines().count() - 1, "{trace}");
        for ((line, gpu), overlap) in busy.stdout.lines().skip(1).zip(&gaps).zip(&overlaps) {
            let us = |key| number(gpu, key) as f64 / 1e3;
            let row: Vec<f64> = line.split(',').map(|cell| cell.parse().unwrap()).collect();
            let found = [
                gpu["gpu"].as_f64().unwrap(),
                number(gpu, "operations") as f64,
                us("busy_ns"),
                us("span_ns"),
            ];
            assert_eq!(row[..4], found, "{trace}");
            adds_up(gpu, overlap);
        }
    }
    // As HolisticTraceAnalysis has it, with its rounding to microseconds switched off.
    let real = &report(&dir, "overlap", "mytrace_raw.rpd")[0];
    let found = ["idle_ns", "compute_ns", "exposed_copies_ns", "span_ns"].map(|key| number(real, key));
    assert_eq!(found, [36_344_535, 407_137_122, 9_486_296, 452_967_953]);
}

#[test]
fn real_traces_in_every_form() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    for verb in ["gaps", "overlap"] {
        for columns in [60, 100, 200] {
            let result = ran(dir.rpd(&[verb, &trace]).env("COLUMNS", columns.to_string()));
            golden(&format!("{verb}-{columns}.txt"), &result.expect(0).stdout);
            for line in result.stdout.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
        golden(&format!("{verb}.csv"), &dir.run(&[verb, "--csv", &trace]).expect(0).stdout);
        golden(&format!("{verb}.json"), &dir.run(&[verb, "--json", &trace]).expect(0).stdout);
    }
}

#[test]
fn times_of_gaps_lead_to_the_calls() {
    let dir = Dir::new();
    let calls = [
        Call { session: 0, tid: 1, start: 1_000_000, length: 10_000, name: 0 },
        Call { session: 0, tid: 1, start: 3_000_000, length: 500_000, name: 3 },
        Call { session: 0, tid: 1, start: 5_000_000, length: 10_000, name: 0 },
    ];
    let op = |start, call| Op { gpu: 0, queue: 0, start, length: 100_000, name: 0, call };
    let trace = trace_of(&dir, &calls, &[op(1_020_000, 0), op(5_020_000, 2)]);
    let table = dir.run(&["gaps", &trace]);
    let at = table.expect(0).stdout.split_whitespace().find(|word| word.starts_with('+')).unwrap();
    assert_eq!(at, "+0.000120s", "{table}");
    let meanwhile = dir.run(&["api", "--in", &format!("{at}..+0.004s"), &trace]);
    assert!(meanwhile.expect(0).stdout.contains("hipMalloc"), "{meanwhile}");
    let cause = |name: &str| {
        let gpu = &report(&dir, "gaps", &trace)[0];
        let causes = gpu["causes"].as_array().unwrap();
        number(causes.iter().find(|cause| cause["cause"] == name).unwrap(), "idle_ns")
    };
    assert_eq!(["host", "call", "launch", "queued"].map(cause), [3_380_000, 500_000, 10_000, 10_000]);
}

#[test]
fn kernels_that_communicate_can_be_named() {
    let dir = Dir::new();
    let op = |name| Op { gpu: 0, queue: 0, start: 10, length: 5, name, call: 99 };
    let trace = trace_of(&dir, &[], &[op(0), op(1)]);
    let communicating = |arguments: &[&str]| {
        let json = dir.run(&[&["overlap", "--json", &trace], arguments].concat());
        let found: Vec<Value> = serde_json::from_str(&json.expect(0).stdout).unwrap();
        (number(&found[0], "communication_operations"), number(&found[0], "exposed_communication_ns"))
    };
    assert_eq!(communicating(&[]), (1, 0));
    assert_eq!(communicating(&["--communication", "gemm|nccl"]), (2, 5));
    assert_eq!(communicating(&["--communication", "^$"]), (0, 0));
    dir.run(&["overlap", "--communication", "(", &trace]).expect(2);
}

#[test]
fn what_is_no_work_is_left_out_and_said() {
    let dir = Dir::new();
    let op = |start| Op { gpu: 0, queue: 0, start, length: 10, name: 0, call: 99 };
    let trace = trace_of(&dir, &[], &[op(10), op(50), op(25)]);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_barrierop (op_ptr_id, signalCount, aquireFence, releaseFence) VALUES (3, 0, '', '');
             INSERT INTO rocpd_op SELECT 9, 0, 0, 9, '', 60, 5, description_id, opType_id FROM rocpd_op WHERE id = 1;",
        )
        .unwrap();
    for verb in ["gaps", "overlap"] {
        let found = dir.run(&[verb, "--json", &trace]);
        let said = &found.expect(0).stderr;
        assert!(
            said.contains("1 operation is left out: impossible") && said.contains("1 barrier"),
            "{found}"
        );
        assert_eq!(number(&report(&dir, verb, &trace)[0], "idle_ns"), 30, "{verb}");
    }
}

#[test]
fn odd_traces_are_no_failure() {
    let dir = Dir::new();
    let empty = dir.trace("empty.rpd", "");
    let evil = "\x1b]0;owned\x07x\ny\u{202e}=1";
    let hostile = generated(&dir, "hostile.rpd", 9, 100);
    let connection = dir.open(&hostile);
    connection
        .execute("UPDATE rocpd_string SET string = ?1 || id WHERE string LIKE 'kernel%'", [evil])
        .unwrap();
    connection
        .execute_batch(
            "UPDATE rocpd_op SET gpuId = 'x' WHERE id % 7 = 0; UPDATE rocpd_api SET tid = '' WHERE id % 5 = 0;
             UPDATE rocpd_op SET description_id = 987654 WHERE id % 11 = 0; UPDATE rocpd_api SET start = 'soon' WHERE id % 13 = 0;",
        )
        .unwrap();
    let few = dir.fixture("matmul_result.rpd");
    dir.open(&few).execute_batch("DROP TABLE rocpd_api_ops; DROP TABLE rocpd_barrierop").unwrap();
    for verb in ["gaps", "overlap"] {
        assert!(dir.run(&[verb, &empty]).expect(0).says(&["no GPU operations"]).stdout.is_empty());
        assert_eq!(dir.run(&[verb, "--json", &empty]).expect(0).stdout, "[]\n");
        for form in [&[][..], &["--csv"], &["--json"]] {
            let result = dir.run(&[&[verb, &hostile], form].concat());
            let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!result.expect(0).stdout.contains(harmful), "{result}");
        }
        let (gaps, overlaps) = (report(&dir, "gaps", &hostile), report(&dir, "overlap", &hostile));
        gaps.iter().zip(&overlaps).for_each(|(gaps, overlap)| adds_up(gaps, overlap));
        dir.run(&[verb, &few]).expect(0);
    }
    let unknown = &report(&dir, "gaps", &few)[0]["causes"][6];
    assert_eq!(unknown["cause"], "unknown");
    assert_eq!(number(unknown, "idle_ns"), number(&report(&dir, "gaps", &few)[0], "idle_ns"));
}

#[test]
fn times_of_many_gpus_add_up_where_64_bits_do_not_hold_them() {
    let dir = Dir::new();
    let far = i64::MAX / 2 - 10;
    let ops: Vec<Op> = (0..6)
        .flat_map(|gpu| [1, far].map(|start| Op { gpu, queue: 0, start, length: 1, name: 0, call: 99 }))
        .collect();
    let trace = trace_of(&dir, &[], &ops);
    let table = dir.run(&["gaps", &trace]);
    assert!(table.expect(0).stdout.contains("10 s and more     6  27670116111 s  100.0"), "{table}");
}

#[test]
fn a_table_without_ends_is_said() {
    let dir = Dir::new();
    for (table, verbs) in [("rocpd_api", &["gaps"][..]), ("rocpd_op", &["gaps", "overlap"])] {
        let trace = dir.fixture("matmul_result.rpd");
        drop_views(&dir, &trace);
        let rename = format!("ALTER TABLE {table} RENAME \"end\" TO finish");
        dir.open(&trace).execute_batch(&rename).unwrap();
        for verb in verbs {
            dir.run(&[verb, &trace]).expect(1).says(&[&format!("no such column: {table}.end")]);
        }
    }
}

/// Traces of one host, days apart: each is far from the others, and none from nearly all.
#[test]
fn many_parts_that_are_days_apart_stay() {
    let dir = Dir::new();
    let day = 86_400_000_000_000;
    let launch = |at: i64| Call {
        session: 0,
        tid: 1,
        start: 3 * day * (at / 4 + 1) + 100 * (at % 4),
        length: 10,
        name: 0,
    };
    let calls: Vec<Call> = (0..480).map(launch).collect();
    let of = |(call, launch): (usize, &Call)| Op {
        gpu: 0,
        queue: 0,
        start: launch.start + 20,
        length: 10,
        name: 0,
        call,
    };
    let ops: Vec<Op> = calls.iter().enumerate().map(of).collect();
    let trace = trace_of(&dir, &calls, &ops);
    let gaps = dir.run(&["gaps", "--json", &trace]);
    assert_eq!(gaps.expect(0).stderr, "");
    assert_eq!(report(&dir, "gaps", &trace)[0]["operations"], 480);
    assert!(!dir.run(&["check", &trace]).stdout.contains("far-time"));
}

#[test]
fn an_operation_far_from_all_others_is_in_no_span() {
    let dir = Dir::new();
    // Shortly after the host's boot, and 95 and 127 years later. The generated trace itself begins a millisecond after the boot.
    let far = [3_000_000_000_000_000_000_i64, 4_000_000_000_000_000_000];
    for (trace, gpu, starts) in
        [(generated(&dir, "g.rpd", 4, 200), 1, far), (dir.fixture("matmul_result.rpd"), 2, [5, far[1]])]
    {
        let reports = || {
            ["gaps", "overlap", "queues", "categories", "markers", "copies"]
                .map(|verb| dir.run(&[verb, "--json", &trace]).expect(0).stdout.clone())
                .into_iter()
                .chain(
                    [&["top"][..], &["top", "--by", "gpu"], &["variability"]]
                        .map(|verb| dir.run(&[verb, &["--json", &trace]].concat()).expect(0).stdout.clone()),
                )
                .chain(
                    ["chrome", "kineto", "rocprofv3", "collapsed", "speedscope"]
                        .map(|format| dir.run(&["export", format, &trace]).expect(0).stdout.clone()),
                )
                .collect::<Vec<_>>()
        };
        let footer = || dir.run(&["top", "-n", "1", &trace]).expect(0).stdout.clone();
        let (before, footer_before) = (reports(), footer());
        for start in starts {
            dir.open(&trace)
                .execute(
                    "INSERT INTO rocpd_op SELECT max(id) + 1000, ?2, 0, 0, '', ?1, ?1 + 4, description_id, opType_id FROM rocpd_op",
                    [start, gpu],
                )
                .unwrap();
        }
        dir.open(&trace)
            .execute(
                "INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ('gpu', ?2, 'sclk', ?1, ?1 + 4, '5')",
                [far[1], gpu],
            )
            .unwrap();
        for (after, before) in reports().iter().zip(&before) {
            assert_eq!(after, before, "{trace}");
        }
        assert_eq!(footer(), footer_before, "{trace}");
        for verb in ["gaps", "overlap", "queues", "categories", "markers", "copies"] {
            let said = dir.run(&[verb, &trace]);
            let left = "2 operations are left out: impossible times or places, which rpd check lists";
            assert!(said.expect(0).stderr.contains(left), "{said}");
        }
        let said = dir.run(&["export", "chrome", &trace]).stderr;
        for left in
            ["2 calls and operations are left out", "1 value of a sensor is left out: far from all calls"]
        {
            assert!(said.contains(left), "{said}");
        }
        let checked = dir.run(&["check", &trace]);
        assert!(checked.stdout.contains("far-time"), "{checked}");
    }
}

/// A call years before all others is neither the beginning of the trace nor its end: parts of it are counted from the others.
#[test]
fn a_call_far_from_all_others_is_no_end_of_a_trace() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let answers = || {
        let part = ["--json", "--start", "25%", "--end=-1ms", &trace];
        let mut answers = ["gaps", "api", "markers", "top", "memory"]
            .map(|verb| dir.run(&[&[verb][..], &part].concat()).expect(0).stdout.clone())
            .to_vec();
        answers.push(dir.run(&["gaps", &trace]).expect(0).stdout.clone());
        let trimmed = dir.run(&["trim", "--start", "25%", "--dry-run", &trace]);
        // The first line counts rows, those far away too.
        answers.push(trimmed.expect(0).stdout.split_once('\n').unwrap().1.to_string());
        answers
    };
    let before = answers();
    for start in [5, 4_000_000_000_000_000_000_i64] {
        dir.open(&trace)
            .execute(
                "INSERT INTO rocpd_api SELECT max(id) + 1000, pid, tid, ?1, ?1 + 4, apiName_id, args_id FROM rocpd_api",
                [start],
            )
            .unwrap();
    }
    for (after, before) in answers().iter().zip(&before) {
        assert_eq!(after, before);
    }
}

fn json(dir: &Dir, arguments: &[&str]) -> Value {
    serde_json::from_str(&dir.run(arguments).expect(0).stdout).unwrap()
}

/// A launch years before its kernel: the queue was not full all the years.
#[test]
fn a_launch_far_from_all_others_is_not_known() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let queues = || json(&dir, &["queues", "--json", &trace]);
    let before = queues();
    dir.open(&trace)
        .execute_batch(
            "UPDATE rocpd_api SET start = 5, \"end\" = 15 WHERE id = (SELECT api_id FROM rocpd_api_ops ORDER BY id LIMIT 1 OFFSET 40)",
        )
        .unwrap();
    let spans = |queues: &Value| -> Vec<u64> {
        queues.as_array().unwrap().iter().map(|queue| queue["span_ns"].as_u64().unwrap()).collect()
    };
    let delays = |queues: &Value| -> u64 {
        queues.as_array().unwrap().iter().map(|queue| queue["delay"]["operations"].as_u64().unwrap()).sum()
    };
    let after = queues();
    assert_eq!((spans(&after), delays(&after) + 1), (spans(&before), delays(&before)));
    dir.run(&["queues", &trace]).expect(0).says(&["1 launch is left out: days away from nearly all calls"]);
}

/// What `rpd info` says of a trace with one such call; ready-made queries count it, and that is said.
#[test]
fn the_span_of_a_trace_is_without_what_is_far() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let span = || json(&dir, &["info", "--json", &trace])["span"].clone();
    let before = span();
    assert_eq!(dir.run(&["sql", &trace, "busy"]).expect(0).stderr, "");
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_op SELECT max(id) + 1000, gpuId, queueId, 0, '', 5, 15, description_id, opType_id FROM rocpd_op;
             INSERT INTO rocpd_api SELECT max(id) + 1000, pid, tid, 4000000000000000000, 4000000000000000010, apiName_id, args_id FROM rocpd_api",
        )
        .unwrap();
    assert_eq!(span(), before);
    dir.run(&["info", &trace])
        .expect(0)
        .says(&["2 calls and operations are left out of the span", "rpd check"]);
    dir.run(&["sql", &trace, "busy"]).expect(0).says(&["days away from nearly all others", "rpd check"]);
}

/// An operation whose GPU or queue is no number ran nowhere: reports of GPUs' time leave it out, as exports do, and say so.
#[test]
fn an_operation_without_a_gpu_or_a_queue_is_in_no_gpus_time() {
    let dir = Dir::new();
    let trace = generated(&dir, "g.rpd", 5, 200);
    let reports = || {
        let alone = ["gaps", "overlap", "queues", "categories", "copies", "table"].map(|verb| vec![verb]);
        let by = ["gpu", "queue", "stream", "thread", "session"].map(|by| vec!["top", "--by", by]);
        let asked = alone.into_iter().chain(by);
        asked.map(|verb| dir.run(&[&verb[..], &["--json", &trace]].concat())).collect::<Vec<_>>()
    };
    let before = reports();
    for (row, columns) in [(1000, "'x', queueId"), (2000, "gpuId, 'x'")] {
        dir.open(&trace)
            .execute_batch(&format!(
                "INSERT INTO rocpd_op SELECT id + {row} * 4294967296, {columns}, 0, '', start, \"end\", description_id, opType_id
                 FROM rocpd_op ORDER BY id LIMIT 1"
            ))
            .unwrap();
    }
    let said = |verb: &[&str], left: &str| {
        let ran = dir.run(&[verb, &[&trace]].concat());
        assert!(ran.expect(0).stderr.contains(left), "{ran}");
    };
    said(&["top", "-n", "1000"], "2 operations are in no GPU's time");
    said(&["top", "--by", "marker", "-n", "1000"], "2 operations are in no GPU's time");
    said(&["info"], "2 operations have a GPU or queue that is no number");
    let places = json(&dir, &["info", "--json", &trace])["gpus"].as_array().unwrap().clone();
    assert!(places.iter().all(|gpu| gpu["gpu"] != -1), "{places:?}");
    let rows = |rows: &str| dir.run(&["export", "csv", &trace, rows]).expect(0).stderr.clone();
    let kernels = [rows("kernels"), rows("copies")].concat();
    assert!(kernels.contains("2 calls and operations are left out"), "{kernels}");
    assert_eq!(rows("apis"), "");
    for (after, before) in reports().iter().zip(&before) {
        assert_eq!(after.stdout, before.stdout);
        let left = "2 operations are left out: impossible times or places";
        let left_of_all = "2 GPU operations are left out: impossible times or places";
        assert!(after.stderr.contains(left) || after.stderr.contains(left_of_all), "{after}");
    }
}
