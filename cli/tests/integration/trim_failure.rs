//! `rpd trim` and `rpd merge` that fail, are interrupted or killed: they say why, and every file is as it was.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::generated::{Random, generated};
use crate::harness::{Dir, RPD, finished, ran};

#[test]
fn a_missing_table_is_named() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.open(&trace).execute_batch("DROP TABLE rocpd_api_ops").unwrap();
    dir.run(&["trim", &trace, "-o", "out.rpd"]).expect(1).says(&["rocpd_api_ops", "rpd check --repair"]);
}

#[test]
fn a_failure_leaves_nothing() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 71, 400);
    dir.write("there.rpd", "");
    dir.run(&["trim", &trace, "-o", "there.rpd"]).expect(1).says(&["there.rpd", "exists already"]);
    dir.run(&["trim", &trace, "-o", &trace]).expect(1).says(&["t.rpd", "exists already"]);
    dir.run(&["trim", &trace, "-o", "no/such/out.rpd"]).expect(1).says(&["no/such"]);
    fs::remove_file(dir.path("there.rpd")).unwrap();
    // A limit that the new file meets, as a full disk would be met.
    let limited = format!("ulimit -f 24; exec {} trim t.rpd -o out.rpd", RPD);
    ran(dir.command("bash").args(["-c", &limited])).expect(1).says(&["out.rpd was not made"]);
    let bytes = fs::read(dir.path(&trace)).unwrap();
    let mut damaged = bytes.clone();
    let middle = damaged.len() / 2 / 4096 * 4096;
    damaged[middle..middle + 20_000].fill(0xaa);
    dir.write("damaged.rpd", &damaged);
    dir.run(&["trim", "damaged.rpd", "-o", "out.rpd"]).expect(1).says(&["damaged"]);
    dir.run(&["trim", "damaged.rpd", "--in-place", "--end", "50%"]).expect(1).says(&["damaged"]);
    assert!(
        fs::read(dir.path("damaged.rpd")).unwrap() == damaged && fs::read(dir.path(&trace)).unwrap() == bytes
    );
    assert_eq!(dir.names(), ["damaged.rpd", "t.rpd"]);
}

/// Lets a table leave rows out without a word when they are copied: those with nothing in this column.
fn forgetful(dir: &Dir, trace: &str, table: &str, column: &str) {
    let file = dir.open(trace);
    file.execute_batch(&format!(
        "PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = replace(sql, '\"{column}\" integer NOT NULL', '\"{column}\" integer') WHERE name = '{table}'"
    ))
    .unwrap();
    drop(file);
    let file = dir.open(trace);
    file.execute_batch(&format!(
        "UPDATE {table} SET \"{column}\" = NULL WHERE rowid = (SELECT max(rowid) FROM {table});
         PRAGMA writable_schema = ON;
         UPDATE sqlite_master SET sql = replace(sql, '\"{column}\" integer', '\"{column}\" integer NOT NULL ON CONFLICT IGNORE')
             WHERE name = '{table}'"
    ))
    .unwrap();
}

#[test]
fn a_trace_that_lacks_rows_takes_no_place() {
    let dir = Dir::new();
    let trace = generated(&dir, "t.rpd", 73, 60);
    fs::copy(dir.path(&trace), dir.path("other.rpd")).unwrap();
    forgetful(&dir, &trace, "rocpd_api", "tid");
    let before = fs::read(dir.path(&trace)).unwrap();
    for place in [&["-o", "out.rpd"][..], &["--in-place"]] {
        let said = dir.run(&[&["trim", &trace][..], place].concat());
        said.expect(1).says(&[
            "119 rows in rocpd_api where 120 belong",
            if place.len() == 2 { "not made" } else { "as it was" },
        ]);
    }
    assert!(fs::read(dir.path(&trace)).unwrap() == before);
    dir.open("other.rpd")
        .execute_batch("CREATE TABLE ext_mine (api_id integer REFERENCES rocpd_api (id), \"x\" integer NOT NULL); INSERT INTO ext_mine SELECT id, 1 FROM rocpd_api")
        .unwrap();
    forgetful(&dir, "other.rpd", "ext_mine", "x");
    generated(&dir, "third.rpd", 74, 10);
    let said = dir.run(&["merge", "-o", "out.rpd", "other.rpd", "third.rpd"]);
    said.expect(1).says(&["119 rows in ext_mine where 120 belong", "out.rpd was not made"]);
    assert_eq!(dir.names(), ["other.rpd", "t.rpd", "third.rpd"]);
}

/// A trace with a table that takes long to copy.
pub(crate) fn long(dir: &Dir) -> String {
    let trace = generated(dir, "t.rpd", 81, 50);
    dir.open(&trace)
        .execute_batch(
            "CREATE TABLE ext_long (api_id integer, x); INSERT INTO ext_long SELECT 1, 0 FROM rocpd_api a, rocpd_api b, rocpd_api c, rocpd_metadata;
             UPDATE rocpd_api SET id = 1 WHERE id = (SELECT min(id) FROM rocpd_api)",
        )
        .unwrap();
    trace
}

/// Whether there is something of a trace that was not finished.
fn has_unfinished(dir: &Dir) -> bool {
    dir.names().iter().any(|name| name.starts_with(".rpd-"))
}

/// Waits until a trim has begun to write.
fn begun(dir: &Dir, trim: &mut Child) {
    while !has_unfinished(dir) {
        assert!(trim.try_wait().unwrap().is_none(), "trim ended before it began to write");
        std::thread::yield_now();
    }
}

#[test]
fn a_writer_that_comes_in_the_meantime_keeps_its_file() {
    let dir = Dir::new();
    let trace = long(&dir);
    let before = fs::metadata(dir.path(&trace)).unwrap().ino();
    let mut trim = dir.rpd(&["trim", &trace, "--in-place", "--start", "1%"]);
    let mut child = trim.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    begun(&dir, &mut child);
    let writer = fs::OpenOptions::new().append(true).open(dir.path(&trace)).unwrap();
    let result = finished(child.wait_with_output().unwrap(), "trim and a writer".to_string());
    result.expect(1).says(&["is as it was", "has it open for writing"]);
    drop(writer);
    assert_eq!((dir.names(), fs::metadata(dir.path(&trace)).unwrap().ino()), (vec![trace], before));
}

#[test]
fn an_interrupted_trim_leaves_nothing() {
    let dir = Dir::new();
    let trace = long(&dir);
    for (signal, number) in [("INT", 2), ("TERM", 15)] {
        let mut child = dir
            .rpd(&["trim", &trace, "-o", "out.rpd"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        begun(&dir, &mut child);
        ran(dir.command("kill").args([format!("-{signal}"), child.id().to_string()])).expect(0);
        let result = finished(child.wait_with_output().unwrap(), format!("trim and {signal}"));
        result.expect_signal(number).says(&["interrupted: ", "out.rpd was not made"]);
        assert_eq!(dir.names(), ["t.rpd"]);
    }
}

#[test]
fn the_next_removes_what_a_killed_one_left() {
    let mut random = Random::new(17);
    for arguments in [&["trim", "t.rpd", "-o", "out.rpd"][..], &["merge", "t.rpd", "u.rpd", "-o", "out.rpd"]]
    {
        let dir = Dir::new();
        generated(&dir, "t.rpd", 91, 2000);
        generated(&dir, "u.rpd", 92, 2000);
        let (mut left, mut kills) = (0, 0);
        // At random moments, and then until one has met it at work.
        while kills < 20 || left == 0 {
            let mut command = dir.rpd(arguments);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            if kills < 20 {
                thread::sleep(Duration::from_millis(random.below(40).unsigned_abs()));
            } else {
                while !has_unfinished(&dir) && child.try_wait().unwrap().is_none() {
                    thread::yield_now();
                }
            }
            kills += 1;
            assert!(kills < 1000, "none was killed at work");
            child.kill().unwrap();
            child.wait().unwrap();
            left += u32::from(has_unfinished(&dir));
            if dir.path("out.rpd").exists() {
                dir.run(&["check", "out.rpd"]).expect(0);
                fs::remove_file(dir.path("out.rpd")).unwrap();
            }
        }
        dir.run(arguments).expect(0);
        assert_eq!(dir.names(), ["out.rpd", "t.rpd", "u.rpd"]);
    }
}

#[test]
fn the_next_leaves_one_at_work_alone() {
    let dir = Dir::new();
    let trace = long(&dir);
    generated(&dir, "s.rpd", 93, 20);
    let mut trim = dir.rpd(&["trim", &trace, "-o", "out.rpd"]);
    let mut child = trim.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    begun(&dir, &mut child);
    dir.run(&["trim", "s.rpd", "-o", "short.rpd"]).expect(0);
    assert!(child.try_wait().unwrap().is_none() && has_unfinished(&dir));
    ran(dir.command("kill").args(["-INT".to_string(), child.id().to_string()])).expect(0);
    child.wait().unwrap();
    assert_eq!(dir.names(), ["s.rpd", "short.rpd", "t.rpd"]);
}

/// A journal of a trace that is gone would roll back the new one: nothing is put beside it.
#[test]
fn beside_a_journal_of_another_trace_nothing_is_made() {
    let dir = Dir::new();
    let trace = dir.fixture("matmul_result.rpd");
    dir.write("profile.pkl", include_bytes!("../../../fixtures/tinygrad/null.pkl"));
    std::fs::copy(dir.path(&trace), dir.path("second.rpd")).unwrap();
    for ending in ["-journal", "-wal", "-shm"] {
        let left = format!("out.rpd{ending}");
        dir.write(&left, "of a trace that is gone");
        for arguments in [
            &["trim", &trace, "-o", "out.rpd"][..],
            &["merge", "--same-host", "-o", "out.rpd", &trace, "second.rpd"],
            &["import", "tinygrad", "profile.pkl", "-o", "out.rpd"],
        ] {
            dir.run(arguments).expect(1).says(&[&left, "remove it or name another trace"]);
            assert!(!dir.path("out.rpd").exists(), "{arguments:?}");
        }
        std::fs::remove_file(dir.path(&left)).unwrap();
    }
    dir.run(&["trim", &trace, "-o", "out.rpd"]).expect(0);
}
