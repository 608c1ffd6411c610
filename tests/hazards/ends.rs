//! How a process may end.

use super::{assert_clean, ended_sessions, lost, marker_count, markers, recorded};
use crate::harness::{Dir, PATIENCE, Run, program, recorder};

#[test]
fn nothing_is_lost_when_a_process_ends_by_itself() {
    for (how, status, marks) in [
        ("return", 5, 100),
        ("exit", 5, 100),
        ("_exit", 5, 100),
        ("_Exit", 5, 100),
        ("quick_exit", 5, 100),
        ("atexit", 5, 101),
        // The process ends when its last thread does; the recorder's do not count.
        ("pthread_exit", 0, 101),
    ] {
        let dir = Dir::new();
        let ran = recorded(&dir, "ends").arg(how).run();
        ran.expect(status).expect_silent();
        assert_eq!(ran.stdout, "marked\n", "{ran}");
        assert_eq!(marker_count(&assert_clean(&dir, 1)), marks, "{how}");
    }
}

/// Nothing catches the signal, but the call of abort() is seen, also that of the C++ library. The commits between come once a second.
#[test]
fn nothing_is_lost_when_a_process_aborts() {
    for how in ["abort at once", "abort in two threads", "throw at once", "assert at once"] {
        let (dir, without) = (Dir::new(), Dir::new());
        let plain = Run::new(&without, super::hazard("ends")).arg(how).run();
        let ran = recorded(&dir, "ends").arg(how).env("RPDT_AUTOFLUSH", "1").run();
        ran.expect_signal(libc::SIGABRT);
        assert_eq!(
            (ran.status, &ran.stdout, &ran.stderr),
            (plain.status, &plain.stdout, &plain.stderr),
            "{ran}"
        );
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert_eq!((marker_count(&trace), ended_sessions(&trace)), (100, 0), "{how}");
        assert_eq!(trace.metadata("session::0::abort_monotonic_ns").len(), 1, "{how}");
    }
    let dir = Dir::new();
    recorded(&dir, "ends").arg("abort and go on").run().expect(5).expect_silent();
    assert_eq!(marker_count(&assert_clean(&dir, 1)), 101);
}

/// Others have the file for longer than an abort may take, or read it, so that nothing can be committed.
#[test]
fn an_abort_while_others_have_the_file_is_said_beside_it() {
    for lock in ["begin exclusive", "begin; select count(*) from rocpd_api"] {
        let dir = Dir::new();
        let mark = || recorded(&dir, "storm").arg("1").arg("1").run();
        mark().expect(0);
        let holder = rusqlite::Connection::open(dir.path("trace.rpd")).unwrap();
        let hold = || holder.execute_batch(lock).unwrap();
        hold();
        recorded(&dir, "ends").arg("abort at once").run().expect_signal(libc::SIGABRT);
        assert_eq!(notes(&dir), 1, "{lock}");
        holder.execute_batch("commit").unwrap();
        // The next that records takes the note in.
        mark().expect(0);
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert_eq!((marker_count(&trace), lost(&trace), notes(&dir)), (2, 100, 0), "{lock}");

        hold();
        let running = recorded(&dir, "ends").arg("abort and go on").env("RPDT_EXIT_MS", "240000").start();
        let begin = std::time::Instant::now();
        while notes(&dir) == 0 {
            assert!(begin.elapsed() < PATIENCE, "{lock}: no note");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        holder.execute_batch("commit").unwrap();
        running.finish().expect(5).expect_silent();
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        let all = (marker_count(&trace), lost(&trace), notes(&dir));
        assert_eq!(all, (2 + 101, 100, 0), "{lock}: what got in after all is not lost");
    }
}

/// The writer hangs in a system call, as on a disk that does not answer, and the process ends.
#[test]
fn an_end_while_the_writer_hangs_is_said_beside_the_file() {
    let dir = Dir::new();
    let acts = ["mark=before", "flush", "say=written", "wait=go", "mark=a", "mark=b", "exit=3"];
    let run = acts.into_iter().fold(Run::new(&dir, program("control")), Run::arg);
    let run = run.preload(&[recorder(), program("stuck_write")]).env("RPDT_EXIT_MS", "1000");
    let mut running = run.start();
    running.wait_for_output("written\n");
    dir.touch("stuck");
    dir.touch("go");
    let ran = running.finish();
    assert_eq!(ran.expect(3).stderr.lines().count(), 1, "{ran}");
    assert!(ran.stderr.contains("RPDT_EXIT_MS"), "{ran}");
    assert_eq!(notes(&dir), 1, "{ran}");
    std::fs::remove_file(dir.path("stuck")).unwrap();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!((marker_count(&trace), lost(&trace), notes(&dir)), (2, 2, 0));
}

/// Whatever threads do while the process ends: all that the recorder counted as lost is in the file's counts.
#[test]
fn threads_that_mark_while_main_returns() {
    let dir = Dir::new();
    let report = dir.path("report");
    std::fs::write(&report, "").unwrap();
    recorded(&dir, "busy_at_end").env("RPDT_REPORT", &report).env("RPDT_BUFFER_MB", "1").run().expect(0);
    let said = std::fs::read_to_string(&report).unwrap();
    let counted = said.split_whitespace().find_map(|word| word.strip_prefix("lost=")).unwrap();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!((lost(&trace), ended_sessions(&trace)), (counted.parse().unwrap(), 1), "{said}");
}

/// HIP's destructors may crash threads that go on launching kernels. What they had launched before is in the file then, and where they
/// are seen, recording ends before the destructors begin.
#[test]
fn threads_that_launch_while_main_returns() {
    const SAID: &str = "threads launch kernels while the program ends: recording ends here\n";
    let mut seen = 0;
    for at_once in ["1", "64"].repeat(4) {
        let dir = Dir::new();
        let ran = recorded(&dir, "launching_at_end").arg(at_once).run();
        let waited_for: i64 = ran.stdout.trim().parse().unwrap_or_else(|_| panic!("{ran}"));
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        let kernels = trace.number("select count(*) from op");
        assert!(kernels >= waited_for, "{kernels} of {waited_for}: {ran}");
        seen += usize::from(ran.stderr.ends_with(SAID) && ended_sessions(&trace) == 1);
    }
    assert!(seen > 0, "recording never ended before the destructors");
}

/// The last transaction fails, and with it the way to say in the file what it had.
#[test]
fn what_the_last_transaction_loses_is_said_beside_the_file() {
    let dir = Dir::new();
    let acts = ["mark=before", "flush", "say=written", "wait=go", "mark=a", "mark=b", "exit=3"];
    let run = acts.into_iter().fold(Run::new(&dir, program("control")), Run::arg);
    let mut running = run.preload(&[recorder()]).env("RPDT_AUTOFLUSH", "1").start();
    running.wait_for_output("written\n");
    std::fs::create_dir(dir.path("trace.rpd-journal")).unwrap();
    dir.touch("go");
    let ran = running.finish();
    ran.expect(3);
    assert_eq!(notes(&dir), 1, "{ran}");
    std::fs::remove_dir(dir.path("trace.rpd-journal")).unwrap();
    recorded(&dir, "storm").arg("1").arg("1").run().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!((marker_count(&trace), lost(&trace), notes(&dir)), (2, 2, 0), "{ran}");
}

/// Notes beside the trace.
fn notes(dir: &Dir) -> usize {
    std::fs::read_dir(dir.path("trace.rpd-lost")).map_or(0, Iterator::count)
}

/// Another library's _exit behind the recorder's has its turn.
#[test]
fn an_exit_passes_what_stands_behind() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("control")).arg("mark=a").arg("_exit=3");
    let ran = run.preload(&[recorder(), program("next_exit")]).run();
    assert_eq!(ran.expect(3).expect_silent().stdout, "behind\n");
    assert_eq!(marker_count(&assert_clean(&dir, 1)), 1);
}

/// A recorder that comes late puts itself in front of the C library's functions, not of a library's own.
#[test]
fn a_librarys_own_exit_stays_its_own() {
    let dir = Dir::new();
    let script = format!(
        "import ctypes, os\n\
         own = ctypes.CDLL({:?}, os.RTLD_NOW | os.RTLD_DEEPBIND)\n\
         ctypes.CDLL({:?}).InitializeInjectionNvtx2(None)\n\
         own.leave()",
        program("own_exit"),
        recorder()
    );
    let ran = Run::new(&dir, "python3").arg("-c").arg(script).run();
    assert_eq!(ran.expect(4).expect_silent().stdout, "its own\n");
}

#[test]
fn an_exit_in_a_handler_that_interrupted_a_push() {
    for _ in 0..5 {
        let dir = Dir::new();
        recorded(&dir, "ends").arg("exit_in_handler").run().expect(7).expect_silent();
        let markers = markers(&assert_clean(&dir, 1));
        assert_eq!(markers.len(), 101, "0 to 99, and busy");
        assert!(markers.values().all(|count| *count > 0));
    }
}

/// The ways that give nobody a chance to do anything: what was written is there, and the process ends as it would.
#[test]
fn a_process_that_is_killed_keeps_what_it_had() {
    let ends = ["abort", "throw", "SIGTERM", "SIGINT", "SIGKILL", "SIGSEGV", "exec"];
    let dirs: Vec<_> =
        ends.iter().flat_map(|how| [(how, true), (how, false)]).map(|w| (w, Dir::new())).collect();
    let runs: Vec<_> = dirs
        .iter()
        .map(|((how, with), dir)| {
            let run = if *with { recorded(dir, "ends") } else { Run::new(dir, super::hazard("ends")) };
            run.arg(**how)
        })
        .collect();
    let running = Run::start_all(&runs);
    for ((_, recorded), dir) in &dirs {
        if *recorded {
            dir.wait_for_rows("trace.rpd", "select count(*) from rocpd_api", 100);
        }
        dir.touch("go");
    }
    let ran: Vec<_> = running.into_iter().map(|running| running.finish()).collect();
    for (((how, _), dir), pair) in dirs.iter().step_by(2).zip(ran.chunks(2)) {
        let (with, plain) = (&pair[0], &pair[1]);
        assert_eq!(
            (with.status, &with.stdout, &with.stderr),
            (plain.status, &plain.stdout, &plain.stderr),
            "{with}"
        );
        let trace = dir.trace("trace.rpd");
        trace.check_integrity();
        assert_eq!((marker_count(&trace), ended_sessions(&trace)), (100, 0), "{how}");
    }
}
