//! Ids are those that were given, whether SQLite was left to number the rows of a batch or not.

#![cfg(test)]

mod sample;

use rpd_schema::{Appender, Error, OpId, OpRow};
use rusqlite::Connection;
use sample::lines;
use std::path::{Path, PathBuf};

/// More than two full batches.
const MANY: u64 = 250;

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    rpd_schema::create(&path).unwrap();
    (directory, path)
}

fn change(path: &Path, text: &str) {
    Connection::open(path).unwrap().execute_batch(text).unwrap();
}

/// Ops in one transaction; each says in its sequence number which id it was given.
fn ops(appender: &mut Appender, ids: impl IntoIterator<Item = u64>) -> Result<(), Error> {
    appender.begin()?;
    let empty = appender.empty();
    for id in ids {
        appender.op(&OpRow {
            id: OpId(id),
            gpu: 0,
            queue: 1,
            sequence: id,
            completion_signal: 0,
            start: id,
            end: id,
            description: empty,
            op_type: empty,
        })?;
    }
    appender.commit()
}

/// Asserts that the ops of session `session` have the ids that they were given.
fn assert_ids(path: &Path, session: u64, expected: impl IntoIterator<Item = u64>) {
    let connection = Connection::open(path).unwrap();
    let query = format!("SELECT id - ({session} << 32), sequenceId FROM rocpd_op WHERE id >> 32 = {session}");
    let expected: Vec<String> = expected.into_iter().map(|id| format!("{id}|{id}")).collect();
    assert_eq!(lines(&connection, &query), expected);
}

#[test]
fn sessions_that_take_turns() {
    let (_directory, path) = fresh();
    let mut first = Appender::open(&path).unwrap();
    let mut second = Appender::open(&path).unwrap();
    for turn in 0..3 {
        let ids = turn * MANY + 1..=(turn + 1) * MANY;
        ops(&mut first, ids.clone()).unwrap();
        ops(&mut second, ids).unwrap();
    }
    assert_ids(&path, 0, 1..=3 * MANY);
    assert_ids(&path, 1, 1..=3 * MANY);
}

#[test]
fn gaps_and_ids_out_of_order() {
    let (_directory, path) = fresh();
    let mut appender = Appender::open(&path).unwrap();
    let ids = (1..=130).chain(140..=500).chain((501..=700).rev()).chain(701..=900);
    ops(&mut appender, ids).unwrap();
    assert_ids(&path, 0, (1..=130).chain(140..=900));
}

#[test]
fn a_table_that_has_had_larger_ids() {
    let (_directory, path) = fresh();
    let mut appender = Appender::open(&path).unwrap();
    ops(&mut appender, 1..=MANY).unwrap();
    change(
        &path,
        "DELETE FROM rocpd_op WHERE id > 100; UPDATE sqlite_sequence SET seq = 5000 WHERE name = 'rocpd_op'",
    );
    ops(&mut appender, 101..=MANY).unwrap();
    change(&path, "DELETE FROM rocpd_op WHERE id > 100; DELETE FROM sqlite_sequence");
    ops(&mut appender, 101..=MANY).unwrap();
    assert_ids(&path, 0, 1..=MANY);
}

#[test]
fn a_table_whose_id_is_not_its_row_number() {
    for change_to in ["INT PRIMARY KEY", "TEXT PRIMARY KEY", "integer"] {
        let (_directory, path) = fresh();
        let columns =
            "gpuId, queueId, sequenceId, completionSignal, start, \"end\", description_id, opType_id";
        change(&path, &format!("DROP TABLE rocpd_op; CREATE TABLE rocpd_op (id {change_to}, {columns})"));
        let mut appender = Appender::open(&path).unwrap();
        ops(&mut appender, 1..=MANY).unwrap();
        let connection = Connection::open(&path).unwrap();
        let ids = lines(&connection, "SELECT id FROM rocpd_op ORDER BY rowid");
        assert_eq!(ids, (1..=MANY).map(|id| id.to_string()).collect::<Vec<_>>(), "{change_to}");
    }
}

#[test]
fn a_trigger_that_takes_ids_spoils_one_transaction() {
    let (_directory, path) = fresh();
    change(
        &path,
        "CREATE TRIGGER double AFTER INSERT ON rocpd_op WHEN NEW.id <= 250 BEGIN \
         INSERT INTO rocpd_op SELECT NULL, 9, 0, 9, '', 0, 0, 1, 1 WHERE NEW.gpuId <> 9; END",
    );
    let mut appender = Appender::open(&path).unwrap();
    let error = ops(&mut appender, 1..=MANY).unwrap_err();
    assert!(error.to_string().contains("rows of rocpd_op got other ids than the next ones"), "{error}");
    appender.rollback();
    assert_ids(&path, 0, []);
    ops(&mut appender, 1001..=1000 + MANY).unwrap();
    assert_ids(&path, 0, 1001..=1000 + MANY);
}
