//! What `rpd top` tells of a trace, in every form.

use serde::Deserialize;

use std::collections::HashSet;

use crate::harness::{Dir, Ran, golden, ran};

/// A row of `--json`. A new field is a change of the interface and has to be added here.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    calls: u64,
    total_ns: u64,
    average_ns: f64,
    min_ns: u64,
    max_ns: u64,
    percent: f64,
}

/// `rpd top` on a terminal of that many columns.
fn top(dir: &Dir, columns: usize, arguments: &[&str]) -> Ran {
    ran(dir.rpd(&[&["top"], arguments].concat()).env("COLUMNS", columns.to_string()))
}

/// What stands above the table of GPUs.
fn ranking(output: &str) -> &str {
    output.split("\n\n").next().unwrap()
}

/// As [`kernels`], of names that may come again.
fn kernels_of(ops: &[(String, i64, i64)]) -> String {
    let ops: Vec<(&str, i64, i64)> = ops.iter().map(|(name, start, end)| (&**name, *start, *end)).collect();
    kernels(&ops)
}

/// Adds kernels: name, start, end; times from 1 on.
fn kernels(ops: &[(&str, i64, i64)]) -> String {
    let mut sql = String::from("INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution');\n");
    for (at, (name, start, end)) in ops.iter().enumerate() {
        let (id, name) = (at + 10, name.replace('\'', "''"));
        sql += &format!(
            "INSERT INTO rocpd_string VALUES ({id}, '{name}');
             INSERT INTO rocpd_op (gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id)
                 VALUES (0, 0, {at}, '', {}, {}, {id}, 2);\n",
            start + 1,
            end + 1
        );
    }
    sql
}

fn rows(dir: &Dir, trace: &str) -> Vec<Row> {
    let json = dir.run(&["top", "--json", trace]);
    serde_json::from_str(&json.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn a_real_trace_in_every_form() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for (form, name) in [
        (&[][..], "top.txt"),
        (&["--wide"], "top-wide.txt"),
        (&["--csv"], "top.csv"),
        (&["--json"], "top.json"),
    ] {
        let result = top(&dir, 100, &[&[trace.as_str()], form].concat());
        golden(name, &result.expect(0).stdout);
        // 23 names: a table has 20 of them and says so.
        assert_eq!(result.stderr.contains("3 names"), name.ends_with(".txt"), "{result}");
    }
    for columns in [60, 80, 100, 200] {
        for line in top(&dir, columns, &[&trace]).stdout.lines() {
            assert!(line.chars().count() <= columns, "{columns}: {line}");
        }
    }
    let (whole, wide) = (dir.run(&["top", &trace]), dir.run(&["top", "--wide", &trace]));
    assert_eq!(whole.expect(0).stdout, wide.stdout, "nothing is cut in a pipe");
}

#[test]
fn the_numbers_are_those_of_sql() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let sql = r#"SELECT CASE WHEN description = '' THEN opType ELSE description END, count(*), sum("end" - start),
                     min("end" - start), max("end" - start) FROM op GROUP BY 1 ORDER BY 3 DESC, 1"#;
    let connection = dir.open(&trace);
    let mut expected = connection.prepare(sql).unwrap();
    let expected: Vec<(String, i64, i64, i64, i64)> = expected
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?)))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let rows = rows(&dir, &trace);
    assert!(rows.len() > 5);
    let all: u64 = rows.iter().map(|row| row.total_ns).sum();
    for row in &rows {
        assert!((row.average_ns * row.calls as f64 - row.total_ns as f64).abs() < 1e-3);
        assert!((row.percent - 100.0 * row.total_ns as f64 / all as f64).abs() < 1e-9);
    }
    let signed = u64::cast_signed;
    let actual: Vec<_> = rows
        .into_iter()
        .map(|row| {
            (row.name, signed(row.calls), signed(row.total_ns), signed(row.min_ns), signed(row.max_ns))
        })
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn n_limits_and_says_so() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", &kernels(&[("a", 0, 70), ("b", 0, 20), ("c", 0, 10)]));
    let first = dir.run(&["top", "-n", "1", &trace]);
    assert_eq!(ranking(&first.expect(0).stdout).lines().count(), 2, "{first}");
    first.says(&["2 names", "30.0 %", "-n"]);
    assert_eq!(dir.run(&["top", "--csv", "-n", "1", &trace]).expect(0).stdout.lines().count(), 2);
    let all = dir.run(&["top", "-n", "3", &trace]);
    assert!(all.expect(0).stderr.is_empty(), "{all}");
}

#[test]
fn names_are_harmless_in_every_form() {
    let dir = Dir::new();
    let evil = "\x1b]0;owned\x07\u{9b}2Jx\ny\u{202e}z";
    let trace =
        dir.trace("t.rpd", &kernels(&[(evil, 0, 10), ("=HYPERLINK(\"http://x\")", 0, 9), ("a,\"b\"", 0, 8)]));
    for form in [&[][..], &["--wide"], &["--csv"], &["--json"]] {
        let result = dir.run(&[&["top", &trace], form].concat());
        let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!result.expect(0).stdout.contains(harmful), "{form:?}: {:?}", result.stdout);
    }
    assert_eq!(rows(&dir, &trace)[0].name, evil, "JSON has the name itself");
    assert_eq!(ranking(&dir.run(&["top", "--wide", &trace]).stdout).lines().count(), 4);
    let csv = dir.run(&["top", "--csv", &trace]).stdout;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[1].starts_with("\\x1b]0;owned\\x07\\x9b2Jx\\ny\\u{202e}z,1,10,"), "{csv}");
    assert!(lines[2].starts_with("\"'=HYPERLINK("), "{csv}");
    assert!(lines[3].starts_with("\"a,\"\"b\"\"\",1,8,"), "{csv}");
}

#[test]
fn wide_characters_do_not_break_the_columns() {
    let dir = Dir::new();
    let long = "核".repeat(80) + "end";
    let trace = dir.trace("t.rpd", &kernels(&[(&long, 0, 10)]));
    let table = top(&dir, 100, &[&trace]).expect(0).stdout.clone();
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains('…') && row.ends_with("end"), "{row}");
    let columns: usize = row.chars().map(|c| if c == '核' { 2 } else { 1 }).sum();
    assert!((98..=100).contains(&columns), "{columns}: {row}");
    assert!(dir.run(&["top", "--wide", &trace]).expect(0).stdout.contains(&long));
}

#[test]
fn names_that_differ_look_different() {
    let dir = Dir::new();
    let names = ["float", "double", "half"].map(|kind| {
        format!("void at::native::reduce_kernel<512, 1, ReduceOp<{kind}, func_wrapper>, unsigned int, 4>(int, int, int)")
    });
    let trace = dir.trace("t.rpd", &kernels(&[(&names[0], 0, 10), (&names[1], 0, 9), (&names[2], 0, 8)]));
    for columns in [60, 70, 80, 100, 120] {
        let result = top(&dir, columns, &[&trace]);
        let shown: HashSet<&str> = ranking(&result.expect(0).stdout)
            .lines()
            .skip(1)
            .map(|line| line.split_once("void").unwrap().1)
            .collect();
        assert_eq!(shown.len(), 3, "{columns}: {result}");
    }
}

#[test]
fn time_of_nested_markers_is_counted_once() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'epoch'), (4, 'step'), (5, 'loss');
         INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
             (1, 7, 7, 1000, 2000, 2, 3), (2, 7, 7, 1100, 1400, 2, 4), (3, 7, 7, 1500, 1800, 2, 4), (4, 7, 7, 1200, 1300, 2, 5),
             (5, 7, 8, 1000, 1500, 2, 5);",
    );
    let csv = dir.run(&["top", "--by", "marker", "--csv", &trace]);
    assert_eq!(
        csv.expect(0).stdout,
        "name,calls,total_ns,self_ns,gpu_ns,gpu_own_ns,average_ns,min_ns,max_ns,percent\n\
         loss,2,600,600,0,0,300.000,100,500,40.0000\n\
         step,2,600,500,0,0,300.000,300,300,33.3333\n\
         epoch,1,1000,400,0,0,1000.000,1000,1000,26.6667\n"
    );
    let table = top(&dir, 200, &["--by", "marker", &trace]);
    assert!(table.expect(0).stdout.starts_with("calls     total    self   gpu   own   average"), "{table}");
    let json = dir.run(&["top", "--by", "marker", "--json", &trace]);
    assert!(json.expect(0).stdout.contains("\"self_ns\": 600"), "{json}");
}

#[test]
fn impossible_times_are_in_no_sum() {
    let dir = Dir::new();
    let year = 365 * 86_400_000_000_000;
    let mut ops: Vec<(String, i64, i64)> =
        (0..400).map(|at| (format!("good{}", at % 4), year + at, year + at + 10)).collect();
    let good = dir.trace("good.rpd", &kernels_of(&ops));
    let wrong = [
        ("backwards", 2 * year, year),
        ("negative", -year, year),
        ("unset", -1, year),
        ("endless", year, i64::MAX - 1),
        ("a century", year, 101 * year),
    ];
    ops.extend(wrong.map(|(name, start, end)| (name.to_string(), start, end)));
    let bad = dir.trace("bad.rpd", &kernels_of(&ops));
    let result = dir.run(&["top", "--csv", &bad]);
    assert_eq!(result.expect(0).stdout, dir.run(&["top", "--csv", &good]).expect(0).stdout);
    result.says(&["bad.rpd", "5 GPU operations are left out", "impossible times", "rpd check"]);
    // All of them, and nothing else, are what check finds.
    let checked = dir.run(&["check", "--json", &bad]).stdout;
    let checked: serde_json::Value = serde_json::from_str(&checked).unwrap();
    let of_times = |kind: &&serde_json::Value| {
        kind["kind"].as_str().unwrap().ends_with("time") || kind["kind"] == "negative-duration"
    };
    let found: u64 = checked["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(of_times)
        .map(|f| f["count"].as_u64().unwrap())
        .sum();
    assert_eq!(found, 5, "{checked}");
    // Calls are judged alike.
    let calls = "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipMalloc'), (3, 'hipFree');
        INSERT INTO rocpd_api (id, pid, tid, start, \"end\", apiName_id, args_id) VALUES
            (1, 7, 7, 1000, 2000, 2, 1), (2, 7, 7, 0, 9000, 3, 1), (3, 7, 7, 3000, 2000, 3, 1), (4, 7, 7, 1500, 1600, 2, 1);";
    let result = dir.run(&["top", "--by", "api", "--csv", &dir.trace("calls.rpd", calls)]);
    assert_eq!(
        result.expect(0).stdout.lines().skip(1).collect::<Vec<_>>(),
        ["hipMalloc,2,1000,1000,550.000,100,1000,100.0000"]
    );
    result.says(&["2 calls are left out"]);
}

#[test]
fn what_cannot_be_is_left_out_and_counted() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", &kernels(&[("good", 5, 10), ("backwards", 10, 5)]));
    dir.run(&["top", &trace]).expect(0).says(&["t.rpd", "1 operation is left out", "impossible times"]);
    assert_eq!(rows(&dir, &trace).len(), 1);
    dir.open(&trace).execute_batch("UPDATE rocpd_op SET description_id = 999, opType_id = 998").unwrap();
    let dangling = dir.run(&["top", &trace]);
    assert!(
        dangling.expect(0).stderr.contains("1 operation has a name that is not in the file"),
        "{dangling}"
    );
}

#[test]
fn lost_records_are_repeated() {
    let dir = Dir::new();
    let lost = "INSERT INTO rocpd_metadata (tag, value) VALUES
        ('session::0::lost::buffer_full', '10'), ('session::1::lost::buffer_full', '1'), ('session::1::lost::late', '2')";
    let trace = dir.trace("t.rpd", &(kernels(&[("a", 0, 1)]) + lost));
    for form in ["--wide", "--json", "--csv"] {
        let result = dir.run(&["top", form, &trace]);
        result.expect(0).says(&["t.rpd is incomplete", "13 records", "11 buffer_full", "2 late"]);
    }
}

#[test]
fn a_trace_without_operations_is_no_failure() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let empty = dir.run(&["top", &trace]);
    assert!(empty.expect(0).says(&["no GPU operations"]).stdout.is_empty());
    assert!(rows(&dir, &trace).is_empty());
    assert_eq!(
        dir.run(&["top", "--csv", &trace]).stdout,
        "name,calls,total_ns,average_ns,min_ns,max_ns,percent\n"
    );
}
