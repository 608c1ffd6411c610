//! Many processes and one file: created at once, appended to at once, and left behind by one that was killed.

use rpd_schema::{
    Appender, BUSY_TIME, Error, ErrorKind, Version, check_place, create, create_or_check, identify, open_read,
};
use rusqlite::Connection;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::sample;
use crate::sample::{every_table, kernel, lines, number, this_test_again};

pub(crate) const FILE: &str = "RPD_TEST_FILE";
/// Long enough for eight writers to take turns on the slowest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

pub(crate) fn file_of_a_child() -> Option<std::path::PathBuf> {
    std::env::var_os(FILE).map(Into::into)
}

pub(crate) fn children(count: usize, test: &str, path: &Path) {
    let program = std::env::current_exe().unwrap();
    let start = || {
        this_test_again(&program, test, FILE, path)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let started: Vec<Child> = (0..count).map(|_| start()).collect();
    for child in started {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("1 passed"),
            "the child must have run the test"
        );
    }
}

#[test]
fn eight_processes_create_one_file_and_append_to_it_at_once() {
    const KERNELS: u64 = 250;
    if let Some(path) = file_of_a_child() {
        let mut appender = Appender::open_within(&path, PATIENCE).unwrap();
        for round in 0..10 {
            appender.begin().unwrap();
            (1..=KERNELS / 10)
                .for_each(|n| kernel(&mut appender, round * KERNELS / 10 + n, &format!("kernel {n}")));
            appender.session_fact("pid", &std::process::id().to_string()).unwrap();
            appender.gpu_fact(0, "name", "one GPU, many sessions").unwrap();
            appender.commit().unwrap();
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for first in ["missing", "empty"] {
        let path = directory.path().join(format!("{first}.rpd"));
        if first == "empty" {
            std::fs::write(&path, "").unwrap();
        }
        children(8, "processes::eight_processes_create_one_file_and_append_to_it_at_once", &path);
        let (connection, version) = open_read(&path).unwrap();
        assert_eq!(version, Version::V2);
        assert_eq!(number(&connection, "SELECT count(*) FROM kernel"), 8 * KERNELS as i64);
        assert_eq!(
            lines(&connection, "SELECT id >> 32, count(*) FROM rocpd_op GROUP BY 1"),
            (0..8).map(|session| format!("{session}|{KERNELS}")).collect::<Vec<_>>()
        );
        assert_eq!(lines(&connection, "SELECT value FROM rocpd_metadata WHERE tag = 'session_count'"), ["8"]);
        assert_eq!(
            lines(&connection, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'schema_version'"),
            ["1"]
        );
        assert_eq!(
            lines(&connection, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'gpu::0::name'"),
            ["1"]
        );
        let sessions = rpd_schema::sessions(&connection).unwrap();
        let mut pids: Vec<_> = sessions.iter().map(|session| session.pid().unwrap()).collect();
        pids.sort_unstable();
        pids.dedup();
        assert_eq!(pids.len(), 8);
        assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
    }
}

/// Does it again as long as others have the file.
fn patiently(act: impl Fn() -> Result<(), Error>) {
    let begin = Instant::now();
    while let Err(error) = act() {
        assert!(*error.kind() == ErrorKind::Locked && begin.elapsed() < PATIENCE, "{error}");
    }
}

#[test]
fn threads_of_one_process_do_not_drop_each_others_locks() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    patiently(|| create_or_check(&path));
                    let mut appender = Appender::open_within(&path, PATIENCE).unwrap();
                    appender.begin().unwrap();
                    (1..=20).for_each(|n| kernel(&mut appender, n, "kernel"));
                    assert_eq!(identify(&path).unwrap(), Version::V2);
                    appender.commit().unwrap();
                }
            });
        }
    });
    let (connection, _) = open_read(&path).unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM kernel"), 8 * 5 * 20);
    assert_eq!(lines(&connection, "SELECT value FROM rocpd_metadata WHERE tag = 'session_count'"), ["40"]);
    assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
}

/// What a child that was killed in mid-transaction left: the trace and its journal.
fn left_by_a_child(test: &str, directory: &Path) -> [Vec<u8>; 2] {
    let program = std::env::current_exe().unwrap();
    let output = this_test_again(&program, test, FILE, &directory.join("t.rpd")).output().unwrap();
    assert!(std::os::unix::process::ExitStatusExt::signal(&output.status).is_some(), "{output:?}");
    assert_eq!(sample::names(directory), FILES, "the premise of this test");
    there(directory)
}

/// A trace and its journal.
const FILES: [&str; 2] = ["t.rpd", "t.rpd-journal"];

fn there(directory: &Path) -> [Vec<u8>; 2] {
    FILES.map(|name| std::fs::read(directory.join(name)).unwrap())
}

fn leave(directory: &Path, left: &[Vec<u8>; 2]) {
    for (name, bytes) in FILES.iter().zip(left) {
        std::fs::write(directory.join(name), bytes).unwrap();
    }
}

#[test]
fn what_was_committed_survives_a_kill_and_the_rest_is_rolled_back() {
    const COMMITTED: i64 = 3;
    if let Some(path) = file_of_a_child() {
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        every_table(&mut appender);
        appender.commit().unwrap();
        appender.begin().unwrap();
        // More than the page cache holds, so that half a transaction stands in the file itself.
        (1000..120_000)
            .for_each(|n| kernel(&mut appender, n, &format!("a kernel with a unique name, number {n}")));
        std::process::abort();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let test = "processes::what_was_committed_survives_a_kill_and_the_rest_is_rolled_back";
    let left = left_by_a_child(test, directory.path());
    assert!(left[0].len() > 8 << 20, "the premise of this test");

    // Killed before the commit, and in it: the first page is written before those that it counts.
    let mut counted = left.clone();
    let pages = (counted[0].len() / 4096) as u32 + 1000;
    counted[0][28..32].copy_from_slice(&pages.to_be_bytes());
    for left in [left, counted] {
        leave(directory.path(), &left);
        assert_eq!(identify(&path).unwrap(), Version::V2);
        assert!(left == there(directory.path()), "looking changes nothing");

        let (connection, _) = open_read(&path).unwrap();
        assert_eq!(sample::names(directory.path()), ["t.rpd"]);
        assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_op"), COMMITTED);
        assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
        drop(connection);

        // The same for one that comes to append.
        leave(directory.path(), &left);
        let mut appender = Appender::open(&path).unwrap();
        assert_eq!(appender.session(), 1);
        appender.begin().unwrap();
        kernel(&mut appender, 1, "after");
        appender.commit().unwrap();
        let (connection, _) = open_read(&path).unwrap();
        assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_op"), COMMITTED + 1);
    }
}

/// Of the first transaction nothing stays, wherever it was killed: the file is empty again, and there is place for a recording.
#[test]
fn a_kill_while_the_trace_is_made_leaves_a_place_for_one() {
    if let Some(path) = file_of_a_child() {
        let mut appender = Appender::open_without_session(&path, BUSY_TIME).unwrap();
        appender.begin().unwrap();
        (1..120_000)
            .for_each(|n| kernel(&mut appender, n, &format!("a kernel with a unique name, number {n}")));
        std::process::abort();
    }
    let directory = tempfile::tempdir().unwrap();
    let (directory, path) = (directory.path(), directory.path().join("t.rpd"));
    let test = "processes::a_kill_while_the_trace_is_made_leaves_a_place_for_one";
    let whole = left_by_a_child(test, directory);
    // Pages come in any order: the first ones are there, or not.
    for missing in [0, 1, 2, 5, 20, 60] {
        let mut left = whole.clone();
        left[0][..missing * 4096].fill(0);
        leave(directory, &left);
        check_place(&path, BUSY_TIME).unwrap();
        assert!(left == there(directory), "looking changes nothing");
        assert_eq!(open_read(&path).map(|_| ()).unwrap_err().kind(), &ErrorKind::Empty, "{missing} pages");
        assert_eq!(sample::names(directory), ["t.rpd"]);

        leave(directory, &left);
        create(&path).unwrap();
        assert_eq!(create(&path).unwrap_err().kind(), &ErrorKind::AlreadyExists);
        assert_eq!(sample::names(directory), ["t.rpd"]);

        leave(directory, &left);
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        kernel(&mut appender, 1, "after");
        appender.commit().unwrap();
        drop(appender);
        let (connection, _) = open_read(&path).unwrap();
        assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_op"), 1, "{missing} pages");
        assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
    }
}

/// A kill between the writing of two pages: what lies there cannot be read, and is what it was as soon as it is rolled back.
#[test]
fn a_kill_while_the_schema_is_written() {
    if let Some(path) = file_of_a_child() {
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        kernel(&mut appender, 900, "committed");
        appender.commit().unwrap();
        // A table is added with its first row.
        appender.begin().unwrap();
        every_table(&mut appender);
        (1000..120_000)
            .for_each(|n| kernel(&mut appender, n, &format!("a kernel with a unique name, number {n}")));
        std::process::abort();
    }
    let directory = tempfile::tempdir().unwrap();
    let (directory, path) = (directory.path(), directory.path().join("t.rpd"));
    let mut left = left_by_a_child("processes::a_kill_while_the_schema_is_written", directory);
    let first = left[1].windows(16).any(|bytes| bytes == b"SQLite format 3\0");
    assert!(first, "the premise of this test: the journal has the first page");
    left[0][100..4096].fill(0xff);
    leave(directory, &left);
    let (connection, version) = open_read(&path).unwrap();
    assert_eq!((version, number(&connection, "SELECT count(*) FROM rocpd_op")), (Version::V2, 1));
    assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
    drop(connection);
    leave(directory, &left);
    assert_eq!(Appender::open(&path).unwrap().session(), 1);
}

/// What is certainly of others is not rolled back by us, and said to be what it is.
#[test]
fn a_database_of_others_is_left_with_its_journal() {
    let directory = tempfile::tempdir().unwrap();
    let (directory, path) = (directory.path(), directory.path().join("t.rpd"));
    let others = Connection::open(&path).unwrap();
    let rows = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) INSERT INTO cookies SELECT i, hex(randomblob(200)) FROM n";
    others
        .execute_batch(&format!("CREATE TABLE cookies (id, crumbs); {rows}; PRAGMA cache_size = 10; BEGIN; DELETE FROM cookies; {rows}"))
        .unwrap();
    let left = there(directory);
    drop(others);
    leave(directory, &left);
    for error in
        [open_read(&path).map(|_| ()), Appender::open(&path).map(|_| ()), check_place(&path, BUSY_TIME)]
    {
        assert_eq!(error.unwrap_err().kind(), &ErrorKind::OtherSqlite);
    }
    assert!(left == there(directory), "it is as it was");
}
