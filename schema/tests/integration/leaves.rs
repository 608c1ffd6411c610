//! Rows that are written as whole pages: the file is one that SQLite finds nothing wrong with and has the rows that were given, whatever
//! its pages, whoever writes in between, however a transaction ends.

use fastrand::Rng;
use rpd_schema::{Appender, ErrorKind, OpId, OpRow, create};
use rusqlite::Connection;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::path::Path;
use std::time::Duration;

use crate::sample::lines;

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
            // The second one alone appends to the end of the table.
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
    let mut appender = Appender::open(&path).unwrap();
    for turn in 0..5 {
        appender.begin().unwrap();
        (turn * MANY + 1..=(turn + 1) * MANY).for_each(|id| op(&mut appender, id, 40));
        appender.commit().unwrap();
    }
    assert_eq!(lines(&reader, "SELECT count(*) FROM rocpd_op"), ["0"]);
    assert_eq!(lines(&reader, "PRAGMA journal_mode"), ["wal"]);
    reader.execute_batch("COMMIT").unwrap();
    check(&path, 0, &(1..=5 * MANY).collect(), "by its log");
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
        let rows = appender.begin().is_ok();
        let empty = appender.empty();
        let row = |id| OpRow {
            id: OpId(id),
            gpu: 0,
            queue: 1,
            sequence: id,
            completion_signal: 0,
            start: id,
            end: id,
            description: empty,
            op_type: empty,
        };
        let rows = rows && (1..=MANY).all(|id| appender.op(&row(id)).is_ok());
        match rows && appender.commit().is_ok() {
            true => written += 1,
            false => appender.rollback(),
        }
    }
    assert!(written > 40, "{written} of 400 files took rows");
}
