//! Rows that are written as whole pages: the file is one that SQLite finds nothing wrong with and has the rows that were given, whatever
//! its pages, whoever writes in between, however a transaction ends.

use fastrand::Rng;
use rpd_schema::{ApiId, Appender, ErrorKind, OpId, OpRow, create};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::processes::{FILE, PATIENCE, children, file_of_a_child};
use crate::sample::{api, kernel, lines, number, this_test_again};
use crate::transfer::ops;

/// Page sizes that SQLite has.
const SIZES: [u32; 8] = [512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
/// Rows of a transaction that are many enough for pages.
const MANY: u64 = 700;

/// A fresh trace with pages of `size` bytes.
fn fresh(path: &Path, size: u32) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(&format!("PRAGMA page_size = {size}; {}", rpd_sql::FRESH.concat())).unwrap();
}

/// An op whose cells say its id, and are as wide as `width` has them.
fn op(appender: &mut Appender, id: u64, width: u32) {
    let empty = appender.empty();
    appender
        .op(&OpRow {
            id: OpId(id),
            gpu: 0,
            queue: 1,
            sequence: id,
            completion_signal: (1 << (width % 64)) - 1,
            start: 1 << (width % 63),
            end: id,
            description: empty,
            op_type: empty,
        })
        .unwrap();
}

fn check(path: &Path, session: u64, expected: &BTreeSet<u64>, what: &str) {
    let connection = Connection::open(path).unwrap();
    assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"], "{what}");
    let query = format!(
        "SELECT id - ({session} << 32) FROM rocpd_op WHERE id >> 32 = {session} AND end = sequenceId ORDER BY id"
    );
    let expected: Vec<String> = expected.iter().map(u64::to_string).collect();
    assert_eq!(lines(&connection, &query), expected, "{what}");
}

#[test]
fn any_rows_in_files_of_any_page_size() {
    let directory = tempfile::tempdir().unwrap();
    for (seed, size) in (1..).zip(SIZES) {
        let mut rng = Rng::with_seed(seed);
        let path = directory.path().join(format!("{size}.rpd"));
        fresh(&path, size);
        let mut writers = [Appender::open(&path).unwrap(), Appender::open(&path).unwrap()];
        let mut written = [BTreeSet::new(), BTreeSet::new()];
        for turn in 1..=24 {
            // The rows of the first one belong in front of those of the second.
            let who = usize::from(rng.u8(..4) > 0);
            let (writer, rows) = (&mut writers[who], &mut written[who]);
            let mut next = rows.last().map_or(1, |last| last + 1);
            let mut ids: Vec<u64> = vec![];
            for _ in 0..rng.u64(1..5000) {
                ids.push(next);
                next += if rng.u8(..20) == 0 { rng.u64(2..1 << 16) } else { 1 };
            }
            match rng.u8(..4) {
                0 => rng.shuffle(&mut ids),
                1 => ids.reverse(),
                _ => {}
            }
            writer.begin().unwrap();
            let width = rng.u32(..64);
            ids.iter().for_each(|id| op(writer, *id, width + (*id % 3) as u32));
            // Rows of an earlier transaction's time that come late: they belong between its rows.
            if let Some(last) = rows.last() {
                let late: Vec<u64> = (0..rng.u64(..40)).map(|_| rng.u64(1..=*last)).collect();
                let late: BTreeSet<u64> = late.into_iter().filter(|id| !rows.contains(id)).collect();
                late.iter().for_each(|id| op(writer, *id, width));
                ids.extend(late);
            }
            if rng.u8(..6) == 0 {
                writer.rollback();
            } else {
                writer.commit().unwrap();
                rows.extend(ids);
            }
            if rng.u8(..8) == 0 {
                // Free pages, and a last row that is another.
                let cut = rows.iter().rev().nth(rows.len() / 3).copied().unwrap_or(0);
                rows.retain(|id| *id <= cut);
                let text =
                    format!("DELETE FROM rocpd_op WHERE id >> 32 = {who} AND id - ({who} << 32) > {cut}");
                Connection::open(&path).unwrap().execute_batch(&text).unwrap();
            }
            if turn % 6 == 0 {
                let what = format!("pages of {size}, turn {turn}");
                (0..2).for_each(|session| check(&path, session, &written[session as usize], &what));
            }
        }
    }
}

/// What a reader that has begun keeps from being committed.
fn reader(path: &Path) -> Connection {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("BEGIN; SELECT count(*) FROM rocpd_op").unwrap();
    connection
}

/// Commits; whether rows went as pages. Then a commit that found the file locked takes no more rows.
fn commits_pages(appender: &mut Appender, path: &Path) -> bool {
    appender.set_busy_handler(|_| false).unwrap();
    let reader = reader(path);
    assert_eq!(appender.commit().unwrap_err().kind(), &ErrorKind::Locked);
    let refused = appender.intern("a text that comes late").map_err(|error| error.kind().clone());
    drop(reader);
    appender
        .set_busy_handler(|tries| {
            std::thread::sleep(Duration::from_millis(5));
            Duration::from_millis(5) * (tries as u32) < PATIENCE
        })
        .unwrap();
    appender.commit().unwrap();
    refused == Err(ErrorKind::NoTransaction)
}

/// Whichever session the rows are of, and also where some of them are late: a call that took longer than those after it.
#[test]
fn every_session_of_a_file_writes_pages() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let mut writers: Vec<Appender> = (0..5).map(|_| Appender::open(&path).unwrap()).collect();
    for turn in 0..6 {
        for (session, writer) in writers.iter_mut().enumerate() {
            writer.begin().unwrap();
            let first = turn * (MANY + 3) + 1;
            (first..first + MANY).for_each(|id| op(writer, id, 9));
            if turn > 0 {
                (first - 3..first).for_each(|id| op(writer, id, 9));
            }
            assert!(commits_pages(writer, &path), "session {session}, turn {turn}");
        }
    }
    let rows = (1..=6 * (MANY + 3) - 3).collect();
    (0..5).for_each(|session| check(&path, session, &rows, "sessions in turn"));
}

/// Rows of all kinds, some longer than a page, are what they are where each is written by INSERT.
#[test]
fn pages_have_the_rows_that_inserts_have() {
    const TABLES: [&str; 6] =
        ["rocpd_string", "rocpd_api", "rocpd_kernelapi", "rocpd_op", "rocpd_api_ops", "ext_dispatch"];
    let directory = tempfile::tempdir().unwrap();
    for (seed, size) in (1..).zip([512, 4096, 65536]) {
        let tables = [0, 2 << 20].map(|waiting| {
            let path = directory.path().join(format!("{size}-{waiting}.rpd"));
            fresh(&path, size);
            let mut rng = Rng::with_seed(seed);
            let mut writers: Vec<Appender> = (0..4).map(|_| Appender::open(&path).unwrap()).collect();
            writers.iter_mut().for_each(|writer| writer.set_waiting(waiting));
            let mut next = [1; 4];
            for _ in 0..40 {
                let who = rng.usize(..writers.len());
                let writer = &mut writers[who];
                writer.begin().unwrap();
                let rows = rng.u64(1..600);
                (next[who]..next[who] + rows).for_each(|n| kernel(writer, n, &format!("kernel {}", n % 97)));
                if rng.u8(..3) == 0 {
                    let text = "x".repeat(rng.usize(..200_000));
                    api(writer, ApiId::marker(next[who]), "long", &text, 1, 2);
                }
                next[who] += rows;
                writer.commit().unwrap();
            }
            let connection = Connection::open(&path).unwrap();
            assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"], "{size}");
            let pages = number(&connection, "PRAGMA page_count");
            let rows = TABLES.map(|table| lines(&connection, &format!("SELECT rowid, * FROM {table}")));
            (pages, rows)
        });
        let [(by_inserts, inserted), (by_pages, paged)] = &tables;
        assert!(inserted == paged, "pages of {size}");
        // Each session may leave a page of a table that is not full.
        let spare = (TABLES.len() * 4) as i64;
        assert!(*by_pages <= by_inserts + spare, "pages of {size}: {by_pages}, by INSERT {by_inserts}");
    }
}

const PROCESSES: u64 = 8;

#[test]
fn processes_that_end_at_once_write_pages_and_lose_nothing() {
    const TURNS: u64 = 6;
    if let Some(path) = file_of_a_child() {
        let mut appender = Appender::open_within(&path, PATIENCE).unwrap();
        for turn in 0..TURNS {
            appender.begin().unwrap();
            (turn * MANY + 1..=(turn + 1) * MANY).for_each(|id| op(&mut appender, id, 9));
            assert!(commits_pages(&mut appender, &path), "session {}, turn {turn}", appender.session());
        }
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let test = "leaves::processes_that_end_at_once_write_pages_and_lose_nothing";
    children(PROCESSES as usize, test, &path);
    let rows = (1..=TURNS * MANY).collect();
    (0..PROCESSES).for_each(|session| check(&path, session, &rows, "processes at once"));
}

/// Of each process the file has the transactions that it had committed, whole, whenever it was killed.
#[test]
fn processes_that_are_killed_while_they_write_pages() {
    if let Some(path) = file_of_a_child() {
        let mut appender = Appender::open_within(&path, PATIENCE).unwrap();
        for turn in 0.. {
            appender.begin().unwrap();
            (turn * MANY + 1..=(turn + 1) * MANY).for_each(|id| op(&mut appender, id, 9));
            appender.commit().unwrap();
            // The others have their turn.
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let program = std::env::current_exe().unwrap();
    let test = "leaves::processes_that_are_killed_while_they_write_pages";
    let mut rng = Rng::with_seed(7);
    let count = |sessions: u64| {
        let connection = Connection::open(&path).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        lines(&connection, "SELECT DISTINCT id >> 32 FROM rocpd_op").len() as u64 >= sessions
    };
    let mut sessions = 0;
    for round in 0..6 {
        let start = || -> Child {
            this_test_again(&program, test, FILE, &path)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        };
        let mut killed: Vec<Child> = (0..3).map(|_| start()).collect();
        sessions += killed.len() as u64;
        while !count(sessions) {
            std::thread::sleep(Duration::from_millis(5));
        }
        for child in &mut killed {
            std::thread::sleep(Duration::from_micros(rng.u64(..20_000)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        let connection = Connection::open(&path).unwrap();
        assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"], "round {round}");
        let whole = format!(
            "SELECT count(*) FROM (SELECT count(*) AS rows, max(sequenceId) AS last, sum(id - (id >> 32 << 32) <> sequenceId) AS \
             odd FROM rocpd_op GROUP BY id >> 32) WHERE rows = last AND rows % {MANY} = 0 AND odd = 0"
        );
        assert_eq!(number(&connection, &whole), sessions as i64, "round {round}");
    }
}

#[test]
fn a_commit_that_waits_for_a_reader_takes_no_more_rows_and_loses_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let mut appender = Appender::open_within(&path, Duration::from_millis(1)).unwrap();
    for round in 0..3 {
        let first = round * 3 * MANY;
        let reader = reader(&path);
        appender.begin().unwrap();
        (first + 1..=first + MANY).for_each(|id| op(&mut appender, id, 9));
        for _ in 0..2 {
            assert_eq!(appender.commit().unwrap_err().kind(), &ErrorKind::Locked);
            // The pages are written, so that SQLite must write nothing else.
            assert_eq!(appender.session_fact("lost", "1").unwrap_err().kind(), &ErrorKind::NoTransaction);
            assert_eq!(appender.intern("late").unwrap_err().kind(), &ErrorKind::NoTransaction);
        }
        drop(reader);
        appender.commit().unwrap();
        // Few rows go by INSERT, behind the pages.
        appender.begin().unwrap();
        (first + MANY + 1..=first + MANY + 3).for_each(|id| op(&mut appender, id, 9));
        appender.session_fact("lost", &round.to_string()).unwrap();
        appender.commit().unwrap();
        // What is undone leaves nothing behind, and its ids are free.
        appender.begin().unwrap();
        (first + MANY + 4..=first + 3 * MANY).for_each(|id| op(&mut appender, id, 30));
        appender.rollback();
        appender.begin().unwrap();
        (first + MANY + 4..=first + 3 * MANY).for_each(|id| op(&mut appender, id, 60));
        appender.commit().unwrap();
    }
    check(&path, 0, &(1..=9 * MANY).collect(), "after readers");
}

#[test]
fn a_file_that_others_read_by_its_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    Connection::open(&path).unwrap().execute_batch("PRAGMA journal_mode = wal").unwrap();
    // As long as somebody reads, the file keeps its log.
    let reader = reader(&path);
    let mut appenders = [Appender::open(&path).unwrap(), Appender::open(&path).unwrap()];
    for turn in 0..5 {
        for appender in &mut appenders {
            appender.begin().unwrap();
            (turn * MANY + 1..=(turn + 1) * MANY).for_each(|id| op(appender, id, 40));
            appender.commit().unwrap();
        }
    }
    assert_eq!(lines(&reader, "SELECT count(*) FROM rocpd_op"), ["0"]);
    assert_eq!(lines(&reader, "PRAGMA journal_mode"), ["wal"]);
    reader.execute_batch("COMMIT").unwrap();
    (0..2).for_each(|session| check(&path, session, &(1..=5 * MANY).collect(), "by its log"));
}

#[test]
fn sqlite_goes_on_with_the_ids() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    (1..=MANY).for_each(|id| op(&mut appender, id, 9));
    appender.commit().unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("DELETE FROM rocpd_op").unwrap();
    let next = "INSERT INTO rocpd_op SELECT NULL, 0, 1, 1, '', 1, 1, 1, 1 RETURNING id";
    assert_eq!(lines(&connection, next), [(MANY + 1).to_string()]);
}

#[test]
fn the_page_of_locks_is_left_out() {
    const PAGE: u64 = 4096;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let mut appender = Appender::open(&path).unwrap();
    // As if the file had grown to a few pages below: those in between are a hole.
    let of_locks = (1 << 30) / PAGE + 1;
    let pages = of_locks - 4;
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(pages * PAGE).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &(pages as u32).to_be_bytes(), 28).unwrap();
    // SQLite looks at the file anew where others have written it, which this counts.
    std::os::unix::fs::FileExt::write_all_at(&file, &1000_u32.to_be_bytes(), 24).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &1000_u32.to_be_bytes(), 92).unwrap();
    drop(file);
    appender.begin().unwrap();
    (1..=MANY).for_each(|id| op(&mut appender, id, 60));
    appender.commit().unwrap();
    assert!(fs::metadata(&path).unwrap().len() > (of_locks + 3) * PAGE);
    let connection = Connection::open(&path).unwrap();
    // But for the hole there is nothing wrong.
    let found = lines(&connection, "PRAGMA integrity_check").join("\n");
    let of_the_hole =
        |line: &&str| line.ends_with(": never used") || ["ok", "*** in database main ***"].contains(line);
    assert_eq!(found.lines().find(|line| !of_the_hole(line)), None);
    assert_eq!(
        lines(&connection, "SELECT count(*), sum(sequenceId) FROM rocpd_op"),
        [format!("{MANY}|{}", MANY * (MANY + 1) / 2)]
    );
}

#[test]
fn damaged_files_end_in_errors() {
    let directory = tempfile::tempdir().unwrap();
    let sound = directory.path().join("sound.rpd");
    fresh(&sound, 512);
    let mut appender = Appender::open(&sound).unwrap();
    appender.begin().unwrap();
    (1..=2000).for_each(|id| op(&mut appender, id, 20));
    appender.commit().unwrap();
    drop(appender);
    let sound = fs::read(&sound).unwrap();
    let path = directory.path().join("damaged.rpd");
    let mut written = 0;
    for seed in 0..400 {
        let mut rng = Rng::with_seed(seed);
        let mut bytes = sound.clone();
        for _ in 0..rng.usize(1..40) {
            // The header of a page most of all.
            let page = rng.usize(1..bytes.len() / 512) * 512;
            let at = page + if rng.bool() { rng.usize(..12) } else { rng.usize(..512) };
            bytes[at] = rng.u8(..);
        }
        fs::write(&path, &bytes).unwrap();
        let Ok(mut appender) = Appender::open(&path) else { continue };
        match ops(&mut appender, 1..=MANY).is_ok() {
            true => written += 1,
            false => appender.rollback(),
        }
    }
    assert!(written > 40, "{written} of 400 files took rows");
}
