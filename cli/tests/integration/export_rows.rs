//! `rpd export csv`, `jsonl`, `arrow`, `parquet`: rows of a trace, compared with slow, obvious SQL.

use std::fs;
use std::process::Stdio;

use rusqlite::Connection;
use rusqlite::types::Value as Sql;
use serde_json::Value;

use crate::generated::{drop_views, generated, to_schema_3};
use crate::harness::{Dir, RPD, Ran, not_installed, ran};

/// Where `make setup` puts pyarrow.
const PYARROW: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/pyarrow");

/// The rows as JSON Lines has them.
fn lines(dir: &Dir, trace: &str, rows: &str) -> Vec<Value> {
    let ran = dir.run(&["export", "jsonl", trace, rows]);
    ran.expect(0).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The rows of a query, by SQLite alone.
fn asked(trace: &Connection, query: &str) -> Vec<Vec<Value>> {
    let mut query = trace.prepare(query).unwrap();
    let columns = query.column_count();
    let rows = query.query_map([], |row| (0..columns).map(|column| row.get::<_, Sql>(column)).collect());
    let value = |value| match value {
        Sql::Null => Value::Null,
        Sql::Integer(number) => number.into(),
        Sql::Real(number) => number.into(),
        Sql::Text(text) => text.into(),
        Sql::Blob(_) => unreachable!(),
    };
    let rows = rows.unwrap().map(|row: rusqlite::Result<Vec<Sql>>| row.unwrap().into_iter().map(value));
    rows.map(Iterator::collect).collect()
}

/// The values of these columns.
fn values(rows: &[Value], columns: &[&str]) -> Vec<Vec<Value>> {
    rows.iter().map(|row| columns.iter().map(|column| row[column].clone()).collect()).collect()
}

/// Kernels and calls of a sound trace, as the views of the format have them.
fn check_frames(dir: &Dir, trace: &str) {
    let connection = dir.open(trace);
    let launch = |column: &str| {
        format!(
            "(SELECT A.{column} FROM rocpd_api A WHERE A.id = (SELECT min(api_id) FROM rocpd_api_ops WHERE op_id = o.id))"
        )
    };
    let of_ops = [
        "name",
        "start_ns",
        "end_ns",
        "duration_ns",
        "gpu",
        "queue",
        "session",
        "pid",
        "tid",
        "launched_ns",
        "id",
    ];
    for (frame, kinds) in [
        ("kernels", "opType IN ('KernelExecution', 'Task')"),
        ("copies", "(opType GLOB 'Copy*' OR opType GLOB 'Fill*')"),
    ] {
        let expected = asked(
            &connection,
            &format!(
                "SELECT CASE description WHEN '' THEN opType ELSE description END, start, \"end\", \"end\" - start, gpuId, queueId,
                 id >> 32, {}, {}, {}, id FROM op o WHERE {kinds} ORDER BY start, id",
                launch("pid"), launch("tid"), launch("start")
            ),
        );
        assert_eq!(values(&lines(dir, trace, frame), &of_ops), expected, "{trace} {frame}");
    }
    let of_calls = ["name", "start_ns", "end_ns", "duration_ns", "session", "pid", "tid", "id"];
    let is_marker = "(id & 4294967295 >= 2147483648 OR apiName = 'UserMarker')";
    let text = "iif(apiName = 'UserMarker', args, apiName)";
    for (frame, name, condition) in [("apis", "apiName", "NOT"), ("markers", text, "")] {
        let expected = asked(
            &connection,
            &format!(
                "SELECT {name}, start, \"end\", \"end\" - start, id >> 32, pid, tid, id FROM api
                 WHERE {condition} {is_marker} ORDER BY start, id"
            ),
        );
        let found = lines(dir, trace, frame);
        assert_eq!(values(&found, &of_calls), expected, "{trace} {frame}");
        let first: i64 =
            connection.query_row("SELECT min(start) FROM rocpd_api", [], |row| row.get(0)).unwrap();
        for row in &found {
            assert_eq!(
                row["start_s"].as_f64().unwrap(),
                (row["start_ns"].as_i64().unwrap() - first) as f64 / 1e9
            );
        }
    }
}

#[test]
fn frames_have_every_row() {
    let dir = Dir::new();
    for seed in 0..3 {
        let trace = generated(&dir, &format!("{seed}.rpd"), seed, 200);
        check_frames(&dir, &trace);
        let before = lines(&dir, &trace, "kernels");
        assert!(
            before.iter().any(|row| row["stream"] == "0x0")
                && before.iter().any(|row| row["stream"].is_null())
        );
        // Schema 2 is not needed, nor are views.
        let apis = lines(&dir, &trace, "apis");
        to_schema_3(&dir, &trace);
        check_frames(&dir, &trace);
        assert!(lines(&dir, &trace, "apis") == apis);
        let after = lines(&dir, &trace, "kernels");
        drop_views(&dir, &trace);
        assert!(after.len() == before.len() && lines(&dir, &trace, "kernels") == after);
    }
    check_frames(&dir, &dir.fixture("matmul_result.rpd"));
    for name in ["mytrace_raw.rpd", "mytrace_as_shipped.rpd"] {
        check_frames(&dir, &dir.unpacked(name));
    }
}

#[test]
fn frames_say_geometry_bytes_and_rank() {
    let dir = Dir::new();
    let id = |number: i64| (1_i64 << 32) + number;
    let trace = dir.trace(
        "t.rpd",
        &format!(
            "INSERT INTO rocpd_string VALUES (1, ''), (2, 'hipLaunchKernel'), (3, 'KernelExecution'), (4, 'CopyHostToDevice'), (5, 'k');
             INSERT INTO rocpd_api VALUES ({a}, 7, 8, 1000, 1200, 2, 1), ({b}, 7, 8, 1300, 1400, 2, 1), (3, 9, 9, 1500, 1600, 2, 1);
             INSERT INTO rocpd_kernelapi VALUES ({a}, '0x1f', 4, 3, 2, 64, 2, 1, 512, 16, '', '', '', 0, 5);
             INSERT INTO rocpd_copyapi VALUES ({b}, '0x2', 4096, 0, 0, 1, '', '', 0, 0, 1, 0);
             INSERT INTO rocpd_op VALUES ({a}, 3, 2, 0, '', 1150, 1160, 5, 3), ({b}, 3, 2, 0, '', 1350, 1360, 1, 4), (3, 3, 2, 0, '', 1550, 1560, 5, 3);
             INSERT INTO rocpd_api_ops VALUES (1, {a}, {a}), (2, {b}, {b}), (3, 3, 3);
             INSERT INTO ext_dispatch VALUES (3, 5, 9, 8, 7, 6, 5, 4, 3, 2, '', 0);
             INSERT INTO rocpd_metadata (tag, value) VALUES ('session::1::env::SLURM_PROCID', '5'), ('session::1::env::SLURM_STEP_ID', '0'), ('session::0::env::RANK', 'first');",
            a = id(1),
            b = id(2)
        ),
    );
    let kernels = dir.run(&["export", "csv", &trace, "kernels"]).expect(0).stdout.clone();
    assert_eq!(
        kernels.lines().skip(1).collect::<Vec<_>>(),
        [
            "k,1150,1160,10,0.00000015,3,2,0x1f,1,5,7,8,1000,4,3,2,64,2,1,512,16,4294967297,4294967297"
                .replace("0.00000015", "1.5e-7"),
            "k,1550,1560,10,0.00000055,3,2,,0,,9,9,1500,9,8,7,6,5,4,3,2,3,3".replace("0.00000055", "5.5e-7"),
        ]
    );
    let copies = dir.run(&["export", "csv", &trace, "copies"]).expect(0).stdout.clone();
    assert_eq!(
        copies.lines().nth(1).unwrap(),
        "CopyHostToDevice,1350,1360,10,3.5e-7,3,2,0x2,1,5,7,8,1300,4096,4294967298,4294967298"
    );
}

/// Ranges of the recorder and of Python functions have their texts as their names, and ids of markers.
#[test]
fn calls_and_markers_are_the_same_rows_everywhere() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    check_frames(&dir, &trace);
    let functions = dir.trace(
        "functions.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'forward'), (3, 'hipMalloc');
         INSERT INTO rocpd_api VALUES (2147483649, 7, 7, 100, 900, 2, 1), (2147483650, 7, 7, 200, 400, 2, 1), (1, 7, 7, 250, 300, 3, 1);",
    );
    check_frames(&dir, &functions);
    for trace in [&trace, &functions] {
        for (frame, by) in [("apis", "api"), ("markers", "marker")] {
            let mut names: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
            for row in lines(&dir, trace, frame) {
                *names.entry(row["name"].as_str().unwrap().to_string()).or_default() += 1;
            }
            let top: Vec<Value> =
                serde_json::from_str(&dir.run(&["top", "--json", "--by", by, trace]).expect(0).stdout)
                    .unwrap();
            let top = top
                .iter()
                .map(|row| (row["name"].as_str().unwrap().to_string(), row["calls"].as_u64().unwrap()));
            assert_eq!(top.collect::<std::collections::BTreeMap<_, _>>(), names, "{trace} {frame}");
            let asked = dir.run(&["sql", "--json", trace, if by == "api" { "top_apis" } else { "markers" }]);
            let asked: Vec<Value> = serde_json::from_str(&asked.expect(0).stdout).unwrap();
            let (name, count) = if by == "api" { ("api", "calls") } else { ("message", "ranges") };
            let asked = asked
                .iter()
                .map(|row| (row[name].as_str().unwrap().to_string(), row[count].as_u64().unwrap()));
            assert_eq!(asked.collect::<std::collections::BTreeMap<_, _>>(), names, "{trace} {frame}");
        }
    }
}

#[test]
fn odd_values_are_no_rows_or_no_numbers() {
    let dir = Dir::new();
    let trace = dir.trace(
        "t.rpd",
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'call'), (3, 'KernelExecution');
         INSERT INTO rocpd_api VALUES (1, 7, 8, 100, 200, 2, 1), (2, 7, 8, 300, 200, 2, 1), (3, 'x', 8, 300, 400, 2, 1), (4, 7, 8, 1.5, 400, 2, 1);
         INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 150, 160, 1, 3), (2, 0, 0, 0, '', '', 360, 1, 3), (3, 0, '', 0, '', 150, 160, 1, 3),
             (4, 0, 0, 0, '', 150, 160, 99, 3), (5, 0, 0, 0, '', 150, 160, 1, 99);
         INSERT INTO rocpd_kernelapi VALUES (1, 7.5, 'x', 1.5, 2, 64, 2, 1, 512, 16, '', '', '', 0, 5);
         INSERT INTO rocpd_api_ops VALUES (1, 1, 1), (2, 3, 4), (3, 1, 1);",
    );
    assert_eq!(values(&lines(&dir, &trace, "apis"), &["id"]), [[Value::from(1)]]);
    let kernels = values(
        &lines(&dir, &trace, "kernels"),
        &["id", "name", "pid", "stream", "grid_x", "grid_y", "grid_z"],
    );
    let null = Value::Null;
    assert_eq!(
        kernels,
        [
            [
                1.into(),
                "KernelExecution".into(),
                7.into(),
                "7.5".into(),
                null.clone(),
                null.clone(),
                2.into()
            ],
            [
                4.into(),
                "KernelExecution".into(),
                null.clone(),
                null.clone(),
                null.clone(),
                null.clone(),
                null
            ],
        ]
    );
    dir.open(&trace)
        .execute_batch("DROP TABLE rocpd_api_ops; DROP TABLE ext_dispatch; DROP TABLE rocpd_copyapi")
        .unwrap();
    assert_eq!(lines(&dir, &trace, "kernels").len(), 2);
    let empty = dir.trace("empty.rpd", "");
    for format in ["csv", "jsonl", "arrow", "parquet"] {
        let output = dir.rpd(&["export", format, &empty, "kernels"]).output().unwrap();
        assert!(output.status.success());
        assert_eq!(String::from_utf8_lossy(&output.stderr), "rpd: the export has no rows\n");
    }
}

/// A table with a value of each type, and names of any bytes.
fn hostile(dir: &Dir) -> String {
    let trace = dir.trace("h.rpd", "CREATE TABLE t (\"=cmd()\", b, c, d, e, f)");
    let connection = dir.open(&trace);
    let long = "核".repeat(5000);
    for (text, number) in
        [("=1+1", 1), ("a\u{1b}[2J\n\"\u{202e}</script>", 2), (&long, 3), ("", 4), ("\0,", 5)]
    {
        connection
            .execute(
                "INSERT INTO t VALUES (?1, ?2, CASE ?2 WHEN 2 THEN 2.5 ELSE ?2 END, CASE ?2 WHEN 2 THEN 9e999 ELSE 9007199254740993 END,
                 CASE ?2 WHEN 2 THEN 'x' WHEN 3 THEN NULL ELSE ?2 END, CASE ?2 WHEN 5 THEN NULL ELSE x'00ff' END)",
                rusqlite::params![text, number],
            )
            .unwrap();
    }
    connection.execute("INSERT INTO t VALUES (CAST(x'ff41' AS TEXT), 6, 6, 6, x'ab', NULL)", []).unwrap();
    trace
}

#[test]
fn texts_are_harmless_and_numbers_exact() {
    let dir = Dir::new();
    let trace = hostile(&dir);
    let csv = dir.run(&["export", "csv", &trace, "t"]).expect(0).stdout.clone();
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows[0], "'=cmd(),b,c,d,e,f");
    assert_eq!(rows[1], "'=1+1,1,1,9007199254740993,1,x'00ff'");
    assert_eq!(rows[2], "\"a\\x1b[2J\\n\"\"\\u{202e}</script>\",2,2.5,Inf,x,x'00ff'");
    assert_eq!(rows[5], "\"\\x00,\",5,5,9007199254740993,5,");
    assert_eq!(rows[6], "\u{fffd}A,6,6,6,x'ab',");
    // The reader of rpd sql has the same.
    assert_eq!(dir.run(&["sql", "--csv", &trace, "select * from t"]).expect(0).stdout, csv);
    let rows = lines(&dir, &trace, "t");
    assert_eq!(rows[1]["=cmd()"], "a\u{1b}[2J\n\"\u{202e}</script>");
    assert_eq!(rows[0]["d"], 9_007_199_254_740_993_i64);
    let raw = dir.run(&["export", "jsonl", &trace, "t"]).stdout;
    assert!(!raw.chars().any(|c| c.is_control() && c != '\n' || c == '\u{202e}'));
}

/// python3 with pyarrow, if it is there.
pub(crate) fn pyarrow(dir: &Dir, script: &str, arguments: &[&str]) -> Option<Ran> {
    let python = |script: &str| {
        let mut command = dir.command("python3");
        command.env("PYTHONPATH", PYARROW).env("PYTHONDONTWRITEBYTECODE", "1").arg("-c").arg(script);
        command
    };
    if !ran(&mut python("import pyarrow")).status.success() {
        not_installed("no pyarrow");
        return None;
    }
    Some(ran(python(script).args(arguments)))
}

/// Reads what was exported, by the means of pyarrow, and writes its types and rows as JSON.
const READ: &str = "
import json, subprocess, sys
import pyarrow as pa
rpd, trace, rows = sys.argv[1:]
def shown(table):
    value = lambda v: 'bytes ' + v.hex() if isinstance(v, bytes) else str(v) if v in (float('inf'), float('-inf')) else v
    kinds = [str(f.type.value_type if pa.types.is_dictionary(f.type) else f.type) for f in table.schema]
    return [table.column_names, kinds, [[value(v) for v in row.values()] for row in table.to_pylist()]]
piped = subprocess.Popen([rpd, 'export', 'arrow', trace, rows], stdout=subprocess.PIPE)
stream = pa.ipc.open_stream(piped.stdout).read_all()
assert piped.wait() == 0
subprocess.run([rpd, 'export', 'arrow', trace, rows, '-o', 't.arrow', '--force'], check=True)
file = pa.ipc.open_file(pa.memory_map('t.arrow')).read_all()
assert file.equals(stream)
file.validate(full=True)
try:
    import pyarrow.parquet as pq
    subprocess.run([rpd, 'export', 'parquet', trace, rows, '-o', 't.parquet', '--force'], check=True)
    parquet = pq.read_table('t.parquet')
    assert shown(parquet) == shown(stream), (shown(parquet), shown(stream))
except ImportError:
    pass
print(json.dumps(shown(stream)))
";

/// Names and types of columns, and rows.
type Read = (Vec<String>, Vec<String>, Vec<Vec<Value>>);

#[test]
fn columns_are_what_pyarrow_reads() {
    let dir = Dir::new();
    let trace = hostile(&dir);
    let read = |trace: &str, rows: &str| -> Option<Read> {
        let ran = pyarrow(&dir, READ, &[RPD, trace, rows])?;
        Some(serde_json::from_str(&ran.expect(0).stdout).unwrap())
    };
    let Some((names, kinds, rows)) = read(&trace, "t") else { return };
    assert_eq!(names, ["=cmd()", "b", "c", "d", "e", "f"]);
    assert_eq!(kinds, ["string", "int64", "double", "string", "string", "binary"]);
    let text = "a\u{1b}[2J\n\"\u{202e}</script>";
    assert_eq!(Value::from(rows[1].clone()), serde_json::json!([text, 2, 2.5, "Inf", "x", "bytes 00ff"]));
    assert_eq!(
        Value::from(rows[4].clone()),
        serde_json::json!(["\0,", 5, 5.0, "9007199254740993", "5", null])
    );
    assert_eq!(Value::from(rows[5].clone()), serde_json::json!(["\u{fffd}A", 6, 6.0, "6", "x'ab'", null]));
    // No row, no value.
    let (_, kinds, rows) = read(&trace, "select 1 a, null b where 0").unwrap();
    assert_eq!((kinds, rows.len()), (vec!["null".to_string(); 2], 0));
    let (_, kinds, _) = read(&trace, "kernels").unwrap();
    assert_eq!(&kinds[..6], ["string", "int64", "int64", "int64", "double", "int64"]);
    // Several batches; more texts than are shared.
    let many = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 200000)
        SELECT x, (x % 7) || 'k' AS few, CASE WHEN x % 2 THEN printf('%0200d', x) END AS many FROM n";
    let (_, kinds, rows) = read(&trace, many).unwrap();
    assert_eq!(kinds, ["int64", "string", "string"]);
    assert_eq!(rows.len(), 200_000);
    for (row, number) in rows.iter().zip(1..) {
        let many = if number % 2 == 1 { Value::from(format!("{number:0200}")) } else { Value::Null };
        assert_eq!(row, &[Value::from(number), format!("{}k", number % 7).into(), many]);
    }
    // A real trace.
    let real = dir.unpacked("mytrace_raw.rpd");
    let (names, _, rows) = read(&real, "kernels").unwrap();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    assert_eq!(rows, values(&lines(&dir, &real, "kernels"), &names));
}

#[test]
fn an_export_of_rows_can_only_read_and_replaces_nothing_unasked() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    let whole = dir.run(&["export", "csv", &trace, "op"]).expect(0).stdout.clone();
    for format in ["csv", "jsonl", "arrow", "parquet"] {
        let export = |rows: &str, options: &[&str]| {
            let output = dir.rpd(&[&["export", format, &trace, rows], options].concat()).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), output.stdout)
        };
        for (rows, words) in [
            ("DELETE FROM rocpd_op", "may only read"),
            ("CREATE TEMP TABLE x (a)", "may only read"),
            ("PRAGMA user_version = 7", "may only read"),
            ("ATTACH 'copy.rpd' AS copy", "may only read"),
            ("SELECT 1; DROP TABLE rocpd_op", "may only read"),
            ("kernelz", "did you mean kernel"),
            ("select nowhere from op", "there is no column nowhere"),
        ] {
            let (status, said, _) = export(rows, &[]);
            assert_eq!((status, said.lines().count()), (Some(1), 1), "{said}");
            assert!(said.contains(words), "{said}");
        }
        let out = format!("out.{format}");
        assert_eq!(export("op", &["-o", &out]), (Some(0), String::new(), Vec::new()));
        assert!(export("op", &["-o", &out]).1.contains("exists already"));
        assert_eq!(export("op", &["-o", &out, "--force"]).0, Some(0));
        assert!(export("op", &["-o", &trace, "--force"]).1.contains("is a trace"));
        assert!(export("op", &["-o", "/dev/full"]).1.contains("No space left"));
        // A failure leaves what was there.
        let written = fs::read(dir.path(&out)).unwrap();
        assert_eq!(export("select abs(-9223372036854775807 - 1)", &["-o", &out, "--force"]).0, Some(1));
        assert!(fs::read(dir.path(&out)).unwrap() == written);
        let mut child = dir.rpd(&["export", format, &trace, "select a.* from op a, op b"]);
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{format}: {output:?}");
    }
    dir.run(&["export", "csv", &trace, "op", "-o", "out.csv.gz"]).expect(0);
    assert_eq!(ran(dir.command("gzip").args(["-dc", "out.csv.gz"])).expect(0).stdout, whole);
    dir.run(&["export", "arrow", &trace, "op", "-o", "out.arrow.gz"])
        .expect(1)
        .says(&["does not end in .gz"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), [&trace, "out.arrow", "out.csv", "out.csv.gz", "out.jsonl", "out.parquet"]);
}

#[test]
fn a_part_of_the_rows_is_that_of_sql() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 5, 200);
    let connection = dir.open(&trace);
    let ids = |query: &str| -> Vec<i64> {
        let mut query = connection.prepare(query).unwrap();
        query.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    };
    let half = ids("SELECT (min(start) + max(start)) / 2 FROM rocpd_api")[0].to_string();
    let of_call = "(SELECT api_id FROM rocpd_api_ops WHERE op_id = op.id)";
    let kernel = "FROM op WHERE opType IN ('KernelExecution', 'Task')";
    for (rows, options, query) in [
        ("kernels", vec!["--gpu", "1"], format!("SELECT id {kernel} AND gpuId = 1 ORDER BY start, id")),
        (
            "kernels",
            vec!["--session", "2"],
            format!("SELECT id {kernel} AND {of_call} >> 32 = 2 ORDER BY start, id"),
        ),
        (
            "copies",
            vec!["--start", &half],
            format!(
                "SELECT id FROM op WHERE (opType LIKE 'Copy%' OR opType LIKE 'Fill%')
                     AND ifnull((SELECT start FROM rocpd_api WHERE id = {of_call}), start) >= {half} ORDER BY start, id"
            ),
        ),
        (
            "apis",
            vec!["--end", &half, "--session", "0"],
            format!("SELECT id FROM api WHERE apiName <> 'UserMarker' AND start <= {half} AND id >> 32 = 0 ORDER BY start, id"),
        ),
        ("markers", vec!["--session", "2"], "SELECT id FROM api WHERE apiName = 'UserMarker' AND id >> 32 = 2 ORDER BY start, id".into()),
    ] {
        let expected = ids(&query);
        assert!(!expected.is_empty(), "{query}");
        let ran = dir.run(&[&["export", "jsonl", &trace, rows], &options[..]].concat());
        let found: Vec<i64> = ran
            .expect(0)
            .stdout
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_i64().unwrap())
            .collect();
        assert_eq!(found, expected, "{rows} {options:?}");
        let csv = dir.run(&[&["export", "csv", &trace, rows], &options[..]].concat());
        assert_eq!(csv.expect(0).stdout.lines().count(), expected.len() + 1);
    }
    let on_gpu_1 = ids("SELECT count(*) FROM rocpd_op WHERE gpuId = 1")[0];
    for rows in ["rocpd_op", "op", "select id from op"] {
        let csv = dir.run(&["export", "csv", &trace, rows, "--gpu", "1"]);
        assert_eq!(csv.expect(0).stdout.lines().count() as i64, on_gpu_1 + 1, "{rows}");
    }
    let busy = dir.run(&["export", "csv", &trace, "busy", "--gpu", "1"]).expect(0).stdout.clone();
    assert_eq!(busy.lines().count(), 2, "{busy}");
    dir.run(&["export", "csv", &trace, "kernels", "--rank", "77"])
        .expect(1)
        .says(&["no session has the rank 77"]);
    dir.run(&["export", "jsonl", &trace, "kernels", "--gpu", "77"]).expect(0).says(&["no rows"]);
}

#[test]
fn streams_are_those_of_the_ranking() {
    let dir = Dir::new();
    let mut traces: Vec<String> =
        (0..2).map(|seed| generated(&dir, &format!("{seed}.rpd"), seed, 200)).collect();
    // What launches of graphs ran is on the streams that their arguments name.
    for trace in &traces {
        dir.open(trace)
            .execute_batch(
                "UPDATE rocpd_string SET string = 'graphExec=0xa | stream=0x5' || (id & 1) WHERE string GLOB 'argument = *'",
            )
            .unwrap();
    }
    let third = generated(&dir, "third.rpd", 1, 200);
    dir.open(&third)
        .execute_batch(
            "UPDATE rocpd_string SET string = 'graphExec=0xa | stream=0x5' || (id & 1) WHERE string GLOB 'argument = *'",
        )
        .unwrap();
    to_schema_3(&dir, &third);
    traces.push(third);
    for trace in &traces {
        let mut expected: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
        let top =
            dir.run(&["top", "--json", "--instrumented", "--by", "stream", trace]).expect(0).stdout.clone();
        for row in serde_json::from_str::<Vec<Value>>(&top).unwrap() {
            let name = row["name"].as_str().unwrap();
            let stream = name.split_once(" stream ").map_or("", |(_, stream)| stream);
            *expected.entry(stream.to_string()).or_default() += row["calls"].as_u64().unwrap();
        }
        let mut found: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
        for row in lines(&dir, trace, "kernels").iter().chain(&lines(&dir, trace, "copies")) {
            *found.entry(row["stream"].as_str().unwrap_or("").to_string()).or_default() += 1;
        }
        for stream in ["0x50", "0x51"] {
            let known = expected.get(stream).copied().unwrap_or(0);
            let of_others = dir.open(trace).query_row(
                "SELECT count(*) FROM op o JOIN rocpd_api_ops L ON L.op_id = o.id JOIN api a ON a.id = L.api_id
                     WHERE o.opType NOT IN ('KernelExecution', 'Task') AND o.opType NOT GLOB 'Copy*' AND o.opType NOT GLOB 'Fill*'
                     AND a.apiName = 'hipGraphLaunch' AND a.args GLOB '*' || ?1",
                [stream],
                |row| row.get::<_, i64>(0),
            );
            let of_others = of_others.unwrap().unsigned_abs();
            assert!(known > 0, "{trace} {stream}: {expected:?}");
            assert_eq!(found.get(stream).copied().unwrap_or(0) + of_others, known, "{trace} {stream}");
        }
        let chrome = dir.run(&["export", "chrome", trace]).expect(0).stdout.clone();
        assert!(chrome.contains("0x51"), "{trace}");
    }
}
