//! Databases whose texts are UTF-16: every verb makes of them what it makes of the same trace in UTF-8.

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::generated::{generated, rows};
use crate::harness::{Dir, Ran};

const ENCODINGS: [&str; 2] = ["UTF-16le", "UTF-16be"];

/// Tables, indexes and views of a file: kind, name, statement.
fn objects(trace: &Connection) -> Vec<(String, String, String)> {
    let mut objects = trace
        .prepare("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' ORDER BY rowid")
        .unwrap();
    let objects = objects.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    objects.unwrap().collect::<Result<_, _>>().unwrap()
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A copy of a trace, object by object and row by row, with its texts in `encoding`.
fn recoded(dir: &Dir, trace: &str, name: &str, encoding: &str) -> String {
    let (from, to) = (dir.open(trace), dir.open(name));
    to.pragma_update(None, "encoding", encoding).unwrap();
    to.execute_batch("BEGIN").unwrap();
    let objects = objects(&from);
    for (_, table, sql) in objects.iter().filter(|(kind, ..)| kind == "table") {
        to.execute(sql, []).unwrap();
        let mut select = from.prepare(&format!("SELECT * FROM {}", quoted(table))).unwrap();
        let columns = select.column_count();
        let places = vec!["?"; columns].join(", ");
        let mut insert = to.prepare(&format!("INSERT INTO {} VALUES ({places})", quoted(table))).unwrap();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let cells = (0..columns).map(|at| row.get::<_, Value>(at).unwrap());
            insert.execute(rusqlite::params_from_iter(cells)).unwrap();
        }
    }
    for (.., sql) in objects.iter().filter(|(kind, ..)| kind != "table") {
        to.execute(sql, []).unwrap();
    }
    to.execute_batch("COMMIT").unwrap();
    name.to_string()
}

/// What a trace holds: each object, and each row of each table.
fn content(dir: &Dir, trace: &str) -> Vec<String> {
    let trace = dir.open(trace);
    let mut content = Vec::new();
    for (kind, name, sql) in objects(&trace) {
        if kind == "table" {
            let rows = rows(&trace, &format!("SELECT * FROM {}", quoted(&name)));
            content.extend(rows.into_iter().map(|row| format!("{name} {row:?}")));
        }
        content.push(sql);
    }
    content.sort();
    content
}

fn encoding(dir: &Dir, trace: &str) -> String {
    dir.open(trace).query_row("PRAGMA encoding", [], |row| row.get(0)).unwrap()
}

/// What was said, with the file's name, and its size, taken out.
fn said(ran: &Ran, trace: &str) -> String {
    let all = format!("{:?}\n{}\n{}", ran.status, ran.stdout, ran.stderr).replace(trace, "FILE");
    let is_size = |line: &&str| line.starts_with("size ") || line.contains("\"size_bytes\"");
    all.lines().filter(|line| !is_size(line)).collect::<Vec<_>>().join("\n")
}

/// Does the same to a trace in UTF-8 and to copies of it in UTF-16.
fn same_for(dir: &Dir, trace: &str) {
    let verbs: &[&[&str]] = &[
        &["check", "--json"],
        &["info"],
        &["info", "--json"],
        &["top", "--json"],
        &["gaps", "--json"],
        &["overlap", "--json"],
        &["top", "--by", "marker", "--csv"],
        &["api"],
        &["trim", "--dry-run", "--json", "--start", "10%", "--end", "kernel:.*"],
        &["deserialize", "--json"],
        &[
            "subclass",
            "--base",
            "api",
            "--name",
            "mem",
            "--apis",
            "hipMalloc,hipFree",
            "--types",
            "size=integer",
        ],
        &["callstack", "--json"],
        &["graph", "--json"],
        &["autograd", "--json"],
        &["autograd", "--redo", "--json"],
        &["strings", "--dedupe", "--json"],
        &["passes", "--json"],
        &["check", "--repair", "--json"],
        &["trim", "--in-place", "--json", "--start", "5%", "--end", "75%"],
        &["check"],
    ];
    for name in ENCODINGS {
        let plain = recoded(dir, trace, "plain.rpd", "UTF-8");
        let wide = recoded(dir, trace, "wide.rpd", name);
        for verb in verbs {
            let [of_plain, of_wide] =
                [&plain, &wide].map(|trace| said(&dir.run(&[*verb, &[trace.as_str()]].concat()), trace));
            assert_eq!(of_plain, of_wide, "{name} {verb:?}");
            assert!(content(dir, &plain) == content(dir, &wide), "{name} {verb:?}");
            assert_eq!(encoding(dir, &wide), name, "{verb:?}");
        }
        for (file, other) in [(&plain, "plain2.rpd"), (&wide, "wide2.rpd")] {
            std::fs::copy(dir.path(file), dir.path(other)).unwrap();
            let out = format!("all_{file}");
            dir.run(&["merge", "--same-host", "-o", &out, file, other]).expect(0);
        }
        assert!(content(dir, "all_plain.rpd") == content(dir, "all_wide.rpd"), "{name}");
        let mixed = dir.run(&["merge", "--same-host", "-o", "mixed.rpd", &plain, &wide]);
        mixed.expect(1).says(&["plain.rpd", "UTF-8", "wide.rpd", name, ".dump"]);
        for file in ["plain.rpd", "plain2.rpd", "all_plain.rpd", "wide.rpd", "wide2.rpd", "all_wide.rpd"] {
            std::fs::remove_file(dir.path(file)).unwrap();
        }
    }
}

#[test]
fn a_real_trace_in_utf_16_is_worked_on_as_in_utf_8() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    same_for(&dir, &trace);
}

#[test]
fn operators_and_texts_of_all_kinds_in_utf_16_are_read_as_in_utf_8() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 17, 60);
    dir.open(&trace)
        .execute_batch(
            "INSERT INTO rocpd_string VALUES (900, 'aten::mm, seq = 1, op_id = 2, sizes = [[1, 2]]'), (901, '核 µ 😀'),
                 (902, 's_api = BlockAlloc | size = 0x20'), (903, 's_op = Io | bytes = 3'), (904, 'size = 0x10 | ptr = 核');
             INSERT INTO rocpd_api VALUES (900, 100, 100, 1000010, 1000020, 2, 900), (901, 100, 100, 1000030, 1000040, 2, 901),
                 (902, 100, 100, 1000050, 1000060, 2, 902), (903, 100, 100, 1000070, 1000080, 2, 903),
                 (904, 100, 100, 1000090, 1000099, 3, 904);",
        )
        .unwrap();
    same_for(&dir, &trace);
}
