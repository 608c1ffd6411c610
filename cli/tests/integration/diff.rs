//! `rpd diff`: what got slower, against changes that were put in, and against a slow and obvious implementation in SQL.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::generated::{Random, drop_views, generated, to_schema_3};
use crate::harness::{Dir, golden, ran};

/// What a run does: kernels of each iteration by name, with their durations without noise, ns.
type Iteration = Vec<(String, i64)>;

fn kernels(launches: &[(&str, i64)]) -> Iteration {
    launches.iter().map(|(name, ns)| ((*name).to_string(), *ns)).collect()
}

/// A run of these iterations as SQL. Durations differ by up to 2 percent, by the numbers that begin with `seed`.
fn recorded(seed: u64, iterations: &[Iteration]) -> String {
    let mut random = Random::new(seed);
    let mut texts: BTreeMap<String, i64> = BTreeMap::new();
    let mut sql = String::from("BEGIN;");
    let mut text = |sql: &mut String, text: &str| {
        let next = texts.len() as i64 + 1;
        *texts.entry(text.to_string()).or_insert_with(|| {
            let quoted = text.replace('\'', "''");
            *sql += &format!("INSERT INTO rocpd_string (id, string) VALUES ({next}, '{quoted}');");
            next
        })
    };
    let [none, marker, launch, malloc, kind] =
        ["", "UserMarker", "hipLaunchKernel", "hipMalloc", "KernelExecution"]
            .map(|name| text(&mut sql, name));
    let (mut row, mut time) = (0, 1_000_000);
    for (number, iteration) in iterations.iter().enumerate() {
        let begin = time;
        for (name, ns) in iteration {
            let name = text(&mut sql, name);
            let ns = ns + ns * (random.below(400) - 200) / 10_000;
            row += 1;
            let (start, end) = (time + 1_000, time + 1_000 + ns);
            sql += &format!(
                "INSERT INTO rocpd_api VALUES ({row}, 7, 7, {time}, {}, {launch}, {none});
                 INSERT INTO rocpd_op VALUES ({row}, 0, 0, {row}, '', {start}, {end}, {name}, {kind});
                 INSERT INTO rocpd_api_ops (api_id, op_id) VALUES ({row}, {row});",
                time + 500 + random.below(10)
            );
            time = end;
        }
        row += 1;
        sql += &format!(
            "INSERT INTO rocpd_api VALUES ({row}, 7, 7, {time}, {}, {malloc}, {none});",
            time + 2_000 + random.below(40)
        );
        time += 3_000;
        let step = text(&mut sql, &format!("step {number}"));
        sql += &format!(
            "INSERT INTO rocpd_api VALUES ({}, 7, 7, {begin}, {time}, {marker}, {step});",
            (1_i64 << 31) + row
        );
        time += 5_000;
    }
    sql + "COMMIT;"
}

/// A run of `count` equal iterations.
fn run(dir: &Dir, name: &str, seed: u64, count: usize, launches: &[(&str, i64)]) -> String {
    dir.trace(name, &recorded(seed, &vec![kernels(launches); count]))
}

/// Takes the markers out of traces.
fn without_markers(dir: &Dir, traces: &[&str]) {
    let markers = "apiName_id IN (SELECT id FROM rocpd_string WHERE string = 'UserMarker')";
    for trace in traces {
        dir.open(trace).execute_batch(&format!("DELETE FROM rocpd_api WHERE {markers}")).unwrap();
    }
}

fn diff(dir: &Dir, arguments: &[&str]) -> Value {
    let json = dir.run(&[&["diff", "--json"], arguments].concat());
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

fn rows(found: &Value) -> &Vec<Value> {
    found["rows"].as_array().unwrap()
}

fn row<'a>(found: &'a Value, kind: &str, name: &str, group: &str) -> &'a Value {
    let is_it = |row: &&Value| row["kind"] == kind && row["name"] == name && row["group"] == group;
    rows(found).iter().find(is_it).unwrap_or_else(|| panic!("{kind} {name} {group}: {found:#}"))
}

/// Kind, name and what is said of all that changed.
fn changed(found: &Value) -> BTreeSet<(String, String, String)> {
    let word = |row: &Value, key: &str| row[key].as_str().unwrap().to_string();
    let is_change =
        |row: &&Value| ["slower", "faster", "new", "gone"].contains(&row["result"].as_str().unwrap());
    let changes = rows(found).iter().filter(is_change);
    changes.map(|row| (word(row, "kind"), word(row, "name"), word(row, "result"))).collect()
}

fn said(changes: &[(&str, &str, &str)]) -> BTreeSet<(String, String, String)> {
    changes
        .iter()
        .map(|(kind, name, result)| (kind.to_string(), name.to_string(), result.to_string()))
        .collect()
}

const MODEL: [(&str, i64); 5] =
    [("gemm", 100_000), ("softmax", 40_000), ("norm", 20_000), ("gemm", 60_000), ("copyish", 30_000)];

#[test]
fn a_run_does_not_differ_from_itself() {
    let dir = Dir::new();
    let mut traces = vec![dir.fixture("matmul_result.rpd"), dir.unpacked("mytrace_raw.rpd")];
    traces.push(dir.unpacked("mytrace_as_shipped.rpd"));
    for seed in 0..3 {
        traces.push(generated(&dir, &format!("{seed}.rpd"), seed, 300));
    }
    to_schema_3(&dir, "2.rpd");
    traces.push(run(&dir, "model.rpd", 1, 20, &MODEL));
    for trace in &traces {
        let found = diff(&dir, &[trace, trace]);
        assert_eq!(changed(&found), said(&[]), "{trace}");
        assert!(!rows(&found).is_empty(), "{trace}");
        for row in rows(&found) {
            assert_eq!(row["change_ns"].as_f64(), Some(0.0), "{row}");
            assert_eq!(row["a_total_ns"], row["b_total_ns"], "{row}");
            assert!(row["p"].as_f64().is_none_or(|p| p > 0.9), "{row}");
        }
        dir.run(&[
            "diff",
            trace,
            trace,
            "--fail-if",
            "kernel:. 1%",
            "--fail-if",
            "kernel:. new",
            "--min-samples",
            "1",
        ])
        .expect(0);
    }
}

#[test]
fn the_other_way_round_it_says_the_opposite() {
    let dir = Dir::new();
    let made = (generated(&dir, "g1", 1, 300), generated(&dir, "g2", 2, 300));
    // Groups of one size are numbered as they are read.
    without_markers(&dir, &[&made.0, &made.1]);
    let mut pairs = vec![made];
    let slower: Vec<(&str, i64)> = MODEL.iter().map(|(name, ns)| (*name, ns * 11 / 10)).collect();
    pairs.push((run(&dir, "a", 1, 20, &MODEL), run(&dir, "b", 2, 25, &slower)));
    let other = [("gemm", 90_000), ("flash", 55_000), ("norm", 20_000), ("extra", 7_000)];
    pairs.push((run(&dir, "c", 1, 20, &MODEL), run(&dir, "d", 2, 20, &other)));
    for (a, b) in &pairs {
        let (found, back) = (diff(&dir, &[a, b]), diff(&dir, &[b, a]));
        assert_eq!(rows(&found).len(), rows(&back).len());
        let opposite = |result: &str| {
            let pairs = [("slower", "faster"), ("faster", "slower"), ("new", "gone"), ("gone", "new")];
            let other = pairs.iter().find(|(one, _)| *one == result).map_or(result, |(_, other)| other);
            other.to_string()
        };
        for one in rows(&found) {
            let word = |key: &str| one[key].as_str().unwrap();
            let name = one["replaced_by"].as_str().unwrap_or(word("name"));
            let other = row(&back, word("kind"), name, word("group"));
            assert_eq!(other["result"], opposite(word("result")), "{one} {other}");
            let number = |row: &Value, key: &str| row[key].as_f64();
            assert!((number(one, "change_ns").unwrap() + number(other, "change_ns").unwrap()).abs() < 1e-6);
            let near =
                |key: &str, other_key: &str, sign: f64| match (number(one, key), number(other, other_key)) {
                    (Some(one), Some(other)) => assert!(
                        (one - sign * other).abs() <= 1e-9 * one.abs().max(1e-3),
                        "{key}: {one} {other}"
                    ),
                    (one, other) => assert_eq!(one, other, "{key}"),
                };
            near("q", "q", 1.0);
            near("p", "p", 1.0);
            near("delta", "delta", -1.0);
            near("effect_ns", "effect_ns", -1.0);
            near("a_ns", "b_ns", 1.0);
        }
    }
}

#[test]
fn changes_that_were_put_in_are_found_and_no_others() {
    let dir = Dir::new();
    let a = run(&dir, "a.rpd", 1, 20, &MODEL);
    type Launches = [(&'static str, i64)];
    type Changes = [(&'static str, &'static str, &'static str)];
    let changes: [(&Launches, &Changes); 5] = [
        (&MODEL, &[]),
        (
            &[
                ("gemm", 100_000),
                ("softmax", 44_000),
                ("norm", 20_000),
                ("gemm", 60_000),
                ("copyish", 27_000),
            ],
            &[("kernel", "copyish", "faster"), ("kernel", "softmax", "slower")],
        ),
        // One launch more of one kernel.
        (
            &[
                ("gemm", 100_000),
                ("softmax", 40_000),
                ("norm", 20_000),
                ("norm", 20_000),
                ("gemm", 60_000),
                ("copyish", 30_000),
            ],
            &[
                ("kernel", "norm", "slower"),
                ("total", "wall", "slower"),
                ("total", "busy", "slower"),
                ("total", "idle", "slower"),
                ("call", "hipLaunchKernel", "slower"),
            ],
        ),
        // In another place nothing is said to replace it.
        (
            &[("gemm", 100_000), ("norm", 20_000), ("gemm", 60_000), ("copyish", 30_000), ("flash", 40_000)],
            &[("kernel", "softmax", "gone"), ("kernel", "flash", "new")],
        ),
        (
            &[
                ("gemm", 100_000),
                ("softmax<2>", 60_000),
                ("norm", 20_000),
                ("gemm", 60_000),
                ("copyish", 30_000),
            ],
            &[("kernel", "softmax", "slower"), ("total", "wall", "slower"), ("total", "busy", "slower")],
        ),
    ];
    for (at, (launches, expected)) in changes.iter().enumerate() {
        let b = run(&dir, &format!("b{at}.rpd"), 7 + at as u64, 20, launches);
        let found = diff(&dir, &[&a, &b]);
        assert_eq!(found["iteration"], "step #");
        assert_eq!(changed(&found), said(expected), "{at}: {found:#}");
    }
    let replaced = diff(&dir, &[&a, "b4.rpd"]);
    let softmax = row(&replaced, "kernel", "softmax", "1");
    assert_eq!(softmax["replaced_by"], "softmax<2>");
    let percent = softmax["change_percent"].as_f64().unwrap();
    assert!((45.0..55.0).contains(&percent) && softmax["low_percent"].as_f64() < Some(percent), "{softmax}");
    let launches = row(&diff(&dir, &[&a, "b2.rpd"]), "kernel", "norm", "1").clone();
    assert_eq!((launches["a_calls"].as_f64(), launches["b_calls"].as_f64()), (Some(1.0), Some(2.0)));
}

#[test]
fn iterations_are_compared_with_those_like_them() {
    let dir = Dir::new();
    let (prefill, decode) = (kernels(&[("gemm", 900_000), ("flash", 300_000)]), kernels(&MODEL));
    let mix = |prefills: usize, decodes: usize| {
        let mut all = vec![prefill.clone(); prefills];
        all.extend(vec![decode.clone(); decodes]);
        all
    };
    // Half of A are prefills, a fourth of B: all in all B is faster, but no iteration is.
    let a = dir.trace("a.rpd", &recorded(1, &mix(20, 20)));
    let b = dir.trace("b.rpd", &recorded(2, &mix(10, 30)));
    let found = diff(&dir, &[&a, &b]);
    assert_eq!(changed(&found), said(&[]), "{found:#}");
    let groups: Vec<_> = found["groups"]
        .as_array()
        .unwrap()
        .iter()
        .map(|group| (group["a_iterations"].as_u64(), group["b_iterations"].as_u64()))
        .collect();
    assert_eq!(groups, [(Some(20), Some(30)), (Some(20), Some(10))]);
    let few = dir.trace("few.rpd", &recorded(3, &mix(3, 30)));
    let found = diff(&dir, &[&a, &few]);
    assert_eq!(row(&found, "kernel", "flash", "2")["result"], "too-few");
    assert_eq!(row(&found, "kernel", "softmax", "1")["result"], "no-change-shown");
}

/// Medians of what kernels take in an iteration, by SQL that looks at each pair of marker and launch.
#[test]
fn values_are_those_of_slow_sql() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let found = diff(&dir, &[&trace, &trace]);
    assert_eq!(found["iteration"], "execute_model");
    let connection = dir.open(&trace);
    let mut query = connection
        .prepare(
            "WITH markers AS (SELECT A.id, A.pid, A.tid, A.start, A.\"end\" FROM rocpd_api A JOIN rocpd_string S ON S.id = A.args_id
                 WHERE S.string = 'execute_model'),
             launched AS (SELECT M.id AS marker, S.string AS kernel, O.\"end\" - O.start AS ns
                 FROM markers M JOIN rocpd_api A ON A.pid = M.pid AND A.tid = M.tid AND A.start BETWEEN M.start AND M.\"end\"
                 JOIN rocpd_api_ops L ON L.api_id = A.id JOIN rocpd_op O ON O.id = L.op_id
                 JOIN rocpd_string S ON S.id = O.description_id WHERE S.string <> '')
             SELECT marker, kernel, count(*), sum(ns) FROM launched GROUP BY 1, 2",
        )
        .unwrap();
    // Launches and time of each kernel.
    type Kernels = BTreeMap<String, (i64, i64)>;
    let mut iterations: BTreeMap<i64, Kernels> = BTreeMap::new();
    let each = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
    for result in query.query_map([], each).unwrap() {
        let (marker, kernel, count, ns): (i64, String, i64, i64) = result.unwrap();
        iterations.entry(marker).or_default().insert(kernel, (count, ns));
    }
    let mut shapes: BTreeMap<Vec<(String, i64)>, Vec<&Kernels>> = BTreeMap::new();
    for iteration in iterations.values() {
        let shape = iteration.iter().map(|(kernel, (count, _))| (kernel.clone(), *count)).collect();
        shapes.entry(shape).or_default().push(iteration);
    }
    let mut shapes: Vec<_> = shapes.into_values().collect();
    shapes.sort_by_key(|iterations| std::cmp::Reverse(iterations.len()));
    assert_eq!(shapes.iter().map(Vec::len).collect::<Vec<_>>(), [20, 2]);
    let mut compared = 0;
    for (group, iterations) in shapes.iter().enumerate() {
        for kernel in iterations[0].keys() {
            let mut values: Vec<i64> = iterations.iter().map(|iteration| iteration[kernel].1).collect();
            values.sort_unstable();
            let median = (values[(values.len() - 1) / 2] + values[values.len() / 2]) as f64 / 2.0;
            let row = row(&found, "kernel", kernel, &(group + 1).to_string());
            assert_eq!(row["a_ns"].as_f64(), Some(median), "{kernel}");
            assert_eq!(row["a_total_ns"].as_i64(), Some(values.iter().sum()), "{kernel}");
            assert_eq!(row["a_samples"].as_u64(), Some(values.len() as u64));
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared}");
    // What runs overlap says of all of it.
    let overlap: Value =
        serde_json::from_str(&dir.run(&["overlap", "--json", &trace]).expect(0).stdout).unwrap();
    for (name, key) in [("busy", "busy_ns"), ("idle", "idle_ns"), ("exposed copies", "exposed_copies_ns")] {
        assert_eq!(row(&found, "total", name, "run")["a_total_ns"], overlap[0][key], "{name}");
    }
}

#[test]
fn rules_decide_the_exit_status() {
    let dir = Dir::new();
    let a = run(&dir, "a.rpd", 1, 20, &MODEL);
    let slower =
        [("gemm", 110_000), ("softmax", 40_000), ("norm", 20_000), ("gemm", 66_000), ("copyish", 30_000)];
    let b = run(&dir, "b.rpd", 2, 20, &slower);
    let few = run(&dir, "few.rpd", 3, 4, &slower);
    let status = |b: &str, rules: &[&str]| {
        let mut arguments = vec!["diff", a.as_str(), b];
        rules.iter().for_each(|rule| arguments.extend(["--fail-if", *rule]));
        dir.run(&arguments)
    };
    for (rules, code) in [
        (&["kernel:gemm +5%"][..], 1),
        (&["kernel:^gemm$ +15%"], 0),
        (&["kernel:gemm -5%"], 0),
        (&["kernel:gemm 5%"], 1),
        (&["kernel:softmax 5%", "total:^wall +3%"], 1),
        (&["kernel:softmax 5%", "kernel:. new", "kernel:. gone"], 0),
        (&["kernel:nothing +5%"], 2),
        (&["kernel:nothing +5%", "kernel:gemm +5%"], 1),
    ] {
        assert_eq!(status(&b, rules).status.code(), Some(code), "{rules:?}");
    }
    status(&b, &["kernel:gemm +5%"]).says(&["'kernel:gemm +5%' holds for gemm"]);
    status(&few, &["kernel:gemm +5%"]).expect(2).says(&["undecided", "too few", "gemm"]);
    for wrong in ["gemm +5%", "kernel:gemm", "kernel:( +5%", "gpu:x 5%", "kernel:gemm +five%"] {
        status(&b, &[wrong]).expect(2);
    }
    assert!(changed(&diff(&dir, &[&a, &few])).is_empty(), "too few is no verdict");
    dir.run(&["diff", &a]).expect(2);
    dir.run(&["diff", &a, &b, "--a", &a, "--b", &b]).expect(2);
    dir.run(&["diff", "--a", &a]).expect(2);
    dir.run(&["diff", &a, &b, "--min-change", "x"]).expect(2);
    dir.run(&["diff", &a, &b, "--iter", "epoch 3"]).expect(1).says(&["has no marker \"epoch #\""]);
    dir.run(&["diff", &a, "none.rpd"]).expect(1).says(&["none.rpd"]);
}

#[test]
fn of_several_files_a_run_is_a_value() {
    let dir = Dir::new();
    let slower =
        [("gemm", 110_000), ("softmax", 40_000), ("norm", 20_000), ("gemm", 66_000), ("copyish", 30_000)];
    let names = |side: &str, launches: &[(&str, i64)], seed: u64| -> Vec<String> {
        (0..6).map(|at| run(&dir, &format!("{side}{at}.rpd"), seed + at, 4, launches)).collect()
    };
    let (a, b) = (names("a", &MODEL, 10), names("b", &slower, 30));
    let arguments = |a: &[String], b: &[String]| -> Vec<String> {
        [&["--a".to_string()], a, &["--b".to_string()], b].concat()
    };
    let of = |a: &[String], b: &[String]| {
        let arguments = arguments(a, b);
        diff(&dir, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let found = of(&a, &b);
    assert_eq!(found["sampled"], "runs");
    let gemm = row(&found, "kernel", "gemm", "1");
    assert_eq!((gemm["result"].as_str(), gemm["a_samples"].as_u64()), (Some("slower"), Some(6)));
    assert!(
        (gemm["p"].as_f64().unwrap() - 0.002_164_502_164_502_164_5).abs() < 1e-12,
        "no value of A above one of B"
    );
    assert_eq!(row(&found, "kernel", "softmax", "1")["result"], "no-change-shown");
    let few = of(&a[..3], &b[..3]);
    assert!(rows(&few).iter().all(|row| row["result"] == "too-few"), "{few:#}");
}

#[test]
fn without_markers_blocks_are_compared() {
    let dir = Dir::new();
    let slower =
        [("gemm", 110_000), ("softmax", 40_000), ("norm", 20_000), ("gemm", 66_000), ("copyish", 30_000)];
    // B is twice as long, which says nothing.
    let traces = [run(&dir, "a.rpd", 1, 60, &MODEL), run(&dir, "b.rpd", 2, 120, &slower)];
    without_markers(&dir, &[&traces[0], &traces[1]]);
    let found = diff(&dir, &[&traces[0], &traces[1]]);
    assert_eq!((found["sampled"].as_str(), found["iteration"].as_str()), (Some("blocks"), None));
    assert_eq!(changed(&found), said(&[("kernel", "gemm", "slower")]), "{found:#}");
}

#[test]
fn iterations_and_regions_can_be_named() {
    let dir = Dir::new();
    // Three slow iterations at the beginning.
    let mut iterations = vec![kernels(&[("gemm", 300_000), ("norm", 20_000)]); 3];
    iterations.extend(vec![kernels(&[("gemm", 100_000), ("norm", 20_000)]); 20]);
    let a = dir.trace("a.rpd", &recorded(1, &iterations));
    let b = dir.trace("b.rpd", &recorded(2, &iterations[3..]));
    let iterations = |arguments: &[&str]| {
        let found = diff(&dir, &[&[a.as_str(), b.as_str()], arguments].concat());
        (found["groups"][0]["a_iterations"].as_u64(), found["groups"][0]["b_iterations"].as_u64())
    };
    assert_eq!(iterations(&[]), (Some(23), Some(20)));
    assert_eq!(iterations(&["--skip", "3"]), (Some(20), Some(17)));
    assert_eq!(iterations(&["--iter", "step 900"]), (Some(23), Some(20)));
    let found = diff(&dir, &[&a, &b, "--kernel", "norm"]);
    assert!(rows(&found).iter().all(|row| row["kind"] != "kernel" || row["name"] == "norm"));
    assert_eq!(row(&found, "kernel", "norm", "1")["a_samples"], 23);
}

#[test]
fn odd_traces_and_hostile_names_are_no_failure() {
    let dir = Dir::new();
    let empty = dir.trace("empty.rpd", "");
    let evil = "=1+\x1b]0;owned\x07|`<b>\ny\u{202e}";
    let hostile = [("a.rpd", 1, 100_000), ("b.rpd", 2, 150_000)].map(|(name, seed, ns)| {
        let trace = run(&dir, name, seed, 20, &[(evil, ns), (&"x".repeat(5000), ns), ("norm", 20_000)]);
        dir.open(&trace)
            .execute_batch(
                "UPDATE rocpd_op SET gpuId = 'x' WHERE id % 7 = 0; UPDATE rocpd_api SET tid = '' WHERE id % 25 = 0;
                 UPDATE rocpd_op SET description_id = 987654 WHERE id % 31 = 0; UPDATE rocpd_api SET start = 'soon' WHERE id % 33 = 0;
                 UPDATE rocpd_string SET string = CAST(x'ff00fe' AS TEXT) WHERE string = 'norm';
                 UPDATE rocpd_op SET \"end\" = start - 5 WHERE id % 37 = 0; UPDATE rocpd_op SET \"end\" = 0.5 WHERE id % 39 = 0;",
            )
            .unwrap();
        trace
    });
    for form in [&["--all"][..], &["--csv"], &["--json"], &["--markdown", "--all"]] {
        for (a, b) in
            [(&hostile[0], &hostile[1]), (&hostile[0], &empty), (&empty, &hostile[0]), (&empty, &empty)]
        {
            let result = dir.run(&[&["diff", a, b], form].concat());
            let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!result.expect(0).stdout.contains(harmful), "{result}");
            assert!(form[0] != "--markdown" || !result.stdout.contains("<b>"), "{result}");
        }
    }
    let few = dir.fixture("matmul_result.rpd");
    dir.open(&few)
        .execute_batch("DROP TABLE rocpd_api_ops; DROP TABLE rocpd_barrierop; DROP TABLE rocpd_monitor")
        .unwrap();
    dir.run(&["diff", &few, &hostile[0]]).expect(0);
    drop_views(&dir, &few);
    dir.open(&few).execute_batch("ALTER TABLE rocpd_api RENAME \"end\" TO finish").unwrap();
    dir.run(&["diff", &few, &few]).expect(1).says(&["no such column: rocpd_api.end"]);
}

#[test]
fn every_form_is_as_it_was() {
    let dir = Dir::new();
    let a = run(&dir, "before.rpd", 1, 20, &MODEL);
    let other = [
        ("gemm", 100_000),
        ("softmax<2>", 60_000),
        ("norm", 20_000),
        ("gemm", 60_000),
        ("copyish", 27_000),
        ("extra", 9_000),
    ];
    let b = run(&dir, "after.rpd", 2, 20, &other);
    for columns in [60, 100, 200] {
        let result = ran(dir.rpd(&["diff", &a, &b]).env("COLUMNS", columns.to_string()));
        golden(&format!("diff-{columns}.txt"), &result.expect(0).stdout);
        for line in result.stdout.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
    golden("diff.txt", &dir.run(&["diff", &a, &b]).expect(0).stdout);
    golden("diff.md", &dir.run(&["diff", "--markdown", &a, &b]).expect(0).stdout);
    golden("diff.csv", &dir.run(&["diff", "--csv", &a, &b]).expect(0).stdout);
}

#[test]
fn kernels_with_two_modes_are_said() {
    let dir = Dir::new();
    let mode = |share: usize, at: usize| if at % 10 < share { 130_000 } else { 100_000 };
    let made = |name: &str, seed: u64, share: usize| {
        let iterations: Vec<Iteration> = (0..20)
            .map(|number| (0..10).map(|at| ("gemm".to_string(), mode(share, at + number))).collect())
            .collect();
        dir.trace(name, &recorded(seed, &iterations))
    };
    let (a, b) = (made("a.rpd", 1, 2), made("b.rpd", 2, 7));
    let found = diff(&dir, &[&a, &b]);
    let gemm = row(&found, "kernel", "gemm", "1");
    assert_eq!(gemm["result"], "slower");
    assert_eq!(
        (gemm["a_modes"]["upper_percent"].as_f64(), gemm["b_modes"]["upper_percent"].as_f64()),
        (Some(20.0), Some(70.0))
    );
    let table = dir.run(&["diff", &a, &b]);
    assert!(table.expect(0).stdout.contains("modes of single launches"), "{table}");
}

/// Iterations of which the first three have a kernel that is nowhere else and another duration of norm.
fn with_rare(name: &str, dir: &Dir, seed: u64, [often, rare]: [i64; 2]) -> String {
    let mut iterations = vec![kernels(&[("norm", rare), ("gemm", 900_000), ("flash", 300_000)]); 3];
    iterations.extend(vec![kernels(&[("norm", often), ("softmax", 40_000), ("gemm", 60_000)]); 20]);
    dir.trace(name, &recorded(seed, &iterations))
}

#[test]
fn a_group_that_is_decided_hides_no_other() {
    let dir = Dir::new();
    let a = with_rare("a.rpd", &dir, 1, [20_000, 90_000]);
    let same = with_rare("same.rpd", &dir, 2, [20_000, 90_000]);
    let doubled = with_rare("doubled.rpd", &dir, 3, [20_000, 180_000]);
    let rule = |b: &str, rule: &str| dir.run(&["diff", &a, b, "--fail-if", rule]);
    let found = diff(&dir, &[&a, &doubled]);
    assert_eq!(row(&found, "kernel", "norm", "1")["result"], "no-change-shown");
    assert_eq!(row(&found, "kernel", "norm", "2")["result"], "too-few");
    rule(&doubled, "kernel:norm +50%").expect(2).says(&["undecided", "norm"]);
    rule(&doubled, "kernel:norm 50%").expect(2);
    rule(&doubled, "kernel:norm -50%").expect(0);
    rule(&doubled, "kernel:norm +150%").expect(0);
    rule(&same, "kernel:norm +50%").expect(0);
    dir.run(&["diff", &a, &a, "--fail-if", "kernel:norm 1%", "--fail-if", "total:^wall 1%"]).expect(0);
}

#[test]
fn iterations_are_alike_by_all_that_they_launch() {
    let dir = Dir::new();
    let (prefill, decode) = (
        kernels(&[("norm", 200_000), ("gemm", 900_000), ("flash", 300_000)]),
        kernels(&[("norm", 20_000), ("softmax", 40_000), ("gemm", 60_000)]),
    );
    let mix = |prefills: usize, decodes: usize| {
        let mut all = vec![prefill.clone(); prefills];
        all.extend(vec![decode.clone(); decodes]);
        all
    };
    let a = dir.trace("a.rpd", &recorded(1, &mix(20, 21)));
    let b = dir.trace("b.rpd", &recorded(2, &mix(10, 31)));
    // Another queue for norm alone.
    for trace in [&a, &b] {
        dir.open(trace)
            .execute_batch(
                "UPDATE rocpd_op SET queueId = 3 WHERE description_id IN (SELECT id FROM rocpd_string WHERE string = 'norm')",
            )
            .unwrap();
    }
    let whole = diff(&dir, &[&a, &b]);
    for part in [["--kernel", "norm"], ["--queue", "3"]] {
        let found = diff(&dir, &[&[a.as_str(), b.as_str()][..], &part].concat());
        assert_eq!(found["groups"], whole["groups"], "{part:?}");
        for group in ["1", "2"] {
            let (one, other) = (row(&found, "kernel", "norm", group), row(&whole, "kernel", "norm", group));
            for key in ["a_ns", "b_ns", "a_samples", "b_samples", "a_total_ns", "result"] {
                assert_eq!(one[key], other[key], "{part:?} {group} {key}");
            }
        }
        assert!(rows(&found).iter().all(|row| row["kind"] != "kernel" || row["name"] == "norm"), "{found:#}");
        let launches = row(&found, "call", "hipLaunchKernel", "1");
        assert_eq!(launches["a_calls"].as_f64(), Some(1.0), "only those of norm: {launches}");
    }
}

#[test]
fn operators_are_the_same_before_and_after_rpd_autograd() {
    let dir = Dir::new();
    let [a, b] = ["a.rpd", "b.rpd"].map(|name| {
        let trace = run(&dir, name, 1, 20, &MODEL);
        let connection = dir.open(&trace);
        // Of each iteration a convolution, and every other time one that is rare.
        connection
            .execute_batch(
                "INSERT INTO rocpd_string (id, string) SELECT 1000 + (id & 65535), iif(id % 4, 'aten::conv2d', 'aten::conv3d') ||
                     ', op_id = ' || (id & 65535) FROM rocpd_api WHERE id >= 2147483648;
                 INSERT INTO rocpd_api SELECT 5000 + id, pid, tid, start + 10, start + 400, apiName_id, 1000 + (id & 65535) FROM rocpd_api
                     WHERE id >= 2147483648;",
            )
            .unwrap();
        trace
    });
    dir.run(&["autograd", &b]).expect(0);
    let found = diff(&dir, &[&a, &b]);
    assert_eq!(changed(&found), said(&[]), "{found:#}");
    assert_eq!(row(&found, "marker", "aten::conv2d", "1")["result"], "no-change-shown");
}

/// Makes markers of a trace ranges that have their texts as their names, as Python functions have.
fn named_by_functions(dir: &Dir, trace: &str) {
    dir.open(trace)
        .execute_batch("UPDATE rocpd_api SET apiName_id = args_id, args_id = 1 WHERE id >= 2147483648")
        .unwrap();
}

#[test]
fn ranges_of_python_functions_are_markers_and_iterations() {
    let dir = Dir::new();
    let a = run(&dir, "a.rpd", 1, 20, &MODEL);
    let b = run(&dir, "b.rpd", 2, 20, &MODEL);
    let with_markers = diff(&dir, &[&a, &b]);
    for trace in [&a, &b] {
        named_by_functions(&dir, trace);
    }
    let found = diff(&dir, &[&a, &b]);
    assert_eq!(found["iteration"], "step #");
    assert_eq!(found["rows"], with_markers["rows"]);
}
