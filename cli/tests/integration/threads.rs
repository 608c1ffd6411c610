//! Processes with equal process and thread ids: containers of one host that wrote into one file, and merged traces.

use std::fs;

use crate::generated::{number, rows};
use crate::harness::Dir;

/// PyTorch's operators, each with a call that launches a kernel, as thread 7 of process 7 of `session` from `begin` on.
fn operators(session: i64, begin: i64, name: &str) -> String {
    let id = |local: i64| (session << 32) + local;
    let mut sql = format!(
        "INSERT INTO rocpd_string VALUES ({}, ''), ({}, 'UserMarker'), ({}, 'hipLaunchKernel'), ({}, 'KernelExecution'), ({}, 'k_{name}');",
        id(1),
        id(2),
        id(3),
        id(4),
        id(5)
    );
    for at in 0..12 {
        let (marker, launch, start) = (id(100 + at), id(200 + at), begin + at * 100);
        sql += &format!(
            "INSERT INTO rocpd_string VALUES ({text}, 'aten::{name}, seq = {at}');
             INSERT INTO rocpd_api VALUES ({marker}, 7, 7, {start}, {}, {}, {text}), ({launch}, 7, 7, {}, {}, {}, {});
             INSERT INTO rocpd_kernelapi VALUES ({launch}, '0x0', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, {});
             INSERT INTO rocpd_op VALUES ({launch}, 0, 0, {at}, '', {}, {}, {}, {});
             INSERT INTO rocpd_api_ops VALUES ({launch}, {launch}, {launch});",
            start + 90, id(2), start + 10, start + 20, id(3), id(1), id(5), start + 30, start + 37, id(5), id(4),
            text = id(300 + at)
        );
    }
    sql
}

/// The rows that tell of one process in `session`.
fn facts(session: i64, start: i64) -> String {
    let facts = [
        ("boot_id", "boot1".to_string()),
        ("pid", "7".to_string()),
        ("start_monotonic_ns", start.to_string()),
    ];
    let fact = |(key, value): &(&str, String)| format!("('session::{session}::{key}', '{value}')");
    let facts: Vec<String> = facts.iter().map(fact).collect();
    format!("INSERT INTO rocpd_metadata (tag, value) VALUES {};", facts.join(", "))
}

/// Operator, kernel, calls, GPU time: of each operator its own kernel.
const OF_OPERATORS: &str =
    "SELECT autogradName, kernelName, calls, total_gpu FROM autogradKernel ORDER BY 1, 2";

fn right(dir: &Dir, trace: &str, context: &str) {
    let result = rows(&dir.open(trace), OF_OPERATORS);
    let result: Vec<String> = result.iter().map(|row| format!("{row:?}")).collect();
    let expected =
        |name: &str| format!("[Text(\"aten::{name}\"), Text(\"k_{name}\"), Integer(12), Integer(84)]");
    assert_eq!(result, [expected("one"), expected("two")], "{context}");
    let mixed = "SELECT count(*) FROM ext_callstack WHERE parent_id >> 32 <> child_id >> 32";
    assert_eq!(number(&dir.open(trace), mixed), 0, "{context}");
    assert_eq!(
        number(&dir.open(trace), "SELECT count(*) FROM ext_callstack"),
        2 * (12 * 2 + 12),
        "{context}"
    );
}

#[test]
fn two_processes_of_one_file_with_equal_ids_are_two() {
    // The calls of the second lie among those of the first, inside them and across their ends.
    for begin in [5, 45, 55, 95] {
        for with_facts in [true, false] {
            let dir = Dir::new();
            let mut sql = operators(0, 1000, "one") + &operators(1, 1000 + begin, "two");
            if with_facts {
                sql += &(facts(0, 11) + &facts(1, 12));
            }
            let trace = dir.trace("t.rpd", &sql);
            dir.run(&["autograd", &trace]).expect(0);
            right(&dir, &trace, &format!("{begin} {with_facts}"));
        }
    }
}

#[test]
fn merged_traces_of_processes_with_equal_ids_are_distinguished() {
    let dir = Dir::new();
    for (name, begin) in [("one", 1000), ("two", 1045)] {
        dir.trace(&format!("{name}.rpd"), &operators(0, begin, name));
    }
    let merged = dir.run(&["merge", "--same-host", "-o", "all.rpd", "one.rpd", "two.rpd"]);
    assert!(merged.expect(0).stderr.contains("all.rpd: several processes have the same id (7)"), "{merged}");
    dir.run(&["autograd", "all.rpd"]).expect(0);
    right(&dir, "all.rpd", "made after the merge");
    for name in ["one.rpd", "two.rpd"] {
        dir.run(&["autograd", name]).expect(0);
    }
    dir.run(&["merge", "--same-host", "-o", "made.rpd", "one.rpd", "two.rpd"]).expect(0);
    right(&dir, "made.rpd", "made before the merge");
    dir.run(&["callstack", "made.rpd"]).expect(0).says(&["covers every row"]);
    dir.run(&["callstack", "--redo", "made.rpd"]).expect(0);
    right(&dir, "made.rpd", "made anew");
    // Processes of their own ids are nothing to warn of.
    dir.open("two.rpd").execute_batch("UPDATE rocpd_api SET pid = 8").unwrap();
    let json = dir.run(&["merge", "--json", "--same-host", "-o", "other.rpd", "one.rpd", "two.rpd"]);
    assert_eq!(json.expect(0).stderr, "");
    assert!(json.stdout.contains("\"shared_pids\": []"), "{json}");
}

#[test]
fn the_sessions_of_one_process_are_one_thread() {
    let dir = Dir::new();
    // The markers in one session and the launches in another, as of a process that went on in a second session.
    let sql = operators(0, 1000, "one") + &facts(0, 11) + &facts(3, 11);
    let trace = dir.trace("t.rpd", &sql);
    let moved = "UPDATE rocpd_api SET id = id + (3 << 32) WHERE id BETWEEN 200 AND 299;
        UPDATE rocpd_kernelapi SET api_ptr_id = api_ptr_id + (3 << 32);
        UPDATE rocpd_api_ops SET api_id = api_id + (3 << 32)";
    dir.open(&trace).execute_batch(moved).unwrap();
    fs::copy(dir.path(&trace), dir.path("apart.rpd")).unwrap();
    dir.run(&["autograd", &trace]).expect(0);
    let calls = "SELECT ifnull(sum(calls), 0) FROM autogradKernel";
    assert_eq!(number(&dir.open(&trace), calls), 12);
    // Another start is another process.
    let other = "UPDATE rocpd_metadata SET value = '12' WHERE tag = 'session::3::start_monotonic_ns'";
    dir.open("apart.rpd").execute_batch(other).unwrap();
    dir.run(&["autograd", "apart.rpd"]).expect(0);
    assert_eq!(number(&dir.open("apart.rpd"), calls), 0);
}

#[test]
fn a_graph_that_goes_on_in_the_next_session_of_its_process_is_one() {
    let dir = Dir::new();
    let names = [
        "hipStreamBeginCapture",
        "hipStreamEndCapture",
        "hipGraphInstantiate",
        "hipLaunchKernel",
        "hipGraphLaunch",
    ];
    let texts = [
        "stream = 0x1 | mode = 0",
        "stream = 0x1 | graph = 0x2",
        "graphExec = 0x3 | graph = 0x2",
        "",
        "graphExec = 0x3 | stream = 0x1",
    ];
    let mut sql = facts(0, 11) + &facts(1, 11) + "INSERT INTO rocpd_string VALUES (1, '');";
    for (at, (name, text)) in names.iter().zip(texts).enumerate() {
        sql += &format!("INSERT INTO rocpd_string VALUES ({}, '{name}'), ({}, '{text}');", 10 + at, 20 + at);
    }
    let mut call = |id: i64, start: i64, what: i64| {
        sql += &format!(
            "INSERT INTO rocpd_api VALUES ({id}, 7, 7, {start}, {}, {}, {});",
            start + 5,
            10 + what,
            20 + what
        );
    };
    let next = 1_i64 << 32;
    call(1, 100, 0);
    call(2, 110, 3);
    call(next + 1, 120, 1);
    call(next + 2, 130, 2);
    call(next + 3, 140, 4);
    sql += "INSERT INTO rocpd_kernelapi VALUES (2, '0x1', 1, 1, 1, 1, 1, 1, 0, 0, '', '', '', 0, 10);";
    let trace = dir.trace("t.rpd", &sql);
    dir.run(&["graph", &trace]).expect(0);
    let graph = "SELECT count(*) FROM ext_graph G JOIN ext_graph_kernelapis K ON K.graph_id = G.id WHERE G.graphExec = '0x3' AND K.api_id = 2";
    assert_eq!(number(&dir.open(&trace), graph), 1);
}
