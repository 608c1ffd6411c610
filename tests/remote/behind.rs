//! Recordings that end while the GPU is behind: every launch without an operation is reported.

use std::process::Command;
use std::time::{Duration, Instant};

use super::{ask, check, end, status, with_loader};
use crate::harness::{Dir, Loading, Run, Running, loader, program, recorder, rpd};

/// One kernel never ends, and 20 that were launched after it never begin.
const HANGS: &str = "[[fault]]\nkind = \"hang\"\nkernel = \"slow\"\n";
/// The same take 100 ms each.
const SLOW: &str = "[[kernel]]\nmatch = \"last\"\nns = 100000000\n";

fn launched(dir: &Dir, run: Run<'_>, start: bool) -> Running {
    let mut running = run.start();
    running.wait_for_output("ready");
    if start {
        ask("start", &["--wait"], &running).done();
    }
    std::fs::write(dir.path("go"), "").unwrap();
    running.wait_for_output("launched");
    running
}

fn launches(dir: &Dir) -> [i64; 2] {
    let trace = dir.trace("trace.rpd");
    let launches = trace.number("select count(*) from api where apiName = 'hipLaunchKernel'");
    let sql = "select count(distinct api_id) from rocpd_api_ops join api on api.id = api_id \
         where apiName = 'hipLaunchKernel'";
    [launches, trace.number(sql)]
}

/// The program with the loader, and with the recorder from the beginning if `preloaded`: by intercepted queues, otherwise by HIP's times.
fn controlled<'a>(dir: &'a Dir, config: &str, preloaded: bool) -> Run<'a> {
    let run = with_loader(dir, program("behind")).config(config);
    if preloaded { run.preload(&[recorder(), loader()]).env("RPDT_AUTOSTART", "0") } else { run }
}

#[test]
fn a_stop_tells_of_launches_without_an_operation() {
    for preloaded in [false, true] {
        let dir = Dir::new();
        let running = launched(&dir, controlled(&dir, HANGS, preloaded), true);
        let said = ask("stop", &["--wait", "--drain", "100ms"], &running).done();
        assert!(said.stdout.contains("21 launches without an operation"), "{preloaded}: {said:?}");
        assert_eq!(status(&running)["launches_without_op"], 21, "{preloaded}");
        assert_eq!(launches(&dir), [29, 8], "{preloaded}");
        verbs_say_21(&dir);
        running.signal(libc::SIGKILL);
        running.finish().expect_signal(libc::SIGKILL);
        let trace = dir.trace("trace.rpd");
        check(&trace);
        let named = "select count(distinct api_ptr_id) || ' of ' || count(*) from rocpd_kernelapi \
             join rocpd_string N on N.id = kernelName_id where N.string glob '*(*'";
        assert_eq!(trace.texts(named), ["29 of 29"], "{preloaded}: each says what it launched, once");
    }
}

/// By intercepted queues: HIP up to 5.2 tells its own times when the program waits for its kernels, which this one does not.
#[test]
fn a_stop_waits_for_what_was_launched() {
    let dir = Dir::new();
    let running = launched(&dir, controlled(&dir, SLOW, true), true);
    let said = ask("stop", &["--wait", "--drain", "50s"], &running).done();
    assert!(!said.stdout.contains("without"), "{said:?}");
    assert_eq!(launches(&dir), [29, 29]);
    end(&dir);
    running.finish().expect(0).expect_silent();
    check(&dir.trace("trace.rpd"));
}

/// Waits until the file says that as many launches have no operation.
#[track_caller]
fn wait_for_file(dir: &Dir, count: &str) {
    let facts = "select count(*) from rocpd_metadata where tag = 'session::0::launches_without_op'";
    dir.wait_for_rows("trace.rpd", &format!("{facts} and value = '{count}'"), 1);
}

#[test]
fn a_killed_process_leaves_their_number() {
    for timing in ["hsa", "hip"] {
        let dir = Dir::new();
        let run = Run::new(&dir, program("behind")).config(HANGS).recorded(Loading::Preload);
        let running = launched(&dir, run.env("RPDT_TIMING", timing), false);
        wait_for_file(&dir, "21");
        running.signal(libc::SIGKILL);
        running.finish().expect_signal(libc::SIGKILL);
        verbs_say_21(&dir);
    }
}

#[track_caller]
fn verbs_say_21(dir: &Dir) {
    for (verb, words) in [
        ("info", "21 launches without an operation"),
        ("top", "21 launches have no operation"),
        ("check", "launch-without-op"),
    ] {
        let output = Command::new(rpd()).arg(verb).arg(dir.path("trace.rpd")).output().unwrap();
        let [out, notes] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!((out.clone() + &notes).contains(words), "{verb}: {out}{notes}");
    }
}

#[test]
fn the_summary_of_a_killed_run_has_their_number() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("behind")).config(HANGS).recorded(Loading::RpdRecord);
    let running = launched(&dir, run, false);
    wait_for_file(&dir, "21");
    let pid = dir.trace("trace.rpd").metadata("session::0::pid")["session::0::pid"].parse().unwrap();
    // SAFETY: only sends a signal.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let ran = running.finish();
    assert!(ran.stderr.contains("21 launches without an operation (not known to have completed)"), "{ran}");
}

/// The window of RPDT_DURATION closes while they are behind.
#[test]
fn a_duration_that_is_over_leaves_their_number() {
    // The window begins when the recorder is loaded: a machine that is busy needs a longer one.
    for seconds in [2, 20, 100] {
        let dir = Dir::new();
        let run = Run::new(&dir, program("behind")).config(HANGS).recorded(Loading::Preload);
        let running = launched(&dir, run.env("RPDT_DURATION", seconds.to_string()), false);
        std::thread::sleep(Duration::from_secs(seconds + 1));
        let is_whole = launches(&dir)[0] == 30;
        if is_whole {
            wait_for_file(&dir, "21");
            verbs_say_21(&dir);
        }
        running.signal(libc::SIGKILL);
        running.finish().expect_signal(libc::SIGKILL);
        if is_whole {
            return;
        }
    }
    panic!("the launches were never inside the window");
}

/// Nothing is said about a drain: a stop then waits for what takes up to two seconds.
#[test]
fn a_stop_waits_for_two_seconds_by_itself() {
    let dir = Dir::new();
    // 20 of them take 0.6 s.
    let slow = SLOW.replace("100000000", "30000000");
    let running = launched(&dir, controlled(&dir, &slow, true), true);
    let begin = Instant::now();
    ask("stop", &["--wait"], &running).done();
    let (took, now) = (begin.elapsed(), launches(&dir));
    end(&dir);
    running.finish().expect(0).expect_silent();
    assert!(now == [29, 29] || took >= Duration::from_secs(2), "{now:?} after {took:?}");
}

#[test]
fn a_run_tells_at_its_end() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("behind")).config(HANGS).recorded(Loading::RpdRecord);
    let running = launched(&dir, run.env("RPDT_EXIT_MS", "2000"), false);
    wait_for_file(&dir, "21");
    end(&dir);
    let ran = running.finish();
    ran.expect(0);
    // At its end the process counts them itself.
    let reported = ["21 GPU operations had not completed", "21 records lost"];
    assert!(reported.iter().all(|words| ran.stderr.contains(words)), "{ran}");
}
