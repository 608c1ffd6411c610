//! Many processes and one file: created at once, appended to at once, and left behind by one that was killed.

use rpd_schema::{Appender, Error, ErrorKind, Version, create_or_check, identify, open_read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::sample;
use crate::sample::{every_table, kernel, lines, number, this_test_again};

const FILE: &str = "RPD_TEST_FILE";
/// Long enough for eight writers to take turns on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(600);

fn file_of_a_child() -> Option<std::path::PathBuf> {
    std::env::var_os(FILE).map(Into::into)
}

fn children(count: usize, test: &str, path: &Path) {
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
    let program = std::env::current_exe().unwrap();
    let test = "processes::what_was_committed_survives_a_kill_and_the_rest_is_rolled_back";
    let output = this_test_again(&program, test, FILE, &path).output().unwrap();
    assert!(std::os::unix::process::ExitStatusExt::signal(&output.status).is_some(), "{output:?}");
    assert_eq!(sample::names(directory.path()), ["t.rpd", "t.rpd-journal"], "the premise of this test");
    let left: Vec<_> =
        ["t.rpd", "t.rpd-journal"].map(|name| std::fs::read(directory.path().join(name)).unwrap()).into();
    assert!(left[0].len() > 8 << 20, "the premise of this test");

    // Killed before the commit, and in it: the first page is written before those that it counts.
    let mut counted = left.clone();
    let pages = (counted[0].len() / 4096) as u32 + 1000;
    counted[0][28..32].copy_from_slice(&pages.to_be_bytes());
    for left in [left, counted] {
        let leave = || {
            for (name, bytes) in ["t.rpd", "t.rpd-journal"].iter().zip(&left) {
                std::fs::write(directory.path().join(name), bytes).unwrap();
            }
        };
        leave();
        assert_eq!(identify(&path).unwrap(), Version::V2);
        let still: Vec<_> =
            ["t.rpd", "t.rpd-journal"].map(|name| std::fs::read(directory.path().join(name)).unwrap()).into();
        assert!(left == still, "looking changes nothing");

        let (connection, _) = open_read(&path).unwrap();
        assert_eq!(sample::names(directory.path()), ["t.rpd"]);
        assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_op"), COMMITTED);
        assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
        drop(connection);

        // The same for one that comes to append.
        leave();
        let mut appender = Appender::open(&path).unwrap();
        assert_eq!(appender.session(), 1);
        appender.begin().unwrap();
        kernel(&mut appender, 1, "after");
        appender.commit().unwrap();
        let (connection, _) = open_read(&path).unwrap();
        assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_op"), COMMITTED + 1);
    }
}
