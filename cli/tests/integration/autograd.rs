//! PyTorch's operators: the answer for a real trace, and what happens to the arguments of markers.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::harness::Dir;

/// Every row of a query, as text.
fn rows(trace: &Connection, query: &str) -> Vec<Vec<String>> {
    let mut select = trace.prepare(query).unwrap();
    let columns = select.column_count();
    let rows = select
        .query_map([], |row| {
            (0..columns).map(|column| row.get::<_, Value>(column).map(|value| format!("{value:?}"))).collect()
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

const OPERATORS: &str = "SELECT * FROM autograd ORDER BY id";
const KERNELS: &str = "SELECT * FROM autogradKernel ORDER BY autogradName, kernelName, sizes";
const CALLS: &str = "SELECT * FROM api ORDER BY id";

/// A trace with one marker per text, of ids 1, 2, ...
fn markers(texts: &[&str]) -> String {
    let rows = texts.iter().enumerate().map(|(at, text)| {
        let (id, text) = (at + 1, text.replace('\'', "''"));
        format!(
            "INSERT INTO rocpd_string VALUES ({0}, '{text}');
             INSERT INTO rocpd_api VALUES ({id}, 7, 8, {id}0, {id}5, 2, {0});",
            id + 10
        )
    });
    "INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker');".to_string() + &rows.collect::<String>()
}

#[test]
fn a_real_trace_has_the_operators_and_kernels_that_the_original_found() {
    let dir = Dir::new();
    let (ours, theirs) = (dir.unpacked("mytrace_raw.rpd"), dir.unpacked("mytrace_as_shipped.rpd"));
    dir.run(&["autograd", &ours])
        .expect(0)
        .says(&["11816 rows in ext_autogradapi", "86387 rows in ext_callstack"]);
    let (ours, theirs) = (dir.open(&ours), dir.open(&theirs));
    for query in
        [OPERATORS, KERNELS, CALLS, "SELECT typeof(seq), typeof(op_id), typeof(sizes) FROM ext_autogradapi"]
    {
        let (ours, theirs) = (rows(&ours, query), rows(&theirs, query));
        assert!(!ours.is_empty());
        assert!(ours == theirs, "{query}: {} and {} rows", ours.len(), theirs.len());
    }
    assert_eq!(rows(&ours, "SELECT string FROM rocpd_string").len(), 129, "unused texts are gone");
}

#[test]
fn kernels_of_several_sessions_are_one_row_by_their_texts() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "3000", "--processes", "2", "--edge"]);
    dir.run(&["autograd", &trace]).expect(0);
    let before = rows(&dir.open(&trace), KERNELS);
    let twice = "SELECT count(*) FROM (SELECT 1 FROM autogradKernel GROUP BY autogradName, kernelName, sizes HAVING count(*) > 1)";
    assert_eq!(rows(&dir.open(&trace), twice), [["Integer(0)"]]);
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    assert!(!before.is_empty() && before == rows(&dir.open(&trace), KERNELS));
}

#[test]
fn every_argument_comes_back_with_redo() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let before = rows(&dir.open(&trace), CALLS);
    dir.run(&["autograd", &trace]).expect(0);
    let (operators, kernels) = (rows(&dir.open(&trace), OPERATORS), rows(&dir.open(&trace), KERNELS));
    assert!(rows(&dir.open(&trace), CALLS) != before);

    dir.run(&["autograd", "--redo", &trace]).expect(0);
    assert!(rows(&dir.open(&trace), OPERATORS) == operators && rows(&dir.open(&trace), KERNELS) == kernels);

    dir.run(&["autograd", "--redo", "--keep-args", &trace]).expect(0);
    assert!(rows(&dir.open(&trace), CALLS) == before, "as they were recorded");
    assert!(rows(&dir.open(&trace), OPERATORS) == operators && rows(&dir.open(&trace), KERNELS) == kernels);

    // The original's own result, put back.
    let shipped = dir.unpacked("mytrace_as_shipped.rpd");
    dir.run(&["autograd", "--redo", "--keep-args", &shipped]).expect(0);
    assert!(rows(&dir.open(&shipped), CALLS) == before);
}

#[test]
fn fields_are_optional_and_names_may_hold_anything() {
    let dir = Dir::new();
    let texts = [
        "aten::mm, seq = 1, op_id = 2, sizes = [[1, 2], []], input_op_ids = [(1,0), (2,0)]",
        "aten::mm, sizes = [[3]]",
        "aten::mm, seq = 5",
        "f(a, b), 'x', input_op_ids = []",
        "DROP TABLE rocpd_api; --\n\"q\", op_id = 9",
    ];
    let trace = dir.trace("fields.rpd", &markers(&texts));
    dir.run(&["autograd", "--skip-callstacks", &trace]).expect(0).says(&["5 rows in ext_autogradapi"]);
    let text = |text: &str| Value::Text(text.into());
    let mut expected = Vec::new();
    for (id, name, seq, op_id, sizes, ids) in [
        (1, "aten::mm", Value::Integer(1), Value::Integer(2), "[[1, 2], []]", "[(1,0), (2,0)]"),
        (2, "aten::mm", text(""), text(""), "[[3]]", ""),
        (3, "aten::mm", Value::Integer(5), text(""), "", ""),
        (4, "f(a, b), 'x'", text(""), text(""), "", "[]"),
        (5, "DROP TABLE rocpd_api; --\n\"q\"", text(""), Value::Integer(9), "", ""),
    ] {
        let row = [Value::Integer(id), text(name), seq, op_id, text(sizes), text(ids)];
        expected.push(row.iter().map(|value| format!("{value:?}")).collect::<Vec<_>>());
    }
    let connection = dir.open(&trace);
    let found = rows(
        &connection,
        "SELECT id, autogradName, seq, op_id, sizes, input_op_ids FROM autograd ORDER BY id",
    );
    assert_eq!(found, expected);
    let names: Vec<Vec<String>> = expected.iter().map(|row| vec![row[1].clone()]).collect();
    assert_eq!(rows(&connection, "SELECT args FROM api ORDER BY id"), names);
    assert!(rows(&connection, "SELECT name FROM sqlite_master WHERE name LIKE '%callstack%'").is_empty());
    drop(connection);
    dir.run(&["check", &trace]).expect(0);
    dir.run(&["autograd", "--redo", "--skip-callstacks", "--keep-args", &trace]).expect(0);
    let args: Vec<Vec<String>> = texts.iter().map(|args| vec![format!("{:?}", text(args))]).collect();
    assert_eq!(rows(&dir.open(&trace), "SELECT args FROM api ORDER BY id"), args);
}

#[test]
fn look_alikes_are_counted_named_and_left_alone() {
    let dir = Dir::new();
    let texts = [
        "it's, seq = not a number, op_id = x",
        "x, op_id = 007",
        "forward",
        "aten::mm, op_id = 7",
        "y, sizes = [\x1b[2J",
    ];
    let trace = dir.trace("alike.rpd", &markers(&texts));
    let ran = dir.run(&["autograd", &trace]);
    ran.expect(0);
    assert!(ran.stderr.contains("3 look-alikes") && ran.stderr.contains("it's, seq = not a number"), "{ran}");
    assert!(!ran.stderr.contains('\x1b'), "{ran}");
    let args = rows(&dir.open(&trace), "SELECT args FROM api ORDER BY id");
    let expected = [texts[0], texts[1], texts[2], "aten::mm", texts[4]]
        .map(|args| vec![format!("{:?}", Value::Text(args.into()))]);
    assert_eq!(args, expected);
    let json: serde_json::Value =
        serde_json::from_str(&dir.run(&["autograd", "--redo", "--json", &trace]).expect(0).stdout).unwrap();
    assert_eq!(json["remarks"][0]["count"], 3, "{json}");
}

#[test]
fn only_markers_are_taken_and_texts_in_use_stay() {
    let dir = Dir::new();
    let shared = "aten::mm, op_id = 7";
    let sql = markers(&[shared, "aten::add, op_id = 8", "aten::sub, op_id = 9"])
        + "INSERT INTO rocpd_string VALUES (3, 'other');
           INSERT INTO rocpd_api VALUES (100, 7, 8, 1, 2, 3, 11);
           INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 5, 6, 12, 1);
           CREATE TABLE mine (name integer REFERENCES rocpd_string (id));
           INSERT INTO mine VALUES (13);";
    let trace = dir.trace("shared.rpd", &sql);
    dir.run(&["autograd", &trace]).expect(0).says(&["3 rows in ext_autogradapi"]);
    let connection = dir.open(&trace);
    let text = |query: &str| rows(&connection, query)[0][0].clone();
    assert!(text("SELECT args FROM api WHERE id = 100").contains(shared));
    assert!(text("SELECT description FROM op").contains("aten::add, op_id = 8"));
    assert!(text("SELECT string FROM rocpd_string, mine WHERE id = name").contains("aten::sub, op_id = 9"));
}

#[test]
fn schemas_2_and_3_give_the_same_answers() {
    let dir = Dir::new();
    let answers = ["2", "3"].map(|schema| {
        let trace = dir.generated(&format!("{schema}.rpd"), &["--schema", schema, "--events", "6000", "--processes", "2", "--edge"]);
        dir.run(&["autograd", &trace]).expect(0);
        let connection = dir.open(&trace);
        [
            OPERATORS,
            KERNELS,
            "SELECT parent_id, child_id, depth, cpu_time, gpu_time FROM ext_callstack ORDER BY child_id, depth",
            "SELECT * FROM callStack_inclusive_name ORDER BY 1",
            "SELECT * FROM callStack_exclusive_name ORDER BY 1",
        ]
        .map(|query| rows(&connection, query))
    });
    assert!(answers[0].iter().all(|rows| !rows.is_empty()));
    assert!(answers[0] == answers[1]);
    dir.run(&["autograd", "--redo", "--keep-args", "3.rpd"]).expect(0);
    let untouched =
        dir.generated("same.rpd", &["--schema", "3", "--events", "6000", "--processes", "2", "--edge"]);
    let calls =
        "SELECT A.id, T.string FROM rocpd_api A JOIN rocpd_ustring T ON T.id = A.args_id ORDER BY A.id";
    assert!(rows(&dir.open("3.rpd"), calls) == rows(&dir.open(&untouched), calls));
}

#[test]
fn the_kernel_views_are_there_whichever_pass_comes_second() {
    let dir = Dir::new();
    let (one, other) = (dir.unpacked("mytrace_raw.rpd"), "other.rpd");
    std::fs::copy(dir.path(&one), dir.path(other)).unwrap();
    dir.run(&["autograd", &one]).expect(0);
    dir.run(&["autograd", "--skip-callstacks", other]).expect(0);
    dir.run(&["callstack", other]).expect(0);
    assert!(rows(&dir.open(&one), KERNELS) == rows(&dir.open(other), KERNELS));
}

#[test]
fn a_trace_without_operators_says_how_to_get_them() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let made = dir.run(&["autograd", &trace]);
    assert!(made.expect(0).stderr.contains("emit_nvtx(record_shapes=True)"), "{made}");
}
