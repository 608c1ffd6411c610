//! `rpd blocks`: sums of what basic blocks were counted, against SQL.

use std::fs;
use std::path::Path;

use rpd_codeobject::counting::{Options, rewrite};
use serde_json::Value;

use crate::harness::{Dir, Ran, golden};

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
fn counts_of_several_dispatches_are_said_to_be_of_more_than_the_part() {
    let dir = Dir::new();
    let trace = counted(&dir);
    let part = |options: &[&str]| dir.run(&[&["blocks", "--json", &trace], options].concat());
    let waves = |ran: &Ran| -> i64 {
        let kernels: Vec<Value> = serde_json::from_str(&ran.expect(0).stdout).unwrap();
        let rows = kernels.iter().flat_map(|kernel| kernel["rows"].as_array().unwrap());
        rows.filter_map(|row| row["waves"].as_i64()).sum()
    };
    let of_op = |op: i64| -> i64 {
        let query = "SELECT sum(waves) FROM ext_blockcount C JOIN ext_instrumentation I ON I.id = C.instrumentation_id WHERE op_id = ?1";
        dir.open(&trace).query_row(query, [op], |row| row.get(0)).unwrap()
    };
    let first = part(&["--end", "1000"]);
    assert_eq!(waves(&first), of_op(1));
    assert!(!first.stderr.contains("together"), "{first}");
    // The second count is of the first dispatch too.
    dir.open(&trace).execute_batch("UPDATE ext_blockcount SET dispatches = 2 WHERE instrumentation_id = 2; DELETE FROM ext_blockcount WHERE instrumentation_id = 1").unwrap();
    let second = part(&["--start", "2000", "--kernel", "walk"]);
    assert_eq!(waves(&second), of_op(2));
    second.says(&["walk(int*): its counts are of 2 dispatches that were counted together; 1 of these"]);
    let kernel = &json(&dir, &["--start", "2000", "--kernel", "walk", &trace])[0];
    assert_eq!((&kernel["dispatches"], &kernel["counts_of"]), (&1.into(), &2.into()));
    let shown = dir.run(&["blocks", &trace, "--start", "2000", "--kernel", "walk"]);
    assert!(shown.expect(0).stdout.contains("1 dispatch counted by --auto=time, counts of 2, "), "{shown}");
    assert!(!part(&[]).stderr.contains("together"));
    let none = part(&["--start", "9000"]);
    assert_eq!(none.expect(0).stdout.trim(), "[]");
    dir.run(&["blocks", &trace, "--start", "9000"])
        .expect(0)
        .says(&["no counts of basic blocks in that part of it"]);
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
    for options in [&[][..], &["--roofline"]] {
        let ran = dir.run(&[&["blocks", &plain], options].concat());
        ran.expect(0).says(&["no counts of basic blocks", "rpd probe --auto"]);
    }
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

/// The SHA-256 of codeobject/tests/data/counting-gfx906-o2.co.
const COUNTED_OBJECT: &str = "5045e998fac758d32cf58b9c76d0ad4a5cd4ce020a6ec86d3db9e61831134aed";

/// A trace of `reduces` of that code object (counting.hip there) in 4 workgroups of 256 work-items, of which 1000 have a number: blocks,
/// and the waves and lanes that the source makes enter them. The code object is saved beside it.
pub(crate) fn of_reduces(dir: &Dir) -> String {
    let mut sql = rpd_sql::ext::RECORDERS.concat();
    sql += include_str!("../../../sql/ext/codeobject.sql");
    sql += &format!(
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'reduces');
         INSERT INTO ext_codeobject VALUES (1, '{COUNTED_OBJECT}', 'memory://1', 'gfx906', 16400);
         INSERT INTO ext_codeobject_kernel VALUES (7, 1);
         INSERT INTO ext_instrumentation VALUES (1, NULL, 2, 0, 1, 1, 'blocks', 0, 0, 0, 0, '');"
    );
    let blocks = [
        (0x3300, 0x3350, 15, 16, 1024),
        (0x3350, 0x3370, 6, 16, 1000),
        (0x3370, 0x3398, 9, 16, 1024),
        (0x3398, 0x33a8, 4, 16, 1024),
        (0x33a8, 0x33cc, 7, 4, 4),
        (0x33cc, 0x33d0, 1, 16, 1024),
        (0x33d0, 0x33ec, 7, 128, 8192),
        (0x33ec, 0x33fc, 4, 128, 8192),
        (0x33fc, 0x3428, 7, 36, 1020),
    ];
    for (number, (start, end, instructions, waves, lanes)) in blocks.into_iter().enumerate() {
        sql += &format!(
            "INSERT INTO ext_block VALUES ({number}, 7, {number}, 'reduces', {start}, {}, '', 0, {instructions}, {instructions}, 0, 0, 0, 0, 0, 0, 0);
             INSERT INTO ext_blockcount VALUES ({number}, 1, {number}, 1, {waves}, {lanes}, {});",
            end - start,
            waves * 10
        );
    }
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codeobject/tests/data/counting-gfx906-o2.co");
    fs::create_dir(dir.path("reduces.rpd.code")).unwrap();
    dir.write(&format!("reduces.rpd.code/{COUNTED_OBJECT}.hsaco"), fs::read(object).unwrap());
    dir.trace("reduces.rpd", &sql)
}

#[test]
fn what_the_code_object_says_of_blocks() {
    let dir = Dir::new();
    let trace = of_reduces(&dir);
    let kernel = &json(&dir, &["--disasm", &trace])[0];
    let row = |offset: i64| {
        let rows = kernel["rows"].as_array().unwrap();
        rows.iter().find(|row| row["offset"] == offset).unwrap().clone()
    };
    let taken: Vec<Option<i64>> =
        [0x3300, 0x3398, 0x33ec, 0x3350].map(|offset| row(offset)["taken"].as_i64()).to_vec();
    assert_eq!(taken, [Some(0), Some(12), Some(92), None]);
    assert_eq!((&row(0x33ec)["target"], &row(0x33fc)["target"]), (&0x33d0.into(), &0x33d0.into()));
    // Whether the loop turned once less and was entered once more is not in the counts.
    assert_eq!((&row(0x33d0)["taken"], &row(0x33ec)["loop_entries"]), (&Value::Null, &Value::Null));
    // s_load_dword three times and x4 of 16 waves, a load of 1000 lanes, a store of 4.
    assert_eq!((&kernel["memory_bytes"], &kernel["flops"]), (&(16 * 28 + 4000 + 16).into(), &0.into()));
    assert_eq!((&kernel["flops_per_byte"], &kernel["lanes_assumed"]), (&0.0.into(), &false.into()));
    assert_eq!(row(0x3370)["waits"], serde_json::json!(["LDS/SMEM", "VMEM", "barrier"]));
    assert_eq!(kernel["waits"]["barrier"], 10 * (16 + 128));
    for row in kernel["rows"].as_array().unwrap() {
        assert_eq!(row["code"].as_array().unwrap().len() as i64, row["instructions"].as_i64().unwrap());
    }
    golden("blocks-disasm.txt", &dir.run(&["blocks", "--disasm", "-n", "3", &trace]).expect(0).stdout);
    let lines = &json(&dir, &["--line", &trace])[0]["rows"][0];
    assert_eq!((&lines["memory_bytes"], &lines["taken"]), (&kernel["memory_bytes"], &Value::Null));
}

#[test]
fn code_objects_that_are_not_there() {
    let dir = Dir::new();
    let trace = of_reduces(&dir);
    let saved = format!("reduces.rpd.code/{COUNTED_OBJECT}.hsaco");
    fs::rename(dir.path(&saved), dir.path("away")).unwrap();
    let ran = dir.run(&["blocks", "--disasm", &trace]);
    ran.expect(0).says(&["5045e998fac7", "was not saved"]);
    assert!(!ran.stdout.contains("taken") && ran.stdout.contains("0x33ec"), "{ran}");
    // Another code object by that name, and one where nothing is as it was.
    dir.write(&saved, b"\x7fELF");
    dir.run(&["blocks", "--disasm", &trace]).expect(0).says(&["other bytes"]);
    fs::create_dir(dir.path("kept")).unwrap();
    fs::rename(dir.path("away"), dir.path(&format!("kept/{COUNTED_OBJECT}.hsaco"))).unwrap();
    let of =
        |arguments: &[&str]| dir.run(&[&["blocks", "--json", "--code", "kept", &trace], arguments].concat());
    let has_taken = |ran: Ran| ran.expect(0).stdout.replace(' ', "").contains("\"taken\":92");
    assert!(has_taken(of(&[])));
    dir.open(&trace)
        .execute_batch(
            "UPDATE ext_block SET offset = offset + 2 WHERE number = 1; UPDATE ext_block SET offset = -1 WHERE number = 2;
             UPDATE ext_block SET size = 9223372036854775807 WHERE number = 3;",
        )
        .unwrap();
    assert!(!has_taken(of(&["--disasm"])));
    dir.open(&trace).execute_batch("UPDATE ext_codeobject SET sha256 = x'00ff', size = 'much';").unwrap();
    of(&[]).expect(0).says(&["its sha256 is none"]);
}

/// A trace of `doubles` of the same code object: counted in two grids, each of which has uncounted dispatches too, one of them on another GPU.
pub(crate) fn of_doubles(dir: &Dir) -> String {
    let object = Path::new(env!("CARGO_MANIFEST_DIR")).join("../codeobject/tests/data/counting-gfx906-o2.co");
    let bytes = fs::read(&object).unwrap();
    let made = rewrite(&bytes, &Options::default(), &|name| name == "doubles").unwrap();
    let mut sql = rpd_sql::ext::RECORDERS.concat();
    sql += include_str!("../../../sql/ext/codeobject.sql");
    sql += &format!(
        "INSERT INTO rocpd_string VALUES (1, ''), (2, 'doubles'), (3, 'KernelExecution'), (4, 'other');
         INSERT INTO ext_codeobject VALUES (1, '{COUNTED_OBJECT}', 'memory://1', 'gfx906', 16400);
         INSERT INTO ext_codeobject_kernel VALUES (7, 1);"
    );
    // GPU, workgroups, ns, and whether its blocks were counted.
    let ops = [
        (0, 2, 900, true),
        (0, 2, 300, false),
        (0, 2, 500, false),
        (0, 4, 2000, true),
        (0, 4, 700, false),
        (1, 4, 9000, false),
    ];
    for (number, (gpu, workgroups, time, counts)) in ops.into_iter().enumerate() {
        let (id, start) = (number + 1, 1 + number * 100_000);
        sql += &format!(
            "INSERT INTO rocpd_op VALUES ({id}, {gpu}, 1, {id}, '', {start}, {}, 2, 3);
             INSERT INTO ext_dispatch VALUES ({id}, 2, {workgroups}, 1, 1, 256, 1, 1, 0, 0, '', 0);",
            start + time
        );
        if counts {
            sql += &format!(
                "INSERT INTO ext_instrumentation VALUES ({id}, {id}, 2, 0, 1, {id}, 'blocks', 0, 0, 0, 0, '');"
            );
        }
    }
    for (number, block) in made.blocks.iter().enumerate() {
        sql += &format!(
            "INSERT INTO ext_block VALUES ({number}, 7, {number}, 'doubles', {}, {}, '', 0, {}, {}, 0, 0, 0, 0, 0, 0, 0);
             INSERT INTO ext_blockcount VALUES ({number}, 4, {number}, 2, {}, {}, NULL);",
            block.start,
            block.end - block.start,
            block.instructions,
            block.instructions,
            24 * (number + 1),
            1500 * (number + 1)
        );
    }
    fs::create_dir_all(dir.path("doubles.rpd.code")).unwrap();
    dir.write(&format!("doubles.rpd.code/{COUNTED_OBJECT}.hsaco"), bytes);
    dir.trace("doubles.rpd", &sql)
}

/// The roofline against SQL that says how long the counted dispatches take.
#[test]
fn rooflines() {
    let dir = Dir::new();
    let trace = of_doubles(&dir);
    let peaks = ["--peak-gflops", "500", "--peak-gbs", "80"];
    let kernel = |options: &[&str]| json(&dir, &[&["--roofline", &trace], options].concat()).remove(0);
    let sql = |query: &str| -> f64 { dir.open(&trace).query_row(query, [], |row| row.get(0)).unwrap() };
    let check = |kernel: &Value, time: f64, whose: &str| {
        let roofline = &kernel["roofline"];
        let number = |value: &Value| value.as_f64().unwrap();
        let (flops, bytes) = (number(&kernel["flops"]), number(&kernel["memory_bytes"]));
        assert!(flops > 0.0 && bytes > 0.0);
        assert_eq!((number(&roofline["time_ns"]), roofline["time_of"].as_str()), (time, Some(whose)));
        assert_eq!(number(&roofline["gflops_per_s"]), flops / time);
        assert_eq!(number(&roofline["gbytes_per_s"]), bytes / time);
        let roof = f64::min(500.0, 80.0 * flops / bytes);
        assert!((number(&roofline["roof_percent"]) - 100.0 * flops / time / roof).abs() < 1e-9, "{roofline}");
        assert_eq!(roofline["bound"], if flops / bytes <= 500.0 / 80.0 { "memory" } else { "arithmetic" });
    };
    let uncounted = "SELECT sum(instrumented * plainNs) FROM instrumentationCost";
    assert_eq!(sql(uncounted), 400.0 + 700.0);
    check(&kernel(&peaks), sql(uncounted), "uncounted");
    golden(
        "blocks-roofline.txt",
        &dir.run(&[&["blocks", "--roofline", &trace], &peaks[..]].concat()).expect(0).stdout,
    );
    let plain = kernel(&[]);
    assert_eq!(
        (&plain["roofline"]["roof_percent"], &plain["roofline"]["bound"]),
        (&Value::Null, &Value::Null)
    );
    // In a part of the trace: the counts are with the last dispatch, and of one that is not in this part.
    let part = json(&dir, &["--roofline", &trace, "--end", "299999"]);
    assert_eq!(part, [] as [Value; 0]);
    assert_eq!(kernel(&[&peaks[..], &["--start", "300000"]].concat())["roofline"], Value::Null);
    let said = dir.run(&["blocks", "--roofline", &trace, "--start", "300000"]);
    assert!(said.expect(0).stderr.contains("1 kernel is left out"), "{said}");
    // One that was replaced is none of the program's: a program that is killed leaves counting ones without counts.
    dir.open(&trace)
        .execute_batch(&format!(
            "{}INSERT INTO ext_replacement VALUES (1, 3, 1, 2, 1)",
            include_str!("../../../sql/ext/replacement.sql")
        ))
        .unwrap();
    check(&kernel(&peaks), 300.0 + 700.0, "uncounted");
    dir.open(&trace).execute_batch("DELETE FROM ext_replacement").unwrap();
    check(&kernel(&peaks), 400.0 + 700.0, "uncounted");
    // A dispatch that ran another instrumented kernel is none of the program's.
    dir.open(&trace)
        .execute_batch("INSERT INTO ext_instrumentation VALUES (9, 3, 2, 0, 1, 3, 'Heatmap', 0, 0, 0, 0, '')")
        .unwrap();
    check(&kernel(&peaks), 300.0 + 700.0, "uncounted");
    // A grid without others: the times of the counted ones.
    dir.open(&trace).execute_batch("UPDATE ext_dispatch SET gridX = 5 WHERE op_id = 5").unwrap();
    check(&kernel(&peaks), sql("SELECT sum(end - start) FROM rocpd_op WHERE id IN (1, 4)"), "counted");
    dir.run(&["blocks", "--roofline", &trace])
        .expect(0)
        .says(&["1 kernel has only the times of counted dispatches"]);
    // One of which cannot be.
    dir.open(&trace).execute_batch("UPDATE rocpd_op SET start = end + 1 WHERE id = 4").unwrap();
    assert_eq!(kernel(&peaks)["roofline"], Value::Null);
    // No code object.
    fs::remove_dir_all(dir.path("doubles.rpd.code")).unwrap();
    let ran = dir.run(&["blocks", "--roofline", &trace]);
    assert!(ran.expect(0).stderr.contains("1 kernel is left out"), "{ran}");
}

#[test]
fn peaks_that_are_none() {
    let dir = Dir::new();
    let trace = counted(&dir);
    for wrong in ["0", "-1", "much", "inf", "nan"] {
        let peak = format!("--peak-gbs={wrong}");
        dir.run(&["blocks", "--roofline", &peak, &trace]).expect(2).says(&["it is a number above 0"]);
    }
    let alone = dir.run(&["blocks", "--peak-gbs", "80", &trace]);
    assert!(alone.expect(2).stderr.contains("--roofline"), "{alone}");
    dir.run(&["blocks", "--roofline", "--line", &trace]).expect(2);
}

/// A file that counted waves in one session and lanes in another one, of blocks that begin together and end apart.
#[test]
fn counts_of_several_modes_do_not_add_up() {
    let (one, both) = (Dir::new(), Dir::new());
    let (lanes, mixed) = (of_reduces(&one), of_reduces(&both));
    for trace in [(&one, &lanes), (&both, &mixed)] {
        trace.0.open(trace.1).execute_batch("UPDATE ext_blockcount SET ticks = NULL").unwrap();
    }
    let second = "INSERT INTO ext_instrumentation SELECT id + (1 << 32), op_id, kernelName_id, gpuId, queueId, sequenceId, analyzer, messages, bytes, dropped, incomplete, reason FROM ext_instrumentation;
         INSERT INTO ext_block SELECT id + (1 << 32), kernel_id, CASE number WHEN 1 THEN 0 ELSE number - (number > 0) END, functionName, offset, CASE number WHEN 0 THEN 80 ELSE size END, file, line, instructions, valu, salu, vmem, smem, lds, mfma, branch, other FROM ext_block WHERE number <> 1;
         INSERT INTO ext_blockcount SELECT id + (1 << 32), instrumentation_id + (1 << 32), block_id + (1 << 32), dispatches, waves * 3, NULL, NULL FROM ext_blockcount WHERE block_id <> 1";
    both.open(&mixed).execute_batch(second).unwrap();
    let alone = json(&one, &[&lanes]);
    assert_eq!((alone.len(), &alone[0]["mode"]), (1, &"lanes".into()));
    let kernels = json(&both, &[&mixed]);
    let of = |mode: &str| kernels.iter().find(|kernel| kernel["mode"] == mode).unwrap();
    assert_eq!((kernels.len(), of("lanes")), (2, &alone[0]));
    let (count, waves) =
        (of("count"), alone[0]["rows"].as_array().unwrap().iter().map(|row| row["waves"].as_i64().unwrap()));
    let without = alone[0]["rows"].as_array().unwrap().iter().find(|row| row["offset"] == 0x3350).unwrap();
    let expected = 3 * (waves.sum::<i64>() - without["waves"].as_i64().unwrap());
    let sum = count["rows"].as_array().unwrap().iter().map(|row| row["waves"].as_i64().unwrap()).sum::<i64>();
    assert_eq!(
        (sum, &count["lanes_assumed"], &count["dispatches"]),
        (expected, &true.into(), &alone[0]["dispatches"])
    );
    let text = both.run(&["blocks", &mixed]);
    for mode in ["counted by --auto=count", "counted by --auto=lanes"] {
        assert!(text.expect(0).stdout.contains(mode), "{text}");
    }
    for _ in 0..8 {
        assert_eq!(both.run(&["blocks", &mixed]).stdout, text.stdout);
    }
}

/// What waits is a block, however blocks are added up.
#[test]
fn waits_are_those_of_blocks() {
    let dir = Dir::new();
    let trace = of_reduces(&dir);
    let waits = |options: &[&str]| json(&dir, &[&[&*trace], options].concat())[0]["waits"].clone();
    let of_blocks = waits(&[]);
    assert!(of_blocks["barrier"].as_i64() > Some(0), "{of_blocks}");
    assert_eq!([waits(&["--line"]), waits(&["--function"])], [of_blocks.clone(), of_blocks]);
}

/// Blocks without a line are not those of one line; functions have their names.
#[test]
fn blocks_without_lines_are_their_functions() {
    let dir = Dir::new();
    let trace = counted(&dir);
    dir.open(&trace).execute_batch("UPDATE ext_block SET file = '', line = 0 WHERE line <> 12").unwrap();
    let rows = json(&dir, &["--line", &trace])[0]["rows"].clone();
    let of = |file: &str| -> Vec<(String, i64)> {
        let rows = rows.as_array().unwrap().iter().filter(|row| row["file"] == file);
        let mut all: Vec<_> = rows
            .map(|row| (row["function"].as_str().unwrap().into(), row["blocks"].as_i64().unwrap()))
            .collect();
        all.sort();
        all
    };
    assert_eq!(of(""), [("helper()".to_string(), 1), ("walk(int*)".to_string(), 1)]);
    assert_eq!(of("walk.hip"), [("walk(int*)".to_string(), 2)]);
    dir.run(&["blocks", "--line", &trace, "call"])
        .expect(0)
        .says(&["its blocks have no lines of the source", "-g"]);
    let functions = dir.run(&["blocks", "--function", &trace, "walk"]);
    for row in ["walk(int*) (3 blocks)", "helper()"] {
        assert!(functions.expect(0).stdout.contains(row), "{functions}");
    }
    assert!(!functions.stdout.contains("walk.hip"), "{functions}");
}

/// Two builds of a kernel may have blocks at the same places.
#[test]
fn blocks_of_two_code_objects_are_apart() {
    let dir = Dir::new();
    let trace = counted(&dir);
    assert!(json(&dir, &[&trace])[0]["rows"][0]["code_object"].is_null());
    let objects = ["1f".repeat(32), "2e".repeat(32)];
    let mut sql = include_str!("../../../sql/ext/codeobject.sql").to_string();
    for (id, kernel, object) in [(1, 7, &objects[0]), (2, 8, &objects[1])] {
        sql += &format!(
            "INSERT INTO ext_codeobject VALUES ({id}, '{object}', 'memory://{id}', 'gfx906', 100);
             INSERT INTO ext_codeobject_kernel VALUES ({kernel}, {id});"
        );
    }
    sql += "UPDATE ext_block SET kernel_id = 8 WHERE id BETWEEN 11 AND 14";
    dir.open(&trace).execute_batch(&sql).unwrap();
    let waves = |row: &Value| (row["code_object"].as_str().map(str::to_string), row["waves"].as_u64());
    let rows = json(&dir, &[&trace, "walk"])[0]["rows"].clone();
    let at: Vec<_> = rows.as_array().unwrap().iter().filter(|row| row["offset"] == 4120).map(waves).collect();
    assert_eq!(at, objects.clone().map(|object| (Some(object), Some(20))));
    let lines = json(&dir, &["--line", &trace, "walk"])[0]["rows"].clone();
    assert_eq!(waves(&lines[0]), (None, Some(2 * (20 + 2))));
    let table = dir.run(&["blocks", &trace, "walk"]);
    assert!(
        objects.iter().all(|object| table.expect(0).stdout.contains(&format!(" in {}\n", &object[..12]))),
        "{table}"
    );
    let csv = dir.run(&["blocks", "--csv", &trace, "walk"]);
    assert_eq!(csv.expect(0).stdout.matches(&format!(",{},", objects[1])).count(), 4, "{csv}");
}

/// The table has the name of a file, unless another one is called the same.
#[test]
fn files_are_named_without_their_directories() {
    let dir = Dir::new();
    let trace = counted(&dir);
    dir.open(&trace)
        .execute_batch("UPDATE ext_block SET file = '/home/me/src/walk.hip' WHERE line > 0")
        .unwrap();
    let shown = |trace: &str| dir.run(&["blocks", trace, "walk"]).expect(0).stdout.clone();
    assert!(shown(&trace).contains(" walk.hip:12 ") && !shown(&trace).contains("/home"), "{}", shown(&trace));
    dir.open(&trace)
        .execute_batch("UPDATE ext_block SET file = '/home/me/lib/walk.hip' WHERE line = 30")
        .unwrap();
    for place in ["/home/me/src/walk.hip:12 ", "/home/me/lib/walk.hip:30 "] {
        assert!(shown(&trace).contains(place), "{}", shown(&trace));
    }
}
