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
    let told = finished(child.wait_with_output().unwrap(), "trim and a writer".to_string());
    told.expect(1).says(&["is as it was", "has it open for writing"]);
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
        let told = finished(child.wait_with_output().unwrap(), format!("trim and {signal}"));
        told.expect_signal(number).says(&["interrupted: ", "out.rpd was not made"]);
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
        let mut left = 0;
        for _ in 0..20 {
            let mut command = dir.rpd(arguments);
            let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            thread::sleep(Duration::from_millis(random.below(40).unsigned_abs()));
            child.kill().unwrap();
            child.wait().unwrap();
            left += u32::from(has_unfinished(&dir));
            if dir.path("out.rpd").exists() {
                dir.run(&["check", "out.rpd"]).expect(0);
                fs::remove_file(dir.path("out.rpd")).unwrap();
            }
        }
        assert!(left > 0, "none was killed at work");
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
