//! Children of all kinds, threads that come and go.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use super::build::hazard;
use super::{assert_clean, is_root, lost, marker_count, markers, not_here, recorded, soak};
use crate::harness::{Dir, Expected, Loading, Run, Running, rpd, tool};

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
    let run = recorded(&dir, "backlog").arg("1000000").arg("10");
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

/// The child has descriptors of the parent's open files, and with them the locks; it records nothing, and lives longer.
#[test]
fn a_child_that_is_not_recorded_keeps_no_lock_and_forks_at_once() {
    let dir = Dir::new();
    let trace = dir.path("trace.rpd");
    // Half a second for each of them is more than the time this may take.
    let mut running = recorded(&dir, "fork_while_locked").arg("1500").start();
    running.wait_for_output("written\n");
    let reader = rusqlite::Connection::open(&trace).unwrap();
    reader.execute_batch("begin; select * from rocpd_api").unwrap();
    fs::write(dir.path("locked"), "").unwrap();
    // With its first page in the journal the transaction has been written, and its commit waits for the reader.
    while running.is_alive() && fs::metadata(dir.path("trace.rpd-journal")).map_or(0, |file| file.len()) == 0
    {
        std::thread::sleep(Duration::from_millis(2));
    }
    fs::write(dir.path("fork"), "").unwrap();
    running.wait_for_output("child has forked\n");
    running.signal(libc::SIGKILL);
    while running.is_alive() {
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(reader);
    let other = rusqlite::Connection::open(&trace).unwrap();
    other.busy_timeout(Duration::from_secs(60)).unwrap();
    other.execute_batch("begin immediate; commit").expect("nobody who lives has the file");
    drop(other);
    let ran = running.finish();
    ran.expect_signal(libc::SIGKILL);
    assert_eq!(ran.stderr.matches("this child is not recorded").count(), 1, "{ran}");
    assert_eq!(markers(&dir.trace("trace.rpd")), [("before".to_string(), 1)].into());
}

/// A reader holds commits up, so that some of the forks cannot wait for them.
#[test]
fn threads_that_fork_at_once_and_when_they_end() {
    let dir = Dir::new();
    let run = recorded(&dir, "forking_threads").arg("5").arg("4").env("RPDT_EXIT_MS", "240000");
    let mut running = run.start();
    let trace = dir.path("trace.rpd");
    while running.is_alive() {
        if let Ok(reader) = rusqlite::Connection::open(&trace)
            && reader.execute_batch("begin; select * from rocpd_api limit 1").is_ok()
        {
            std::thread::sleep(Duration::from_millis(700));
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    let ran = running.finish();
    assert_eq!(ran.expect(0).stdout, "40 children\n", "{ran}");
    let refused = ran.stderr.matches("this child is not recorded").count();
    assert_eq!(ran.stderr.lines().count(), refused, "{ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let marks = markers(&trace).get("child").copied().unwrap_or_default();
    assert_eq!((marks + refused as i64, lost(&trace)), (40, 0), "{refused} refused");
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
fn processes_with_equal_ids_of_several_containers() {
    let dir = Dir::new();
    // Each is process 1 of process ids of its own, as in containers without an init, at the same time as the others.
    let contained = || {
        let mapped: &[&str] = if is_root() { &[] } else { &["--map-root-user"] };
        let run = mapped.iter().fold(Run::new(&dir, "unshare"), |run, option| run.arg(*option));
        run.arg("--pid").arg("--fork").arg(hazard("nested")).arg("150").recorded(Loading::Preload)
    };
    for ran in Run::start_all(&[contained(), contained()]).into_iter().map(Running::finish) {
        if not_here(&ran) {
            return;
        }
        ran.expect(0).expect_silent();
    }
    let trace = assert_clean(&dir, 2);
    assert_eq!(trace.number("select count(distinct pid || ' ' || tid) from api"), 1);
    let namespaces =
        "select count(distinct value) from rocpd_metadata where tag glob 'session::*::pid_namespace'";
    assert_eq!(trace.number(namespaces), 2);
    tool(rpd().to_str().unwrap(), &["callstack".as_ref(), trace.path.as_os_str()]);
    let stacks = "select count(*) from ext_callstack";
    assert_eq!(trace.number(stacks), 2 * 150 * (1 + 2 + 3));
    assert_eq!(trace.number(&format!("{stacks} where parent_id >> 32 <> child_id >> 32")), 0);
    let other = "select count(*) from callStack_inclusive s join rocpd_api a on a.id = s.parent_id where s.cpu_time <> a.end - a.start";
    assert_eq!(trace.number(other), 0);
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
    let run = recorded(&dir, "threads").arg(threads).env("MEMORY", "1").env("RPDT_BUFFER_MB", "8");
    let ran = run.run();
    ran.expect(0).expect_silent();
    let grown = ran.stdout.lines().find_map(|line| line.strip_prefix("grown ")?.strip_suffix(" KiB"));
    let grown: i64 = grown.unwrap().parse().unwrap();
    assert!(grown < 12 << 10, "{threads} threads, the last half of them left {grown} KiB behind");
    assert_clean(&dir, 1);
}
