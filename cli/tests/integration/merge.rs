//! `rpd merge`: what is in the parts is in the whole, once, and nothing else.

use std::fs;

use rusqlite::types::Value;

use crate::generated::{BEGIN, generated, number, rows, to_schema_3};
use crate::harness::{Dir, RPD, ran};
use crate::hostile::being_recorded;
use crate::trim::{bare, leave_notes, lost_of};

/// What people ask a trace; `op` for schema 3 too.
const CONTENT: [&str; 7] = [
    "SELECT pid, tid, start, \"end\", apiName, args FROM api",
    "SELECT gpuId, queueId, sequenceId, start, \"end\", description, opType FROM op",
    "SELECT a.start, o.start FROM rocpd_api_ops l JOIN rocpd_api a ON a.id = api_id JOIN rocpd_op o ON o.id = op_id",
    "SELECT a.start, k.stream, s.string FROM rocpd_kernelapi k JOIN rocpd_api a ON a.id = api_ptr_id JOIN rocpd_string s ON s.id = kernelName_id",
    "SELECT a.start, c.kind, c.dst, c.width FROM rocpd_copyapi c JOIN rocpd_api a ON a.id = api_ptr_id",
    "SELECT a.start, f.depth, s.string FROM rocpd_stackframe f JOIN rocpd_api a ON a.id = api_ptr_id JOIN rocpd_string s ON s.id = name_id",
    "SELECT f.start, t.start FROM rocpd_op_inputSignals i JOIN rocpd_op f ON f.id = from_op_id JOIN rocpd_op t ON t.id = to_op_id",
];

/// The same of replaced kernels and of the code they came from.
const CODE: [&str; 3] = [
    "SELECT o.start, r.id = r.op_id, a.vgpr, b.vgpr, c.path, c.loaded FROM ext_replacement r JOIN rocpd_op o ON o.id = op_id
         JOIN ext_candidate c ON c.id = candidate_id LEFT JOIN rocpd_kernelcodeobject a ON a.id = original_kernel_id
         LEFT JOIN rocpd_kernelcodeobject b ON b.id = replacement_kernel_id",
    "SELECT DISTINCT path, sha256, target, loaded, outcome, reason FROM ext_candidate",
    "SELECT DISTINCT vgpr, uri FROM ext_codeobject_kernel k JOIN rocpd_kernelcodeobject o ON o.id = k.id
         JOIN ext_codeobject c ON c.id = ext_codeobject_id",
];

/// The same of instrumented kernels that completed.
const INSTRUMENTED: [&str; 2] = [
    "SELECT o.start, s.string, analyzer, messages, a.line, h.accesses, t.total, v.value, b.line FROM ext_instrumentation i
         JOIN rocpd_op o ON o.id = op_id AND o.gpuId = i.gpuId AND o.queueId = i.queueId AND o.sequenceId = i.sequenceId
         JOIN rocpd_string s ON s.id = kernelName_id JOIN ext_memoryaccess a ON a.instrumentation_id = i.id
         JOIN ext_heatmap h ON h.instrumentation_id = i.id JOIN ext_timeinterval t ON t.instrumentation_id = i.id
         JOIN ext_handlervalue v ON v.instrumentation_id = i.id
         JOIN ext_basicblock b ON b.instrumentation_id = i.id",
    "SELECT DISTINCT s.string, sequenceId, analyzer FROM ext_instrumentation JOIN rocpd_string s ON s.id = kernelName_id
         WHERE op_id IS NULL",
];

fn same_content(dir: &Dir, one: &str, other: &str, queries: &[&str]) {
    for query in queries {
        let (one, other) = (rows(&dir.open(one), query), rows(&dir.open(other), query));
        assert!(!one.is_empty() && one == other, "{query}");
    }
}

fn sound(dir: &Dir, trace: &str) {
    let checked = dir.run(&["check", trace]);
    checked.expect(0);
    for word in ["dangling", "duplicate", "unclaimed"] {
        assert!(!checked.stdout.contains(word), "{checked}");
    }
}

/// Cuts a trace in two, `a.rpd` and `b.rpd`.
fn cut(dir: &Dir, trace: &str) {
    let middle = BEGIN + 1500;
    dir.run(&["trim", trace, "-o", "a.rpd", "--end", &middle.to_string()]).expect(0);
    dir.run(&["trim", trace, "-o", "b.rpd", "--start", &(middle + 1).to_string()]).expect(0);
}

#[test]
fn the_parts_of_a_trace_make_the_whole() {
    for (seed, is_schema_3) in [(1, false), (2, true)] {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", seed, 200);
        if is_schema_3 {
            to_schema_3(&dir, &trace);
        } else {
            dir.run(&["callstack", &trace]).expect(0);
        }
        cut(&dir, &trace);
        let before = [fs::read(dir.path("a.rpd")).unwrap(), fs::read(dir.path("b.rpd")).unwrap()];
        // One boot: no clock is moved, no number strided.
        let result = dir.run(&["merge", "-o", "all.rpd", "a.rpd", "b.rpd"]);
        assert!(result.expect(0).stderr.contains("b.rpd: from session 3, node 0, times +0 ns\n"), "{result}");
        assert_eq!(before, [fs::read(dir.path("a.rpd")).unwrap(), fs::read(dir.path("b.rpd")).unwrap()]);
        // An op that waited for one in the other part knows nothing of it any more.
        same_content(&dir, &trace, "all.rpd", &CONTENT[..6]);
        sound(&dir, "all.rpd");
        let all = dir.open("all.rpd");
        let texts = "SELECT string, count(*) FROM rocpd_string WHERE id & 0xffffffff <> 1 GROUP BY string HAVING count(*) > 1";
        assert!(rows(&all, texts).is_empty(), "texts twice");
        assert_eq!(
            number(&all, "SELECT CAST(value AS integer) FROM rocpd_metadata WHERE tag = 'session_count'"),
            6
        );
        assert_eq!(number(&all, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'schema_version'"), 1);
        if !is_schema_3 {
            same_content(&dir, &trace, "all.rpd", &CODE);
            same_content(&dir, &trace, "all.rpd", &INSTRUMENTED);
            assert_eq!(
                number(&all, "SELECT count(DISTINCT op_id) FROM ext_dispatch"),
                number(&dir.open(&trace), "SELECT count(*) FROM ext_dispatch")
            );
            drop(all);
            // Calls of the one part are below calls of the other.
            dir.run(&["callstack", "all.rpd"]).expect(0).says(&["stale"]);
            dir.run(&["callstack", "--redo", "all.rpd"]).expect(0);
            let stacks = "SELECT p.start, c.start, depth, cpu_time, gpu_time FROM ext_callstack JOIN rocpd_api p ON p.id = parent_id
                JOIN rocpd_api c ON c.id = child_id ORDER BY 1, 2, 3, 4, 5";
            assert!(rows(&dir.open(&trace), stacks) == rows(&dir.open("all.rpd"), stacks));
        }
    }
}

#[test]
fn the_parts_of_a_trace_that_says_nothing_of_its_processes_are_put_together_as_one() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 5, 200);
    // As other recorders write it; both sessions of equal ids.
    dir.open(&trace)
        .execute_batch(
            "DELETE FROM rocpd_metadata WHERE tag GLOB 'session::*'; UPDATE rocpd_api SET pid = 100, tid = 100 + tid % 2",
        )
        .unwrap();
    dir.run(&["callstack", &trace]).expect(0);
    cut(&dir, &trace);
    dir.run(&["trim", "b.rpd", "-o", "c.rpd", "--end", &(BEGIN + 3000).to_string()]).expect(0);
    dir.run(&["trim", "b.rpd", "-o", "d.rpd", "--start", &(BEGIN + 3001).to_string()]).expect(0);
    dir.run(&["merge", "--same-host", "-o", "all.rpd", "a.rpd", "c.rpd", "d.rpd"]).expect(0);
    dir.run(&["callstack", "--redo", "all.rpd"]).expect(0);
    let stacks = "SELECT p.start, c.start, depth, cpu_time, gpu_time FROM ext_callstack JOIN rocpd_api p ON p.id = parent_id
        JOIN rocpd_api c ON c.id = child_id ORDER BY 1, 2, 3, 4, 5";
    assert!(rows(&dir.open(&trace), stacks) == rows(&dir.open("all.rpd"), stacks));
    // Another trace with the same ids is another process.
    let other = generated(&dir, "other.rpd", 6, 200);
    let silent = "DELETE FROM rocpd_metadata WHERE tag GLOB 'session::*'; UPDATE rocpd_api SET pid = 100, tid = 100 + tid % 2";
    dir.open(&other).execute_batch(silent).unwrap();
    dir.run(&["trim", &other, "-o", "e.rpd", "--end", "50%"]).expect(0);
    dir.run(&["merge", "--same-host", "-o", "two.rpd", "a.rpd", "e.rpd"]).expect(0);
    dir.run(&["callstack", "--redo", "two.rpd"]).expect(0);
    let mixed = "SELECT count(*) FROM ext_callstack WHERE parent_id >> 32 <> child_id >> 32";
    assert_eq!(number(&dir.open("two.rpd"), mixed), 0);
}

/// A trace of another host, whose clock is `ahead` ns ahead of that of the trace it is a copy of.
pub(crate) fn elsewhere(dir: &Dir, trace: &str, name: &str, ahead: i64) {
    fs::copy(dir.path(trace), dir.path(name)).unwrap();
    dir.open(name)
        .execute_batch(&format!(
            "UPDATE rocpd_api SET start = start + {ahead}, \"end\" = \"end\" + {ahead};
             UPDATE rocpd_op SET start = start + {ahead}, \"end\" = \"end\" + {ahead};
             UPDATE rocpd_monitor SET start = start + {ahead}, \"end\" = \"end\" + {ahead};
             UPDATE ext_candidate SET loaded = loaded + {ahead} WHERE loaded > 0;
             UPDATE rocpd_metadata SET value = value + {ahead} WHERE tag GLOB 'session::*monotonic*';
             UPDATE rocpd_metadata SET value = '{name}' WHERE tag GLOB 'session::*::host' OR tag GLOB 'session::*::boot_id';"
        ))
        .unwrap();
}

/// Makes a trace of one rank, which was there from `start` to `end` of its host's clock, in seconds.
fn rank(dir: &Dir, name: &str, host: &str, (start, end): (i64, i64), facts: &[(&str, &str)]) {
    let pid = (name.len() as i64 + start).to_string();
    let [monotonic, until] = [start, end].map(|seconds| (seconds * 1_000_000_000).to_string());
    let [real, real_until] =
        [start, end].map(|seconds| ((1_700_000_000 + seconds) * 1_000_000_000).to_string());
    let known = [
        ("host", host),
        ("boot_id", host),
        ("pid", &pid),
        ("start_monotonic_ns", &monotonic),
        ("end_monotonic_ns", &until),
        ("start_realtime_ns", &real),
        ("end_realtime_ns", &real_until),
    ];
    let rows = known.iter().chain(facts).map(|(key, value)| format!("('session::0::{key}', '{value}')"));
    let rows = rows.collect::<Vec<_>>().join(", ");
    dir.trace(
        name,
        &format!("INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1'), {rows}"),
    );
}

/// None of it stops a merge.
#[test]
fn double_ranks_several_jobs_and_wrong_clocks_are_said() {
    let dir = Dir::new();
    let of = |rank, job| [("env::RANK", rank), ("env::SLURM_JOB_ID", job)];
    rank(&dir, "a.rpd", "n1", (10, 20), &of("0", "100"));
    rank(&dir, "b.rpd", "n1", (11, 20), &of("0", "100"));
    rank(&dir, "c.rpd", "n2", (10, 20), &of("1", "100"));
    rank(&dir, "later.rpd", "n1", (50, 60), &of("2", "200"));
    rank(&dir, "wrong.rpd", "n3", (500, 510), &of("3", "100"));
    rank(&dir, "run1.rpd", "n1", (10, 20), &[("env::RANK", "4"), ("run", "r")]);
    rank(&dir, "run2.rpd", "n1", (12, 20), &[("env::RANK", "4"), ("run", "r")]);
    let doubts = |files: &[&str], options: &[&str]| -> Vec<String> {
        let result = dir.run(&[&["merge", "--json", "-o", "all.rpd"], options, files].concat());
        let said: serde_json::Value = serde_json::from_str(&result.expect(0).stdout).unwrap();
        fs::remove_file(dir.path("all.rpd")).unwrap();
        let doubts: Vec<String> = serde_json::from_value(said["doubts"].clone()).unwrap();
        let lines: Vec<&str> = result.stderr.lines().collect();
        assert_eq!(lines, doubts.iter().map(|doubt| format!("rpd: {doubt}")).collect::<Vec<_>>());
        doubts
    };
    assert_eq!(doubts(&["a.rpd", "c.rpd"], &[]), [""; 0]);
    assert_eq!(doubts(&["run1.rpd", "run2.rpd"], &[]), [""; 0], "processes of one run");
    assert_eq!(
        doubts(&["a.rpd", "b.rpd", "c.rpd"], &[]),
        ["rank 0 is in a.rpd and b.rpd: they count as one rank in reports"]
    );
    assert_eq!(doubts(&["a.rpd", "later.rpd"], &[]), ["the files are of jobs 100, 200"]);
    let wrong = doubts(&["a.rpd", "c.rpd", "wrong.rpd"], &[]);
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(
        wrong[0].starts_with("the ranks on n1 and on n3 were never there at the same time")
            && wrong[0].contains("--align marker:"),
        "{wrong:?}"
    );
    assert_eq!(doubts(&["a.rpd", "wrong.rpd"], &["--offset", "wrong.rpd=-490s"]), [""; 0]);
}

#[test]
fn hosts_get_numbers_and_one_clock() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 3, 120);
    elsewhere(&dir, &trace, "n2.rpd", 5_000_000_000);
    elsewhere(&dir, &trace, "n3.rpd", 77);
    let result = dir.run(&["merge", "-o", "all.rpd", "--json", &trace, "n2.rpd", "n3.rpd"]);
    let result: serde_json::Value = serde_json::from_str(&result.expect(0).stdout).unwrap();
    assert_eq!(result["nodes"], serde_json::json!(["node1", "n2.rpd", "n3.rpd"]));
    assert_eq!(result["inputs"][1]["shifts_ns"], serde_json::json!([-5_000_000_000_i64]));
    sound(&dir, "all.rpd");
    let all = dir.open("all.rpd");
    let before = dir.open(&trace);
    for question in CODE.iter().chain(&INSTRUMENTED) {
        let mut expected = rows(&before, question);
        if !question.contains("DISTINCT") {
            expected = rows(&before, &format!("SELECT * FROM ({question}), (VALUES (1), (2), (3))"));
            expected.iter_mut().for_each(|row| row.truncate(row.len() - 1));
        }
        assert!(rows(&all, question) == expected, "{question}");
    }
    for (view, columns) in [
        ("napi", "pid, tid, start, \"end\", apiName, args"),
        ("nop", "gpuId, queueId, sequenceId, start, \"end\", description, opType"),
    ] {
        let expected = rows(&before, &format!("SELECT {columns} FROM {}", &view[1..]));
        for node in 0..3 {
            assert!(
                rows(&all, &format!("SELECT {columns} FROM {view} WHERE node = {node}")) == expected,
                "{view} {node}"
            );
        }
    }
    assert_eq!(number(&all, "SELECT count(DISTINCT pid) FROM rocpd_api WHERE pid / 10000000 = 2"), 2);
    assert_eq!(number(&all, "SELECT count(DISTINCT gpuId) FROM rocpd_op WHERE gpuId >= 2000"), 2);
    let facts =
        |tag: &str| number(&all, &format!("SELECT count(*) FROM rocpd_metadata WHERE tag GLOB '{tag}'"));
    assert_eq!(facts("session::*::pid"), 6);
    assert_eq!(
        number(
            &all,
            "SELECT CAST(value AS integer) FROM rocpd_metadata WHERE tag = 'session::3::start_monotonic_ns'"
        ),
        BEGIN
    );
    assert_eq!(
        number(&all, "SELECT CAST(value AS integer) FROM rocpd_metadata WHERE tag = 'session::5::node'"),
        1
    );
    assert_eq!(
        number(&all, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'node::2::host' AND value = 'n3.rpd'"),
        1
    );
    // Two steps come to the same as one.
    dir.run(&["merge", "-o", "two.rpd", &trace, "n2.rpd"]).expect(0);
    dir.run(&["merge", "-o", "three.rpd", "two.rpd", "n3.rpd"]).expect(0);
    same_content(&dir, "all.rpd", "three.rpd", &CONTENT);
    // The other way round it is the clock of the others.
    dir.run(&["merge", "-o", "back.rpd", "n3.rpd", "two.rpd"]).expect(0);
    let back = dir.open("back.rpd");
    assert_eq!(
        number(&back, "SELECT min(start) FROM rocpd_api"),
        number(&all, "SELECT min(start) FROM rocpd_api") + 77
    );
    assert_eq!(number(&back, "SELECT count(DISTINCT node) FROM napi"), 3);
}

#[test]
fn gpus_are_known_by_what_they_are() {
    let dir = Dir::new();
    let gpu = |number: i64, uuid: &str, bus: &str| {
        format!(
            "INSERT INTO rocpd_metadata (tag, value) VALUES ('gpu::{number}::uuid', '{uuid}'), ('gpu::{number}::bdf', '{bus}');
             INSERT INTO rocpd_op VALUES ({}, {number}, 1, 0, '', 10, 20, 1, 1);
             INSERT INTO rocpd_metadata (tag, value) VALUES
                ('session::0::monitor_vram_total::{number}', '64{uuid}'), ('session::0::monitor_file::{number}::power', 'power{uuid}');
             INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value) VALUES ('gpu', {number}, 'sclk', 1, 2, '{uuid}');",
            number + 1
        )
    };
    let host = "INSERT INTO rocpd_string VALUES (1, '');
        INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::boot_id', 'b'), ('session::0::pid', '1');";
    // Two containers, each with a GPU 0 of its own, and one that sees both.
    dir.trace("a.rpd", &format!("{host}{}", gpu(0, "GPU-a", "01")));
    dir.trace("b.rpd", &format!("{host}{}", gpu(0, "GPU-b", "02")));
    dir.trace("c.rpd", &format!("{host}{}{}", gpu(0, "GPU-b", "02"), gpu(1, "", "01")));
    dir.run(&["merge", "-o", "all.rpd", "a.rpd", "b.rpd", "c.rpd"]).expect(0);
    let all = dir.open("all.rpd");
    let expected = |numbers: &[(i64, &str)]| -> Vec<Vec<Value>> {
        numbers
            .iter()
            .map(|(number, uuid)| vec![Value::Integer(*number), Value::Text(uuid.to_string())])
            .collect()
    };
    assert_eq!(
        rows(&all, "SELECT deviceId, value FROM rocpd_monitor"),
        expected(&[(0, ""), (0, "GPU-a"), (1, "GPU-b"), (1, "GPU-b")])
    );
    assert_eq!(number(&all, "SELECT count(*) FROM rocpd_op WHERE gpuId = 1"), 2);
    assert_eq!(
        number(&all, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'gpu::1::uuid' AND value = 'GPU-b'"),
        1
    );
    // What a session says of the GPUs that it sampled has their new numbers too.
    let facts = rows(
        &all,
        "SELECT tag, value FROM rocpd_metadata WHERE tag LIKE 'session::%::monitor_%' ORDER BY tag",
    );
    let facts: Vec<(&str, &str)> = facts
        .iter()
        .map(|row| match &row[..] {
            [Value::Text(tag), Value::Text(value)] => (&tag[..], &value[..]),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        facts,
        [
            ("session::0::monitor_file::0::power", "powerGPU-a"),
            ("session::0::monitor_vram_total::0", "64GPU-a"),
            ("session::1::monitor_file::1::power", "powerGPU-b"),
            ("session::1::monitor_vram_total::1", "64GPU-b"),
            ("session::2::monitor_file::0::power", "power"),
            ("session::2::monitor_file::1::power", "powerGPU-b"),
            ("session::2::monitor_vram_total::0", "64"),
            ("session::2::monitor_vram_total::1", "64GPU-b"),
        ]
    );
}

#[test]
fn traces_that_say_nothing_are_aligned_as_given() {
    let dir = Dir::new();
    let with = |name: &str, start: i64| {
        dir.trace(
            name,
            &format!(
                "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'go');
                 INSERT INTO rocpd_api VALUES (1, 5, 5, {start}, {start} + 10, 2, 3), (2, 5, 5, {start} + 500, {start} + 600, 2, 3);"
            ),
        );
    };
    with("a.rpd", 1000);
    with("b.rpd", 90_000);
    let starts = |name: &str| rows(&dir.open(name), "SELECT start, pid FROM rocpd_api");
    let row = |start: i64, pid: i64| vec![Value::Integer(start), Value::Integer(pid)];
    dir.run(&["merge", "-o", "no.rpd", "a.rpd", "b.rpd"]).expect(1).says(&[
        "clocks of a.rpd and b.rpd",
        "--same-host",
        "--align",
        "--offset",
    ]);
    dir.run(&["merge", "-o", "align.rpd", "--align", "marker:go", "a.rpd", "b.rpd"]).expect(0);
    assert_eq!(
        starts("align.rpd"),
        [row(1000, 10_000_005), row(1000, 5), row(1500, 10_000_005), row(1500, 5)]
    );
    dir.run(&["merge", "-o", "offset.rpd", "--offset", "b.rpd=-1us", "a.rpd", "b.rpd"]).expect(0);
    assert_eq!(
        starts("offset.rpd"),
        [row(1000, 5), row(1500, 5), row(89_000, 10_000_005), row(89_500, 10_000_005)]
    );
    dir.run(&["merge", "-o", "same.rpd", "--same-host", "a.rpd", "b.rpd"]).expect(0);
    assert_eq!(starts("same.rpd"), [row(1000, 5), row(1500, 5), row(90_000, 5), row(90_500, 5)]);
    dir.run(&["merge", "-o", "no.rpd", "--align", "marker:stop", "a.rpd", "b.rpd"])
        .expect(1)
        .says(&["no marker has the text stop"]);
    dir.run(&["merge", "-o", "no.rpd", "--offset", "c.rpd=1", "a.rpd", "b.rpd"])
        .expect(1)
        .says(&["c.rpd is not one of"]);
    assert!(!dir.path("no.rpd").exists());
}

#[test]
fn ids_that_lead_nowhere_do_not_lead_into_another_trace() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 5, 40);
    generated(&dir, "u.rpd", 6, 40);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (12884901890, 12884901890), ('x', ''), (9223372036854775807, -5);
             INSERT INTO rocpd_api VALUES (700, 9223372036854775807, '', '', 9223372036854775807, 12884901890, 99999);
             UPDATE rocpd_kernelapi SET codeObject_id = '' WHERE api_ptr_id % 2;
             UPDATE ext_replacement SET candidate_id = 12884901890, original_kernel_id = 0 WHERE op_id = 6;
             UPDATE ext_replacement SET candidate_id = 0 WHERE op_id = 18;
             UPDATE ext_replacement SET candidate_id = 'x' WHERE op_id = 12;",
        )
        .unwrap();
    dir.open("u.rpd").execute_batch("UPDATE ext_replacement SET candidate_id = 0").unwrap();
    dir.run(&["merge", "-o", "all.rpd", &trace, "u.rpd"]).expect(0);
    let all = dir.open("all.rpd");
    let unlinked = number(&dir.open("u.rpd"), "SELECT count(*) FROM rocpd_api_ops");
    assert_eq!(
        number(
            &all,
            "SELECT count(*) FROM rocpd_api_ops WHERE op_id >= 3 << 32 AND typeof(op_id) = 'integer'"
        ),
        unlinked
    );
    assert_eq!(number(&all, "SELECT count(*) FROM rocpd_api_ops WHERE api_id = -1"), 2);
    assert_eq!(
        number(
            &all,
            "SELECT count(*) FROM rocpd_api WHERE id = 700 AND typeof(start) = 'text' AND apiName_id = -1"
        ),
        1
    );
    assert!(number(&all, "SELECT count(*) FROM rocpd_kernelapi WHERE codeObject_id = ''") > 0);
    let replaced =
        "SELECT op_id, candidate_id, original_kernel_id FROM ext_replacement WHERE op_id IN (6, 12, 18)";
    let replaced: Vec<String> = rows(&all, replaced).iter().map(|row| format!("{row:?}")).collect();
    assert_eq!(replaced.len(), 3, "{replaced:?}");
    assert!(replaced[0].starts_with("[Integer(12), Text(\"x\"), "), "{replaced:?}");
    assert!(replaced[1].starts_with("[Integer(18), Integer(0), "), "{replaced:?}");
    assert_eq!(replaced[2], "[Integer(6), Integer(-1), Integer(0)]");
    let of_nothing = "SELECT count(*) FROM ext_replacement WHERE candidate_id = 0";
    assert_eq!(number(&all, of_nothing), number(&dir.open("u.rpd"), of_nothing) + 1);
    let wrong =
        dir.trace("wrong.rpd", "INSERT INTO rocpd_string VALUES (-7, 'x'), (9223372036854775807, 'y')");
    dir.run(&["merge", "-o", "no.rpd", &trace, &wrong]).expect(1).says(&[
        "wrong.rpd",
        "ids that no session can have",
        "rpd check",
    ]);
}

#[test]
fn what_does_not_fit_together_is_reported() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 7, 60);
    generated(&dir, "u.rpd", 8, 60);
    generated(&dir, "v3.rpd", 9, 60);
    to_schema_3(&dir, "v3.rpd");
    std::os::unix::fs::symlink(dir.path(&trace), dir.path("link.rpd")).unwrap();
    for (arguments, words) in [
        (&["-o", "no.rpd", &trace, "link.rpd"][..], "t.rpd and link.rpd are the same file"),
        (&["-o", "no.rpd", &trace, "v3.rpd"], "only traces of one schema"),
        (&["-o", "u.rpd", &trace, "u.rpd"], "is one of the traces to be merged"),
        (&["-o", "v3.rpd", &trace, "u.rpd"], "exists already"),
        (&["-o", "no.rpd", &trace, "missing.rpd"], "no such file"),
        (&["-o", "no/such/all.rpd", &trace, "u.rpd"], "no/such"),
    ] {
        dir.run(&[&["merge"], arguments].concat()).expect(1).says(&[words]);
    }
    let limited = format!("ulimit -f 24; exec {RPD} merge -o all.rpd t.rpd u.rpd");
    ran(dir.command("bash").args(["-c", &limited])).expect(1).says(&["all.rpd was not made"]);
    assert_eq!(dir.names(), ["link.rpd", "t.rpd", "u.rpd", "v3.rpd"]);
    // A pass that has changed one of them has to be in all.
    fs::copy(dir.path("u.rpd"), dir.path("changed.rpd")).unwrap();
    dir.run(&["autograd", "changed.rpd"]).expect(0);
    dir.run(&["merge", "-o", "no.rpd", "changed.rpd", &trace]).expect(1).says(&[
        "autograd",
        "in changed.rpd and not in t.rpd",
        "rpd autograd",
    ]);
    // A pass that one of them lacks goes; so does a subclass.
    dir.run(&["callstack", &trace]).expect(0);
    dir.run(&["subclass", "--base", "api", "--name", "mem", "--apis", "hipMalloc", "u.rpd"]).expect(0);
    let result = dir.run(&["merge", "-o", "all.rpd", &trace, "u.rpd"]);
    for words in ["callstack: not made in u.rpd", "rocpd_memapi: not all traces have the same"] {
        assert!(result.expect(0).stderr.contains(words), "{words}: {result}");
    }
    sound(&dir, "all.rpd");
    let all = dir.open("all.rpd");
    assert_eq!(
        number(
            &all,
            "SELECT count(*) FROM sqlite_master WHERE name LIKE '%callstack%' OR name LIKE '%memapi%'"
        ),
        0
    );
    assert_eq!(
        number(
            &all,
            "SELECT count(*) FROM rocpd_metadata WHERE tag LIKE 'Callstack%' OR tag LIKE 'Subclass%'"
        ),
        0
    );
}

#[test]
fn call_stacks_of_threads_that_are_apart_stay() {
    let dir = Dir::new();
    let calls = |name: &str, from: i64, to: i64| {
        let rows = format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'call'); INSERT INTO rocpd_api VALUES (1, 7, 7, {from}, {to}, 2, 1)"
        );
        let trace = dir.trace(name, &rows);
        dir.run(&["callstack", &trace]).expect(0);
    };
    calls("a.rpd", 100, 200);
    calls("b.rpd", 200, 300);
    calls("c.rpd", 150, 160);
    // Traces that say nothing of themselves are of processes of their own, whatever ids these have.
    calls("d.rpd", 150, 160);
    for name in ["a.rpd", "b.rpd", "c.rpd"] {
        let facts = "INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::boot_id', 'b'), ('session::0::pid', '7'),
            ('session::0::start_monotonic_ns', '50')";
        dir.open(name).execute_batch(facts).unwrap();
    }
    for (other, state) in [("b.rpd", "already"), ("c.rpd", "stale"), ("d.rpd", "already")] {
        let out = format!("with_{other}");
        dir.run(&["merge", "--same-host", "-o", &out, "a.rpd", other]).expect(0);
        dir.run(&["callstack", &out]).expect(0).says(&[state]);
    }
}

#[test]
fn copies_are_between_the_gpus_that_they_were_between() {
    let dir = Dir::new();
    let copy = |name: &str| {
        let rows = format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMemcpy');
             INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 2, 1), (2, 7, 7, 300, 400, 2, 1);
             INSERT INTO rocpd_copyapi (api_ptr_id, stream, size, width, height, kind, dst, src, dstDevice, srcDevice, sync, pinned)
                 VALUES (1, '', 1, 0, 0, 1, '', '', 3, -1, 0, 0), (2, '', 1, 0, 0, 3, '', '', 0, '', 0, 0);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::host', '{name}'), ('session::0::boot_id', '{name}'),
                 ('session::0::pid', '7'), ('session::0::start_monotonic_ns', '50'), ('session::0::start_realtime_ns', '50')"
        );
        dir.trace(name, &rows)
    };
    let (one, other) = (copy("a.rpd"), copy("b.rpd"));
    dir.run(&["merge", "-o", "all.rpd", &one, &other]).expect(0);
    let devices = rows(&dir.open("all.rpd"), "SELECT dstDevice || ' ' || srcDevice FROM rocpd_copyapi");
    assert_eq!(
        devices.concat(),
        ["0 ", "1000 ", "1003 -1", "3 -1"].map(|devices| Value::Text(devices.to_string()))
    );
}

#[test]
fn a_trace_that_is_being_recorded_is_not_merged() {
    let dir = Dir::new();
    generated(&dir, "t.rpd", 31, 20);
    let live = dir.fixture("matmul_result.rpd");
    let _recorder = being_recorded(&dir, &live);
    let result = dir.run(&["merge", "-o", "all.rpd", "--same-host", "t.rpd", &live]);
    result.expect(1).says(&["matmul_result.rpd", "recording into it", "rpd trim"]);
    dir.run(&["trim", &live, "-o", "copy.rpd"]).expect(0);
    dir.run(&["merge", "-o", "all.rpd", "--same-host", "t.rpd", "copy.rpd"]).expect(0);
}

#[test]
fn what_notes_beside_the_parts_say_is_in_the_merged_trace() {
    let dir = Dir::new();
    generated(&dir, "a.rpd", 31, 20);
    generated(&dir, "b.rpd", 32, 20);
    let another = "UPDATE rocpd_metadata SET value = value + 1 WHERE tag = 'session::0::pid'";
    assert_eq!(dir.open("b.rpd").execute(another, []).unwrap(), 1);
    let sessions = |trace: &str| rpd_schema::sessions(&dir.open(trace)).unwrap().len();
    let before = sessions("a.rpd") + sessions("b.rpd");
    leave_notes(&dir, "a.rpd");
    leave_notes(&dir, "b.rpd");
    dir.run(&["merge", "-o", "all.rpd", "--same-host", "a.rpd", "b.rpd"]).expect(0);
    assert_eq!((lost_of(&dir, "all.rpd"), sessions("all.rpd")), (Some(24), before + 2));
    dir.run(&["check", "all.rpd"]).expect(0);
    assert!(dir.path("a.rpd-lost").exists() && dir.path("b.rpd-lost").exists(), "the parts are as they were");
}

/// A call of process 7 from `start` on, and what its session says: its end, if it has one, and its counts.
fn session_of(dir: &Dir, name: &str, start: i64, end: Option<i64>, lost: u64) -> String {
    let counts = [
        ("lost::write", lost),
        ("recorded::call", lost + 1),
        ("launches_without_op", lost + 2),
        ("recorder_cpu_ns", lost + 3),
    ];
    let counts = counts.map(|(key, count)| format!("('session::0::{key}', '{count}')")).join(", ");
    let end = end.map_or(String::new(), |end| format!("('session::0::end_monotonic_ns', '{end}'),"));
    let rows = format!(
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMalloc');
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
             (1, 7, 7, {start}, {start} + 100, 2, 1), (2, 7, 7, {start} + 200, {start} + 300, 2, 1);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1'), ('session::0::boot_id', 'b'), ('session::0::pid', '7'),
             ('session::0::start_monotonic_ns', '50'), ('session::0::host', 'h'), {end} {counts}"
    );
    dir.trace(name, &rows)
}

#[test]
fn parts_of_a_session_count_once_and_sessions_each_for_themselves() {
    let dir = Dir::new();
    let counts = |trace: &str| {
        let sessions = rpd_schema::sessions(&dir.open(trace)).unwrap();
        ["lost::write", "recorded::call", "launches_without_op", "recorder_cpu_ns"]
            .map(|key| sessions.iter().filter_map(|session| session.number(key)).sum::<u64>())
    };
    let merged = |parts: &[&str]| {
        let out = format!("of-{}", parts.concat());
        dir.run(&[&["merge", "--same-host", "-o", &out], parts].concat()).expect(0);
        counts(&out)
    };
    // Two parts of one trace have its counts, whole.
    session_of(&dir, "whole.rpd", 1000, Some(9000), 5);
    dir.run(&["trim", "whole.rpd", "-o", "1.rpd", "--end", "1100"]).expect(0);
    dir.run(&["trim", "whole.rpd", "-o", "2.rpd", "--start", "1100"]).expect(0);
    assert_eq!((counts("1.rpd"), counts("2.rpd")), ([5, 6, 7, 8], [5, 6, 7, 8]));
    assert_eq!(merged(&["1.rpd", "2.rpd"]), [5, 6, 7, 8]);
    assert_eq!(merged(&["1.rpd", "whole.rpd", "2.rpd"]), [5, 6, 7, 8]);
    // A part that was cut out while the session went on has counts of then, and one without a count does not hide it.
    session_of(&dir, "early.rpd", 500, None, 3);
    assert_eq!(merged(&["early.rpd", "1.rpd"]), [5, 6, 7, 8]);
    assert_eq!(merged(&["1.rpd", "early.rpd"]), [5, 6, 7, 8]);
    dir.open("early.rpd").execute_batch("DELETE FROM rocpd_metadata WHERE tag LIKE '%lost%'").unwrap();
    assert_eq!(merged(&["early.rpd", "2.rpd"]), [5, 6, 7, 8]);
    // The process went on in another file, or lost more there before it was killed: these are sessions of their own.
    session_of(&dir, "next.rpd", 20_000, Some(30_000), 4);
    assert_eq!(merged(&["whole.rpd", "next.rpd"]), [9, 11, 13, 15]);
    session_of(&dir, "killed.rpd", 20_000, None, 6);
    assert_eq!(merged(&["whole.rpd", "killed.rpd"]), [11, 13, 15, 17]);
}

#[test]
fn times_of_stops_and_losses_are_moved_as_all_times_are() {
    let dir = Dir::new();
    let trace = |name: &str, monotonic: i64, realtime: i64| {
        let rows = format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMalloc');
             INSERT INTO rocpd_api VALUES (1, 7, 7, {monotonic} + 100, {monotonic} + 200, 2, 1);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::host', '{name}'), ('session::0::boot_id', '{name}'), ('session::0::pid', '7'),
                 ('session::0::start_monotonic_ns', '{monotonic}'), ('session::0::start_realtime_ns', '{realtime}'),
                 ('session::0::stopped', '{}-{} {}-'), ('session::0::lost_times', '{}-{}:write=3')",
            monotonic + 10,
            monotonic + 20,
            monotonic + 300,
            monotonic + 30,
            monotonic + 40
        );
        dir.trace(name, &rows)
    };
    let (one, other) = (trace("a.rpd", 1000, 5000), trace("b.rpd", 90_000, 5500));
    dir.run(&["merge", "-o", "all.rpd", &one, &other]).expect(0);
    let all = dir.open("all.rpd");
    let fact = |key: &str| {
        rows(
            &all,
            &format!("SELECT value FROM rocpd_metadata WHERE tag GLOB 'session::*::{key}' ORDER BY tag"),
        )
    };
    let texts = |texts: [&str; 2]| texts.map(|text| vec![Value::Text(text.to_string())]).to_vec();
    assert_eq!(fact("start_monotonic_ns"), texts(["1000", "1500"]));
    assert_eq!(fact("stopped"), texts(["1010-1020 1300-", "1510-1520 1800-"]));
    assert_eq!(fact("lost_times"), texts(["1030-1040:write=3", "1530-1540:write=3"]));
}

/// A part of a recording: calls by their local ids, operations with the calls that they are linked to, the kernel that ran, and what else the
/// session says.
fn part_of(
    dir: &Dir,
    number: u64,
    calls: &[(i64, &str)],
    ops: &[(i64, i64)],
    facts: &[(&str, &str)],
) -> String {
    let mut rows = String::from(
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'hsaDispatch'), (4, 'kernel'), (5, 'KernelExecution');
         INSERT INTO rocpd_kernelcodeobject (id, vgpr, sgpr, fbar) VALUES (1, 8, 16, 0);
         INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', '1'), ('session::0::boot_id', 'b'), ('session::0::pid', '7'),
             ('session::0::start_monotonic_ns', '50'), ('session::0::host', 'h');",
    );
    for (id, name) in calls {
        let name = if *name == "hsaDispatch" { 3 } else { 2 };
        rows += &format!(
            "INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
            ({id}, 7, 7, {id}00, {id}50, {name}, 1);"
        );
    }
    for (op, call) in ops {
        rows += &format!(
            "INSERT INTO rocpd_op (id, gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES ({op}, 0, 1, {call}, '', {call}60, {call}90, 4, 5);
             INSERT INTO rocpd_api_ops (id, api_id, op_id) VALUES ({op}, {call}, {op});
             INSERT INTO rocpd_kernelapi VALUES ({call}, '', 1, 1, 1, 64, 1, 1, 0, 0, '', '', '', 1, 4);"
        );
    }
    let number = number.to_string();
    for (key, value) in facts.iter().copied().chain([("part", &*number)]) {
        rows += &format!("INSERT INTO rocpd_metadata (tag, value) VALUES ('session::0::{key}', '{value}');");
    }
    dir.trace(&format!("p{number}.rpd"), &rows)
}

#[test]
fn parts_of_one_recording_are_joined_in_any_order() {
    let dir = Dir::new();
    // Calls 2 and 3 were under way on the GPU when the first part ended, call 3 also at the end of the second; call 4 had not ended.
    let lost = ("launches_without_op", "2");
    let one = part_of(
        &dir,
        1,
        &[(1, "hip"), (2, "hip"), (3, "hip")],
        &[(1, 1)],
        &[("next_part", "p2.rpd"), lost, ("end_monotonic_ns", "400")],
    );
    let before = |calls| ("calls_before_part", calls);
    let two = part_of(
        &dir,
        2,
        &[(2, "hsaDispatch"), (4, "hip"), (5, "hip")],
        &[(1, 2), (2, 4)],
        &[("next_part", "p3.rpd"), before("5"), lost, ("end_monotonic_ns", "600")],
    );
    let three = part_of(&dir, 3, &[(3, "hsaDispatch"), (6, "hip")], &[(1, 3), (2, 6)], &[before("6")]);
    for part in [&one, &two, &three] {
        dir.run(&["check", part]).expect(0);
    }
    let all = "SELECT string || ' ' || api.start || ' ' || op.start || ' ' || ka.codeObject_id FROM rocpd_api AS api
        JOIN rocpd_string ON rocpd_string.id = apiName_id JOIN rocpd_api_ops ON api_id = api.id JOIN rocpd_op AS op ON op.id = op_id
        JOIN rocpd_kernelapi AS ka ON ka.api_ptr_id = api.id ORDER BY op.start";
    let whole = [1, 2, 3, 4, 6].map(|call| Value::Text(format!("hipLaunchKernel {call}00 {call}60 1")));
    for (place, order) in
        [[&one, &two, &three], [&three, &two, &one], [&two, &three, &one]].iter().enumerate()
    {
        let out = format!("all{place}.rpd");
        let ran = dir.run(&["merge", "-o", &out, order[0], order[1], order[2]]);
        ran.expect(0);
        let merged = dir.open(&out);
        assert_eq!(rows(&merged, all).concat(), whole, "{ran}");
        let count = |table: &str| rows(&merged, &format!("SELECT count(*) FROM {table}")).concat();
        let counts =
            ["rocpd_api", "rocpd_op", "rocpd_kernelapi", "rocpd_kernelcodeobject"].map(count).concat();
        assert_eq!(counts, [6, 5, 5, 1].map(Value::Integer), "a call and a kernel are there once");
        assert_eq!(rpd_schema::launches_without_op(&merged).unwrap(), 0);
        dir.run(&["check", &out]).expect(0);
    }
    // Without the part that has the call, what stands in for it stays.
    dir.run(&["merge", "-o", "some.rpd", &three, &two]).expect(0);
    let some = rows(&dir.open("some.rpd"), all).concat();
    let alone = [
        "hipLaunchKernel 400 460 1",
        "hipLaunchKernel 600 660 1",
        "hsaDispatch 200 260 1",
        "hsaDispatch 300 360 1",
    ];
    assert_eq!(some, alone.map(|row| Value::Text(row.into())));
    // Two processes are never joined, whatever their numbers.
    dir.open(&two)
        .execute("UPDATE rocpd_metadata SET value = '8' WHERE tag = 'session::0::pid'", [])
        .unwrap();
    dir.run(&["merge", "-o", "two.rpd", &one, &two]).expect(0);
    assert_eq!(rows(&dir.open("two.rpd"), "SELECT count(*) FROM rocpd_api").concat(), [Value::Integer(6)]);
}

#[test]
fn a_time_that_cannot_be_stays_one() {
    let dir = Dir::new();
    let trace = generated(&dir, "a.rpd", 1, 100);
    elsewhere(&dir, &trace, "b.rpd", 5_000_000_000);
    dir.open("b.rpd")
        .execute_batch(
            "UPDATE rocpd_op SET start = 0 WHERE id % 5 = 0;
             UPDATE rocpd_op SET start = -1, \"end\" = 0 WHERE id % 5 = 1;
             UPDATE rocpd_api SET \"end\" = 1 << 62 WHERE id % 7 = 0;
             UPDATE rocpd_monitor SET start = 0 WHERE id % 3 = 0",
        )
        .unwrap();
    let merged = dir.run(&["merge", "-o", "all.rpd", "a.rpd", "b.rpd"]);
    assert!(merged.expect(0).stderr.contains("times -5000000000 ns"), "{merged}");
    for table in ["rocpd_op", "rocpd_api", "rocpd_monitor"] {
        let impossible = format!(
            "SELECT start, \"end\" FROM {table} WHERE NOT (start > 0 AND \"end\" > 0 AND \"end\" < 1 << 62)"
        );
        same_content(&dir, "b.rpd", "all.rpd", &[&impossible]);
    }
}

#[test]
fn a_file_that_cannot_be_merged_is_named() {
    let dir = Dir::new();
    let trace = generated(&dir, "a.rpd", 1, 50);
    bare(&dir, &trace, "b.rpd");
    dir.run(&["merge", "-o", "all.rpd", "a.rpd", "b.rpd"]).expect(0);
    sound(&dir, "all.rpd");
    for (damage, table) in [
        ("INSERT INTO rocpd_op SELECT * FROM rocpd_op LIMIT 1", "rocpd_op"),
        ("UPDATE rocpd_api SET id = 'x' WHERE id % 10 = 0", "rocpd_api"),
    ] {
        dir.open("b.rpd").execute_batch(damage).unwrap();
        let refused = dir.run(&["merge", "-o", "no.rpd", "a.rpd", "b.rpd"]);
        refused.expect(1).says(&[table, "b.rpd", "rpd check"]);
    }
}
