//! Children of all kinds, threads that come and go.

use std::collections::BTreeSet;

use super::{assert_clean, marker_count, markers, recorded, soak};
use crate::harness::{Dir, Expected};

#[test]
fn children_of_every_kind() {
    let dir = Dir::new();
    let ran = recorded(&dir, "children").run();
    ran.expect(0).expect_silent();
    // The parent, the two that mark, and the grandchild; the rest does nothing, so leaves nothing.
    let trace = assert_clean(&dir, 4);
    let names: Vec<_> = markers(&trace).into_iter().collect();
    let once =
        ["child that _exits", "child that exits", "grandchild", "open in the parent alone", "parent after"];
    let expected: Vec<_> =
        once.into_iter().chain(["parent before"]).map(|name| (name.to_string(), 1)).collect();
    assert_eq!(names, expected);
    let of_parent = "select count(*) from api where pid = tid and args like '%parent%' and pid = ";
    assert_eq!(trace.number(&format!("{of_parent}{}", ran.pid)), 3);
}

#[test]
fn children_of_a_process_that_has_much_to_write() {
    let dir = Dir::new();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
    holder.execute_batch("begin immediate").unwrap();
    let run = recorded(&dir, "backlog").arg("1000000").arg("10").env("RPDT_EXIT_MS", "600000").timeout(600);
    let mut running = run.start();
    running.wait_for_output("full\n");
    holder.execute_batch("commit").unwrap();
    running.signal(libc::SIGUSR1);
    let ran = running.finish();
    ran.expect(0).expect_silent();
    assert_eq!(ran.stdout, "full\n10 children\n");
    let trace = assert_clean(&dir, 12);
    assert_eq!(trace.number("select count(*) from api where args like 'child %'"), 10);
    assert_eq!(trace.number("select count(distinct args) from api where args like 'parent %'"), 1_000_000);
}

#[test]
fn children_of_a_process_that_uses_the_gpu() {
    let dir = Dir::new();
    let ran = recorded(&dir, "gpu_children").env("RPDT_TICKS", "1").run();
    ran.expect(0).expect_silent();
    let trace = assert_clean(&dir, 7);
    assert_eq!(markers(&trace), [("child".to_string(), 6), ("parent".to_string(), 6)].into());
    let pids: BTreeSet<u32> =
        trace.rows("select pid from api where args = 'child'", |row| row.get(0)).into_iter().collect();
    assert_eq!(pids.len(), 6);
    assert!(!pids.contains(&ran.pid));
    let logs = dir.logs();
    let (_, log) = logs.iter().find(|(pid, _)| *pid == ran.pid).unwrap();
    let expected = Expected::of(log);
    assert_eq!(expected.kernels(), 60);
    expected.assert_equals(&trace);
}

#[test]
fn ten_thousand_threads() {
    let dir = Dir::new();
    recorded(&dir, "threads").arg("10000").run().expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    assert_eq!(marker_count(&trace), 30_000);
    for kind in ["mark", "range", "destructor"] {
        let own = format!("select count(*) from api where args = '{kind} ' || tid");
        assert_eq!(trace.number(&own), 10_000, "{kind}: each with the id of its own thread");
    }
}

#[test]
fn threads_that_are_gone_cost_no_memory() {
    let dir = Dir::new();
    let threads = if soak() { "200000" } else { "20000" };
    let run =
        recorded(&dir, "threads").arg(threads).env("MEMORY", "1").env("RPDT_BUFFER_MB", "8").timeout(300);
    let ran = run.run();
    ran.expect(0).expect_silent();
    let grown = ran.stdout.lines().find_map(|line| line.strip_prefix("grown ")?.strip_suffix(" KiB"));
    let grown: i64 = grown.unwrap().parse().unwrap();
    assert!(grown < 12 << 10, "{threads} threads, the last half of them left {grown} KiB behind");
    assert_clean(&dir, 1);
}
