//! Passes over generated traces: what must hold for every one, and agreement with a second implementation that is
//! slow and obvious.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rusqlite::Connection;

use crate::harness::Dir;

/// Traces per property; each is a file and a run of rpd.
fn cases() -> u32 {
    if std::env::var_os("RPD_SOAK").is_some() { 3000 } else { 60 }
}

/// Checks a property of many values, the same in every run but for a soak's, and shrinks one for which it fails.
pub(crate) fn holds<T: std::fmt::Debug>(values: impl Strategy<Value = T>, property: impl Fn(T)) {
    // Without a file of earlier failures: a failure becomes a test of its own.
    let config =
        Config { cases: cases(), failure_persistence: None, max_shrink_iters: 300, ..Config::default() };
    let mut runner = match std::env::var_os("RPD_SOAK") {
        Some(_) => TestRunner::new(config),
        None => TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let result = runner.run(&values, |value| {
        property(value);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}

/// The first session of its process, process id, thread id.
type Thread = (i64, i64, i64);

/// A call: thread, times, id, durations of its ops.
#[derive(Debug, Clone)]
struct Call {
    thread: Thread,
    start: i64,
    end: i64,
    id: i64,
    ops: Vec<i64>,
}

/// Few values, so that ties are common: starts, lengths, sessions.
fn any_calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (0..3_i64, 0..2_i64, 0..12_i64, 0..10_i64, 0..3_i64, prop::collection::vec(0..50_i64, 0..3));
    prop::collection::vec(call, 0..40).prop_map(|calls| {
        let numbered = calls.into_iter().enumerate();
        let calls = numbered.map(|(at, (pid, tid, start, length, session, ops))| Call {
            // The first and the last session are of one process.
            thread: (session % 2 * 3, pid, tid),
            start,
            end: start + length,
            id: ((session * 3) << 32) + 1 + (at as i64 * 7919 % 100),
            ops,
        });
        calls.collect()
    })
}

/// Calls that nest, down from one span: siblings touch, share ends with their caller, and are marks.
fn nested_calls() -> impl Strategy<Value = Vec<Call>> {
    let cuts = prop::collection::vec((0..1000_usize, 0..1000_i64, 0..1000_i64, 0..3_i64), 0..40);
    cuts.prop_map(|cuts| {
        let mut calls: Vec<Call> = Vec::new();
        let mut spans: Vec<(i64, Thread, i64, i64)> =
            (0..3).map(|thread| (thread, (thread * 5, thread % 2, thread / 2), 0, 200)).collect();
        for (at, (place, from, to, ops)) in cuts.into_iter().enumerate() {
            let (session, thread, start, end) = spans.swap_remove(place % spans.len());
            let (from, to) = (start + from % (end - start + 1), start + to % (end - start + 1));
            let (start_of, end_of) = (from.min(to), from.max(to));
            let id = ((session * 5) << 32) + (at as i64 * 7919 % 100) + 1;
            calls.push(Call { thread, start: start_of, end: end_of, id, ops: vec![7; ops as usize] });
            spans.push((session, thread, start, start_of));
            spans.push((session, thread, end_of, end));
            // The call itself, as long as something can be inside of it.
            if end_of > start_of {
                spans.push((session, thread, start_of, end_of));
            }
        }
        calls
    })
}

fn write(trace: &Connection, calls: &[Call]) {
    let mut sql = "BEGIN; INSERT INTO rocpd_string VALUES (1, '');".to_string();
    for (key, value) in [("boot_id", "b"), ("pid", "1"), ("start_monotonic_ns", "7")] {
        for session in [0, 6] {
            sql += &format!(
                "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::{session}::{key}', '{value}');"
            );
        }
    }
    for Call { thread: (_, pid, tid), start, end, id, ops } in calls {
        sql += &format!("INSERT INTO rocpd_api VALUES ({id}, {pid}, {tid}, {start}, {end}, 1, 1);");
        for duration in ops {
            sql += &format!(
                "INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                     VALUES (0, 0, 0, '', 100, {}, 1, 1);
                 INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({id}, last_insert_rowid());",
                100 + duration
            );
        }
    }
    trace.execute_batch(&(sql + "COMMIT")).unwrap();
}

/// `(parent, child)` to `(depth, cpu_time, gpu_time)`.
type Rows = BTreeMap<(i64, i64), (i64, i64, i64)>;

fn stacks(calls: &[Call]) -> (Rows, String) {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    write(&dir.open(&trace), calls);
    let ran = dir.run(&["callstack", &trace]);
    ran.expect(0);
    let connection = dir.open(&trace);
    let mut select = connection
        .prepare("SELECT parent_id, child_id, depth, cpu_time, gpu_time FROM ext_callstack")
        .unwrap();
    let rows = select
        .query_map([], |row| Ok(((row.get(0)?, row.get(1)?), (row.get(2)?, row.get(3)?, row.get(4)?))))
        .unwrap();
    let rows: Vec<_> = rows.map(Result::unwrap).collect();
    let count = rows.len();
    let rows: Rows = rows.into_iter().collect();
    assert_eq!(rows.len(), count, "a pair of calls has one row");
    (rows, ran.stderr.clone())
}

/// The definition, word by word: P is on the stack of C if it comes before C (earlier start, or the same and longer, or
/// equal and a smaller id), has not ended at C's start, and neither C nor any call between them outlives P.
fn obvious(calls: &[Call]) -> Rows {
    let mut order: Vec<&Call> = calls.iter().collect();
    order.sort_by_key(|call| (call.thread, call.start, -call.end, call.id));
    let callers = |at: usize| -> Vec<&Call> {
        (0..at)
            .rev()
            .filter(|before| {
                let caller = order[*before];
                caller.thread == order[at].thread
                    && caller.end > order[at].start
                    && order[*before + 1..=at].iter().all(|later| later.end <= caller.end)
            })
            .map(|before| order[before])
            .collect()
    };
    let mut rows = Rows::new();
    for (at, call) in order.iter().enumerate() {
        let children = (0..order.len())
            .filter(|other| callers(*other).first().is_some_and(|caller| caller.id == call.id));
        let below: i64 = children.map(|child| order[child].end - order[child].start).sum();
        let times = (call.end - call.start - below, call.ops.iter().sum());
        rows.insert((call.id, call.id), (0, times.0, times.1));
        for (level, caller) in callers(at).into_iter().enumerate() {
            rows.insert((caller.id, call.id), (level as i64 + 1, times.0, times.1));
        }
    }
    rows
}

/// Calls that are on no stack but their own.
fn outermost(rows: &Rows) -> BTreeSet<i64> {
    let all = rows.keys().map(|(_, child)| *child);
    all.filter(|id| rows.keys().filter(|(_, child)| child == id).count() == 1).collect()
}

fn inclusive(rows: &Rows, id: i64) -> (i64, i64) {
    let of = rows.iter().filter(|((parent, _), _)| *parent == id);
    of.fold((0, 0), |sum, (_, (_, cpu, gpu))| (sum.0 + cpu, sum.1 + gpu))
}

/// What holds whether calls nest or not.
fn check_sums(calls: &[Call], rows: &Rows) {
    for call in calls {
        assert_eq!(inclusive(rows, call.id).0, call.end - call.start, "inclusive time of {call:?}");
    }
    let outermost = outermost(rows);
    let launched: i64 = calls.iter().flat_map(|call| &call.ops).sum();
    let found: i64 = outermost.iter().map(|id| inclusive(rows, *id).1).sum();
    assert_eq!(found, launched, "GPU time under the outermost calls is all there is");
}

#[test]
fn stacks_are_as_defined_whatever_the_calls() {
    holds(any_calls(), |mut calls| {
        let mut seen = BTreeSet::new();
        calls.retain(|call| seen.insert(call.id));
        let (rows, _) = stacks(&calls);
        assert_eq!(rows, obvious(&calls));
        check_sums(&calls, &rows);
    });
}

#[test]
fn the_exclusive_times_of_a_thread_are_what_its_outermost_calls_cover() {
    holds(nested_calls(), |calls| {
        let (rows, notes) = stacks(&calls);
        assert!(!notes.contains("overlapping"), "{notes}");
        assert_eq!(rows, obvious(&calls));
        check_sums(&calls, &rows);
        assert!(rows.values().all(|(_, cpu, _)| *cpu >= 0), "{rows:?}");
        let threads: BTreeSet<Thread> = calls.iter().map(|call| call.thread).collect();
        for thread in threads {
            let own: i64 = calls
                .iter()
                .filter(|call| call.thread == thread)
                .map(|call| rows[&(call.id, call.id)].1)
                .sum();
            let covered = (0..200).filter(|time| {
                calls.iter().any(|call| call.thread == thread && call.start <= *time && *time < call.end)
            });
            assert_eq!(own, covered.count() as i64, "thread {thread:?}");
        }
    });
}

/// What a program does to graphs: process, stream and handle are chosen from few, so that they meet again.
#[derive(Debug, Clone)]
enum Act {
    Begin,
    End(i64),
    Launch,
    Instantiate(i64, i64),
    GraphLaunch(i64),
}

fn acts() -> impl Strategy<Value = Vec<(i64, i64, Act)>> {
    let act = prop_oneof![
        2 => Just(Act::Begin),
        2 => (0..2_i64).prop_map(Act::End),
        5 => Just(Act::Launch),
        2 => (0..2_i64, 0..3_i64).prop_map(|(graph, exec)| Act::Instantiate(graph, exec)),
        1 => (0..3_i64).prop_map(Act::GraphLaunch),
    ];
    prop::collection::vec((0..3_i64, 0..2_i64, act), 0..60)
}

#[test]
fn graphs_have_the_kernels_that_were_captured() {
    holds(acts(), |acts| {
        let mut sql = "BEGIN; INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipStreamBeginCapture'), (3, 'hipStreamEndCapture'),
            (4, 'hipLaunchKernel'), (5, 'hipGraphInstantiate'), (6, 'hipGraphLaunch'), (7, 'KernelExecution'), (8, 'k');"
            .to_string();
        let mut open: BTreeMap<(i64, i64), Vec<i64>> = BTreeMap::new();
        let mut graphs: BTreeMap<(i64, i64), Vec<i64>> = BTreeMap::new();
        let mut expected: Vec<(String, Vec<i64>)> = Vec::new();
        for (at, (process, stream, act)) in acts.iter().enumerate() {
            // Two processes share an id in different sessions.
            let (session, pid) = (process + 1, process % 2);
            let time = 20 * (at as i64 + 1);
            let id = (session << 32) + 1000 - at as i64;
            let (name, args) = match act {
                Act::Begin => {
                    open.insert((*process, *stream), Vec::new());
                    (2, format!("stream = 0x{stream} | mode = 1"))
                }
                Act::End(handle) => {
                    match open.remove(&(*process, *stream)) {
                        Some(kernels) => graphs.insert((*process, *handle), kernels),
                        None => graphs.remove(&(*process, *handle)),
                    };
                    (3, format!("stream = 0x{stream} | graph = 0xa{handle}"))
                }
                Act::Launch => {
                    sql += &format!(
                        "INSERT INTO rocpd_kernelapi VALUES ({id}, '0x{stream}', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 8);"
                    );
                    match open.get_mut(&(*process, *stream)) {
                        Some(kernels) => kernels.push(id),
                        None => sql += &format!(
                            "INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                                 VALUES (0, 0, 0, '', {time}, {time}, 8, 7);
                             INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({id}, last_insert_rowid());"
                        ),
                    }
                    (4, String::new())
                }
                Act::Instantiate(handle, exec) => {
                    if let Some(kernels) = graphs.get(&(*process, *handle)) {
                        expected.push((format!("0xe{exec}"), kernels.clone()));
                    }
                    (5, format!("graphExec = 0xe{exec} | graph = 0xa{handle}"))
                }
                Act::GraphLaunch(exec) => (6, format!("graphExec = 0xe{exec} | stream = 0x{stream}")),
            };
            let text = 100 + at;
            sql += &format!(
                "INSERT INTO rocpd_string VALUES ({text}, '{args}');
                 INSERT INTO rocpd_api VALUES ({id}, {pid}, 1, {time}, {}, {name}, {text});",
                time + 10
            );
        }
        let dir = Dir::new();
        let trace = dir.trace("t.rpd", &(sql + "COMMIT"));
        dir.run(&["graph", &trace]).expect(0);
        let connection = dir.open(&trace);
        let mut graphs = connection.prepare("SELECT id, graphExec FROM ext_graph").unwrap();
        let mut kernels = connection
            .prepare(
                "SELECT api_id, sequence FROM ext_graph_kernelapis WHERE graph_id = ?1 ORDER BY sequence",
            )
            .unwrap();
        let found =
            graphs.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))).unwrap();
        let mut found: Vec<(String, Vec<i64>)> = found
            .map(|graph| {
                let (id, exec) = graph.unwrap();
                let rows = kernels
                    .query_map([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
                    .unwrap();
                let rows: Vec<(i64, i64)> = rows.map(Result::unwrap).collect();
                assert!(
                    rows.iter().enumerate().all(|(at, (_, sequence))| *sequence == at as i64 + 1),
                    "{rows:?}"
                );
                (exec, rows.into_iter().map(|(api, _)| api).collect())
            })
            .collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    });
}
