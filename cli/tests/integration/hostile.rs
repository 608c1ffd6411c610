//! Passes over files that are damaged, odd, locked, read-only or full: a clear message or a counted skip, and the file
//! as it was after every failure.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::check_file::bound_rpd;
use crate::harness::{Dir, RPD, Ran, finished, ran};
use crate::pass::PASSES;

/// Fails unless the command failed in one line with these words and left the file alone.
#[track_caller]
fn refused(dir: &Dir, trace: &str, before: &[u8], ran: &Ran, words: &[&str]) {
    ran.expect(1).says(words);
    assert!(fs::read(dir.path(trace)).unwrap() == before, "changed: {ran}");
}

#[test]
fn a_file_that_was_cut_off_stays_as_it_is() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let whole = fs::read(dir.path(&trace)).unwrap();
    for length in [whole.len() / 2, whole.len() - 4096, whole.len() - 1, 100] {
        dir.write(&trace, &whole[..length]);
        for (pass, _) in PASSES {
            refused(&dir, &trace, &whole[..length], &dir.run(&[pass, &trace]), &[&trace]);
        }
    }
}

#[test]
fn a_damaged_page_stops_a_pass_or_does_not_matter() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let whole = fs::read(dir.path(&trace)).unwrap();
    let mut stopped = 0;
    for page in (1..whole.len() / 4096).step_by(37) {
        let mut damaged = whole.clone();
        damaged[page * 4096..page * 4096 + 2048].fill(0xa5);
        for (pass, _) in PASSES {
            dir.write(&trace, &damaged);
            let ran = dir.run(&[pass, &trace]);
            if ran.status.success() {
                continue;
            }
            stopped += 1;
            refused(&dir, &trace, &damaged, &ran, &[&trace, "damaged", "rpd check"]);
        }
    }
    assert!(stopped > 5, "{stopped}");
}

#[test]
fn a_missing_table_is_named_and_missing_views_are_nothing() {
    for (pass, _) in PASSES {
        let dir = Dir::new();
        let trace = dir.fixture("matmul_result.rpd");
        let (table, column) = match pass {
            "callstack" => ("rocpd_api_ops", "ALTER TABLE rocpd_api RENAME COLUMN tid TO thread"),
            _ => ("rocpd_kernelapi", "ALTER TABLE rocpd_api RENAME COLUMN pid TO process"),
        };
        let views: Vec<String> = {
            let connection = dir.open(&trace);
            let mut names = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'view'").unwrap();
            names.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        for view in views {
            dir.open(&trace).execute_batch(&format!("DROP VIEW {view}")).unwrap();
        }
        let without_views = fs::read(dir.path(&trace)).unwrap();
        dir.run(&[pass, &trace]).expect(0);
        for (sql, words) in [
            (format!("DROP TABLE {table}"), [table, "rpd check --repair"]),
            (column.into(), ["not as the format has them", "rpd check"]),
        ] {
            dir.write(&trace, &without_views);
            dir.open(&trace).execute_batch(&sql).unwrap();
            let before = fs::read(dir.path(&trace)).unwrap();
            let said = dir.run(&[pass, &trace]);
            refused(&dir, &trace, &before, &said, &[&[pass, "was not made"], &words[..]].concat());
        }
    }
}

#[test]
fn a_name_that_is_something_else_is_not_taken_away() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.open(&trace).execute_batch("CREATE TABLE callstack_inclusive (mine)").unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    refused(
        &dir,
        &trace,
        &before,
        &dir.run(&["callstack", &trace]),
        &["table", "callStack_inclusive", "view"],
    );
}

#[test]
fn triggers_of_a_file_do_not_run() {
    let dir = Dir::new();
    let trace = dir.generated("t.rpd", &["--events", "300"]);
    dir.open(&trace)
        .execute_batch(
            "CREATE TRIGGER one AFTER INSERT ON rocpd_string BEGIN DELETE FROM rocpd_op; END;
             CREATE TRIGGER two AFTER UPDATE ON rocpd_api BEGIN DELETE FROM rocpd_op; END;
             CREATE TRIGGER three AFTER DELETE ON rocpd_string BEGIN DELETE FROM rocpd_op; END;",
        )
        .unwrap();
    let ops = || -> i64 {
        dir.open(&trace).query_row("SELECT count(*) FROM rocpd_op", [], |row| row.get(0)).unwrap()
    };
    let before = ops();
    for (pass, _) in PASSES {
        dir.run(&[pass, &trace]).expect(0);
    }
    dir.run(&["strings", "--dedupe", &trace]).expect(0);
    assert_eq!((ops(), before > 0), (before, true));
}

#[test]
fn texts_without_room_behind_them_are_said_to_be_that() {
    let dir = Dir::new();
    let trace = dir.trace("t.rpd", ODD);
    dir.open(&trace).execute_batch("INSERT INTO rocpd_string VALUES (9223372036854775807, 'last')").unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    let said = dir.run(&["autograd", &trace]);
    refused(&dir, &trace, &before, &said, &["autograd was not made", "rocpd_string", "largest id"]);
}

#[test]
fn a_trace_without_metadata_is_of_another_schema() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.open(&trace).execute_batch("DROP TABLE rocpd_metadata").unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    for (pass, _) in PASSES {
        refused(&dir, &trace, &before, &dir.run(&[pass, &trace]), &["schema 1", "only schema 2 and 3"]);
    }
}

/// Everything at once that recorders and people have put into files.
const ODD: &str = r#"
    INSERT INTO rocpd_string VALUES (1, ''), (2, 'UserMarker'), (3, 'hipGraphLaunch'), (4, 'KernelExecution'),
        (5, 'it''s "quoted"; DROP TABLE rocpd_api; --'), (6, 'line' || char(10) || 'break, op_id = 5'),
        (7, 'graphExec = 0xa | stream = ''; DROP TABLE rocpd_api; --'), (8, 'hipStreamBeginCapture'),
        (9, 'stream = 0x5 | "weird key"" x" = 1'), (10, CAST(x'ff2c206f705f6964203d2031' AS text));
    INSERT INTO rocpd_api VALUES (1, 7, 8, 0, 100, 5, 5), (2, 7, 8, '', 50, 5, 5), (3, 7, 8, 'soon', 50, 5, 5),
        (4, '', 8, 10, 20, 5, 5), (5, 7, 8, 50, 40, 5, 5), (6, 7, 8, -9223372036854775808, 9223372036854775807, 5, 5),
        (7, 7, 8, 10, 20, 2, 6), (8, 7, 8, 30, 40, 3, 7), (9, 7, 8, 50, 60, 99, 99), (10, 7, 8, 60, 70, 8, 9),
        (11, 7, 8, 71, 72, 2, 10), (9223372036854775807, 7, 8, 80, 90, 5, 5);
    INSERT INTO rocpd_op VALUES (1, 0, 0, 0, '', 100, 130, 5, 4), (2, 0, 0, 0, '', '', 130, 5, 4),
        (3, 0, 0, 0, '', 200, 100, 5, 4), (9223372036854775807, 0, 0, 0, '', 0, 9223372036854775807, 5, 4);
    INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (1, 1), (1, 2), (1, 3), (1, 77), (77, 1), ('', 1), (1, 'x'),
        (8, 1), (9223372036854775807, 9223372036854775807), (9223372036854775807, 9223372036854775807);
    INSERT INTO rocpd_kernelapi VALUES (1, 'x''y', '', '', '', 1, 1, 1, '', '', '', '', '', '', 5),
        (555, '', 1, 1, 1, 1, 1, 1, 1, 1, '', '', '', '', 999);
"#;

#[test]
fn what_cannot_be_is_counted_and_the_rest_is_right() {
    let dir = Dir::new();
    let trace = dir.trace("odd.rpd", ODD);
    let remarks = |pass: &str| -> Vec<(String, u64)> {
        let json: serde_json::Value =
            serde_json::from_str(&dir.run(&[pass, "--json", "--redo", &trace]).expect(0).stdout).unwrap();
        let remarks = json["remarks"].as_array().unwrap().iter();
        remarks
            .map(|remark| (remark["kind"].as_str().unwrap().to_string(), remark["count"].as_u64().unwrap()))
            .collect()
    };
    let result = |remarks: &[(&str, u64)]| {
        remarks.iter().map(|(kind, count)| (kind.to_string(), *count)).collect::<Vec<_>>()
    };
    assert_eq!(
        remarks("callstack"),
        result(&[("impossible-calls", 5), ("impossible-ops", 4), ("dangling-links", 4)])
    );
    assert_eq!(remarks("graph"), result(&[("unfinished-captures", 1), ("composed-graphs", 1)]));
    assert_eq!(remarks("autograd"), result(&[("look-alikes", 1)]));
    let connection = dir.open(&trace);
    let text = |query: &str| connection.query_row(query, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(text("SELECT autogradName FROM autograd"), "line\nbreak");
    assert_eq!(text("SELECT stream FROM ext_graph"), "'; DROP TABLE rocpd_api; --");
    assert_eq!(text("SELECT \"weird key\"\"\"\" x\" FROM rocpd_graphapi"), "1");
    let number = |query: &str| connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(number("SELECT count(*) FROM ext_callstack WHERE depth = 0"), 7);
    assert_eq!(number("SELECT cpu_time FROM callStack_inclusive WHERE parent_id = 1"), 100);
}

#[test]
fn calls_nested_without_end_are_refused() {
    let dir = Dir::new();
    let rows: String = (0..3000)
        .map(|level| {
            format!("INSERT INTO rocpd_api VALUES ({}, 7, 8, {level}, {}, 1, 1);", level + 1, 100_000 - level)
        })
        .collect();
    let trace =
        dir.trace("deep.rpd", &format!("BEGIN; INSERT INTO rocpd_string VALUES (1, ''); {rows} COMMIT;"));
    let before = fs::read(dir.path(&trace)).unwrap();
    refused(&dir, &trace, &before, &dir.run(&["callstack", &trace]), &["thread 8", "deep", "rpd trim"]);
}

#[test]
fn a_read_only_file_or_directory_is_reported() {
    for (pass, _) in PASSES {
        let dir = Dir::new();
        let trace = dir.unpacked("mytrace_raw.rpd");
        dir.install(RPD, "rpd");
        let before = fs::read(dir.path(&trace)).unwrap();
        let set_mode =
            |path: &str, mode| fs::set_permissions(dir.path(path), fs::Permissions::from_mode(mode)).unwrap();
        let mut command = bound_rpd(&dir, &[pass, &trace]);
        set_mode(&trace, 0o444);
        refused(&dir, &trace, &before, &ran(&mut command), &[&trace, "read-only"]);
        set_mode(&trace, 0o666);
        set_mode("", 0o555);
        let said = ran(&mut command);
        set_mode("", 0o755);
        refused(&dir, &trace, &before, &said, &[&trace, "as it was"]);
    }
}

#[test]
fn a_full_disk_leaves_the_file_as_it_was() {
    for (pass, _) in PASSES {
        let dir = Dir::new();
        let trace = dir.unpacked("mytrace_raw.rpd");
        let before = fs::read(dir.path(&trace)).unwrap();
        // Blocks of 1024 bytes: a little more than the file has.
        let blocks = before.len() / 1024 + 8;
        let shell = format!("ulimit -f {blocks}; exec {RPD} {pass} {trace}");
        let said = ran(dir.command("bash").args(["-c", &shell]));
        refused(&dir, &trace, &before, &said, &[pass, "was not made", "as it was"]);
        assert_eq!(dir.names(), [trace.as_str()]);
    }
}

#[test]
fn a_file_larger_than_files_may_get_is_left_alone() {
    let dir = Dir::new();
    let trace = dir.unpacked("mytrace_raw.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    let shell = format!("ulimit -f {}; exec {RPD} callstack {trace}", before.len() / 2048);
    let said = ran(dir.command("bash").args(["-c", &shell]));
    refused(&dir, &trace, &before, &said, &["ulimit -f", "callstack was not made"]);
}

#[test]
fn another_writer_is_waited_for_and_then_named() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    let writer = dir.open(&trace);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    refused(&dir, &trace, &before, &dir.run(&["callstack", &trace]), &["locked", "was not made"]);
    let child =
        dir.rpd(&["callstack", &trace]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(300));
    writer.execute_batch("COMMIT").unwrap();
    finished(child.wait_with_output().unwrap(), "rpd callstack".into()).expect(0);
}

/// Lets a trace say that this process is recording into it, which it is as long as the connection is there.
#[must_use]
pub(crate) fn being_recorded(dir: &Dir, trace: &str) -> Connection {
    let recorder = dir.open(trace);
    let read = |path: &str| fs::read_to_string(path).unwrap().trim().to_string();
    let facts = [
        ("boot_id", read("/proc/sys/kernel/random/boot_id")),
        ("host", read("/proc/sys/kernel/hostname")),
        ("pid", std::process::id().to_string()),
    ];
    for (key, value) in facts {
        let fact = [&format!("session::0::{key}"), &value];
        recorder.execute("INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)", fact).unwrap();
    }
    recorder
}

#[test]
fn a_file_that_is_being_recorded_into_is_left_alone() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let recorder = being_recorded(&dir, &trace);
    let before = fs::read(dir.path(&trace)).unwrap();
    let pid = std::process::id().to_string();
    refused(&dir, &trace, &before, &dir.run(&["graph", &trace]), &["recording", &pid, ".backup"]);
    recorder.execute("VACUUM INTO ?1", [dir.path("copy.rpd").to_str()]).unwrap();
    dir.run(&["graph", "copy.rpd"]).expect(0);
}

/// What `query` gives of a file, in text.
fn sum(connection: &Connection, query: &str) -> String {
    connection.query_row(query, [], |row| row.get::<_, i64>(0)).unwrap().to_string()
}

/// Starts a pass that takes a while and ends it by `signal` when it has begun to write; by `-KILL` when it has begun to write
/// into the trace, of which the journal's first byte tells that it may.
fn ended_half_way(dir: &Dir, pass: &str, trace: &str, signal: &str) -> Ran {
    let mut child = dir.rpd(&[pass, trace]).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let journal = dir.path(&format!("{trace}-journal"));
    let first_byte = || {
        let mut byte = [0];
        fs::File::open(&journal).and_then(|mut journal| journal.read_exact(&mut byte)).map_or(0, |()| byte[0])
    };
    // A signal that can be handled needs no more than the journal's beginning, and leaves the more time to come in.
    let is_begun = || match signal {
        "-KILL" => first_byte() != 0,
        _ => fs::metadata(&journal).is_ok_and(|journal| journal.len() > 0),
    };
    while !is_begun() {
        assert!(child.try_wait().unwrap().is_none(), "{pass} ended before it was interrupted");
        thread::sleep(Duration::from_millis(1));
    }
    ran(dir.command("kill").args([signal, &child.id().to_string()]));
    finished(child.wait_with_output().unwrap(), format!("rpd {pass}, then kill {signal}"))
}

#[test]
fn killed_half_way_the_file_is_rolled_back_by_whoever_opens_it() {
    let dir = Dir::new();
    let fresh = dir.trace("fresh.rpd", "");
    let trace = dir.generated("big.rpd", &["--events", "150000", "--template", &fresh]);
    let before = fs::read(dir.path(&trace)).unwrap();
    for pass in ["callstack", "autograd"] {
        let killed = ended_half_way(&dir, pass, &trace, "-KILL");
        assert_eq!(killed.status.signal(), Some(9), "{killed}");
        dir.run(&["passes", &trace]).expect(0);
        assert!(fs::read(dir.path(&trace)).unwrap() == before, "{pass}");
        assert!(!dir.path(&format!("{trace}-journal")).exists());
    }
}

#[test]
fn ctrl_c_leaves_the_file_as_it_was() {
    let dir = Dir::new();
    let fresh = dir.trace("fresh.rpd", "");
    let trace = dir.generated("big.rpd", &["--events", "150000", "--template", &fresh]);
    let before = fs::read(dir.path(&trace)).unwrap();
    for (pass, signal, number) in [("callstack", "-INT", 2), ("autograd", "-TERM", 15)] {
        let ended = ended_half_way(&dir, pass, &trace, signal);
        ended.expect_signal(number).says(&["interrupted", pass, "as it was"]);
        assert!(fs::read(dir.path(&trace)).unwrap() == before, "{pass}");
        assert!(!dir.path(&format!("{trace}-journal")).exists());
    }
    dir.run(&["callstack", &trace]).expect(0);
    let connection = dir.open(&trace);
    assert_eq!(
        sum(&connection, "SELECT sum(cpu_time) FROM ext_callstack WHERE parent_id = child_id AND depth = 0"),
        sum(
            &connection,
            "SELECT sum(S.cpu_time) FROM ext_callstack S WHERE S.parent_id IN
            (SELECT child_id FROM ext_callstack GROUP BY child_id HAVING count(*) = 1)"
        )
    );
}

/// Runs `rpd callstack` on a trace that somebody else has for a while, on a terminal or not.
fn callstack_that_waits(dir: &Dir, trace: &str, on_a_terminal: bool) -> Ran {
    let writer = dir.open(trace);
    writer.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut command = if on_a_terminal {
        // script(1) gives the command a terminal.
        let mut script = dir.command("script");
        script.args(["-qec", &format!("{RPD} callstack --redo {trace}"), "typescript"]);
        script
    } else {
        dir.rpd(&["callstack", "--redo", trace])
    };
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    thread::sleep(Duration::from_millis(3000));
    writer.execute_batch("COMMIT").unwrap();
    finished(child.wait_with_output().unwrap(), format!("{command:?}"))
}

#[test]
fn progress_is_shown_on_a_terminal_only() {
    const LINE: &str = "\r\x1b[Kcall stacks: ";
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    // Work that has to wait takes long, however fast the machine. A slow one may have it wait for too long, or not at all: again, then.
    let result = |on_a_terminal, is_enough: &dyn Fn(&Ran) -> bool| {
        let mut tries = (0..20).map(|_| callstack_that_waits(&dir, &trace, on_a_terminal));
        tries.find(is_enough).expect("what is said of long work")
    };
    let seen = result(true, &|ran| ran.status.success() && ran.stdout.contains(LINE));
    assert!(seen.stdout.contains("rows in ext_callstack"), "{seen}");
    let unseen = result(false, &|ran| ran.status.success());
    assert!(unseen.stderr.contains("rows in ext_callstack") && !unseen.stderr.contains(LINE), "{unseen}");
}
