//! Many writers and readers of one file, also inside the writing process.

use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags};

use super::build::{root, source};
use super::{MARKER_COUNT, assert_clean, lost, marker_count, recorded, soak};
use crate::harness::{Dir, HeldThread, Loading, PATIENCE, Run, Running, command, rpd, tool, wait_for};

/// POSIX locks end when anything in the process closes the file, which Python does all the time here.
#[test]
fn recorded_programs_that_open_and_close_their_own_trace() {
    let dir = Dir::new();
    let rounds = if soak() { 1000 } else { 100 };
    let run = || {
        let run = Run::new(&dir, "python3").arg(source("own_reader.py")).arg(dir.path("trace.rpd"));
        run.arg(rounds.to_string()).recorded(Loading::Preload).env("RPDT_AUTOFLUSH", "100")
    };
    for running in Run::start_all(&[run(), run()]) {
        let ran = running.finish();
        assert_eq!(ran.expect(0).expect_silent().stdout, format!("{}\n", rounds * 20));
    }
    let trace = assert_clean(&dir, 2);
    assert_eq!(marker_count(&trace), 2 * 20 * rounds);
    assert_eq!(trace.number("select count(distinct args) from api"), 2 * 20 * rounds);
}

#[test]
fn many_writers() {
    let dir = Dir::new();
    let (writers, marks) = if soak() { (64, 20_000) } else { (16, 4_000) };
    let run = || recorded(&dir, "storm").arg("2").arg(marks.to_string()).arg("2000");
    let run = || run().env("RPDT_AUTOFLUSH", "20");
    let runs: Vec<_> = (0..writers).map(|_| run()).collect();
    for running in Run::start_all(&runs) {
        running.finish().expect(0).expect_silent();
    }
    let trace = assert_clean(&dir, writers);
    assert_eq!(marker_count(&trace), 2 * marks * writers as i64);
    assert_eq!(trace.number("select count(distinct args) from api"), 2 * marks * writers as i64);
    let longest = |fact: &str| {
        let of_all = trace.metadata(&format!("session::%::{fact}"));
        assert_eq!(of_all.len(), writers);
        Duration::from_nanos(of_all.into_values().map(|ns| ns.parse().unwrap()).max().unwrap())
    };
    println!(
        "{writers} writers: nobody waited longer than {:?} to write, no program's threads longer than {:?}",
        longest("longest_turn_ns"),
        longest("waited_ns"),
    );
}

/// On a machine that has too much to do each waits for its turn, and longer than RPDT_EXIT_MS while others have theirs.
#[test]
fn processes_that_end_at_once_on_a_busy_machine() {
    let dir = Dir::new();
    let done = AtomicBool::new(false);
    let (writers, marks) = (64, 3000);
    thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        let run = || recorded(&dir, "storm").arg("1").arg(marks.to_string()).env("RPDT_EXIT_MS", "10000");
        let runs: Vec<_> = (0..writers).map(|_| run()).collect();
        let ran: Vec<_> = Run::start_all(&runs).into_iter().map(Running::finish).collect();
        done.store(true, Ordering::Relaxed);
        for ran in ran {
            ran.expect(0).expect_silent();
        }
    });
    let trace = assert_clean(&dir, writers);
    assert_eq!(marker_count(&trace), marks * writers as i64);
}

/// A call that returns when the GPU is done is never in the file without what it waited for, whatever is killed when.
#[test]
fn what_a_call_waited_for_is_there_with_the_call() {
    let dir = Dir::new();
    let run = recorded(&dir, "waits").arg("4").arg("600").env("RPDT_AUTOFLUSH", "100");
    let mut running = run.start();
    let (mut waits, mut looks) = (0, 0);
    while running.is_alive() {
        if let Some(seen) = waited_for(&dir) {
            (waits, looks) = (waits.max(seen), looks + 1);
        }
    }
    running.finish().expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    for call in WAITS {
        let calls = format!("select count(*) from api where apiName = '{call}'");
        assert_eq!(trace.number(&calls), 800, "{call}");
    }
    assert_eq!(trace.number("select count(*) from dispatch"), 2400);
    assert!(looks > 10 && waits > 0, "{looks} looks, {waits} waits");
}

/// The thread that records operations gets no processor for some time: the calls come later, too. The program's forks wait for none of it.
#[test]
fn what_a_call_waited_for_is_there_with_the_call_when_its_record_is_late() {
    let dir = Dir::new();
    // The program goes on until it has forked a child.
    let run = recorded(&dir, "waits").arg("1").arg("fork").env("RPDT_AUTOFLUSH", "20");
    let mut running = run.start();
    wait_for("a wait in the file", || waited_for(&dir).filter(|seen| *seen > 0));
    let held = HeldThread::of(&running, "rpd-completion");
    let begin = Instant::now();
    let before = waited_for(&dir);
    while begin.elapsed() < Duration::from_secs(2) {
        waited_for(&dir);
    }
    // A fork that waits for the writer, and so for the thread that is held, has a child that says it is not recorded.
    dir.touch("fork");
    running.wait_for_output("forked\n");
    let meanwhile = waited_for(&dir);
    drop(held);
    dir.touch("end");
    running.finish().expect(0).expect_silent();
    ["fork", "end"].iter().for_each(|name| fs::remove_file(dir.path(name)).unwrap());
    let trace = assert_clean(&dir, 1);
    let calls = trace.number("select count(*) from api where apiName = 'hipLaunchKernel'");
    assert_eq!(trace.number("select count(*) from dispatch"), calls);
    println!("{before:?} waits before, {meanwhile:?} meanwhile, {calls} launches in all");
}

const WAITS: [&str; 3] = ["hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize"];

/// How many waits the file has; none before there is a file to ask.
#[track_caller]
fn waited_for(dir: &Dir) -> Option<i64> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let trace = Connection::open_with_flags(dir.path("trace.rpd"), flags).ok()?;
    trace.busy_timeout(Duration::from_secs(60)).unwrap();
    // Before the recorder has made it a trace there is nothing to ask.
    let (seen, missing): (i64, i64) =
        trace.query_row(WAITED_FOR, [], |row| Ok((row.get(0)?, row.get(1)?))).ok()?;
    assert_eq!(missing, 0, "launches without an operation before one of {seen} waits");
    Some(seen)
}

/// Waits, and launches of their threads that ended before the last of those and have no operation.
const WAITED_FOR: &str = "with wait as (select tid, max(start) as last, count(*) as number from rocpd_api where apiName_id in \
     (select id from rocpd_string where string in ('hipDeviceSynchronize', 'hipStreamSynchronize', 'hipEventSynchronize')) group by tid) \
     select (select coalesce(sum(number), 0) from wait), count(*) from rocpd_api join wait on wait.tid = rocpd_api.tid \
     where apiName_id in (select id from rocpd_string where string = 'hipLaunchKernel') and end < wait.last \
     and rocpd_api.id not in (select api_id from rocpd_api_ops)";

/// Every row that a query finds leads to the rows it names, at any moment.
fn look(trace: &Connection) -> rusqlite::Result<i64> {
    let transaction = trace.unchecked_transaction()?;
    let count = transaction.query_row("select count(*) from rocpd_api", [], |row| row.get(0))?;
    let dangling: i64 = transaction.query_row(
        "select (select count(*) from rocpd_api_ops where api_id not in (select id from rocpd_api) \
             or op_id not in (select id from rocpd_op)) \
         + (select count(*) from rocpd_api where apiName_id not in (select id from rocpd_string) \
             or args_id not in (select id from rocpd_string)) \
         + (select count(*) from rocpd_op where description_id not in (select id from rocpd_string))",
        [],
        |row| row.get(0),
    )?;
    assert_eq!(dangling, 0, "ids that lead nowhere");
    Ok(count)
}

#[test]
fn readers_of_a_growing_file() {
    let dir = Dir::new();
    let run = recorded(&dir, "ticker").env("RPDT_AUTOFLUSH", "100");
    let mut running = run.start();
    running.wait_for_output("<50>\n");
    let path = dir.path("trace.rpd");
    // The sqlite3 shell, over and over, beside the readers below.
    let script = "while :; do sqlite3 -cmd '.timeout 600000' trace.rpd 'select count(*) from top' > /dev/null || exit 1; done";
    let shell = command("sh").args(["-c", script]).current_dir(dir.path("")).stderr(Stdio::piped()).spawn();
    let mut shell = shell.unwrap();
    let (mut last, mut looks) = (0, 0);
    while looks < 200 {
        let trace = Connection::open(&path).unwrap();
        trace.busy_timeout(PATIENCE).unwrap();
        for _ in 0..10 {
            let count = look(&trace).unwrap();
            assert!(count >= last, "rows that were there are gone");
            (last, looks) = (count, looks + 1);
        }
    }
    assert!(shell.try_wait().unwrap().is_none(), "the sqlite3 shell failed");
    shell.kill().unwrap();
    shell.wait().unwrap();
    // It is still recording, and has recorded all along.
    let before = marker_count(&dir.trace("trace.rpd"));
    running.wait_for_output("<1000>\n");
    dir.wait_for_rows("trace.rpd", MARKER_COUNT, before.max(1000) + 1);
    running.signal(libc::SIGTERM);
    running.finish().expect_signal(libc::SIGTERM).expect_silent();
    Connection::open(&path).unwrap().query_row("select count(*) from rocpd_api", [], |_| Ok(())).unwrap();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert!(marker_count(&trace) > before.max(1000));
    assert_eq!(lost(&trace), 0);
}

/// Rings with calls and operations both, in more than one transaction can hold.
#[test]
fn operations_that_complete_on_the_threads_of_calls() {
    let dir = Dir::new();
    let mut running = recorded(&dir, "mixed_rings").env("RPDT_TIMING", "hip").start();
    let path = dir.path("trace.rpd");
    let mut last = 0;
    while running.is_alive() {
        let Ok(trace) = Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY) else {
            continue;
        };
        trace.busy_timeout(PATIENCE).unwrap();
        // Until its writer is through with it the file may be empty.
        last = look(&trace).unwrap_or(last);
    }
    assert_eq!(running.finish().expect(0).expect_silent().stdout, "done\n");
    assert!(last > 0, "somebody has looked");
    let trace = assert_clean(&dir, 1);
    assert_eq!(trace.number("select count(*) from dispatch"), 200 + 200 + 6 * 12_001);
}

/// The longest time without a commit of others until `reader` has ended, as a part of all of that time.
fn longest_pause(path: &Path, reader: &mut Child) -> f64 {
    let looking = Connection::open(path).unwrap();
    looking.busy_timeout(PATIENCE).unwrap();
    let version = || looking.query_row("PRAGMA data_version", [], |row| row.get::<_, i64>(0)).unwrap();
    let begun = Instant::now();
    let (mut last, mut changed, mut longest) = (version(), begun, Duration::ZERO);
    while reader.try_wait().unwrap().is_none() {
        // Where a commit waits for the reader, this waits for the commit.
        let now = version();
        longest = longest.max(changed.elapsed());
        if now != last {
            (last, changed) = (now, Instant::now());
        }
        thread::sleep(Duration::from_millis(2));
    }
    longest.as_secs_f64() / begun.elapsed().as_secs_f64()
}

/// A trim reads for long; the recorder must not have to wait for its end, as it has to for that of one who reads the file itself.
#[test]
fn trims_of_a_growing_file() {
    let dir = Dir::new();
    let trace = dir.path("trace.rpd");
    tool(rpd().to_str().unwrap(), &["create".as_ref(), trace.as_os_str()]);
    let (generator, filled) = (root().join("fixtures/rpd/gen_rpd.py"), dir.path("filled.rpd"));
    let sized = ["--events", "100000", "--template"].map(AsRef::as_ref);
    let arguments = [&[generator.as_os_str(), filled.as_os_str()][..], &sized, &[trace.as_os_str()]].concat();
    tool("python3", &arguments);
    std::fs::rename(filled, &trace).unwrap();
    let run = recorded(&dir, "storm").arg("2").arg("60000").arg("3000");
    let mut running = run.env("RPDT_AUTOFLUSH", "100").start();
    let marks = "select count(*) from api where args glob 'process * thread * mark *'";
    dir.wait_for_rows("trace.rpd", marks, 1);
    let mut pauses = Vec::new();
    while running.is_alive() {
        let mut trim = command(rpd());
        trim.args(["trim", "trace.rpd", "-o", "part.rpd", "--start", "10%"]).current_dir(dir.path(""));
        let mut trim = trim.stderr(Stdio::null()).spawn().unwrap();
        pauses.push(longest_pause(&trace, &mut trim));
        assert!(trim.wait().unwrap().success());
        look(&Connection::open(dir.path("part.rpd")).unwrap()).unwrap();
        std::fs::remove_file(dir.path("part.rpd")).unwrap();
    }
    running.finish().expect(0).expect_silent();
    // Beside somebody who reads the file itself it is more than 0.8.
    assert!(pauses.iter().any(|pause| *pause < 0.65), "no commit for most of each trim: {pauses:?}");
    let trace = dir.trace("trace.rpd");
    assert_eq!(lost(&trace), 0);
    assert_eq!(trace.number(marks), 120_000);
}
