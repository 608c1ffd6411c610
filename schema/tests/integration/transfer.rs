//! Rows in the file are those that were given, however they are written: one by one, or many with a database in memory; copied whole, or
//! value by value where the file's table is another.

use rpd_schema::{
    ApiId, Appender, CodeObjectId, CopyApiRow, DispatchRow, Error, MonitorRow, OpId, OpRow, TickRow, create,
};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

use crate::sample::{api, kernel, lines};

/// Enough for an image.
const MANY: u64 = 700;

fn fresh() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    create(&path).unwrap();
    (directory, path)
}

fn change(path: &Path, text: &str) {
    Connection::open(path).unwrap().execute_batch(text).unwrap();
}

/// Ops in one transaction; each says in its sequence number which id it was given.
pub(crate) fn ops(appender: &mut Appender, ids: impl IntoIterator<Item = u64>) -> Result<(), Error> {
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
    assert!(error.to_string().contains("UNIQUE constraint failed: rocpd_op.id"), "{error}");
    appender.rollback();
    assert_ids(&path, 0, []);
    ops(&mut appender, 1001..=1000 + MANY).unwrap();
    assert_ids(&path, 0, 1001..=1000 + MANY);
}

#[test]
fn a_trigger_sees_every_row_however_its_table_was_typed() {
    let (_directory, path) = fresh();
    change(
        &path,
        "CREATE TABLE seen (id); CREATE TRIGGER see AFTER INSERT ON ROCPD_OP BEGIN INSERT INTO seen VALUES (NEW.id); END",
    );
    let mut appender = Appender::open(&path).unwrap();
    ops(&mut appender, 1..=MANY).unwrap();
    let connection = Connection::open(&path).unwrap();
    assert_eq!(lines(&connection, "SELECT count(*), max(id) FROM seen"), [format!("{MANY}|{MANY}")]);
}

#[test]
fn triggers_and_indexes_of_the_owner_see_every_row() {
    let (_directory, path) = fresh();
    change(
        &path,
        "CREATE TABLE seen (id); CREATE INDEX by_start ON rocpd_op (start); \
         CREATE TRIGGER see AFTER INSERT ON rocpd_op BEGIN INSERT INTO seen VALUES (NEW.id); END",
    );
    let mut appender = Appender::open(&path).unwrap();
    ops(&mut appender, 1..=MANY).unwrap();
    assert_ids(&path, 0, 1..=MANY);
    let connection = Connection::open(&path).unwrap();
    assert_eq!(lines(&connection, "SELECT count(*), max(id) FROM seen"), [format!("{MANY}|{MANY}")]);
    let by_index = "SELECT count(*) FROM rocpd_op INDEXED BY by_start WHERE start > 0";
    assert_eq!(lines(&connection, by_index), [MANY.to_string()]);
    assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
}

#[test]
fn rows_that_the_owner_does_not_want_are_left_out() {
    let (_directory, path) = fresh();
    change(
        &path,
        "CREATE TRIGGER odd BEFORE INSERT ON rocpd_op WHEN NEW.id % 2 BEGIN SELECT RAISE(IGNORE); END",
    );
    let mut appender = Appender::open(&path).unwrap();
    ops(&mut appender, 1..=MANY).unwrap();
    assert_ids(&path, 0, (1..=MANY).filter(|id| id % 2 == 0));
}

#[test]
fn a_table_that_is_gone_is_made_again() {
    for many in [3, MANY] {
        let (_directory, path) = fresh();
        let mut appender = Appender::open(&path).unwrap();
        change(&path, "DROP TABLE rocpd_op");
        ops(&mut appender, 1..=many).unwrap();
        assert_ids(&path, 0, 1..=many);
    }
}

#[test]
fn a_table_with_columns_in_another_order_and_more_of_them() {
    let (_directory, path) = fresh();
    change(
        &path,
        "DROP TABLE rocpd_op; CREATE TABLE rocpd_op (note DEFAULT 'none', start, \"end\", id integer PRIMARY KEY, \
         sequenceId, queueId, gpuId, completionSignal, description_id, opType_id, twice AS (2 * id))",
    );
    let mut appender = Appender::open(&path).unwrap();
    ops(&mut appender, 1..=MANY).unwrap();
    assert_ids(&path, 0, 1..=MANY);
    // A table may change between two transactions.
    change(&path, "ALTER TABLE rocpd_op ADD COLUMN later");
    ops(&mut appender, MANY + 1..=2 * MANY).unwrap();
    assert_ids(&path, 0, 1..=2 * MANY);
    let connection = Connection::open(&path).unwrap();
    let odd = "SELECT count(*) FROM rocpd_op WHERE note <> 'none' OR start <> id OR twice <> 2 * id OR queueId <> 1";
    assert_eq!(lines(&connection, odd), ["0"]);
}

#[test]
fn a_file_whose_texts_are_utf_16() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.rpd");
    change(&path, &format!("PRAGMA encoding = 'UTF-16le'; {}", rpd_sql::FRESH.concat()));
    let mut appender = Appender::open(&path).unwrap();
    appender.begin().unwrap();
    (1..=MANY).for_each(|n| kernel(&mut appender, n, &format!("kernel \u{1f409} {n}")));
    appender.commit().unwrap();
    let connection = Connection::open(&path).unwrap();
    let same = "SELECT count(*) FROM op WHERE description = 'kernel \u{1f409} ' || id";
    assert_eq!(lines(&connection, same), [MANY.to_string()]);
}

#[test]
fn more_in_one_transaction_than_there_is_room_for_images() {
    let (_directory, path) = fresh();
    let mut appender = Appender::open(&path).unwrap();
    appender.set_waiting(64 << 10);
    ops(&mut appender, 1..=20_000).unwrap();
    ops(&mut appender, 20_001..=40_000).unwrap();
    assert_ids(&path, 0, 1..=40_000);
}

#[test]
fn who_commits_when_it_is_full_keeps_little_in_memory() {
    let (_directory, path) = fresh();
    let mut appender = Appender::open(&path).unwrap();
    appender.set_waiting(64 << 10);
    appender.begin().unwrap();
    let mut commits = 0;
    for n in 1..=5000 {
        kernel(&mut appender, n, "one of many");
        if appender.is_full() {
            appender.commit().unwrap();
            assert!(!appender.is_full());
            appender.begin().unwrap();
            commits += 1;
        }
    }
    appender.commit().unwrap();
    assert!(commits > 10, "{commits}");
    let connection = Connection::open(&path).unwrap();
    for table in ["rocpd_api", "rocpd_op", "rocpd_api_ops", "rocpd_kernelapi", "ext_dispatch"] {
        assert_eq!(lines(&connection, &format!("SELECT count(*) FROM {table}")), ["5000"], "{table}");
    }
    assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
}

/// Numbers at the borders of the sizes in which SQLite keeps them.
fn numbers() -> impl Iterator<Item = u64> {
    (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]).chain([u64::MAX])
}

/// Rows of every kind, with every number and with texts of all lengths.
fn every_value(appender: &mut Appender) {
    for (n, number) in (1..).zip(numbers()) {
        let text = "\u{fc}".repeat(n as usize * 60);
        let text = &text[..n as usize % 61 * 2 + if n % 16 == 0 { n as usize * 50 } else { 0 }];
        api(appender, ApiId::call(n), "hipMemcpy", text, number, number);
        let (value, narrow) = (appender.intern(text).unwrap(), number as u32);
        appender
            .copy_api(&CopyApiRow {
                api: ApiId::call(n),
                stream: number,
                size: number,
                width: !number,
                height: number / 3,
                kind: narrow,
                dst: !number,
                src: number,
                dst_device: narrow.cast_signed(),
                src_device: -1,
                sync: n % 2 == 0,
                pinned: n % 3 == 0,
            })
            .unwrap();
        appender
            .dispatch(&DispatchRow {
                op: OpId(n),
                kernel_name: value,
                grid: [narrow, !narrow, narrow / 3],
                workgroup: [1, 0, narrow],
                group_segment_size: narrow,
                private_segment_size: !narrow,
                kernarg_address: number,
                code_object: CodeObjectId(n),
            })
            .unwrap();
        appender.tick(&TickRow { op: OpId(n), start: number, end: !number }).unwrap();
        appender
            .monitor(&MonitorRow {
                device_type: "gpu",
                device: narrow,
                monitor_type: text,
                start: number,
                end: !number,
                value: text,
            })
            .unwrap();
        appender.stack_frame(ApiId::call(n), narrow, value).unwrap();
    }
}

#[test]
fn one_by_one_and_by_an_image_are_the_same() {
    let contents = |path: &Path, rows: &dyn Fn(&mut Appender)| {
        // A second session, so that ids are large.
        drop(Appender::open(path).unwrap());
        let mut appender = Appender::open(path).unwrap();
        rows(&mut appender);
        let connection = Connection::open(path).unwrap();
        assert_eq!(lines(&connection, "PRAGMA integrity_check"), ["ok"]);
        let tables = [
            "rocpd_string",
            "rocpd_api",
            "rocpd_copyapi",
            "ext_dispatch",
            "ext_tick",
            "rocpd_monitor",
            "rocpd_stackframe",
        ];
        tables.map(|table| {
            let columns = lines(&connection, &format!("SELECT name FROM pragma_table_info('{table}')"));
            let typed: Vec<String> = columns.iter().map(|name| format!("quote(\"{name}\")")).collect();
            lines(&connection, &format!("SELECT {} FROM {table} ORDER BY 1", typed.join(",")))
        })
    };
    let (_directory, each) = fresh();
    let each = contents(&each, &|appender| {
        // So little may wait that every row is written by itself.
        appender.set_waiting(0);
        appender.begin().unwrap();
        every_value(appender);
        appender.commit().unwrap();
    });
    let (_directory, image) = fresh();
    let image = contents(&image, &|appender| {
        appender.begin().unwrap();
        every_value(appender);
        appender.commit().unwrap();
    });
    assert_eq!(each[1].len(), numbers().count());
    assert_eq!(each, image);
    // What one of them says is what was given.
    let texts = |row: &str| row.split('|').map(str::to_string).collect::<Vec<_>>();
    for (n, number) in numbers().enumerate() {
        let (number, opposite) = (number.cast_signed(), (!number).cast_signed());
        assert_eq!(texts(&image[4][n])[1..], [number.to_string(), opposite.to_string()]);
    }
}
