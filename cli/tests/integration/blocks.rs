//! `rpd blocks`: sums of what basic blocks were counted, against SQL.

use serde_json::Value;

use crate::harness::{Dir, golden};

/// A trace with counts of two kernels: `walk` in two sessions and on two lines, and `call<T>` that was counted by lanes alone.
fn counted(dir: &Dir) -> String {
    let mut sql = rpd_sql::ext::RECORDERS.concat();
    sql += "INSERT INTO rocpd_string VALUES (1, ''), (2, 'KernelExecution'), (3, 'walk(int*)'), (4, 'call<T>(\u{1b}[31m)'), (5, 'walk(int*)');";
    // Three dispatches of 128 work-items, and one that was not counted.
    for id in 1..=4 {
        let name = if id == 3 { 4 } else { 3 };
        sql += &format!(
            "INSERT INTO rocpd_op VALUES ({id}, 0, 1, {id}, '', {id}000, {id}500, {name}, 2);
             INSERT INTO ext_dispatch VALUES ({id}, {name}, 2, 1, 1, 64, 1, 1, 0, 0, '', 0);"
        );
    }
    for (id, name) in [(1, 3), (2, 5), (3, 4)] {
        sql += &format!(
            "INSERT INTO ext_instrumentation VALUES ({id}, {id}, {name}, 0, 1, {id}, 'blocks', 0, 0, 0, 0, '');"
        );
    }
    let block = |id: u32, number: u32, function: &str, offset: u32, line: u32, kinds: [u32; 8]| {
        let all: u32 = kinds.iter().sum();
        let kinds = kinds.map(|count| count.to_string()).join(", ");
        let file = if line == 0 { "" } else { "walk.hip" };
        format!(
            "INSERT INTO ext_block VALUES ({id}, 7, {number}, '{function}', {offset}, {}, '{file}', {line}, {all}, {kinds});",
            4 * all
        )
    };
    let count = |id: u32, of: u32, block: u32, counts: &str| {
        format!("INSERT INTO ext_blockcount VALUES ({id}, {of}, {block}, 1, {counts});")
    };
    // The second session has rows of its own for the same code.
    for (session, first) in [(1, 1), (2, 11)] {
        sql += &block(first, 0, "_Z4walkPi", 4096, 10, [2, 1, 1, 1, 0, 0, 1, 0]);
        sql += &block(first + 1, 1, "_Z4walkPi", 4120, 12, [4, 0, 0, 0, 2, 0, 1, 1]);
        sql += &block(first + 2, 2, "_Z4walkPi", 4152, 12, [0, 0, 0, 0, 0, 0, 0, 1]);
        sql += &block(first + 3, 3, "_Z6helperv", 4160, 30, [0, 0, 0, 0, 0, 3, 1, 0]);
        for (place, waves) in [2, 20, 2, 0].into_iter().enumerate() {
            let place = place as u32;
            sql += &count(
                first + place,
                session,
                first + place,
                &format!("{waves}, {}, {}", waves * 32, waves * 100),
            );
        }
    }
    sql += &block(21, 0, "call", 8192, 0, [1, 0, 0, 0, 0, 0, 0, 1]);
    sql += &count(21, 3, 21, "NULL, 70, NULL");
    dir.trace("counted.rpd", &sql)
}

fn json(dir: &Dir, arguments: &[&str]) -> Vec<Value> {
    let ran = dir.run(&[&["blocks", "--json"], arguments].concat());
    serde_json::from_str(&ran.expect(0).stdout).unwrap()
}

#[test]
fn blocks_of_all_sessions_add_up() {
    let dir = Dir::new();
    let trace = counted(&dir);
    let kernels = json(&dir, &[&trace]);
    let walk = &kernels[0];
    assert_eq!((&walk["kernel"], &walk["dispatches"]), (&"walk(int*)".into(), &2.into()));
    assert_eq!(walk["work_items"], 256);
    let executed = dir.open(&trace).query_row(
        "SELECT sum(C.waves * B.instructions) FROM ext_blockcount C JOIN ext_block B ON B.id = C.block_id",
        [],
        |row| row.get::<_, i64>(0),
    );
    assert_eq!(walk["executed"], executed.unwrap());
    let kinds = &walk["executed_kinds"];
    assert_eq!(
        (&kinds["valu"], &kinds["lds"], &kinds["mfma"], &kinds["salu"]),
        (&168.into(), &80.into(), &0.into(), &4.into())
    );
    let rows: Vec<[i64; 5]> = walk["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| ["offset", "waves", "lanes", "ticks", "executed"].map(|name| row[name].as_i64().unwrap()))
        .collect();
    assert_eq!(rows[0], [4120, 40, 1280, 4000, 320], "the most ticks first");
    assert_eq!(rows[1..3].iter().map(|row| row[0]).collect::<Vec<_>>(), [4096, 4152]);
    assert_eq!(rows[3], [4160, 0, 0, 0, 0], "what was not executed is there too");
    let call = &kernels[1];
    assert_eq!((&call["executed"], &call["rows"][0]["lanes"]), (&Value::Null, &70.into()));
}

#[test]
fn lines_and_functions() {
    let dir = Dir::new();
    let trace = counted(&dir);
    let of = |by: &str| -> Vec<(String, i64, i64, i64)> {
        let kernels = json(&dir, &[by, &trace, "^walk"]);
        let rows = kernels[0]["rows"].as_array().unwrap();
        let row = |row: &Value| {
            let number = |name: &str| row[name].as_i64().unwrap();
            (row["function"].as_str().unwrap().into(), number("line"), number("blocks"), number("executed"))
        };
        rows.iter().map(row).collect()
    };
    assert_eq!(
        of("--line"),
        [("walk(int*)".into(), 12, 2, 324), ("walk(int*)".into(), 10, 1, 24), ("helper()".into(), 30, 1, 0)]
    );
    assert_eq!(of("--function"), [("walk(int*)".into(), 10, 3, 348), ("helper()".into(), 30, 1, 0)]);
}

#[test]
fn what_people_see() {
    let dir = Dir::new();
    let trace = counted(&dir);
    golden("blocks.txt", &dir.run(&["blocks", "-n", "3", &trace]).expect(0).stdout);
    let csv = dir.run(&["blocks", "--csv", &trace]);
    assert_eq!(csv.expect(0).stdout.lines().count(), 1 + 4 + 1);
    let mut narrow = dir.rpd(&["blocks", &trace]);
    let shown = crate::harness::ran(narrow.env("COLUMNS", "60"));
    assert!(!shown.expect(0).stdout.contains('\u{1b}'));
}

#[test]
fn traces_without_counts() {
    let dir = Dir::new();
    let plain = dir.trace("plain.rpd", "");
    dir.run(&["blocks", &plain]).expect(0).says(&["no counts of basic blocks", "rpd probe --auto"]);
    let trace = counted(&dir);
    dir.run(&["blocks", &trace, "nothing"]).expect(1).says(&["no kernel whose name matches"]);
    dir.open(&trace)
        .execute_batch(
            "UPDATE ext_blockcount SET waves = 'many' WHERE id = 2; UPDATE ext_blockcount SET waves = -1 WHERE id = 1;
             UPDATE ext_blockcount SET waves = 9223372036854775807 WHERE id IN (11, 12); UPDATE ext_block SET line = 'ten', valu = 1.5;
             UPDATE ext_instrumentation SET kernelName_id = 99 WHERE id = 3; DELETE FROM ext_dispatch WHERE op_id = 1;",
        )
        .unwrap();
    let kernels = json(&dir, &[&trace]);
    assert_eq!(kernels.len(), 2);
    assert!(kernels.iter().any(|kernel| kernel["kernel"] == ""));
    assert!(kernels.iter().any(|kernel| kernel["work_items"].is_null()));
}
