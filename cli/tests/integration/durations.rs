//! `rpd durations`: logduration's log, from a trace.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::harness::{Dir, RPD, ran};

/// Two kernels and a copy, out of order of time; one kernel that a call launched, one that two did, one that none did.
const ROWS: &str = r#"
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'CopyHostToDevice'), (4, 'hipLaunchKernel'),
        (5, 'void gemm<float, 4>(float*, int)'), (6, 'saxpy'), (7, '=cmd("x")' || char(27) || '[2J'), (8, 'Task');
    INSERT INTO rocpd_api VALUES (1, 7, 7, 100, 200, 4, 1), (2, 7, 7, 150, 250, 4, 1), (3, 7, 7, 300, 310, 4, 1);
    INSERT INTO rocpd_op VALUES (1, 0, 1, 1, '', 900, 950, 5, 2), (2, 0, 1, 2, '', 400, 500, 6, 2),
        (3, 0, 1, 3, '', 600, 600, 7, 8), (4, 0, 0, 0, '', 700, 800, 1, 3), (5, 0, 1, 4, '', 960, 955, 5, 2);
    INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (3, 1), (1, 2), (2, 2), (99, 3), (1, 4);"#;

#[test]
fn dispatches_in_order_of_time_in_both_forms() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    let csv = dir.run(&["durations", &trace]);
    assert_eq!(
        csv.expect(0).stdout,
        "kernel,dispatch,startNs,endNs\n\
         saxpy,100,400,500\n\
         \"'=cmd(\"\"x\"\")\\x1b[2J\",600,600,600\n\
         \"void gemm<float, 4>(float*, int)\",300,900,950\n"
    );
    csv.says(&["t.rpd: 1 dispatch is left out", "rpd check"]);
    let json = dir.run(&["durations", "--format", "json", &trace]);
    let lines: Vec<serde_json::Value> =
        json.expect(0).stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[0],
        serde_json::json!({"kernel": "saxpy", "dispatch": 100, "startNs": 400, "endNs": 500})
    );
    assert_eq!(lines[1]["kernel"], "=cmd(\"x\")\u{1b}[2J");
    assert!(!json.stdout.contains('\u{1b}'), "{json}");
}

#[test]
fn the_pattern_is_searched_for_in_the_name() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ROWS);
    let kernels = |pattern: &str| {
        dir.run(&["durations", "--kernel", pattern, &trace]).expect(0).stdout.lines().count() - 1
    };
    assert_eq!(
        [kernels("gemm"), kernels("^gemm"), kernels("^void gemm<.*>"), kernels("gemm|saxpy")],
        [1, 0, 1, 2]
    );
    let none = dir.run(&["durations", "--kernel", "nothing", &trace]);
    none.expect(0).says(&["no such dispatch"]);
    assert_eq!(none.stdout, "kernel,dispatch,startNs,endNs\n");
    dir.run(&["durations", "--kernel", "(?=gemm)", &trace]).expect(2);
}

/// A time that spans days where all others are within moments of each other is none.
#[test]
fn times_far_from_all_others_are_left_out() {
    let dir = Dir::new();
    let rows = "
        WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n WHERE i < 400)
        INSERT INTO rocpd_op SELECT i, 0, 1, i, '', i * 1000, i * 1000 + 500, 6, 2 FROM n;
        INSERT INTO rocpd_op VALUES (500, 0, 1, 500, '', 450000, 450000 + 3 * 86400 * 1000000000, 6, 2);";
    let trace = dir.trace("t.rpd", &format!("{ROWS}{rows}"));
    let answer = dir.run(&["durations", "--kernel", "saxpy", &trace]);
    assert_eq!(answer.expect(0).stdout.lines().count(), 1 + 1 + 391, "{answer}");
    answer.says(&["t.rpd: 1 dispatch is left out"]);
}

#[test]
fn what_another_recorder_wrote_is_read_as_well() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let dispatches = "SELECT o.description, coalesce(min(a.start), o.start), o.start, o.\"end\" FROM op o
        LEFT JOIN rocpd_api_ops l ON l.op_id = o.id LEFT JOIN rocpd_api a ON a.id = l.api_id
        WHERE o.opType IN ('KernelExecution', 'Task') GROUP BY o.id ORDER BY o.start, o.\"end\"";
    let connection = dir.open(&trace);
    let mut rows = connection.prepare(dispatches).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))).unwrap();
    let expected: Vec<(String, i64, i64, i64)> = rows.collect::<Result<_, _>>().unwrap();
    assert!(expected.len() > 20);
    let answer = dir.run(&["durations", &trace]);
    let mut csv = csv::Reader::from_reader(answer.expect(0).stdout.as_bytes());
    let found: Vec<(String, i64, i64, i64)> = csv.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(found, expected);
}

/// A trace whose log is larger than what a pipe holds.
fn many(dir: &Dir) -> String {
    let rows = "WITH RECURSIVE n (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM n WHERE n < 50000)
        INSERT INTO rocpd_op SELECT n, 0, 1, n, '', n * 10, n * 10 + 5, 3, 2 FROM n;";
    let texts = "INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'kernel');";
    dir.trace("many.rpd", &format!("{texts}{rows}"))
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    let dir = Dir::new();
    let trace = many(&dir);
    for format in ["csv", "json"] {
        let mut command = dir.rpd(&["durations", "--format", format, &trace]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut [0; 1]).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{format}: {output:?}");
        let shell = format!("{RPD} durations --format {format} {trace} | head -2; exit ${{PIPESTATUS[0]}}");
        let head = ran(dir.command("bash").args(["-c", &shell]));
        assert!(head.expect(0).stdout.lines().count() == 2 && head.stderr.is_empty(), "{head}");
        let full = ran(dir
            .command("bash")
            .args(["-c", &format!("{RPD} durations --format {format} {trace} > /dev/full")]));
        full.expect(1).says(&["cannot write to standard output", "No space left"]);
    }
}

#[test]
fn a_file_appears_when_it_is_complete() {
    let dir = Dir::new();
    let trace = many(&dir);
    let whole = dir.run(&["durations", &trace]).expect(0).stdout.clone();
    assert_eq!(whole.lines().count(), 50_001);
    dir.write("old.csv", "what was there");
    for name in ["new.csv", "old.csv"] {
        let answer = dir.run(&["durations", &trace, "-o", name]);
        assert!(answer.expect(0).stdout.is_empty(), "{answer}");
        assert!(fs::read(dir.path(name)).unwrap() == whole.as_bytes());
    }
    let mode = fs::metadata(dir.path("new.csv")).unwrap().permissions().mode() & 0o777;
    let touched = ran(dir.command("touch").arg("touched"));
    touched.expect(0);
    assert_eq!(mode, fs::metadata(dir.path("touched")).unwrap().permissions().mode() & 0o777);
    assert_eq!(dir.run(&["durations", &trace, "-o", "-"]).expect(0).stdout, whole);
    dir.run(&["durations", &trace, "-o", "/dev/null"]).expect(0);
    dir.run(&["durations", &trace, "-o", "/dev/full"]).expect(1).says(&["/dev/full", "No space left"]);
    dir.run(&["durations", &trace, "-o", "no/such.csv"]).expect(1).says(&["no/such.csv"]);
    assert_eq!(dir.names(), ["many.rpd", "new.csv", "old.csv", "touched"]);
    // A trace is not written over, the one that is read least of all.
    let before = fs::read(dir.path(&trace)).unwrap();
    dir.trace("other.rpd", "");
    for name in [trace.as_str(), "other.rpd"] {
        dir.run(&["durations", &trace, "-o", name]).expect(1).says(&[name, "is a trace"]);
    }
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
}

#[test]
fn a_failure_in_the_middle_leaves_the_file_as_it_was() {
    let dir = Dir::new();
    let trace = many(&dir);
    dir.write("out.csv", "what was there");
    let root: u32 = dir
        .open(&trace)
        .query_row("SELECT rootpage FROM sqlite_master WHERE name = 'rocpd_op'", [], |row| row.get(0))
        .unwrap();
    let mut bytes = fs::read(dir.path(&trace)).unwrap();
    // A page in the middle of the table.
    let last = bytes.len() - 4096 * 20;
    assert!(last > root as usize * 4096);
    bytes[last..last + 4096].fill(0xa5);
    fs::write(dir.path(&trace), bytes).unwrap();
    dir.run(&["durations", &trace, "-o", "out.csv"]).expect(1).says(&["many.rpd", "malformed"]);
    assert_eq!(fs::read_to_string(dir.path("out.csv")).unwrap(), "what was there");
    assert_eq!(dir.names(), ["many.rpd", "out.csv"]);
}
