//! Traces with dispatches of instrumented kernels: what the verbs make of them.

use rusqlite::types::Value;

use crate::generated::{number, rows};
use crate::harness::{Dir, golden};

/// What kernels ran.
#[derive(Clone, Copy, PartialEq)]
enum Ran {
    /// The program's own.
    Plain,
    /// An instrumented one.
    Instrumented,
    /// A candidate that is not instrumented.
    Replaced,
}

/// A trace of kernels: name, GPU, workgroups, ns, what ran. The text of gemm is there twice, as two sessions have it.
fn probed(dir: &Dir) -> String {
    use Ran::{Instrumented, Plain, Replaced};
    let gemm = "gemm(float*)";
    let plain = [(gemm, 0, 4, 100, Plain); 7];
    let others = [
        (gemm, 0, 4, 900, Instrumented),
        (gemm, 0, 4, 1100, Instrumented),
        (gemm, 1, 4, 200, Plain),
        (gemm, 0, 8, 70, Plain),
        (gemm, 0, 16, 60, Replaced),
        ("saxpy(float*)", 0, 4, 500, Instrumented),
    ];
    let mut sql = rpd_sql::ext::RECORDERS.concat();
    sql += "INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'gemm(float*)'), (4, 'saxpy(float*)'), (5, 'gemm(float*)');
        INSERT INTO ext_candidate VALUES (1, '(the program)', '', 'gfx90a', 9, 'loaded', ''),
            (2, '/cache/gemm.hsaco', 'ab', 'gfx90a', 9, 'loaded', '');";
    for (id, (name, gpu, grid, ns, ran)) in (1..).zip(plain.into_iter().chain(others)) {
        let name = if name == gemm { 3 + id % 2 * 2 } else { 4 };
        let start = 1000 + 10_000 * id;
        sql += &format!(
            "INSERT INTO rocpd_op VALUES ({id}, {gpu}, 1, {id}, '', {start}, {start} + {ns}, {name}, 2);
             INSERT INTO ext_dispatch VALUES ({id}, {name}, {grid}, 1, 1, 64, 1, 1, 0, 0, '', 0);"
        );
        if ran != Plain {
            let candidate = if ran == Instrumented { 1 } else { 2 };
            sql += &format!("INSERT INTO ext_replacement VALUES ({id}, {id}, 0, 0, {candidate});");
        }
        if ran == Instrumented {
            for (number, analyzer) in ["Heatmap", "TimeInterval"].iter().enumerate() {
                let row = 2 * id + number as i64;
                sql += &format!(
                    "INSERT INTO ext_instrumentation VALUES ({row}, {id}, {name}, {gpu}, 1, {id}, '{analyzer}', 8, 800, 0, 0, '');
                     INSERT INTO ext_heatmap VALUES ({row}, {row}, 1048576, 1048576, {id});"
                );
            }
        }
    }
    // One that did not complete.
    sql += "INSERT INTO ext_instrumentation VALUES (99, NULL, 3, 0, 1, 99, 'Heatmap', 8, 800, 0, 1, '')";
    dir.trace("probed.rpd", &sql)
}

const LEFT_OUT: &str = "3 dispatches are left out: they ran instrumented kernels";

#[test]
fn averages_are_those_of_the_programs_own_kernels() {
    let dir = Dir::new();
    let trace = probed(&dir);
    let calls = |options: &[&str]| -> Vec<(String, u64, u64)> {
        let answer = dir.run(&[&["top", "--json", &trace], options].concat());
        let answer: serde_json::Value = serde_json::from_str(&answer.expect(0).stdout).unwrap();
        let row = |row: &serde_json::Value| {
            let number = |field: &str| row[field].as_u64().unwrap_or(0);
            (row["name"].as_str().unwrap().to_string(), number("calls"), number("max_ns"))
        };
        answer.as_array().unwrap().iter().map(row).collect()
    };
    for by in [&[][..], &["--by", "kernel"]] {
        assert_eq!(calls(by), [("gemm(float*)".to_string(), 10, 200)]);
        let all = [&["--instrumented"], by].concat();
        assert_eq!(
            calls(&all),
            [("gemm(float*)".to_string(), 12, 1100), ("saxpy(float*)".to_string(), 1, 500)]
        );
        for form in ["--wide", "--json", "--csv"] {
            let said = dir.run(&[&["top", form, &trace], by].concat()).expect(0).stderr.clone();
            assert!(said.contains("probed.rpd") && said.contains(LEFT_OUT), "{said}");
        }
        assert!(!dir.run(&[&["top", &trace], &all[..]].concat()).stderr.contains("left out"));
    }
    for by in ["api", "copy", "marker"] {
        assert!(!dir.run(&["top", "--by", by, &trace]).expect(0).stderr.contains("instrumented"));
    }
    // Dispatches that ran a candidate are counted without them.
    let answer = dir.run(&["top", &trace]);
    golden("top-instrumented.txt", &format!("{}{}", answer.expect(0).stdout, answer.stderr));
    dir.open(&trace).execute_batch("DELETE FROM rocpd_op WHERE id NOT IN (8, 9, 13)").unwrap();
    let answer = dir.run(&["top", &trace]);
    assert!(answer.expect(0).says(&[LEFT_OUT, "--instrumented"]).stdout.is_empty());
}

#[test]
fn info_tells_them_from_replaced_kernels() {
    let dir = Dir::new();
    let trace = probed(&dir);
    let answer = dir.run(&["info", &trace]).expect(0).stdout.clone();
    for line in [
        "\ncode    1 dispatch of 1 kernel ran another in its place, of 1 candidate: rpd replacements\n",
        "\nprobe   3 dispatches of 2 kernels ran instrumented; rpd top leaves them out\n",
    ] {
        assert!(answer.contains(line), "{answer}");
    }
    let answer: serde_json::Value =
        serde_json::from_str(&dir.run(&["info", "--json", &trace]).stdout).unwrap();
    assert_eq!(answer["instrumented"], serde_json::json!({"dispatches": 3, "kernels": 2}));
    assert_eq!(answer["replaced"], serde_json::json!({"dispatches": 1, "kernels": 1, "candidates": 1}));
}

/// What an instrumented kernel takes says nothing of which build is faster.
#[test]
fn they_are_no_builds_to_compare() {
    let dir = Dir::new();
    let trace = probed(&dir);
    let answer = dir.run(&["replacements", &trace]);
    assert!(answer.expect(0).stderr.contains(LEFT_OUT), "{answer}");
    golden("replacements-instrumented.txt", &answer.stdout);
    let json: serde_json::Value =
        serde_json::from_str(&dir.run(&["replacements", "--json", &trace]).stdout).unwrap();
    assert_eq!((&json["instrumented"], json["launches"].as_array().unwrap().len()), (&3.into(), 4));
    // Of two runs neither has them.
    std::fs::copy(dir.path(&trace), dir.path("other.rpd")).unwrap();
    let answer = dir.run(&["replacements", &trace, "other.rpd"]);
    assert!(answer.expect(0).stderr.contains("6 dispatches are left out"), "{answer}");
    assert!(!answer.stdout.contains("saxpy") && !answer.stdout.contains("1.100 us"), "{answer}");
    // A program that was killed before its counters were read: nothing but the replacement says so.
    dir.open(&trace).execute_batch("DELETE FROM ext_instrumentation WHERE op_id = 8").unwrap();
    assert!(dir.run(&["replacements", &trace]).expect(0).stderr.contains(LEFT_OUT));
    assert!(dir.run(&["top", &trace]).expect(0).stderr.contains(LEFT_OUT));
    // Where nothing else was replaced.
    dir.open(&trace).execute_batch("DELETE FROM ext_replacement WHERE candidate_id = 2").unwrap();
    let answer = dir.run(&["replacements", &trace]);
    let lines: Vec<&str> = answer.expect(0).stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{answer}");
    assert!(
        lines[0].contains(LEFT_OUT) && lines[1].ends_with("no kernel was replaced in any other dispatch")
    );
}

/// What the views say of instrumented kernels.
const VIEWS: [&str; 2] = [
    "SELECT * FROM instrumentationCost",
    "SELECT o.start, s.string, accesses FROM ext_heatmap h JOIN ext_instrumentation i ON i.id = instrumentation_id
         JOIN rocpd_string s ON s.id = kernelName_id JOIN rocpd_op o ON o.id = op_id",
];

#[test]
fn the_cost_is_that_beside_plain_dispatches_of_the_same_launch() {
    let dir = Dir::new();
    let trace = probed(&dir);
    let file = dir.open(&trace);
    let mut costs = file.prepare(VIEWS[0]).unwrap();
    let costs: Vec<Vec<Value>> = costs
        .query_map([], |row| (0..13).map(|at| row.get(at)).collect())
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let cost = |name: &str, counts: [i64; 2], times: [Value; 3]| {
        let mut row = vec![Value::Text(name.to_string())];
        row.extend([0, 4, 1, 1, 64, 1, 1].into_iter().chain(counts).map(Value::Integer));
        row.extend(times);
        row
    };
    assert_eq!(
        costs,
        [
            cost("gemm(float*)", [2, 7], [1000.0, 100.0, 10.0].map(Value::Real)),
            cost("saxpy(float*)", [1, 0], [Value::Real(500.0), Value::Null, Value::Null]),
        ]
    );
}

#[test]
fn texts_that_are_there_once_change_no_answer() {
    let dir = Dir::new();
    let trace = probed(&dir);
    let answers = || VIEWS.map(|view| rows(&dir.open(&trace), view));
    let before = answers();
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    assert_eq!(
        number(&dir.open(&trace), "SELECT count(*) FROM rocpd_string WHERE string = 'gemm(float*)'"),
        1
    );
    assert_eq!(answers(), before);
}

#[test]
fn findings_that_lead_nowhere() {
    let dir = Dir::new();
    let trace = probed(&dir);
    let damage = "UPDATE ext_instrumentation SET op_id = 9999 WHERE id = 16;
        UPDATE ext_instrumentation SET kernelName_id = 777 WHERE id = 17;
        UPDATE ext_heatmap SET instrumentation_id = 5555 WHERE id = 18;
        UPDATE ext_heatmap SET accesses = 'many' WHERE id = 19;
        INSERT INTO ext_memoryaccess VALUES (1, 5555, '', 0, 0, 'read', 'global', 4, 1, 1, 1, 0);
        INSERT INTO ext_timeinterval VALUES (1, 5555, 1, 1, 1, 1);
        INSERT INTO ext_handlervalue VALUES (1, 5555, 'stride', 4.0);
        INSERT INTO ext_basicblock VALUES (1, 5555, 0, -1, '', 0, 1, 1, 1, 1, 1, 1, 1, 1, 0.0);";
    let findings = |list: &str, answer: &serde_json::Value| -> Vec<String> {
        let finding = |finding: &serde_json::Value| {
            let number = finding["count"].as_u64().or(finding["rows"].as_u64()).unwrap();
            let done = finding["done"].as_str().map(|done| format!(" {done}")).unwrap_or_default();
            format!(
                "{} {} {number}{done}",
                finding["kind"].as_str().unwrap(),
                finding["place"].as_str().unwrap()
            )
        };
        answer[list].as_array().unwrap().iter().map(finding).filter(|found| found.contains("ext_")).collect()
    };
    let answer = |arguments: &[&str]| -> serde_json::Value {
        serde_json::from_str(&dir.run(&[&["check", "--json"], arguments].concat()).stdout).unwrap()
    };
    assert!(findings("findings", &answer(&[&trace])).is_empty());
    dir.open(&trace).execute_batch(damage).unwrap();
    let found = findings("findings", &answer(&[&trace]));
    for expected in [
        "dangling-id ext_instrumentation.op_id 1",
        "dangling-id ext_instrumentation.kernelName_id 1",
        "dangling-id ext_heatmap.instrumentation_id 1",
        "dangling-id ext_memoryaccess.instrumentation_id 1",
        "dangling-id ext_timeinterval.instrumentation_id 1",
        "dangling-id ext_basicblock.instrumentation_id 1",
        "dangling-id ext_handlervalue.instrumentation_id 1",
        "not-a-number ext_heatmap.accesses 1",
    ] {
        assert!(found.iter().any(|found| found == expected), "{expected}: {found:?}");
    }
    assert_eq!(found.len(), 8, "{found:?}");
    let repaired = findings("repairs", &answer(&["--repair", &trace]));
    for expected in [
        "dangling-id ext_instrumentation.op_id 1 removed",
        "dangling-id ext_instrumentation.kernelName_id 1 set to the empty text",
        // The one, and that of the row that went.
        "dangling-id ext_heatmap.instrumentation_id 2 removed",
    ] {
        assert!(repaired.iter().any(|repaired| repaired == expected), "{expected}: {repaired:?}");
    }
    let file = dir.open(&trace);
    assert_eq!(number(&file, "SELECT count(*) FROM ext_instrumentation WHERE op_id IS NULL"), 1);
    assert_eq!(number(&file, "SELECT count(*) FROM ext_heatmap"), 4);
}
