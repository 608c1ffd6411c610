//! `rpd trim`: what stays is what the rules say, whole and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::generated::{BEGIN, Random, generated, number, rows, to_schema_3};
use crate::harness::Dir;
use crate::hostile::being_recorded;

/// The tables that hang off calls and ops, with their columns that say so.
const DEPENDENT: [(&str, &[(&str, bool)]); 9] = [
    ("rocpd_api_ops", &[("api_id", true), ("op_id", false)]),
    ("rocpd_kernelapi", &[("api_ptr_id", true)]),
    ("rocpd_copyapi", &[("api_ptr_id", true)]),
    ("rocpd_stackframe", &[("api_ptr_id", true)]),
    ("rocpd_op_inputSignals", &[("from_op_id", false), ("to_op_id", false)]),
    ("ext_dispatch", &[("op_id", false)]),
    ("ext_replacement", &[("op_id", false)]),
    ("ext_callstack", &[("parent_id", true), ("child_id", true)]),
    ("rocpd_counter", &[("op_id", false)]),
];

/// The tables that stay as they are: what is known of code, and which files were there to replace kernels.
const WHOLE: [&str; 4] =
    ["rocpd_kernelcodeobject", "ext_codeobject", "ext_codeobject_kernel", "ext_candidate"];

/// The tables of what analyzers found.
const FOUND: [&str; 5] =
    ["ext_memoryaccess", "ext_heatmap", "ext_timeinterval", "ext_basicblock", "ext_handlervalue"];

fn integers(dir: &Dir, trace: &str, query: &str) -> Vec<Vec<i64>> {
    let rows = rows(&dir.open(trace), query);
    let integer = |value: &Value| match value {
        Value::Integer(number) => *number,
        other => panic!("{other:?}"),
    };
    rows.iter().map(|row| row.iter().map(integer).collect()).collect()
}

fn has_table(dir: &Dir, trace: &str, table: &str) -> bool {
    number(&dir.open(trace), &format!("SELECT count(*) FROM sqlite_master WHERE name = '{table}'")) > 0
}

/// Works out what must stay, slowly and by the words of the rules, and compares every table.
fn must_be(dir: &Dir, trace: &str, out: &str, start: i64, end: i64) {
    let inside = |time: i64| (start..=end).contains(&time);
    let calls: BTreeSet<i64> = integers(dir, trace, "SELECT id, start FROM rocpd_api")
        .into_iter()
        .filter(|row| inside(row[1]))
        .map(|row| row[0])
        .collect();
    let links = integers(dir, trace, "SELECT api_id, op_id FROM rocpd_api_ops");
    let known: BTreeSet<i64> =
        integers(dir, trace, "SELECT id FROM rocpd_api").into_iter().map(|row| row[0]).collect();
    let ops: BTreeSet<i64> = integers(dir, trace, "SELECT id, start FROM rocpd_op")
        .into_iter()
        .filter(|op| {
            let is_cause = |link: &&Vec<i64>| link[1] == op[0] && known.contains(&link[0]);
            let causes: Vec<i64> = links.iter().filter(is_cause).map(|link| link[0]).collect();
            if causes.is_empty() { inside(op[1]) } else { causes.iter().any(|call| calls.contains(call)) }
        })
        .map(|op| op[0])
        .collect();
    let (before, after) = (dir.open(trace), dir.open(out));
    let whole = |table: &str| rows(&before, &format!("SELECT rowid, * FROM {table}"));
    let left = |table: &str| rows(&after, &format!("SELECT rowid, * FROM {table}"));
    let id_in =
        |row: &[Value], ids: &BTreeSet<i64>| matches!(row[0], Value::Integer(id) if ids.contains(&id));
    for (table, ids) in [("rocpd_api", &calls), ("rocpd_op", &ops)] {
        let expected: Vec<Vec<Value>> = whole(table).into_iter().filter(|row| id_in(row, ids)).collect();
        assert!(expected == left(table), "{table}");
    }
    for (table, columns) in DEPENDENT.iter().filter(|(table, _)| has_table(dir, trace, table)) {
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let expected: BTreeSet<i64> =
            integers(dir, trace, &format!("SELECT rowid, {} FROM {table}", names.join(", ")))
                .into_iter()
                .filter(|row| {
                    columns
                        .iter()
                        .zip(&row[1..])
                        .all(|((_, is_call), id)| if *is_call { &calls } else { &ops }.contains(id))
                })
                .map(|row| row[0])
                .collect();
        if *table == "ext_callstack" {
            let left: BTreeSet<i64> =
                integers(dir, out, "SELECT rowid FROM ext_callstack").into_iter().flatten().collect();
            assert_eq!(expected, left);
        } else {
            let expected: Vec<Vec<Value>> =
                whole(table).into_iter().filter(|row| id_in(row, &expected)).collect();
            assert!(expected == left(table), "{table}");
        }
    }
    for table in WHOLE.iter().filter(|table| has_table(dir, trace, table)) {
        assert_eq!(whole(table), left(table), "{table}");
    }
    if has_table(dir, trace, "ext_instrumentation") {
        // Of a dispatch without an operation nothing says when it was.
        let instrumented = "SELECT rowid, ifnull(op_id, -1) FROM ext_instrumentation";
        let instrumented: BTreeSet<i64> = integers(dir, trace, instrumented)
            .into_iter()
            .filter(|row| row[1] == -1 || ops.contains(&row[1]))
            .map(|row| row[0])
            .collect();
        for table in ["ext_instrumentation"].iter().chain(&FOUND) {
            // What was found has the id of what it belongs to.
            let expected: Vec<Vec<Value>> =
                whole(table).into_iter().filter(|row| id_in(row, &instrumented)).collect();
            assert!(!expected.is_empty() && expected == left(table), "{table}");
        }
    }
    let checked = dir.run(&["check", out]);
    checked.expect(0);
    assert!(!checked.stdout.contains("dangling"), "{checked}");
}

pub(crate) fn trim(dir: &Dir, trace: &str, out: &str, start: i64, end: i64) {
    dir.run(&["trim", trace, "-o", out, "--start", &start.to_string(), "--end", &end.to_string()]).expect(0);
}

#[test]
fn what_stays_is_what_the_rules_say() {
    for seed in 1..6 {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 150);
        if seed % 2 == 0 {
            to_schema_3(&dir, &trace);
        } else {
            dir.run(&["callstack", &trace]).expect(0);
        }
        dir.run(&["check", &trace]).expect(0);
        let before = fs::read(dir.path(&trace)).unwrap();
        let mut random = Random::new(seed);
        for round in 0..3 {
            let start = BEGIN + random.below(1000);
            let end = start + 200 + random.below(2000);
            let out = format!("out{round}.rpd");
            trim(&dir, &trace, &out, start, end);
            must_be(&dir, &trace, &out, start, end);
        }
        assert!(fs::read(dir.path(&trace)).unwrap() == before, "the trace itself has changed");
    }
}

#[test]
fn two_windows_that_touch_share_no_row_and_lose_none() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 11, 200);
    let middle = BEGIN + 1500;
    trim(&dir, &trace, "a.rpd", 0, middle);
    dir.run(&["trim", &trace, "-o", "b.rpd", "--start", &(middle + 1).to_string()]).expect(0);
    let gpu_time = "SELECT sum(\"end\" - start) FROM rocpd_op";
    let of = |name: &str, query: &str| number(&dir.open(name), query);
    assert_eq!(of("a.rpd", gpu_time) + of("b.rpd", gpu_time), of(&trace, gpu_time));
    for table in [
        "rocpd_api",
        "rocpd_op",
        "rocpd_api_ops",
        "rocpd_kernelapi",
        "rocpd_copyapi",
        "rocpd_stackframe",
        "ext_dispatch",
    ] {
        let all = |name: &str| rows(&dir.open(name), &format!("SELECT * FROM {table}"));
        let mut both = [all("a.rpd"), all("b.rpd")].concat();
        both.sort_by_key(|row| format!("{row:?}"));
        assert!(!all("a.rpd").is_empty() && !all("b.rpd").is_empty());
        assert!(both == all(&trace), "{table}");
    }
}

/// By its own start, as one that no call caused; its link goes.
#[test]
fn an_operation_of_a_call_that_is_not_in_the_file_stays() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'KernelExecution'), (4, 'gemm');
         INSERT INTO rocpd_api VALUES (1, 7, 7, 1000, 1050, 2, 1), (2, 7, 7, 2000, 2050, 2, 1), (3, 7, 7, 'x', 2050, 2, 1);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 1100, 1200, 4, 3), (2, 0, 0, 0, '', 2100, 2200, 4, 3), (3, 0, 0, 0, '', 2300, 2400, 4, 3);
         INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (99, 2), (3, 3);",
    );
    for (window, calls, operations) in [(&[][..], 2, vec![1, 2, 3]), (&["--start", "1500"], 1, vec![2, 3])] {
        let out = dir.path("out.rpd");
        let _ = fs::remove_file(&out);
        dir.run(&[&["trim", &trace, "-o", "out.rpd"], window].concat()).expect(0);
        assert_eq!(number(&dir.open("out.rpd"), "SELECT count(*) FROM rocpd_api"), calls);
        assert_eq!(integers(&dir, "out.rpd", "SELECT id FROM rocpd_op ORDER BY 1").concat(), operations);
    }
}

#[test]
fn call_stacks_are_those_of_what_is_left() {
    for seed in 20..24 {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 200);
        let end = BEGIN + 2500;
        trim(&dir, &trace, "anew.rpd", BEGIN + 300, end);
        dir.run(&["callstack", "anew.rpd"]).expect(0);
        dir.run(&["callstack", &trace]).expect(0);
        trim(&dir, &trace, "kept.rpd", BEGIN + 300, end);
        let query = "SELECT parent_id, child_id, depth, cpu_time, gpu_time FROM ext_callstack";
        let (anew, kept) = (rows(&dir.open("anew.rpd"), query), rows(&dir.open("kept.rpd"), query));
        assert!(anew.len() > 50 && anew == kept, "seed {seed}");
        dir.run(&["callstack", "kept.rpd"]).expect(0).says(&["already"]);
    }
}

#[test]
fn texts_that_nothing_uses_go_and_sensors_are_cut() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 31, 150);
    trim(&dir, &trace, "out.rpd", BEGIN + 500, BEGIN + 900);
    let out = dir.open("out.rpd");
    let used = "SELECT apiName_id FROM rocpd_api UNION SELECT args_id FROM rocpd_api UNION SELECT description_id FROM rocpd_op
        UNION SELECT opType_id FROM rocpd_op UNION SELECT kernelName_id FROM rocpd_kernelapi UNION SELECT name_id FROM rocpd_stackframe
        UNION SELECT kernelName_id FROM ext_dispatch UNION SELECT kernelName_id FROM ext_instrumentation UNION SELECT id FROM rocpd_string WHERE id & 0xffffffff = 1";
    assert_eq!(rows(&out, "SELECT id FROM rocpd_string"), rows(&out, used));
    assert!(
        number(&out, "SELECT count(*) FROM rocpd_string")
            < number(&dir.open(&trace), "SELECT count(*) FROM rocpd_string")
    );
    let last = number(
        &out,
        "SELECT max(e) FROM (SELECT max(\"end\") e FROM rocpd_api UNION SELECT max(\"end\") FROM rocpd_op)",
    );
    assert_eq!(number(&out, "SELECT min(start) FROM rocpd_monitor"), BEGIN + 500);
    assert_eq!(number(&out, "SELECT max(\"end\") FROM rocpd_monitor"), last.max(BEGIN + 900));
    let indexes = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL";
    assert_eq!(rows(&out, indexes), rows(&dir.open(&trace), indexes));
    let views = "SELECT name, sql FROM sqlite_master WHERE type = 'view'";
    assert_eq!(rows(&out, views), rows(&dir.open(&trace), views));
}

/// What `--dry-run --json` says of a window.
fn window(dir: &Dir, trace: &str, start: &str, end: &str) -> (i64, i64) {
    let result = dir.run(&["trim", trace, "--dry-run", "--json", "--start", start, "--end", end]);
    let result: serde_json::Value = serde_json::from_str(&result.expect(0).stdout).unwrap();
    (result["window"]["start_ns"].as_i64().unwrap(), result["window"]["end_ns"].as_i64().unwrap())
}

#[test]
fn times_are_found_in_the_trace() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        r#"INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'step'), (4, 'step:2'), (5, 'gemm<4>'), (6, 'KernelExecution'),
               (7, 'train'), (8, 'hipLaunchKernel');
           INSERT INTO rocpd_api VALUES (1, 1, 1, 1000, 2000, 2, 3), (2, 1, 1, 3000, 4000, 2, 3), (3, 1, 1, 5000, 5500, 2, 4),
               (4, 1, 1, 6000, 11000, 7, 1), (5, 1, 1, 3500, 3600, 8, 1);
           INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 7000, 7700, 5, 6), (2, 0, 0, 0, '', 8000, 8800, 5, 6);
           INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (5, 1), (5, 2);"#,
    );
    for (start, end, expected) in [
        ("500", "2us", (500, 2000)),
        ("+1us", "-2.5us", (2000, 8500)),
        ("10%", "100%", (2000, 11000)),
        ("marker:step", "marker:step", (1000, 4000)),
        ("marker:step:1", "marker:step:1", (1000, 2000)),
        // A marker that is really called that comes first.
        ("marker:step:2", "marker:step:2", (5000, 5500)),
        ("marker:train", "marker:train", (6000, 11000)),
        ("kernel:^gemm", "kernel:gemm", (3500, 8800)),
    ] {
        assert_eq!(window(&dir, &trace, start, end), expected, "{start} {end}");
    }
    for (start, words) in [
        ("marker:stop", "no marker has the text stop"),
        ("marker:step:3", "2 have the text step"),
        ("kernel:^x", "no operation has a name that matches ^x"),
        ("12s", "nothing in t.rpd starts in that window: its calls run from 1000 to 11000 ns"),
    ] {
        dir.run(&["trim", &trace, "-o", "no.rpd", "--start", start]).expect(1).says(&[words]);
    }
    dir.run(&["trim", &trace, "-o", "no.rpd", "--start", "75%", "--end", "25%"])
        .expect(1)
        .says(&["before it starts"]);
    assert_eq!(dir.names(), ["t.rpd"]);
}

#[test]
fn a_real_trace_keeps_its_oddities() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_as_shipped.rpd");
    dir.run(&["trim", &trace, "-o", "out.rpd", "--start", "25%", "--end", "75%"])
        .expect(0)
        .says(&["out.rpd: 6597 of 14736 calls, 4146 of 10124 operations; 249.3 ms of 498.6 ms"]);
    dir.run(&["check", "out.rpd"]).expect(0);
    let (before, after) = (dir.open(&trace), dir.open("out.rpd"));
    for table in ["rocpd_api", "rocpd_op", "rocpd_copyapi", "rocpd_kernelapi", "ext_autogradapi"] {
        let all = rows(&before, &format!("SELECT * FROM {table}"));
        let left = rows(&after, &format!("SELECT * FROM {table}"));
        let all: BTreeSet<String> = all.iter().map(|row| format!("{row:?}")).collect();
        assert!(!left.is_empty() && left.iter().all(|row| all.contains(&format!("{row:?}"))), "{table}");
    }
    let views = "SELECT name FROM sqlite_master WHERE type = 'view'";
    assert_eq!(rows(&before, views), rows(&after, views));
    assert!(number(&after, "SELECT count(*) FROM autogradKernel") > 0);
}

#[test]
fn graphs_stay_whole_or_not_at_all() {
    let dir = Dir::new();
    let capture = |id: i64, at: i64, handle: &str| {
        format!(
            "INSERT INTO rocpd_string VALUES ({id}0, 'stream = 0x1 | mode = 1'), ({id}1, 'stream = 0x1 | graph = {handle}'),
                 ({id}2, 'graphExec = {handle} | graph = {handle}');
             INSERT INTO rocpd_api VALUES ({id}0, 1, 1, {at}, {at} + 5, 2, {id}0), ({id}1, 1, 1, {at} + 10, {at} + 12, 5, 1),
                 ({id}2, 1, 1, {at} + 20, {at} + 22, 5, 1), ({id}3, 1, 1, {at} + 30, {at} + 35, 3, {id}1), ({id}4, 1, 1, {at} + 40, {at} + 45, 4, {id}2);
             INSERT INTO rocpd_kernelapi SELECT id, '0x1', 1, 1, 1, 64, 1, 1, 0, 0, '', '', '', 0, 6 FROM rocpd_api WHERE id IN ({id}1, {id}2);"
        )
    };
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipStreamBeginCapture'), (3, 'hipStreamEndCapture'), (4, 'hipGraphInstantiate'),
                 (5, 'hipLaunchKernel'), (6, 'gemm'); {} {} {}",
            capture(1, 1000, "0xa"),
            capture(2, 2000, "0xb"),
            capture(3, 3000, "0xc")
        ),
    );
    dir.run(&["graph", &trace]).expect(0);
    let kernels =
        |name: &str| rows(&dir.open(name), "SELECT graphExec, sequence, kernelName FROM graphKernel");
    assert_eq!(kernels(&trace).len(), 6);
    // The first is cut at its beginning, the last in its middle.
    trim(&dir, &trace, "out.rpd", 1005, 3015);
    let left: Vec<Vec<Value>> =
        kernels(&trace).into_iter().filter(|row| row[0] == Value::Text("0xb".to_string())).collect();
    assert_eq!((kernels("out.rpd"), left.len()), (left, 2));
    dir.run(&["check", "out.rpd"]).expect(0);
    dir.run(&["graph", "out.rpd"]).expect(0).says(&["already"]);
}

#[test]
fn graphs_that_only_launches_are_left_of_can_be_composed() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    dir.run(&["graph", &trace]).expect(0);
    // It is composed of one of its twenty launches; the window has others.
    let start = number(&dir.open(&trace), "SELECT \"end\" + 1 FROM ext_graph");
    let launches = format!("SELECT count(*) FROM graphLaunchapi WHERE start >= {start}");
    assert!(number(&dir.open(&trace), &launches) > 0);
    let start = start.to_string();
    let result = dir.run(&["trim", &trace, "-o", "out.rpd", "--start", &start]);
    assert!(result.expect(0).stderr.contains("rpd graph --redo"), "{result}");
    assert_eq!(number(&dir.open("out.rpd"), "SELECT count(*) FROM ext_graph"), 0);
    dir.run(&["graph", "out.rpd"]).expect(0).says(&["stale"]);
    dir.run(&["graph", "--redo", "out.rpd"]).expect(0);
    assert_eq!(number(&dir.open("out.rpd"), "SELECT count(*) FROM graphKernel"), 386);
}

#[test]
fn in_place_is_the_same_and_keeps_what_is_not_the_traces() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 41, 100);
    trim(&dir, &trace, "out.rpd", BEGIN + 100, BEGIN + 900);
    fs::set_permissions(dir.path(&trace), fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(dir.path(&trace), dir.path("link.rpd")).unwrap();
    let window = ["--start", &(BEGIN + 100).to_string(), "--end", &(BEGIN + 900).to_string()];
    dir.run(&[&["trim", "link.rpd", "--in-place"][..], &window].concat()).expect(0);
    assert_eq!(fs::metadata(dir.path(&trace)).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(dir.path("link.rpd")).unwrap().is_symlink());
    assert!(fs::read(dir.path(&trace)).unwrap() == fs::read(dir.path("out.rpd")).unwrap());
    assert_eq!(dir.names(), ["link.rpd", "out.rpd", "t.rpd"]);
    let log = generated(&dir, "wal.rpd", 42, 10);
    dir.open(&log).query_row("PRAGMA journal_mode = wal", [], |_| Ok(())).unwrap();
    dir.run(&["trim", &log, "--in-place", "--end", "50%"])
        .expect(1)
        .says(&["wal.rpd is as it was", "write-ahead log"]);
    dir.run(&["trim", &log, "-o", "of_wal.rpd", "--end", "50%"]).expect(0);
    let open = dir.open(&trace);
    number(&open, "SELECT count(*) FROM rocpd_api");
    dir.run(&[&["trim", &trace, "--in-place"][..], &window].concat())
        .expect(1)
        .says(&["is as it was", "open for writing"]);
}

#[test]
fn a_trace_that_is_being_recorded_is_trimmed_as_any_other() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let window = ["--start", "10%", "--end", "92%"];
    dir.run(&[&["trim", &trace, "-o", "out.rpd"], &window[..]].concat()).expect(0);
    let _recorder = being_recorded(&dir, &trace);
    dir.run(&[&["trim", &trace, "-o", "live.rpd"], &window[..]].concat()).expect(0);
    for table in ["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_string", "rocpd_copyapi"] {
        let all = format!("SELECT * FROM {table}");
        assert!(rows(&dir.open("out.rpd"), &all) == rows(&dir.open("live.rpd"), &all), "{table}");
    }
    dir.run(&["trim", &trace, "--in-place"]).expect(1).says(&["as it was", "recording"]);
    assert_eq!(dir.names(), ["live.rpd", "matmul_result.rpd", "out.rpd"]);
}

#[test]
fn real_traces_too_have_left_what_the_rules_say() {
    let dir = Dir::new();
    for trace in [dir.fixture("matmul_result.rpd"), dir.unpacked("mytrace_raw.rpd")] {
        let window = ["--start", "10%", "--end", "92%"];
        let result = dir.run(&[&["trim", &trace, "-o", "out.rpd", "--json"], &window[..]].concat());
        let result: serde_json::Value = serde_json::from_str(&result.expect(0).stdout).unwrap();
        assert!(result["calls"]["kept"].as_i64() < result["calls"]["of"].as_i64(), "{result}");
        let ns = |edge: &str| result["window"][edge].as_i64().unwrap();
        must_be(&dir, &trace, "out.rpd", ns("start_ns"), ns("end_ns"));
        fs::remove_file(dir.path("out.rpd")).unwrap();
    }
}

/// Leaves notes beside a trace: of a process that has a session in it, and of one that has none.
pub(crate) fn leave_notes(dir: &Dir, trace: &str) {
    let facts = |lost: &str| vec![("lost::write".to_string(), lost.to_string())];
    rpd_schema::leave_note(&dir.path(trace), "of-session-0", Some(0), &facts("5")).unwrap();
    rpd_schema::leave_note(&dir.path(trace), "of-none", None, &facts("7")).unwrap();
}

/// Records that a trace says were lost: in the file itself, wherever it lies.
pub(crate) fn lost_of(dir: &Dir, trace: &str) -> Option<u64> {
    fs::create_dir_all(dir.path("elsewhere")).unwrap();
    fs::copy(dir.path(trace), dir.path("elsewhere/t.rpd")).unwrap();
    rpd_schema::lost(&dir.open("elsewhere/t.rpd")).unwrap().get("write").copied()
}

#[test]
fn what_notes_beside_a_trace_say_is_in_the_trimmed_one() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 3, 50);
    let sessions = |trace: &str| rpd_schema::sessions(&dir.open(trace)).unwrap().len();
    let before = sessions(&trace);
    leave_notes(&dir, &trace);
    assert_eq!(lost_of(&dir, &trace), None);
    dir.run(&["trim", &trace, "-o", "out.rpd"]).expect(0);
    assert_eq!(lost_of(&dir, "out.rpd"), Some(12));
    assert_eq!(sessions("out.rpd"), before + 1);
    dir.run(&["check", "out.rpd"]).expect(0);
    assert!(dir.path("t.rpd-lost").exists(), "the trace is as it was");
    dir.run(&["trim", &trace, "--in-place"]).expect(0);
    assert_eq!(lost_of(&dir, &trace), Some(12));
    assert!(!dir.path("t.rpd-lost").exists());
}

/// Copies a trace to `name` as CREATE TABLE AS does: tables without keys and references, and no views.
pub(crate) fn bare(dir: &Dir, trace: &str, name: &str) {
    let copy = Connection::open(dir.path(name)).unwrap();
    copy.execute("ATTACH ?1 AS source", [dir.path(trace).to_str().unwrap()]).unwrap();
    for table in tables(&copy, "source") {
        copy.execute_batch(&format!("CREATE TABLE \"{table}\" AS SELECT * FROM source.\"{table}\"")).unwrap();
    }
}

fn tables(trace: &Connection, schema: &str) -> Vec<String> {
    let query =
        format!("SELECT name FROM {schema}.sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'");
    let mut names = trace.prepare(&query).unwrap();
    names.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn tables_without_keys_are_trimmed_as_others() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 3, 200);
    bare(&dir, &trace, "bare.rpd");
    for (from, to) in [(&trace[..], "out.rpd"), ("bare.rpd", "bareout.rpd")] {
        dir.run(&["trim", from, "-o", to, "--start", "25%", "--end", "75%"]).expect(0);
    }
    let (one, other) = (dir.open("out.rpd"), dir.open("bareout.rpd"));
    for table in tables(&one, "main").iter().filter(|table| *table != "rocpd_metadata") {
        let query = format!("SELECT * FROM \"{table}\"");
        assert_eq!(rows(&one, &query), rows(&other, &query), "{table}");
    }
    let check = |trace| dir.run(&["check", trace]).status.code();
    assert_eq!(check("bareout.rpd"), check("bare.rpd"));
}
