//! `rpd sql`: what a query may do, and how its answer is written.

use std::fs;

use serde_json::Value;

use crate::generated::{drop_views, generated, to_schema_3};
use crate::harness::{Dir, RPD, Ran, golden, ran};

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.expect(0).stdout).unwrap_or_else(|error| panic!("{error}: {ran}"))
}

/// A query that never ends.
const ENDLESS: &str =
    "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";

#[test]
fn ready_made_queries_are_listed_and_run_on_files_of_other_tools() {
    let dir = Dir::new();
    let real = dir.fixture("matmul_result.rpd");
    let shipped = dir.unpacked("mytrace_as_shipped.rpd");
    let list = dir.run(&["sql", "--list"]);
    golden("sql-list.txt", &list.expect(0).stdout);
    assert_eq!(list.stdout.lines().count(), rpd_sql::query::every().count() + 1);
    let listed = json(&dir.run(&["sql", "--list", "--json"]));
    for (query, listed) in rpd_sql::query::ALL.iter().zip(listed.as_array().unwrap()) {
        assert_eq!(listed["statement"].as_str().unwrap(), query.text);
        for trace in [&real, &shipped] {
            let connection = dir.open(trace);
            connection.execute("ATTACH ?1 AS before", [dir.path(&real).to_str()]).unwrap();
            let mut statement = connection.prepare(query.text).unwrap();
            let columns: Vec<String> = statement.column_names().map(ToString::to_string).collect();
            let mut rows = statement.query([]).unwrap();
            let answer = json(&dir.run(&["sql", "--json", "--before", &real, trace, query.name]));
            for answered in answer.as_array().unwrap() {
                let row = rows.next().unwrap().unwrap();
                for (at, column) in columns.iter().enumerate() {
                    let expected: rusqlite::types::Value = row.get(at).unwrap();
                    let expected = match expected {
                        rusqlite::types::Value::Integer(number) => number.into(),
                        rusqlite::types::Value::Real(number) => number.into(),
                        rusqlite::types::Value::Text(text) => text.into(),
                        _ => Value::Null,
                    };
                    // The test's own reader of JSON is right to 16 digits.
                    let is_near = |one: f64, other: f64| (one - other).abs() <= other.abs() * 1e-14;
                    let are_near = answered[column].as_f64().zip(expected.as_f64());
                    let is_equal =
                        answered[column] == expected || are_near.is_some_and(|(a, b)| is_near(a, b));
                    assert!(is_equal, "{} {column}: {answered} {expected}", query.name);
                }
            }
            assert!(rows.next().unwrap().is_none(), "{}", query.name);
        }
    }
}

#[test]
fn answers_about_a_part_are_those_of_a_trace_that_has_no_more() {
    let dir = Dir::new();
    for schema in [2, 3] {
        let trace = generated(&dir, &format!("whole{schema}.rpd"), 5, 250);
        let part = format!("part{schema}.rpd");
        if schema == 3 {
            to_schema_3(&dir, &trace);
        }
        fs::copy(dir.path(&trace), dir.path(&part)).unwrap();
        let connection = dir.open(&part);
        connection
            .execute_batch(
                "DELETE FROM rocpd_api WHERE id >> 32 <> 2;
                 DELETE FROM rocpd_op WHERE id NOT IN (SELECT op_id FROM rocpd_api_ops WHERE api_id IN (SELECT id FROM rocpd_api));
                 DELETE FROM rocpd_api_ops WHERE api_id NOT IN (SELECT id FROM rocpd_api);
                 DELETE FROM rocpd_kernelapi WHERE api_ptr_id NOT IN (SELECT id FROM rocpd_api);
                 DELETE FROM rocpd_copyapi WHERE api_ptr_id NOT IN (SELECT id FROM rocpd_api)",
            )
            .unwrap();
        let mut own = vec!["select * from api", "select * from rocpd_api_ops"];
        if schema == 2 {
            let dispatches = "DELETE FROM ext_dispatch WHERE op_id NOT IN (SELECT id FROM rocpd_op)";
            connection.execute(dispatches, []).unwrap();
            own.push("select * from dispatch");
        }
        let lines = |arguments: &[&str]| {
            let ran = dir.run(&[&["sql", "--csv"], arguments].concat());
            let mut lines: Vec<String> = ran.expect(0).stdout.lines().map(ToString::to_string).collect();
            lines.sort_unstable();
            lines
        };
        let ready = rpd_sql::query::ALL.iter().map(|query| query.name).filter(|name| *name != "topDiff");
        let mut with_rows = 0;
        for query in ready.chain(own) {
            let of_part = lines(&[&trace, query, "--session", "2"]);
            assert_eq!(of_part, lines(&[&part, query]), "schema {schema}: {query}");
            with_rows += usize::from(of_part.len() > 1);
        }
        assert!(with_rows > 8, "schema {schema}");
        let of_gpu = lines(&[&trace, "select distinct gpuId from op", "--gpu", "1"]);
        assert_eq!(of_gpu, ["1", "gpuId"]);
        dir.run(&["sql", &trace, "drop view temp.op", "--gpu", "1"]).expect(1).says(&["change or create"]);
    }
    dir.run(&["sql", "whole2.rpd", "topDiff", "--before", "part2.rpd", "--gpu", "1"])
        .expect(1)
        .says(&["of two traces no part can be named"]);
}

#[test]
fn what_stands_behind_a_view_of_a_file_is_not_run() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.open(&trace)
        .execute_batch(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_master SET sql = sql || '; ATTACH ''x.db'' AS x; CREATE TABLE x.t (a)' WHERE type = 'view' AND name = 'busy'",
        )
        .unwrap();
    let ran = dir.run(&["sql", "--gpu", "2", &trace, "select count(*) from rocpd_op"]);
    assert!(ran.stderr.contains(&trace) && ran.stderr.lines().count() == 1, "{ran}");
    ran.expect(1);
    assert_eq!(dir.names(), [trace]);
}

#[test]
fn answers_fit_terminals_of_all_widths() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for columns in [60, 100, 200] {
        for query in ["busy", "longest_gaps", "top_kernels"] {
            let mut command = dir.rpd(&["sql", &trace, query]);
            let result = ran(command.env("COLUMNS", columns.to_string()));
            golden(&format!("sql-{query}-{columns}.txt"), &result.expect(0).stdout);
            for line in result.stdout.lines() {
                assert!(line.chars().count() <= columns, "{columns}: {line}");
            }
        }
    }
    let csv = dir.run(&["sql", "--csv", &trace, "top_kernels"]);
    golden("sql-top_kernels.csv", &csv.expect(0).stdout);
}

#[test]
fn a_query_can_only_read() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let other = dir.trace("other.rpd", "");
    let before = fs::read(dir.path(&trace)).unwrap();
    for (statement, words) in [
        ("DELETE FROM rocpd_op", "change or create"),
        ("UPDATE rocpd_op SET start = 1", "change or create"),
        ("INSERT INTO rocpd_string (string) VALUES ('x')", "change or create"),
        ("CREATE TABLE x (a)", "change or create"),
        ("CREATE TEMP TABLE x (a)", "change or create"),
        ("CREATE TEMP VIEW x AS SELECT 1", "change or create"),
        ("DROP VIEW stackframe", "change or create"),
        ("ALTER TABLE rocpd_op ADD COLUMN x", "change or create"),
        ("REINDEX rocpd_string", "change or create"),
        ("ANALYZE rocpd_op", "change or create"),
        ("VACUUM INTO 'copy.rpd'", "change or create"),
        ("ATTACH 'copy.rpd' AS copy", "attach another file"),
        ("DETACH before", "detach"),
        ("PRAGMA journal_mode = wal", "pragma journal_mode"),
        ("PRAGMA writable_schema = ON", "pragma writable_schema"),
        ("PRAGMA user_version = 7", "pragma user_version"),
        ("PRAGMA incremental_vacuum(9)", "pragma incremental_vacuum"),
        ("SELECT * FROM pragma_wal_checkpoint", "no table pragma_wal_checkpoint"),
        ("PRAGMA wal_checkpoint", "pragma wal_checkpoint"),
        ("BEGIN IMMEDIATE", "transaction"),
        ("SAVEPOINT x", "transaction"),
        ("SELECT load_extension('./x.so')", "load an extension"),
        ("SELECT writefile('copy.rpd', 'x')", "no such function"),
        ("SELECT 1; DROP TABLE rocpd_op", "change or create"),
    ] {
        dir.run(&["sql", "--before", &other, &trace, statement]).expect(1).says(&[words]);
    }
    dir.run(&["sql", &trace, "SELECT 1; SELECT 2"]).expect(1).says(&["more than one statement"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), [trace.as_str(), &other]);
    for statement in [
        "PRAGMA table_info(op)",
        "PRAGMA user_version",
        "SELECT * FROM pragma_index_list('rocpd_string')",
        "EXPLAIN QUERY PLAN SELECT * FROM op",
        "-- a comment first\nSELECT name FROM sqlite_master",
    ] {
        assert!(!dir.run(&["sql", &trace, statement]).expect(0).stdout.is_empty(), "{statement}");
    }
}

#[test]
fn a_query_that_takes_too_long_ends_and_writes_nothing() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    // Rows come at once, the end never.
    let rows = ENDLESS.replace("count(*)", "x");
    for (statement, form) in [(ENDLESS, "--csv"), (&rows, "--json"), (&rows, "--csv")] {
        let ended = dir.run(&["sql", form, "--timeout", "300ms", &trace, statement]);
        ended.expect(1).says(&["ended after 0.3 s", "--timeout"]);
        assert!(ended.stdout.is_empty(), "{form}");
    }
    assert_eq!(dir.run(&["sql", "--timeout", "0", &trace, "SELECT 7 AS x"]).expect(0).stdout, "x\n7\n");
    // What is enough ends it as well.
    let two = dir.run(&["sql", "--csv", "-n", "2", &trace, &rows]);
    assert_eq!(two.expect(0).stdout, "x\n1\n2\n");
    let thousand = dir.run(&["sql", &trace, &rows]);
    assert_eq!(thousand.expect(0).says(&["first 1000 rows", "-n N"]).stdout.lines().count(), 1001);
}

#[test]
fn errors_say_what_to_do() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let said = |status, query: &str, words: &[&str]| {
        dir.run(&["sql", &trace, query]).expect(status).says(words);
    };
    said(2, "bussy", &["no query bussy", "did you mean busy?", "rpd sql --list"]);
    said(2, "kernel", &["kernel is a table", "'select * from kernel'"]);
    said(
        1,
        "SELECT * FROM rocpd_ops",
        &["no table rocpd_ops", "did you mean rocpd_op?", "it has: api, busy"],
    );
    said(1, "SELECT strat FROM op", &["no column strat", "did you mean start?", "table_info"]);
    // Without such a column, what is in double quotes is no text either.
    said(1, "SELECT \"strat\" FROM op", &["no column strat", "did you mean start?", "single quotes"]);
    said(1, "SELECT x\x1b[2J FROM op", &["cannot be run"]);
    said(1, "SELECT FROM", &["cannot be run: near \"FROM\": syntax error"]);
    said(1, "SELECT * FROM op WHERE id = ?1", &["parameter"]);
    said(1, " -- nothing", &["no result"]);
    said(1, "topDiff", &["before.rocpd_op", "--before FILE"]);
    said(1, "SELECT * FROM dispatch", &["no table dispatch"]);
    for arguments in [
        &["sql"][..],
        &["sql", &trace],
        &["sql", "--list", &trace, "busy"],
        &["sql", "--timeout", "soon", "f", "x"],
    ] {
        dir.run(arguments).expect(2);
    }
    dir.run(&["sql", "missing.rpd", "busy"]).expect(1).says(&["missing.rpd", "no such file"]);
    dir.run(&["sql", &trace, "topDiff", "--before", "missing.rpd"]).expect(1).says(&["missing.rpd"]);
}

#[test]
fn texts_and_titles_are_harmless_in_every_form() {
    let dir = Dir::new();
    let evil = "\x1b]0;owned\x07\u{9b}2Jx\ny\u{202e}z";
    let trace = dir.trace("t.rpd", "");
    dir.open(&trace)
        .execute(
            "INSERT INTO rocpd_string (id, string) VALUES (9, ?1), (10, '=HYPERLINK(1)'), (11, ?2)",
            [evil, &"long".repeat(200_000)],
        )
        .unwrap();
    let query = format!(
        "SELECT string AS \"{evil}\", CAST(string AS blob) AS b FROM rocpd_string WHERE id IN (9, 10)"
    );
    for form in [&[][..], &["--csv"], &["--json"]] {
        for columns in ["10", "60", "200"] {
            let result = ran(dir.rpd(&[&["sql", &trace, &query], form].concat()).env("COLUMNS", columns));
            let harmful = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!result.expect(0).stdout.contains(harmful), "{form:?}: {:?}", result.stdout);
        }
    }
    let rows = json(&dir.run(&["sql", "--json", &trace, &query]));
    assert_eq!(rows[0][evil], evil, "JSON has the text itself");
    let csv = dir.run(&["sql", "--csv", &trace, "SELECT string, -5, -0.25 FROM rocpd_string WHERE id = 10"]);
    assert!(csv.expect(0).stdout.ends_with("\n'=HYPERLINK(1),-5,-0.25\n"), "{csv}");
    let long = dir.run(&["sql", &trace, "SELECT string FROM rocpd_string WHERE id = 11"]);
    assert!(long.expect(0).stdout.len() < 20_000);
    let whole = dir.run(&["sql", "--csv", &trace, "SELECT string FROM rocpd_string WHERE id = 11"]);
    assert_eq!(whole.expect(0).stdout.len(), "string\n".len() + 800_000 + 1);
}

#[test]
fn values_of_every_type_and_equal_titles() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let query =
        "SELECT 1 AS a, 0.1 AS a, NULL AS b, x'00ff' AS c, 9e999 AS d, 9007199254740993 AS e, '' AS f";
    let answer = dir.run(&["sql", "--json", &trace, query]);
    assert_eq!(
        answer.expect(0).stdout,
        "[\n{\"a\": 1, \"a:1\": 0.1, \"b\": null, \"c\": \"x'00ff'\", \"d\": \"Inf\", \"e\": 9007199254740993, \"f\": \"\"}\n]\n"
    );
    let csv = dir.run(&["sql", "--csv", &trace, query]);
    assert_eq!(csv.expect(0).stdout, "a,a:1,b,c,d,e,f\n1,0.1,,x'00ff',Inf,9007199254740993,\n");
    let none = "SELECT 1 AS a WHERE 0";
    assert_eq!(dir.run(&["sql", "--json", &trace, none]).expect(0).stdout, "[]\n");
    assert_eq!(dir.run(&["sql", "--csv", &trace, none]).expect(0).stdout, "a\n");
    dir.run(&["sql", &trace, none]).expect(0).says(&["no rows"]);
}

#[test]
fn views_that_a_file_lacks_are_there_for_the_query_only() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 3, 60);
    let views = ["api", "op", "busy", "top", "kernel", "copy", "copyop", "stackframe", "dispatch"];
    let counts = |trace: &str| {
        views.map(|view| {
            let count = format!("SELECT count(*) FROM \"{view}\"");
            dir.run(&["sql", "--csv", trace, &count]).expect(0).stdout.clone()
        })
    };
    let expected = counts(&trace);
    let drop: String = views.iter().map(|view| format!("DROP VIEW \"{view}\";")).collect();
    dir.open(&trace).execute_batch(&drop).unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    assert_eq!(counts(&trace), expected);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    // A view of the file's own stays what it is, under the name of one of ours too.
    dir.open(&trace).execute_batch("CREATE VIEW busy AS SELECT 'own' AS x").unwrap();
    assert_eq!(dir.run(&["sql", "--csv", &trace, "SELECT * FROM busy"]).expect(0).stdout, "x\nown\n");
}

#[test]
fn markers_of_schema_3_have_their_texts() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 5, 80);
    let answers = |trace: &str| {
        ["markers", "topEx"].map(|query| dir.run(&["sql", "--csv", trace, query]).expect(0).stdout.clone())
    };
    let expected = answers(&trace);
    assert!(expected.iter().all(|answer| answer.contains("argument = ")), "{expected:?}");
    to_schema_3(&dir, &trace);
    // Of the texts that schema 3 has elsewhere nothing is left where schema 2 has them.
    dir.open(&trace)
        .execute_batch("UPDATE rocpd_string SET string = 'wrong' WHERE string LIKE 'argument = %'")
        .unwrap();
    assert_eq!(answers(&trace), expected);
    let api = dir.run(&["sql", "--csv", &trace, "SELECT count(*) FROM api WHERE args LIKE 'argument%'"]);
    assert_ne!(api.expect(0).stdout, "count(*)\n0\n");
}

#[test]
fn columns_that_a_file_lacks_are_no_texts_and_no_tips() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    drop_views(&dir, &trace);
    dir.open(&trace)
        .execute_batch("ALTER TABLE rocpd_op RENAME \"end\" TO e; ALTER TABLE rocpd_op RENAME gpuId TO g")
        .unwrap();
    dir.run(&["sql", &trace, "SELECT sum(\"end\") FROM rocpd_op"]).expect(1).says(&["no column end"]);
    let other = dir.run(&["sql", &trace, "SELECT gpuId FROM rocpd_op"]);
    assert!(!other.expect(1).says(&["no column gpuId"]).stderr.contains("did you mean gpuId"), "{other}");
}

#[test]
fn names_that_are_not_utf_8_are_refused() {
    let dir = Dir::new();
    let good = dir.fixture("matmul_result.rpd");
    let bad = dir.trace("bad.rpd", "CREATE TABLE odd (abcdef)");
    let mut bytes = fs::read(dir.path(&bad)).unwrap();
    let at = bytes.windows(6).position(|six| six == b"abcdef").unwrap();
    bytes[at..at + 2].copy_from_slice(b"\xff\xfe");
    fs::write(dir.path(&bad), bytes).unwrap();
    for arguments in [&["sql", &bad, "SELECT * FROM odd"], &["sql", &bad, "nosuch"]] {
        dir.run(arguments).expect(1).says(&["bad.rpd", "not UTF-8"]);
    }
    dir.run(&["sql", "--before", &bad, &good, "topDiff"]).expect(1).says(&["bad.rpd", "not UTF-8"]);
}

#[test]
fn of_a_large_blob_a_table_has_the_beginning_and_the_end() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let query = "SELECT x'00ff' AS a, zeroblob(200000000) AS b";
    // KiB: the blob fits, what it would be in words does not.
    let limited = format!("ulimit -v 500000; exec {RPD} sql {trace} \"{query}\"");
    let shell = ran(dir.command("sh").args(["-c", &limited]));
    let line = shell.expect(0).stdout.lines().nth(1).unwrap();
    assert!(line.starts_with("x'00ff'  x'0000") && line.contains("00…00") && line.ends_with("00'"));
    assert!(line.len() < 20_000);
}
