//! Every report over every odd trace, in every form: it ends with a status that is right, JSON and CSV can be read, and nothing of a name
//! does anything to a terminal or a spreadsheet.

use std::fs;

use rusqlite::Connection;

use crate::every_region::parts;
use crate::generated::generated;
use crate::harness::{Dir, Ran, ran};

/// The reports; FILE is the trace, NAME the name of a kernel that hostile traces have.
const REPORTS: [&[&str]; 34] = [
    &["top", "FILE"],
    &["top", "--percentiles", "--by", "kernel", "FILE"],
    &["top", "--by", "api", "FILE"],
    &["top", "--by", "copy", "FILE"],
    &["top", "--by", "marker", "FILE"],
    &["top", "--percentiles", "--by", "stream", "FILE"],
    &["top", "--by", "queue", "FILE"],
    &["top", "--by", "gpu", "FILE"],
    &["top", "--by", "rank", "FILE"],
    &["top", "--by", "session", "FILE"],
    &["top", "--by", "thread", "FILE"],
    &["top", "--start", "25%", "--end", "75%", "--gpu", "0", "FILE"],
    &["gaps", "FILE"],
    &["overlap", "FILE"],
    &["categories", "FILE"],
    &["markers", "FILE"],
    &["markers", "--exact", "FILE"],
    &["copies", "FILE"],
    &["memory", "FILE"],
    &["kernel", "FILE", "NAME"],
    &["queues", "FILE"],
    &["diff", "FILE", "FILE"],
    &["diff", "--all", "FILE", "SOUND"],
    &["variability", "FILE"],
    &["variability", "--before", "0", "FILE"],
    &["table", "FILE"],
    &["table", "FILE", "NAME"],
    &["blocks", "FILE"],
    &["api", "FILE"],
    &["info", "FILE"],
    &["replacements", "FILE"],
    &["durations", "FILE"],
    &["energy", "FILE"],
    &["energy", "--by", "marker", "FILE"],
];

/// A name that a terminal, a browser, a spreadsheet or a parser would act on.
const NAMES: [&str; 9] = [
    "'=cmd|''/C calc''!A0'",
    "'@sum(1)' || char(9, 13, 10) || '+1'",
    "char(27) || '[31mred' || char(27) || ']0;title' || char(7)",
    "'<img src=x onerror=alert(1)>&amp;\"'''",
    "char(8238) || 'gnp.exe' || char(8236, 8294, 65279)",
    "replace(hex(zeroblob(2500)), '00', 'ab')",
    "CAST(x'ff00fe80c3' AS TEXT)",
    "'a' || char(0) || 'b' || char(155) || '2J'",
    "'{\"a\": [1,' || char(92) || '\"'",
];

/// What is done to a trace, and what it is called.
fn damages() -> Vec<(&'static str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    let names = NAMES.iter().enumerate().map(|(at, name)| {
        format!("UPDATE rocpd_string SET string = {name} WHERE id % 9 = {at} AND string NOT IN ('UserMarker', 'KernelExecution', 'Task')")
    });
    all.push(("names", names.collect::<Vec<_>>().join(";")));
    let tables = [
        ("rocpd_api", ["pid", "tid", "start", "end", "apiName_id", "args_id"].as_slice()),
        ("rocpd_op", &["gpuId", "queueId", "sequenceId", "start", "end", "description_id", "opType_id"]),
        ("rocpd_api_ops", &["api_id", "op_id"]),
        ("rocpd_string", &["string"]),
        ("rocpd_kernelapi", &["stream", "gridX", "workgroupX", "groupSegmentSize", "kernelName_id"]),
        ("rocpd_copyapi", &["stream", "size", "kind", "dst", "src"]),
        ("rocpd_metadata", &["tag", "value"]),
    ];
    for (what, value) in [
        ("NULL", "NULL"),
        ("REAL", "1.5"),
        ("large REAL", "1e300"),
        ("TEXT", "'text'"),
        ("BLOB", "x'ff00fe'"),
        ("largest", "9223372036854775807"),
        ("smallest", "-9223372036854775808"),
    ] {
        // The declarations of a table would refuse some of them.
        let mut sql = String::from("PRAGMA legacy_alter_table = ON;");
        for (table, columns) in &tables {
            sql.push_str(&format!(
                "CREATE TABLE undeclared (COLUMNS:{table}:); INSERT INTO undeclared SELECT * FROM {table}; DROP TABLE {table};
                 ALTER TABLE undeclared RENAME TO {table};"
            ));
            for (at, column) in columns.iter().enumerate() {
                sql.push_str(&format!("UPDATE {table} SET \"{column}\" = {value} WHERE rowid % 11 = {at};"));
            }
        }
        all.push((what, sql));
    }
    for table in [
        "rocpd_api",
        "rocpd_op",
        "rocpd_api_ops",
        "rocpd_string",
        "rocpd_kernelapi",
        "rocpd_copyapi",
        "rocpd_barrierop",
        "rocpd_monitor",
    ] {
        all.push(("a table is missing", format!("DROP TABLE {table}")));
    }
    for (table, column) in
        [("rocpd_api", "tid"), ("rocpd_op", "end"), ("rocpd_op", "gpuId"), ("rocpd_string", "string")]
    {
        let sql = format!(
            "PRAGMA legacy_alter_table = ON; ALTER TABLE {table} RENAME COLUMN \"{column}\" TO other"
        );
        all.push(("a column is missing", sql));
    }
    all.push((
        "far times",
        "UPDATE rocpd_op SET start = 5, end = 9 WHERE id = (SELECT min(id) FROM rocpd_op);
         UPDATE rocpd_op SET start = 4000000000000000000, end = 4000000000000000001 WHERE id = (SELECT max(id) FROM rocpd_op);
         UPDATE rocpd_api SET start = 1, end = 4611686018427387903 WHERE id = (SELECT min(id) FROM rocpd_api)"
            .into(),
    ));
    all.push((
        "one process and thread in all sessions",
        "UPDATE rocpd_api SET pid = 1, tid = 1; UPDATE rocpd_op SET gpuId = 0, queueId = 0".into(),
    ));
    all.push((
        "no rows",
        "DELETE FROM rocpd_api; DELETE FROM rocpd_op; DELETE FROM rocpd_api_ops; DELETE FROM rocpd_string"
            .into(),
    ));
    all
}

/// Applies `sql`, in which COLUMNS:table: are the columns of that table without types.
fn damage(trace: &Connection, sql: &str) {
    let mut parts = sql.split("COLUMNS:");
    let mut whole = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (table, rest) = part.split_once(':').unwrap();
        let select = trace.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns: Vec<String> = select.column_names().map(|name| format!("\"{name}\"")).collect();
        whole.push_str(&columns.join(", "));
        whole.push_str(rest);
    }
    trace.execute_batch(&whole).unwrap_or_else(|error| panic!("{error}: {whole}"));
}

/// Whether a text would do something to a terminal, or turn text around.
fn is_active(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

fn is_fine(ran: &Ran, form: &str, what: &str) {
    let Some(code) = ran.status.code() else { panic!("{what}: {ran}") };
    assert!(matches!(code, 0 | 1), "{what}: {ran}");
    assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("SELECT"), "{what}: {ran}");
    assert!(
        !ran.stderr.contains(is_active) && (code == 0 || ran.stderr.starts_with("rpd: ")),
        "{what}: {ran}"
    );
    assert!(ran.stderr.lines().all(|line| line.len() < 600), "{what}: {ran}");
    if code == 1 {
        assert!(ran.stdout.is_empty() || form.is_empty(), "nothing is half written: {what}: {ran}");
        return;
    }
    match form {
        "--json" => {
            serde_json::from_str::<serde_json::Value>(&ran.stdout)
                .unwrap_or_else(|error| panic!("{error}: {what}: {ran}"));
        }
        "--csv" => {
            let mut reader = csv::ReaderBuilder::new().from_reader(ran.stdout.as_bytes());
            for record in reader.records() {
                // A record with more or fewer cells than the header is an error here.
                for cell in &record.unwrap_or_else(|error| panic!("{error}: {what}: {ran}")) {
                    let is_number = cell.parse::<f64>().is_ok();
                    assert!(
                        is_number || !cell.starts_with(['=', '@', '+', '-', '\t', '\r']),
                        "{cell:?}: {what}: {ran}"
                    );
                }
            }
        }
        _ => assert!(!ran.stdout.contains(is_active), "{what}: {ran}"),
    }
}

#[test]
fn no_trace_breaks_a_report() {
    let dir = Dir::new();
    let sound = generated(&dir, "sound.rpd", 11, 60);
    let whole = fs::read(dir.path(&sound)).unwrap();
    dir.write("empty.rpd", "");
    for (what, sql) in damages() {
        dir.write("t.rpd", &whole);
        damage(&dir.open("t.rpd"), &sql);
        let name: String = dir
            .open("t.rpd")
            .query_row("SELECT CAST(string AS TEXT) FROM rocpd_string WHERE string LIKE '%cmd%'", [], |row| {
                row.get(0)
            })
            .unwrap_or_else(|_| "k".to_string());
        for report in REPORTS {
            let arguments: Vec<&str> = report
                .iter()
                .map(|argument| match *argument {
                    "FILE" => "t.rpd",
                    "SOUND" => "sound.rpd",
                    "NAME" => &name,
                    other => other,
                })
                .collect();
            for form in ["", "--json", "--csv"] {
                let has_form =
                    form.is_empty() || !matches!((report[0], form), ("info", "--csv") | ("durations", _));
                if has_form {
                    let form_argument = if form.is_empty() { vec![] } else { vec![form] };
                    let ran = dir.run(&[&arguments[..1], &form_argument[..], &arguments[1..]].concat());
                    is_fine(&ran, form, &format!("{what}, {sql:.100}"));
                }
            }
        }
    }
    for report in REPORTS {
        let arguments: Vec<&str> = report
            .iter()
            .map(|argument| match *argument {
                "FILE" => "empty.rpd",
                "SOUND" => "sound.rpd",
                other => other,
            })
            .collect();
        let ran = dir.run(&arguments);
        ran.expect(1).says(&["empty.rpd"]);
        assert!(ran.stdout.is_empty(), "{ran}");
    }
}

#[test]
fn names_do_nothing_in_what_verbs_say_of_code_blocks_and_libraries() {
    let dir = Dir::new();
    let trace = parts(&dir);
    let names = &damages()[0].1;
    let library = "UPDATE rocpd_string SET string = 'rocblas_sgemm' WHERE id IN (SELECT apiName_id FROM rocpd_api WHERE id IN (SELECT api_ptr_id FROM ext_librarycall))";
    damage(&dir.open(&trace), &format!("{names}; {library}"));
    for (at, name) in NAMES.iter().enumerate() {
        let mut sql = String::new();
        for (table, columns) in [
            ("ext_candidate", &["path", "target", "outcome", "reason"][..]),
            ("ext_validation", &["compared", "original", "candidate", "reason"]),
            ("ext_codeobject", &["uri", "target"]),
            ("ext_block", &["functionName", "file"]),
        ] {
            for column in columns {
                sql += &format!("UPDATE {table} SET {column} = {name} WHERE id % 9 = {at};");
            }
        }
        damage(&dir.open(&trace), &sql);
    }
    let verbs: [&[&str]; 11] = [
        &["code", "FILE"],
        &["blocks", "FILE"],
        &["blocks", "--line", "FILE"],
        &["blocks", "--function", "--start", "50%", "FILE"],
        &["libraries", "FILE"],
        &["libraries", "--bench", "FILE"],
        &["kernel", "FILE", "."],
        &["replacements", "FILE"],
        &["sql", "FILE", "SELECT * FROM api LIMIT 100"],
        &["sql", "FILE", "top_kernels"],
        &["passes", "FILE"],
    ];
    for verb in verbs {
        let words: Vec<&str> =
            verb.iter().map(|word| if *word == "FILE" { trace.as_str() } else { word }).collect();
        for form in ["", "--json", "--csv"] {
            if (verb[0], form) != ("passes", "--csv") {
                let ran = dir.run(
                    &[&words[..], if form.is_empty() { &[] } else { std::slice::from_ref(&form) }].concat(),
                );
                ran.expect(0);
                is_fine(&ran, form, verb[0]);
            }
        }
    }
}

#[test]
fn no_line_of_a_report_is_wider_than_the_terminal() {
    let dir = Dir::new();
    let traces = [
        dir.fixture("matmul_result.rpd"),
        dir.unpacked("mytrace_raw.rpd"),
        dir.generated("made.rpd", &["--events", "3000", "--processes", "2"]),
    ];
    for trace in &traces {
        // Calls one by one and logduration's log are lines for other programs.
        for report in REPORTS.iter().filter(|report| !matches!(report[0], "api" | "durations")) {
            let arguments: Vec<&str> = report
                .iter()
                .map(|argument| match *argument {
                    "FILE" => trace,
                    "SOUND" => &traces[1],
                    "NAME" if report[0] == "kernel" => ".",
                    "NAME" => "execute_model",
                    other => other,
                })
                .collect();
            for columns in [60, 100, 200] {
                let result = ran(dir.rpd(&arguments).env("COLUMNS", columns.to_string()));
                for line in result.stdout.lines() {
                    assert!(rpd_postprocess::text::width(line) <= columns, "{columns}: {line}\n{result}");
                }
            }
        }
    }
}

#[test]
fn a_name_that_is_not_utf_8_is_said_in_words() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 12, 60);
    // A time far from all others: reports look at the columns of all tables then.
    let script = b"ALTER TABLE rocpd_op ADD COLUMN \"y\xfe\" integer;
        UPDATE rocpd_op SET start = 4000000000000000000, end = 4000000000000000001 WHERE id = (SELECT min(id) FROM rocpd_op);";
    dir.write("script.sql", script);
    let sqlite = dir.command("sh").args(["-c", "sqlite3 t.rpd < script.sql"]).output().unwrap();
    assert!(sqlite.status.success(), "{sqlite:?}");
    for verb in ["gaps", "top", "check", "table"] {
        dir.run(&[verb, &trace]).expect(1).says(&["t.rpd", "has a name that is not UTF-8"]);
    }
}
