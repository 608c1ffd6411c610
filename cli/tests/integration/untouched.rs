//! Files that are no trace, and traces that must not change.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rusqlite::Connection;

use crate::harness::Dir;

/// Files that look like a trace to nobody, by what they are.
fn strangers(dir: &Dir) -> Vec<&'static str> {
    dir.write("letter.rpd", "Dear reader,\n".repeat(100));
    dir.write("zeros.rpd", vec![0; 8192]);
    let other = Connection::open(dir.path("other.rpd")).unwrap();
    other
        .execute_batch("CREATE TABLE addresses (name, street); INSERT INTO addresses VALUES ('a', 'b')")
        .unwrap();
    dir.trace("whole.rpd", "");
    let whole = fs::read(dir.path("whole.rpd")).unwrap();
    dir.write("cut.rpd", &whole[..whole.len() / 2]);
    fs::remove_file(dir.path("whole.rpd")).unwrap();
    vec!["letter.rpd", "zeros.rpd", "other.rpd", "cut.rpd"]
}

#[test]
fn a_file_that_is_no_trace_stays_byte_for_byte() {
    let dir = Dir::new();
    for name in strangers(&dir) {
        let before = fs::read(dir.path(name)).unwrap();
        let modified = fs::metadata(dir.path(name)).unwrap().mtime_nsec();
        for arguments in [
            &["record", "-o", name, "--", "touch", "ran"][..],
            &["record", "--append", "-o", name, "--", "touch", "ran"],
            &["record", "--force", "-o", name, "--", "touch", "ran"],
            &["create", name],
            &["info", name],
            &["top", name],
            &["sql", name, "busy"],
            &["gaps", name],
            &["overlap", name],
            &["copies", name],
            &["queues", name],
            &["categories", name],
            &["memory", name],
            &["kernel", name, "x"],
            &["markers", name],
            &["table", name],
            &["table", name, "x"],
            &["variability", name],
            &["energy", name],
            &["replacements", name],
            &["durations", name],
            &["export", "chrome", name],
            &["export", "chrome", name, "-o", "out.json"],
            &["export", "perfetto", name, "-o", "out.pftrace"],
            &["export", "kineto", name, "-o", "out.json"],
            &["check", name],
            &["check", "--repair", name],
            &["subclass", "--base", "api", "--name", "x", "--apis", "x", name],
            &["trim", name, "-o", "out.rpd"],
            &["strings", "--dedupe", name],
            &["deserialize", name],
            &["trim", name, "--in-place"],
            &["merge", "-o", "out.rpd", name, "letter.rpd"],
            &["callstack", name],
            &["callstack", "--redo", name],
            &["passes", name],
        ] {
            dir.run(arguments).expect(1).says(&[name]);
            assert!(fs::read(dir.path(name)).unwrap() == before, "{name} changed by {arguments:?}");
            assert_eq!(fs::metadata(dir.path(name)).unwrap().mtime_nsec(), modified, "{name}: {arguments:?}");
        }
    }
    assert_eq!(
        dir.names(),
        ["cut.rpd", "letter.rpd", "other.rpd", "zeros.rpd"],
        "nothing beside them, nothing ran"
    );
}

#[test]
fn a_directory_is_no_trace_either() {
    let dir = Dir::new();
    fs::create_dir(dir.path("d")).unwrap();
    for arguments in [
        &["record", "--force", "-o", "d", "--", "true"][..],
        &["info", "d"],
        &["create", "d"],
        &["check", "--repair", "d"],
    ] {
        dir.run(arguments).expect(1).says(&["d"]);
    }
    assert_eq!(dir.names(), ["d"]);
}

#[test]
fn recordings_are_not_mixed_or_lost_by_accident() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    dir.run(&["record", "-o", &trace, "--", "touch", "ran"])
        .expect(1)
        .says(&[&trace, "--append", "--force", "-o"]);
    dir.run(&["create", &trace]).expect(1).says(&[&trace, "exists already"]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), [trace.as_str()]);
}

#[test]
fn asking_changes_nothing() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    for arguments in [
        &["info", &trace][..],
        &["info", "--json", &trace],
        &["top", &trace],
        &["top", "--csv", &trace],
        &["sql", &trace, "busy"],
        &["gaps", &trace],
        &["overlap", &trace],
        &["sql", "--before", &trace, &trace, "topDiff"],
        &["replacements", &trace, &trace],
        &["durations", &trace],
        &["export", "chrome", &trace],
        &["export", "kineto", &trace],
        &["export", "rocprofv3", &trace],
        &["export", "collapsed", &trace],
        &["export", "speedscope", "--time", "cpu", &trace],
        &["export", "html", &trace],
        &["export", "chrome", "--gpu", "2", "--end", "50%", &trace],
        &["check", &trace],
        &["check", "--json", "--repair", &trace],
    ] {
        dir.run(arguments).expect(0);
    }
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    assert_eq!(dir.names(), [trace.as_str()]);
}

#[test]
fn asking_leaves_nothing_beside_a_trace_in_wal_mode() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.open(&trace).query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    assert_eq!(dir.names(), [trace.as_str()]);
    for arguments in [
        &["info", &trace][..],
        &["top", &trace],
        &["sql", &trace, "busy"],
        &["gaps", &trace],
        &["overlap", &trace],
        &["sql", "--before", &trace, &trace, "topDiff"],
        &["top", "--by", "api", &trace],
        &["api", &trace],
        &["replacements", &trace],
        &["durations", &trace],
        &["export", "chrome", &trace],
        &["export", "chrome", "--gpu", "2", "--end", "50%", &trace],
        &["passes", &trace],
        &["check", &trace],
        &["trim", "--dry-run", &trace],
        &["trim", &trace, "-o", "part.rpd", "--end", "90%"],
        &["merge", "--same-host", "-o", "all.rpd", &trace, "part.rpd"],
    ] {
        dir.run(arguments).expect(0);
        for made in
            ["part.rpd", "all.rpd"].iter().filter(|made| **made == "all.rpd" || arguments[0] == "merge")
        {
            let _ = fs::remove_file(dir.path(made));
        }
        let left = dir.names();
        assert!(left.iter().all(|name| name == &trace || name == "part.rpd"), "{arguments:?}: {left:?}");
        assert!(fs::read(dir.path(&trace)).unwrap() == before, "{arguments:?}");
    }
    // A log that is there is a writer's, and stays as it is.
    let writer = dir.open(&trace);
    writer.execute_batch("INSERT INTO rocpd_metadata (tag, value) VALUES ('x', 'y')").unwrap();
    let log = fs::read(dir.path(&format!("{trace}-wal"))).unwrap();
    dir.run(&["info", &trace]).expect(0);
    assert!(fs::read(dir.path(&format!("{trace}-wal"))).unwrap() == log);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
}

#[test]
fn append_keeps_and_force_replaces() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let ops = || -> i64 {
        dir.open(&trace).query_row("SELECT count(*) FROM rocpd_op", [], |row| row.get(0)).unwrap()
    };
    let before = ops();
    assert!(before > 0);
    dir.run(&["record", "--append", "-o", &trace, "--", "true"]).expect(0);
    assert_eq!(ops(), before);
    dir.run(&["record", "--force", "-o", &trace, "--", "true"]).expect(0);
    assert_eq!(ops(), 0);
    assert_eq!(dir.names(), [trace.as_str()]);
}

#[test]
fn parts_of_an_old_recording_are_refused_or_replaced_together() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    for part in ["t-2.rpd", "t-4.rpd", "t-x.rpd"] {
        fs::copy(dir.path(&trace), dir.path(part)).unwrap();
    }
    let record = |options: &[&str]| dir.run(&[&["record"], options, &["-o", "t.rpd", "--", "true"]].concat());
    record(&["--rotate", "1GB"]).expect(1).says(&["t-2.rpd already holds a recording", "--force"]);
    assert!(!dir.path("t.rpd").exists());
    // Without parts these are other files.
    record(&[]).expect(0);
    record(&["--rotate", "1GB", "--append"]).expect(0).says(&["t.rpd: 0 kernels"]);
    // What is no trace is never touched, and nothing is replaced then.
    dir.write("t-3.rpd", "not a trace");
    record(&["--rotate", "1GB", "--force"]).expect(1).says(&["t-3.rpd"]);
    assert!(dir.path("t-2.rpd").exists() && dir.path("t-4.rpd").exists());
    fs::remove_file(dir.path("t-3.rpd")).unwrap();
    record(&["--rotate", "1GB", "--force"]).expect(0);
    assert_eq!(dir.names(), [trace.as_str(), "t-x.rpd", "t.rpd"]);
}

#[test]
fn force_keeps_the_old_trace_when_there_is_nothing_to_run() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    let before = fs::read(dir.path(&trace)).unwrap();
    dir.run(&["record", "--force", "-o", &trace, "--", "no-such-command"]).expect(127);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
}

#[test]
fn force_goes_through_a_link_and_takes_a_stale_journal_along() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    symlink(dir.path(&trace), dir.path("link.rpd")).unwrap();
    // Left by a writer that died: SQLite would roll it back into whatever has this name next.
    dir.write("matmul_result.rpd-journal", "");
    dir.run(&["record", "--force", "-o", "link.rpd", "--", "true"]).expect(0);
    assert!(fs::symlink_metadata(dir.path("link.rpd")).unwrap().is_symlink());
    assert_eq!(dir.names(), ["link.rpd", trace.as_str()]);
    dir.run(&["info", &trace]).expect(0);
}

#[test]
fn a_trace_of_another_version_takes_no_additions() {
    let dir = Dir::new();
    let trace = dir.trace("v3.rpd", "UPDATE rocpd_metadata SET value = '3' WHERE tag = 'schema_version'");
    dir.run(&["record", "--append", "-o", &trace, "--", "true"])
        .expect(1)
        .says(&["v3.rpd", "schema", "--force"]);
    dir.run(&["record", "--force", "-o", &trace, "--", "true"]).expect(0);
    dir.run(&["record", "-o", &trace, "--", "true"]).expect(0);
}

#[test]
fn ctrl_c_leaves_nothing_beside_a_trace_in_wal_mode() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.open(&trace).query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
    let before = fs::read(dir.path(&trace)).unwrap();
    let endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n";
    let mut asked = dir.rpd(&["sql", &trace, endless]);
    let mut asked = asked.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // SQLite's files are there while the query runs.
    while dir.names().len() == 1 {
        assert!(asked.try_wait().unwrap().is_none(), "the query has no end");
        thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill").args(["-INT", &asked.id().to_string()]).status().unwrap();
    assert!(sent.success());
    assert_eq!(asked.wait().unwrap().signal(), Some(2));
    assert_eq!(dir.names(), [trace.as_str()]);
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
}
