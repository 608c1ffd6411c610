//! `rpd export collapsed`, `rpd export speedscope`: stacks are compared with those of the callstack pass, by SQL.

use std::collections::BTreeMap;

use proptest::prelude::*;
use regex::Regex;
use serde_json::Value;

use crate::export::{any_calls, write};
use crate::generated::{generated, to_schema_3};
use crate::harness::Dir;
use crate::property::holds;

/// Stacks with their own time, ns.
type Stacks = BTreeMap<String, i64>;

/// What flamegraph.pl and inferno make of the lines: of a line the stack is all before the last blank, the number all behind it.
fn collapsed(dir: &Dir, trace: &str, options: &[&str]) -> Stacks {
    let ran = dir.run(&[&["export", "collapsed", trace], options].concat());
    // Perl reads bytes: a blank is one of ASCII.
    let count = Regex::new(r"^(.*)(?-u:\s)+?(\d+(?:\.\d*)?)$").unwrap();
    let mut stacks = Stacks::new();
    for line in ran.expect(0).stdout.lines() {
        let found = count.captures(line).unwrap_or_else(|| panic!("{line:?}"));
        assert!(!count.is_match(&found[1]), "a second count: {line:?}");
        *stacks.entry(found[1].to_string()).or_default() += found[2].parse::<i64>().unwrap();
    }
    stacks
}

/// Checks what the schema of speedscope asks for (file-format-spec.ts, version 1.25) and gives the stacks with their own times, and how
/// often a frame opens.
fn speedscope(dir: &Dir, trace: &str, options: &[&str]) -> (Stacks, i64) {
    let ran = dir.run(&[&["export", "speedscope", trace], options].concat());
    let file: Value = serde_json::from_str(&ran.expect(0).stdout).unwrap();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    assert!(file["name"].as_str().is_some_and(|name| !name.is_empty()));
    let frames: Vec<&str> = file["shared"]["frames"]
        .as_array()
        .unwrap()
        .iter()
        .map(|frame| frame["name"].as_str().unwrap())
        .collect();
    let (mut stacks, mut opened) = (Stacks::new(), 0);
    for profile in file["profiles"].as_array().unwrap() {
        assert_eq!([&profile["type"], &profile["unit"]], ["evented", "nanoseconds"]);
        assert!(profile["name"].is_string());
        let [start, end] = ["startValue", "endValue"].map(|key| profile[key].as_i64().unwrap());
        let (mut now, mut open) = (start, Vec::new());
        for event in profile["events"].as_array().unwrap() {
            let (at, frame) = (event["at"].as_i64().unwrap(), event["frame"].as_u64().unwrap() as usize);
            assert!(now <= at && at <= end && frame < frames.len(), "{event}");
            if at > now {
                let stack: Vec<&str> = open.iter().map(|frame| frames[*frame]).collect();
                *stacks.entry(stack.join(";")).or_default() += at - now;
            }
            now = at;
            match event["type"].as_str().unwrap() {
                "O" => {
                    opened += 1;
                    open.push(frame);
                }
                other => assert_eq!((other, open.pop()), ("C", Some(frame))),
            }
        }
        assert!(open.is_empty());
    }
    stacks.remove("");
    (stacks, opened)
}

/// The stacks of the callstack pass with own times of calls, or with those of what they launched.
fn of_the_pass(dir: &Dir, trace: &str) -> [Stacks; 2] {
    std::fs::copy(dir.path(trace), dir.path("pass.rpd")).unwrap();
    dir.run(&["callstack", "--redo", "pass.rpd"]).expect(0);
    let trace = dir.open("pass.rpd");
    let stacks = |query: &str| {
        let mut query = trace.prepare(query).unwrap();
        let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).unwrap();
        let mut stacks = Stacks::new();
        for (stack, ns) in rows.map(Result::unwrap).filter(|(_, ns)| *ns > 0) {
            *stacks.entry(stack).or_default() += ns;
        }
        stacks
    };
    let named = "CREATE TEMP VIEW named AS
        SELECT child_id, group_concat(name, ';' ORDER BY depth DESC) AS stack, max(iif(depth = 0, cpu_time, 0)) AS cpu
        FROM ext_callstack S
            JOIN (SELECT id, iif(apiName = 'UserMarker', args, apiName) AS name FROM api) A ON A.id = S.parent_id
        GROUP BY child_id";
    trace.execute_batch(named).unwrap();
    [
        stacks("SELECT stack, cpu FROM named"),
        stacks(
            "SELECT ifnull(stack, '(no call)') || ';' || iif(description = '', opType, description), \"end\" - start
             FROM op LEFT JOIN rocpd_api_ops L ON L.op_id = op.id LEFT JOIN named N ON N.child_id = L.api_id",
        ),
    ]
}

/// What no call launched is in a profile of its own, which has no frame for it.
fn without_no_call(stacks: &Stacks) -> Stacks {
    stacks.iter().map(|(stack, ns)| (stack.replace("(no call);", ""), *ns)).collect()
}

fn check(dir: &Dir, trace: &str) {
    let [cpu, gpu] = of_the_pass(dir, trace);
    let exact = |options: &[&'static str]| [&["--exact"], options].concat();
    let plain = |stacks: Stacks| -> Stacks {
        stacks.into_iter().map(|(stack, ns)| (stack.replace('\u{a0}', " "), ns)).collect()
    };
    assert_eq!(plain(collapsed(dir, trace, &exact(&["--time", "cpu"]))), cpu);
    assert_eq!(plain(collapsed(dir, trace, &exact(&[]))), gpu);
    let connection = dir.open(trace);
    let count = |table: &str| -> i64 {
        connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    let (stacks, opened) = speedscope(dir, trace, &exact(&["--time", "cpu"]));
    assert_eq!((stacks, opened), (cpu, count("rocpd_api")));
    let (stacks, opened) = speedscope(dir, trace, &exact(&[]));
    assert_eq!(stacks, without_no_call(&gpu));
    assert!(opened >= count("rocpd_op"), "{opened}");
}

#[test]
fn stacks_of_real_traces_are_those_of_the_callstack_pass() {
    let dir = Dir::new();
    for trace in [
        dir.fixture("matmul_result.rpd"),
        dir.unpacked("mytrace_raw.rpd"),
        dir.unpacked("mytrace_as_shipped.rpd"),
    ] {
        check(&dir, &trace);
    }
}

/// A trace whose calls nest, with all that `generated` puts into one but for stack frames.
fn without_frames(dir: &Dir, seed: u64, calls: i64) -> String {
    let trace = generated(dir, "t.rpd", seed, calls);
    dir.open(&trace).execute_batch("DELETE FROM rocpd_stackframe; DELETE FROM rocpd_barrierop").unwrap();
    trace
}

#[test]
fn stacks_of_generated_traces_are_those_of_the_callstack_pass() {
    for (seed, schema) in [(1, 2), (2, 3)] {
        let dir = Dir::new();
        let trace = without_frames(&dir, seed, 300);
        if schema == 3 {
            to_schema_3(&dir, &trace);
        }
        check(&dir, &trace);
    }
}

#[test]
fn whatever_the_calls_each_moment_belongs_to_one_stack() {
    holds(any_calls().prop_filter("calls", |calls| !calls.is_empty()), |calls| {
        let dir = Dir::new();
        let trace = write(&dir, &calls);
        let connection = dir.open(&trace);
        let sum = |query: &str| -> i64 { connection.query_row(query, [], |row| row.get(0)).unwrap() };
        let of = |stacks: &Stacks| stacks.values().sum::<i64>();
        let cpu = collapsed(&dir, &trace, &["--time", "cpu"]);
        // Every moment at which a call of a thread is open, once.
        let covered = sum("WITH t AS (SELECT id >> 32 AS session, tid, start, \"end\" FROM rocpd_api),
                 u AS (SELECT *, max(\"end\") OVER (PARTITION BY session, tid ORDER BY start, \"end\" ROWS BETWEEN UNBOUNDED PRECEDING
                     AND 1 PRECEDING) AS until FROM t)
             SELECT sum(max(0, \"end\" - max(start, ifnull(until, start)))) FROM u");
        assert_eq!(of(&cpu), covered);
        let opened = sum("SELECT count(*) FROM rocpd_api");
        let (stacks, found) = speedscope(&dir, &trace, &["--time", "cpu"]);
        assert_eq!((&stacks, found), (&cpu, opened));
        let gpu = collapsed(&dir, &trace, &[]);
        assert_eq!(of(&gpu), sum("SELECT ifnull(sum(\"end\" - start), 0) FROM rocpd_op"));
        assert_eq!(speedscope(&dir, &trace, &[]).0, gpu);
    });
}

/// Two calls inside a marker, each with its frames; the second is inside the first. A second marker overlaps the first one.
const FRAMES: &str = "
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipLaunchKernel'), (4, 'KernelExecution'), (5, 'k'), (6, 'step 3'),
        (7, 'main'), (8, 'train; a.cpp:7'), (9, 'layer'), (10, 'hipMalloc'), (11, 'late'), (12, 'aten::mm, op_id = 7, sizes = [[2]]');
    INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 500, 2, 6), (2, 7, 7, 150, 300, 3, 1), (3, 7, 7, 200, 250, 10, 1), (4, 7, 7, 400, 600, 2, 11),
        (5, 7, 7, 420, 450, 2, 12), (6, 7, 7, 430, 440, 3, 1);
    INSERT INTO rocpd_stackframe VALUES (1, 2, 0, 8), (2, 2, 1, 7), (3, 3, 0, 9), (4, 3, 1, 8), (5, 3, 2, 7);
    INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 900, 960, 5, 4), (2, 0, 0, 0, '', 960, 970, 5, 4), (3, 0, 0, 0, '', 980, 983, 5, 4);
    INSERT INTO rocpd_api_ops VALUES (1, 2, 1), (2, 6, 2);
    INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::env::RANK', '3'), ('session::0::command', './train');";

fn stacks(of: &[(&str, i64)]) -> Stacks {
    of.iter().map(|(stack, ns)| ((*stack).to_string(), *ns)).collect()
}

#[test]
fn frames_of_the_program_stand_between_markers_and_calls() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", FRAMES);
    assert_eq!(
        collapsed(&dir, &trace, &["--time", "cpu"]),
        stacks(&[
            ("step\u{a0}3", 150),
            ("step\u{a0}3;main;train: a.cpp:7;hipLaunchKernel", 100),
            ("step\u{a0}3;main;train: a.cpp:7;hipLaunchKernel;layer;hipMalloc", 50),
            // The later of the two that overlap has the time.
            ("late", 170),
            ("late;aten::mm", 20),
            ("late;aten::mm;hipLaunchKernel", 10),
        ])
    );
    let launched = stacks(&[
        ("step\u{a0}3;main;train: a.cpp:7;hipLaunchKernel;k", 60),
        ("late;aten::mm;hipLaunchKernel;k", 10),
        ("(no call);k", 3),
    ]);
    assert_eq!(collapsed(&dir, &trace, &[]), launched);
    let exact = collapsed(&dir, &trace, &["--exact", "--time", "cpu"]);
    assert!(exact.contains_key("late;aten::mm, op_id = 7, sizes = [[2]]"), "{exact:?}");
    let threads = collapsed(&dir, &trace, &["--threads"]);
    let one = "rank 3: ./train (pid 7);main thread\u{a0}7;late;aten::mm;hipLaunchKernel;k";
    assert_eq!(threads.get(one), Some(&10), "{threads:?}");
    assert!(threads.contains_key("(no call);k"), "{threads:?}");
}

#[test]
fn a_region_keeps_the_markers_around_it() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", FRAMES);
    let region = ["--start", "425", "--end", "600"];
    assert_eq!(collapsed(&dir, &trace, &region), stacks(&[("late;aten::mm;hipLaunchKernel;k", 10)]));
    let cpu = [&region[..], &["--time", "cpu"]].concat();
    assert_eq!(collapsed(&dir, &trace, &cpu), stacks(&[("hipLaunchKernel", 10)]));
    for options in [&["--kernel", "nothing"][..], &["--pid", "8", "--time", "cpu"]] {
        let ran = dir.run(&[&["export", "collapsed", &trace], options].concat());
        assert!(ran.expect(0).stdout.is_empty(), "{ran}");
        ran.says(&["has no such"]);
        let ran = dir.run(&[&["export", "speedscope", &trace], options].concat());
        serde_json::from_str::<Value>(&ran.expect(0).stdout).unwrap();
    }
}

#[test]
fn processes_with_equal_ids_stay_apart() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'a'), (3, 'b');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 1), ((1 << 32) + 1, 7, 7, 150, 250, 3, 1);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::pid', '7'), ('session::0::host', 'x'), ('session::1::pid', '7'),
             ('session::1::host', 'y'), ('session_count', '2');",
    );
    let found = collapsed(&dir, &trace, &["--threads", "--time", "cpu"]);
    assert_eq!(
        found,
        stacks(&[
            ("process 7, session\u{a0}0;main thread\u{a0}7;a", 100),
            ("process 7, session\u{a0}1;main thread\u{a0}7;b", 100)
        ])
    );
}

#[test]
fn ranges_that_are_never_popped_are_an_error_that_says_what_to_do() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'm');
         WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 3000)
         INSERT INTO rocpd_api SELECT i, 7, 7, i, 100000, 2, 3 FROM n;",
    );
    for format in ["collapsed", "speedscope"] {
        dir.run(&["export", format, "--time", "cpu", &trace, "-o", "out"])
            .expect(1)
            .says(&["deep", "--start"]);
        assert!(!dir.path("out").exists());
    }
}

/// As in the other reports.
#[test]
fn a_marker_without_a_text_has_the_name_of_its_function() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipMalloc');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 1), (2, 7, 7, 110, 120, 3, 1);",
    );
    let stacks = collapsed(&dir, &trace, &["--time", "cpu"]);
    assert!(stacks.keys().any(|stack| stack == "UserMarker;hipMalloc"), "{stacks:?}");
    let ranked = dir.run(&["top", "--by", "marker", "--csv", &trace]);
    assert!(ranked.expect(0).stdout.contains("UserMarker"), "{ranked}");
}
