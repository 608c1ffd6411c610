//! What must add up in the reports, over generated traces: a trace for which it does not is shrunk to a small one.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde_json::Value;

use crate::harness::Dir;
use crate::property::holds;

/// An operation: GPU, queue, start, duration, name.
type Op = (i64, i64, i64, i64, usize);

/// The last three are no kernel's: a copy, a fill, and a barrier, which keeps no GPU busy.
const NAMES: [&str; 6] = ["gemm", "softmax", "ncclAllReduce", "CopyDeviceToHost", "FillBuffer", "Barrier"];
const FIRST_OTHER: usize = 3;

/// Few values, so that operations overlap, touch, are equal and take no time.
fn ops() -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec((0..2_i64, 0..2_i64, 0..60_i64, 0..12_i64, 0..NAMES.len()), 1..25)
}

/// A marker or a call: whether it is a marker, where it is cut out of what is around it, and what it launches.
type Cut = (bool, usize, i64, i64, Vec<Op>);

fn cuts() -> impl Strategy<Value = Vec<Cut>> {
    let op = (0..2_i64, 0..2_i64, 0..60_i64, 0..12_i64, 0..NAMES.len());
    let launched = prop::collection::vec(op, 0..3);
    prop::collection::vec((any::<bool>(), 0..1000_usize, 0..1000_i64, 0..1000_i64, launched), 0..20)
}

/// The times of the first operation, so that 0 is none.
const ZERO: i64 = 1000;

/// Adds an operation, which the call launched if there is one.
fn add_op(sql: &mut String, id: i64, (gpu, queue, start, took, name): Op, call: Option<i64>) {
    let (description, kind) = if name < FIRST_OTHER { (10 + name, 2) } else { (1, 10 + name) };
    let start = ZERO + start;
    *sql += &format!(
        "INSERT INTO rocpd_op VALUES ({id}, {gpu}, {queue}, {id}, '', {start}, {}, {description}, {kind});",
        start + took
    );
    if NAMES[name] == "Barrier" {
        *sql += &format!("INSERT INTO rocpd_barrierop VALUES ({id}, 0, '', '');");
    }
    if let Some(call) = call {
        *sql += &format!("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({call}, {id});");
    }
}

fn texts() -> String {
    let mut sql = String::from(
        "BEGIN; INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'UserMarker'), (4, 'hipLaunchKernel');",
    );
    for (number, name) in NAMES.iter().enumerate() {
        sql += &format!("INSERT INTO rocpd_string VALUES ({}, '{name}');", 10 + number);
    }
    sql
}

fn rows(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let ran = dir.run(arguments);
    serde_json::from_str(&ran.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

fn number(row: &Value, field: &str) -> i64 {
    row[field].as_i64().unwrap_or_else(|| panic!("{field} of {row}"))
}

/// How many of the nanoseconds of a GPU are in an operation of one of the names.
fn covered(ops: &[Op], gpu: i64, is_it: impl Fn(usize) -> bool) -> i64 {
    let has = |at: i64| {
        ops.iter().any(|(of, _, start, took, name)| {
            *of == gpu && is_it(*name) && (*start..start + took).contains(&at)
        })
    };
    (0..80).filter(|at| has(*at)).count() as i64
}

#[test]
fn busy_and_idle_are_the_span_and_parts_of_busy_add_up() {
    holds(ops(), |ops| {
        let dir = Dir::new();
        let mut sql = texts();
        for (at, op) in ops.iter().enumerate() {
            add_op(&mut sql, at as i64 + 1, *op, None);
        }
        let trace = dir.trace("t.rpd", &(sql + "COMMIT"));
        let working: Vec<Op> = ops.iter().filter(|op| NAMES[op.4] != "Barrier").copied().collect();
        let gaps = rows(&dir, &["gaps", "--json", &trace]);
        let mut of_gpu: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for row in &gaps {
            let (busy, idle, span) = (number(row, "busy_ns"), number(row, "idle_ns"), number(row, "span_ns"));
            assert_eq!(busy + idle, span, "{row}");
            let gpu = number(row, "gpu");
            assert_eq!(busy, covered(&working, gpu, |_| true), "{row}");
            let parts = |list: &str| -> i64 {
                row[list].as_array().unwrap().iter().map(|part| number(part, "idle_ns")).sum()
            };
            assert_eq!((parts("bins"), parts("causes")), (idle, idle), "{row}");
            of_gpu.insert(gpu, (busy, idle));
        }
        let gpus: BTreeSet<i64> = working.iter().map(|op| op.0).collect();
        assert_eq!(of_gpu.keys().copied().collect::<Vec<_>>(), gpus.into_iter().collect::<Vec<_>>());
        for row in rows(&dir, &["overlap", "--json", &trace]) {
            let gpu = number(&row, "gpu");
            let exposed = ["compute_ns", "exposed_communication_ns", "exposed_copies_ns"]
                .map(|part| number(&row, part));
            assert_eq!(exposed.iter().sum::<i64>(), of_gpu[&gpu].0, "{row}");
            assert_eq!(exposed[0], covered(&working, gpu, |name| name < 2), "{row}");
            let kernels = covered(&working, gpu, |name| name < FIRST_OTHER);
            assert_eq!(exposed[0] + exposed[1], kernels, "{row}");
        }
        let categories = rows(&dir, &["categories", "--json", &trace]);
        let all = |is_idle: bool| -> i64 {
            let those = categories.iter().filter(|row| (row["category"] == "_GPU_Idle") == is_idle);
            those.map(|row| number(row, "busy_ns")).sum()
        };
        let sums = of_gpu.values().fold((0, 0), |sum, (busy, idle)| (sum.0 + busy, sum.1 + idle));
        assert_eq!((all(false), all(true)), sums, "{categories:?}");
        for row in categories.iter().filter(|row| row["category"] != "_GPU_Idle") {
            assert!(number(row, "busy_ns") <= number(row, "total_ns"), "{row}");
        }
    });
}

#[test]
fn own_times_of_markers_sum_to_what_is_in_them() {
    holds(cuts(), |cuts| {
        let dir = Dir::new();
        let mut sql = texts();
        // Markers nest, down from two threads.
        let mut spans: Vec<(i64, i64, i64)> = vec![(7, 0, 60), (8, 0, 60)];
        let mut launched: Vec<Op> = Vec::new();
        for (at, (is_marker, place, from, to, ops)) in cuts.iter().enumerate() {
            let (tid, start, end) = spans.swap_remove(place % spans.len());
            let cut = [from, to].map(|edge| start + edge % (end - start + 1));
            let (first, last) = (cut[0].min(cut[1]), cut[0].max(cut[1]));
            let id = at as i64 + 1;
            let (name, args) = if *is_marker { (3, 100 + at % 3) } else { (4, 1) };
            sql += &format!(
                "INSERT OR IGNORE INTO rocpd_string VALUES (100, 'step'), (101, 'forward'), (102, 'backward');
                 INSERT INTO rocpd_api VALUES ({id}, 5, {tid}, {}, {}, {name}, {args});",
                ZERO + first,
                ZERO + last
            );
            if !is_marker {
                for op in ops {
                    launched.push(*op);
                    add_op(&mut sql, launched.len() as i64, *op, Some(id));
                }
            }
            spans.push((tid, start, first));
            spans.push((tid, last, end));
            if last > first {
                spans.push((tid, first, last));
            }
        }
        let trace = dir.trace("t.rpd", &(sql + "COMMIT"));
        let nodes = rows(&dir, &["markers", "--json", &trace]);
        for kind in ["cpu", "gpu"] {
            let [all, own] = ["ns", "own_ns"].map(|what| format!("{kind}_{what}"));
            for node in &nodes {
                let below = nodes.iter().filter(|other| other["parent"] == node["node"]);
                let inside: i64 = below.map(|other| number(other, &all)).sum();
                assert_eq!(number(node, &own) + inside, number(node, &all), "{kind} of {node}\n{nodes:?}");
                assert!(number(node, &own) >= 0, "{node}");
            }
        }
        let outermost = nodes.iter().filter(|node| node["parent"].is_null());
        let gpu: i64 = outermost.map(|node| number(node, "gpu_ns")).sum();
        let working: Vec<Op> = launched.iter().filter(|op| NAMES[op.4] != "Barrier").copied().collect();
        let busy: i64 = (0..2).map(|gpu| covered(&working, gpu, |_| true)).sum();
        assert!(gpu <= busy, "{gpu} of {busy} ns\n{nodes:?}");
        let has_rest = nodes.iter().any(|node| node["name"] == "(no marker)");
        assert!(gpu == busy || !has_rest, "with (no marker) it is all: {gpu} of {busy} ns\n{nodes:?}");
    });
}
