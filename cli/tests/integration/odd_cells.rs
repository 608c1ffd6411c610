//! One cell of a trace that is not as the format has it, whichever it is: every verb ends, says what is wrong in a few words, and
//! check does not give up.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::generated::generated;
use crate::harness::Dir;

/// Traces that are tried; each is several runs of rpd.
fn cases() -> u32 {
    if std::env::var_os("RPD_SOAK").is_some() { 500 } else { 12 }
}

pub(crate) const TABLES: [&str; 13] = [
    "rocpd_api",
    "rocpd_op",
    "rocpd_api_ops",
    "rocpd_string",
    "rocpd_kernelapi",
    "rocpd_copyapi",
    "rocpd_metadata",
    "rocpd_monitor",
    "ext_dispatch",
    "ext_replacement",
    "ext_candidate",
    "ext_instrumentation",
    "ext_memoryaccess",
];

const VALUES: [&str; 9] = [
    "NULL",
    "1.5",
    "1e300",
    "''",
    "'text'",
    "x'ff00fe'",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
];

/// Makes the columns of a table take any value.
pub(crate) fn undeclare(dir: &Dir, trace: &str, table: &str) {
    let file = dir.open(trace);
    let columns = {
        let columns = file.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let names: Vec<String> = columns.column_names().map(|name| format!("\"{name}\"")).collect();
        names.join(", ")
    };
    file.execute_batch(&format!(
        "CREATE TABLE undeclared ({columns}); INSERT INTO undeclared SELECT * FROM {table};
         PRAGMA legacy_alter_table = ON; DROP TABLE {table}; ALTER TABLE undeclared RENAME TO {table}"
    ))
    .unwrap();
}

/// Puts `value` into a column of every so many rows, or gives the column another name.
fn damage(dir: &Dir, trace: &str, (table, column, value, every): (usize, usize, usize, i64)) -> String {
    let table = TABLES[table];
    undeclare(dir, trace, table);
    let file = dir.open(trace);
    let columns: Vec<String> = {
        let select = file.prepare(&format!("SELECT * FROM {table}")).unwrap();
        select.column_names().map(ToString::to_string).collect()
    };
    let column = &columns[column % columns.len()];
    let sql = match VALUES.get(value) {
        Some(value) => format!("UPDATE {table} SET \"{column}\" = {value} WHERE rowid % {every} = 0"),
        None => {
            format!("PRAGMA legacy_alter_table = ON; ALTER TABLE {table} RENAME COLUMN \"{column}\" TO other")
        }
    };
    file.execute_batch(&sql).unwrap();
    sql
}

#[test]
fn a_cell_that_is_not_as_it_should_be_is_reported_in_a_few_words() {
    let damages = (0..TABLES.len(), 0..20_usize, 0..=VALUES.len(), 1..9_i64);
    let config =
        Config { cases: cases(), failure_persistence: None, max_shrink_iters: 40, ..Config::default() };
    let result = TestRunner::new(config).run(&damages, |damaged| {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", 7, 40);
        let sql = damage(&dir, &trace, damaged);
        for verb in [
            &["check"][..],
            &["info"],
            &["info", "--json"],
            &["top"],
            &["api"],
            &["top", "--by", "stream", "--percentiles"],
            &["gaps"],
            &["copies"],
            &["queues"],
            &["categories"],
            &["memory"],
            &["markers", "--json"],
            &["replacements"],
            &["replacements", "--json", "t.rpd"],
            &["durations"],
            &["export", "chrome", "-o", "/dev/null"],
            &["export", "chrome", "-o", "/dev/null", "--gpu", "0", "--in", "k", "--stream", "0x1"],
            &["passes"],
            &["trim", "--dry-run", "--end", "50%"],
            &["trim", "-o", "out.rpd", "--end", "50%"],
            &["merge", "--same-host", "-o", "all.rpd", "out.rpd"],
            &["callstack"],
            &["graph"],
            &["autograd"],
            &["deserialize"],
            &["subclass", "--base", "api", "--name", "mem", "--apis", "hipMalloc"],
            &["strings", "--dedupe"],
            &["check", "--repair"],
        ] {
            let ran = dir.run(&[verb, &[trace.as_str()]].concat());
            prop_assert!(matches!(ran.status.code(), Some(0 | 1)), "{sql}: {ran}");
            for line in ran.stderr.lines() {
                prop_assert!(line.len() < 400 && !line.contains("SELECT"), "{sql}: {ran}");
            }
            prop_assert!(!ran.stderr.contains("cannot check"), "{sql}: {ran}");
        }
        prop_assert!(dir.names().iter().all(|name| !name.starts_with(".rpd-")), "{sql}");
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
}
