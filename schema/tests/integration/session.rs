//! Sessions keep writers of one file apart: by their numbers, which are never given out twice, and by their ids, which
//! never reach into the next session.

use rpd_schema::{ApiId, Appender, CodeObjectId, CodeObjectRow, ErrorKind, OpId, OpRow, create, open_read};
use rusqlite::Connection;
use std::path::Path;

use crate::sample::{kernel, lines, number};

fn read(path: &Path, query: &str) -> Vec<String> {
    lines(&open_read(path).unwrap().0, query)
}

#[test]
fn two_appenders_share_a_file_without_a_collision() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut one = Appender::open(&path).unwrap();
    let mut two = Appender::open(&path).unwrap();
    assert_ne!(one.session(), two.session());
    for round in 0..20 {
        for appender in [&mut one, &mut two] {
            appender.begin().unwrap();
            (1..=37).for_each(|n| kernel(appender, round * 37 + n, &format!("kernel {n}")));
            appender.commit().unwrap();
        }
    }
    let (connection, _) = open_read(&path).unwrap();
    assert_eq!(number(&connection, "SELECT count(*) FROM kernel"), 2 * 20 * 37);
    assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_op WHERE id >> 32 = 1"), 20 * 37);
    assert_eq!(number(&connection, "SELECT count(*) FROM rocpd_api WHERE id >> 32 = 0"), 20 * 37);
}

#[test]
fn ids_beyond_the_session_are_refused_and_the_next_session_takes_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    let empty = appender.empty();
    let last = (1 << 32) - 1;
    let op = OpRow {
        id: OpId(last),
        gpu: 0,
        queue: 0,
        sequence: 0,
        completion_signal: 0,
        start: 0,
        end: 0,
        description: empty,
        op_type: empty,
    };
    appender.op(&op).unwrap();
    for result in [
        appender.op(&OpRow { id: OpId(last + 1), ..op }),
        appender.api_op(ApiId::call(1 << 31), OpId(1)),
        appender.api_op(ApiId::call(1), OpId(1 << 32)),
        appender.api_op(ApiId::marker(1 << 31), OpId(1)),
        appender.code_object(&CodeObjectRow { id: CodeObjectId(u64::MAX), vgpr: 0, sgpr: 0, fbar: 0 }),
        appender.tick(&rpd_schema::TickRow { op: OpId(1 << 32), start: 0, end: 0 }),
    ] {
        assert_eq!(result.unwrap_err().kind(), &ErrorKind::SessionFull);
    }
    assert_eq!(appender.next_session().unwrap_err().kind(), &ErrorKind::InTransaction);
    appender.commit().unwrap();
    let text = appender.session();
    appender.next_session().unwrap();
    assert_eq!(appender.session(), text + 1);
    appender.begin().unwrap();
    kernel(&mut appender, 1, "after");
    appender.api_op(ApiId::call(1), OpId(1)).unwrap();
    appender.commit().unwrap();
    assert_eq!(
        read(&path, "SELECT id, description FROM op"),
        ["4294967295|".to_owned(), format!("{}|after", (1_i64 << 32) + 1)]
    );
    assert_eq!(read(&path, "SELECT id FROM rocpd_api_ops"), ["4294967297", "4294967298"]);
}

#[test]
fn sessions_whose_rows_are_in_the_file_are_not_taken_again_whatever_the_count_says() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    let set = |sql: &str| Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    let session = || Appender::open(&path).unwrap().session();
    set("INSERT INTO rocpd_metadata (tag, value) VALUES ('session_count', 'many')");
    assert_eq!(session(), 0);
    set("INSERT INTO rocpd_string (id, string) VALUES (7 << 32 | 5, 'from a merged file')");
    assert_eq!(session(), 8);
    set("UPDATE rocpd_metadata SET value = '-3' WHERE tag = 'session_count'");
    assert_eq!(session(), 9);
    set("UPDATE rocpd_metadata SET value = '2147483647' WHERE tag = 'session_count'");
    assert_eq!(session(), i32::MAX as u32);
    assert_eq!(Appender::open(&path).map(|_| ()).unwrap_err().kind(), &ErrorKind::NoSessionLeft);
    assert_eq!(read(&path, "SELECT count(*) FROM rocpd_metadata WHERE tag = 'session_count'"), ["1"]);
}
