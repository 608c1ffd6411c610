//! Every format of `rpd export` over traces that are hostile, damaged or empty: a clear error, or a whole file.

use serde_json::Value;

use crate::generated::generated;
use crate::harness::Dir;
use crate::odd_cells::{TABLES, undeclare};

/// How the output of a format is looked at.
#[derive(Clone, Copy, PartialEq)]
enum Written {
    Json,
    /// A JSON object on each line.
    Lines,
    /// Lines of text.
    Text,
    /// Bytes that are no text.
    Binary,
}

/// Format, what of it, and what it writes. CSV has what a spreadsheet shows, JSON Lines exact texts as JSON has them.
const FORMATS: [(&[&str], Written); 21] = [
    (&["chrome"], Written::Json),
    (&["chrome", "--format", "array", "--absolute"], Written::Json),
    (&["perfetto"], Written::Binary),
    (&["kineto"], Written::Json),
    (&["rocprofv3"], Written::Json),
    (&["collapsed", "--threads"], Written::Text),
    (&["collapsed", "--time", "cpu"], Written::Text),
    (&["speedscope"], Written::Json),
    (&["speedscope", "--time", "cpu", "--exact"], Written::Json),
    (&["html"], Written::Text),
    (&["timeline"], Written::Text),
    (&["timeline", "--args"], Written::Text),
    (&["timeline", "--levels"], Written::Text),
    (&["library-trace"], Written::Text),
    (&["library-perf"], Written::Text),
    (&["csv", "kernels"], Written::Text),
    (&["csv", "copies"], Written::Text),
    (&["jsonl", "apis"], Written::Lines),
    (&["jsonl", "markers"], Written::Lines),
    (&["arrow", "kernels"], Written::Binary),
    (&["arrow", "markers"], Written::Binary),
];

/// Exports the trace in every format, of which those that end well have `each` look at their text.
fn every(dir: &Dir, trace: &str, what: &str, each: &mut dyn FnMut(&[&str], &str)) {
    let parquet = (&["parquet", "kernels"][..], Written::Binary);
    for (format, written) in FORMATS.into_iter().chain([parquet]) {
        let arguments = [&["export", format[0], trace], &format[1..], &["-o", "out"]].concat();
        let ran = dir.run(&arguments);
        assert!(matches!(ran.status.code(), Some(0 | 1)), "{what}: {ran}");
        let is_long = |line: &str| line.len() > 400 || line.contains("SELECT");
        assert!(!ran.stderr.lines().any(is_long), "{what}: {ran}");
        if ran.status.code() == Some(1) {
            assert!(!ran.stderr.is_empty() && !dir.path("out").exists(), "{what}: {ran}");
            continue;
        }
        let bytes = std::fs::read(dir.path("out")).unwrap();
        std::fs::remove_file(dir.path("out")).unwrap();
        if written == Written::Binary {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap_or_else(|error| panic!("{what}: {format:?}: {error}"));
        let harms = |c: char| !matches!(c, '\n' | '\r') && rpd_escape::is_unsafe(c);
        assert!(!text.chars().any(harms), "{what}: {format:?}");
        match written {
            Written::Json => drop(serde_json::from_str::<Value>(&text).unwrap()),
            Written::Lines => {
                text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()))
            }
            Written::Text | Written::Binary => {}
        }
        each(format, &text);
    }
}

#[test]
fn of_an_empty_trace_every_format_is_a_whole_file() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", "");
    let mut written = 0;
    every(&dir, &trace, "empty", &mut |_, _| written += 1);
    assert_eq!(written, FORMATS.iter().filter(|(_, written)| *written != Written::Binary).count());
}

#[test]
fn names_of_any_bytes_harm_no_format() {
    for name in [
        "'a\"b\\c' || char(10, 13, 9, 27) || '[2J'",
        "'</script><b>;' || char(0x202e) || '=1+1'",
        "CAST(x'ff00fe41' AS TEXT)",
        "printf('%.5000c', 'x') || ' 7'",
        "'@SUM(A1) 3.5'",
        "''",
        "char(0x7f, 0x9b, 0xe0001, 0x2028)",
    ] {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", 3, 30);
        dir.open(&trace)
            .execute_batch(&format!(
                "UPDATE rocpd_string SET string = {name} WHERE id % 3 = 0 AND string NOT IN ('UserMarker', 'KernelExecution', '');
                 UPDATE rocpd_metadata SET value = {name} WHERE tag LIKE '%command' OR tag LIKE '%name';"
            ))
            .unwrap();
        let mut written = 0;
        every(&dir, &trace, name, &mut |format, text| {
            written += 1;
            // Cells of a spreadsheet that would be formulas.
            let formula = |line: &str| line.starts_with(['=', '@', '+', '-']);
            assert!(
                !matches!(format[0], "csv" | "library-trace" | "library-perf") || !text.lines().any(formula),
                "{name}"
            );
        });
        assert_eq!(written, FORMATS.iter().filter(|(_, written)| *written != Written::Binary).count());
    }
}

#[test]
fn a_missing_table_is_an_error_or_nothing() {
    for table in TABLES {
        let dir = Dir::new();
        let trace = generated(&dir, "t.rpd", 3, 30);
        undeclare(&dir, &trace, table);
        dir.open(&trace)
            .execute_batch(&format!("PRAGMA legacy_alter_table = ON; DROP TABLE {table}"))
            .unwrap();
        every(&dir, &trace, table, &mut |_, _| {});
    }
}

#[test]
fn values_that_cannot_be_are_left_out() {
    for table in
        ["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_kernelapi", "rocpd_copyapi", "rocpd_stackframe"]
    {
        for value in ["NULL", "'text'", "x'00ff'", "-1", "1.5", "9223372036854775807", "-9223372036854775808"]
        {
            let dir = Dir::new();
            let trace = generated(&dir, "t.rpd", 3, 20);
            undeclare(&dir, &trace, table);
            let file = dir.open(&trace);
            let columns: Vec<String> = {
                let select = file.prepare(&format!("SELECT * FROM {table}")).unwrap();
                select.column_names().map(ToString::to_string).collect()
            };
            // Each row has one such value, one row after the other in another column.
            for (at, column) in columns.iter().enumerate() {
                let every = columns.len();
                file.execute_batch(&format!(
                    "UPDATE {table} SET \"{column}\" = {value} WHERE rowid % {every} = {at}"
                ))
                .unwrap();
            }
            drop(file);
            every(&dir, &trace, &format!("{table} {value}"), &mut |_, _| {});
        }
    }
}

#[test]
fn every_format_says_alike_what_cannot_be_written() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    // The trace has no markers and no calls of libraries: nothing is written of them.
    let formats = FORMATS
        .map(|(format, _)| format)
        .into_iter()
        .filter(|format| !format.contains(&"markers") && format[0] != "library-perf");
    for format in formats.chain([&["parquet", "kernels"][..]]) {
        let export = |output| {
            dir.run(&[&["export", format[0], &trace], &format[1..], &["-o", output]].concat()).stderr.clone()
        };
        assert_eq!(
            [export("/dev/full"), export("no/out")],
            [
                "rpd: cannot write to /dev/full: No space left on device (os error 28)\n",
                "rpd: cannot write no/out: No such file or directory (os error 2)\n"
            ],
            "{format:?}"
        );
    }
}
