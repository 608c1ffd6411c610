//! From a record to its rows: what the recorder needs, and what SQLite alone needs for the same rows in the same tables when
//! somebody has them ready in memory.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::types::Value;

use crate::harness::Dir;
use crate::program::{Company, Outcome, TABLES, run};
use crate::sample::{Samples, print_table};

/// Rows per INSERT.
const STATEMENT: usize = 100;
/// Rows per transaction: about what the recorder has in half a second.
const TRANSACTION: usize = 100_000;
/// Journals that the limit is measured with: the recorder's own, and none.
const LIMITS: [(&str, &str); 2] = [("limit", "DELETE"), ("limit without journal", "OFF")];

/// Rows into the file.
pub(crate) fn rows(samples: &mut Samples) {
    type Case = (&'static str, fn() -> Outcome);
    let cases: [Case; 2] = [("markers, unique text", markers), ("dispatches", dispatches)];
    for _ in 0..3 {
        for (case, record) in cases {
            let outcome = record();
            let rows = outcome.rows();
            samples.add("rows", case, "recorder", "rows per CPU s", rows / outcome.recorder_cpu_ns * 1e9);
            samples.add("rows", case, "recorder", "rows per s", rows / outcome.number("wall") * 1e9);
            let tables = read(&outcome.trace);
            for (limit, journal) in LIMITS {
                let cpu_ns = insert(&tables, &outcome.trace, journal);
                samples.add("rows", case, limit, "rows per CPU s", rows / cpu_ns * 1e9);
            }
        }
    }
    let mut table = vec![];
    for (case, _) in cases {
        let measure = "rows per CPU s";
        let millions = |variant, measure| samples.spread("rows", case, variant, measure).show(1e-6, 2);
        let of = |limit| samples.ratio("rows", case, ("recorder", measure), (limit, measure)).times();
        table.push(vec![
            case.to_string(),
            of(LIMITS[0].0),
            of(LIMITS[1].0),
            millions("recorder", measure),
            millions(LIMITS[0].0, measure),
            millions(LIMITS[1].0, measure),
            millions("recorder", "rows per s"),
        ]);
    }
    let columns = [
        "rows of",
        "recorder / INSERTs of 100 rows",
        "the same without a journal",
        "recorder, M rows per CPU s",
        "INSERTs",
        "without a journal",
        "recorder, M rows per s of wall",
    ];
    print_table("From the ring to the file", &columns, &table);
}

fn markers() -> Outcome {
    run("markers", &["flood", "1", "500000"].map(String::from), Company::Recorder, (1, 10_000), &[])
}

fn dispatches() -> Outcome {
    run("launches", &["2", "4", "100000"].map(String::from), Company::Recorder, (2, 200), &[])
}

struct Table {
    name: &'static str,
    columns: usize,
    cells: Vec<Value>,
}

/// Everything in the tables that events fill.
fn read(trace: &Path) -> Vec<Table> {
    let connection = Connection::open(trace).unwrap();
    let table = |name| {
        let mut statement = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
        let columns = statement.column_count();
        let mut cells = vec![];
        let mut rows = statement.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            cells.extend((0..columns).map(|column| row.get::<_, Value>(column).unwrap()));
        }
        Table { name, columns, cells }
    };
    TABLES.map(table).into_iter().filter(|table| !table.cells.is_empty()).collect()
}

/// CPU time of putting them into a fresh file with the same schema, ns.
fn insert(tables: &[Table], like: &Path, journal: &str) -> f64 {
    let dir = Dir::new();
    let connection = Connection::open(dir.path("limit.rpd")).unwrap();
    let settings = format!(
        "PRAGMA synchronous = OFF; PRAGMA journal_mode = {journal}; PRAGMA cache_size = -16384; \
         PRAGMA foreign_keys = OFF"
    );
    connection.execute_batch(&settings).unwrap();
    let original = Connection::open(like).unwrap();
    let schema = "SELECT sql FROM sqlite_master WHERE type IN ('table', 'index') AND name NOT LIKE 'sqlite_%' \
         AND sql IS NOT NULL";
    let mut statement = original.prepare(schema).unwrap();
    for sql in statement.query_map([], |row| row.get::<_, String>(0)).unwrap() {
        connection.execute_batch(&sql.unwrap()).unwrap();
    }
    let before = cpu_ns();
    // All tables grow together, as they do in a recording.
    let most = tables.iter().map(|table| table.cells.len() / table.columns).max().unwrap_or(0);
    let mut written = 0;
    connection.execute_batch("BEGIN").unwrap();
    for begin in (0..most).step_by(STATEMENT) {
        for table in tables {
            let end = (begin + STATEMENT) * table.columns;
            let cells =
                &table.cells[(begin * table.columns).min(table.cells.len())..end.min(table.cells.len())];
            written += insert_some(&connection, table, cells);
        }
        if written >= TRANSACTION {
            connection.execute_batch("COMMIT; BEGIN").unwrap();
            written = 0;
        }
    }
    connection.execute_batch("COMMIT").unwrap();
    cpu_ns() - before
}

/// One statement; how many rows that were.
fn insert_some(connection: &Connection, table: &Table, cells: &[Value]) -> usize {
    let rows = cells.len() / table.columns;
    if rows == 0 {
        return 0;
    }
    let row = format!("({})", vec!["?"; table.columns].join(","));
    let text = format!("INSERT INTO {} VALUES {}", table.name, vec![row; rows].join(","));
    let mut statement = connection.prepare_cached(&text).unwrap();
    for (place, cell) in cells.iter().enumerate() {
        statement.raw_bind_parameter(place + 1, cell).unwrap();
    }
    statement.raw_execute().unwrap();
    rows
}

fn cpu_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live timespec, and a clock that every Linux has.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
