//! What a program could notice of the recorder: errno, masks, handlers, loading and unloading, its own start-up.

use std::os::unix::fs::{PermissionsExt, chown};
use std::time::{Duration, Instant};

use super::{assert_clean, hazard, lost, markers, recorded};
use crate::harness::{Dir, Loading, Run, library_symbols, loader, not_tested, program, recorder};

#[test]
fn errno_masks_and_handlers() {
    let dir = Dir::new();
    let ran = recorded(&dir, "invisible").run();
    assert_eq!(ran.expect(0).expect_silent().stdout, "looked\n");
    assert_clean(&dir, 1);
    // The same where nothing can be written.
    let ran = recorded(&dir, "invisible").env("RPDT_FILENAME", "/nowhere/trace.rpd").run();
    assert_eq!(ran.expect(0).stdout, "looked\n");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran}");
}

/// The loader goes through dozens of directories for a library that is nowhere, at each start of a process.
#[test]
fn no_library_is_looked_for_at_the_start() {
    let dir = Dir::new();
    let run = Run::new(&dir, program("noop")).recorded(Loading::Preload).env("LD_DEBUG", "libs");
    let ran = run.run();
    ran.expect(0);
    let looked_for = |name: &str| ran.stderr.contains(&format!("find library={name}"));
    assert!(looked_for("libc.so.6"), "the premise of this test: {ran}");
    assert!(!looked_for("libroctx64.so.4"), "{ran}");
}

/// A complaint raises no signal, and leaves the program's own as they are.
#[test]
fn a_standard_error_that_cannot_be_written() {
    let cases = [
        ("pipe", "pending 0 0, handled 0\n"),
        ("pending", "pending 1 0, handled 0\n"),
        ("handled", "pending 0 0, handled 1\n"),
        ("file", "pending 0 0, handled 0\n"),
    ];
    for (how, printed) in cases {
        let dir = Dir::new();
        let ran = recorded(&dir, "broken_stderr").arg(how).env("RPDT_BUFFER_MB", "x").run();
        assert_eq!(ran.expect(0).stdout, printed, "{how}");
        assert_eq!(dir.trace("trace.rpd").number("select count(*) from api"), 1, "{how}");
    }
    // The loader complains when it is loaded.
    let dir = Dir::new();
    let own = hazard("broken_stderr");
    let run = Run::new(&dir, &own).arg("run").arg(&own).arg("pipe").recorded(Loading::Remote);
    let ran = run.env("RPD_REMOTE", "x").env("RPD_REMOTE_FROM", "start").run();
    assert_eq!(ran.expect(0).stdout, "pending 0 0, handled 0\n");
    assert!(ran.stderr.contains("RPD_REMOTE=x"), "before its standard error was broken it complained: {ran}");
}

/// No function of ours is a cancellation point, and none is unwound.
#[test]
fn threads_that_are_cancelled() {
    let cancelled = |how: &str, buffer: &str, printed: &str| {
        let dir = Dir::new();
        let ran = recorded(&dir, "cancelled").arg(how).env("RPDT_BUFFER_MB", buffer).run();
        assert_eq!(ran.expect(0).stdout, printed, "{how}");
        dir.trace("trace.rpd").check_integrity();
    };
    cancelled("marks", "1", "20 cancelled, 0 came out\n");
    cancelled("asynchronous", "1", "300 cancelled, 0 came out\n");
    // With a complaint, which is said on the thread of the first mark.
    cancelled("pending", "x", "9 cancelled, 9 came out\n");
    let dir = Dir::new();
    let run = Run::new(&dir, hazard("cancelled")).arg("load").arg(recorder()).env("RPDT_BUFFER_MB", "x");
    assert_eq!(run.run().expect(0).stdout, "1 cancelled, 1 came out\n");
    // Of calls that come as often as of libraries the usual path alone goes without disabling cancellation.
    let dir = Dir::new();
    let run = recorded(&dir, "cancelled").arg("calls").arg(program("library_of_nothing"));
    let run = run.preload(&[recorder(), library_symbols()]).env("RPDT_LIBRARIES", "rocblas");
    let ran = run.env("RPDT_BUFFER_MB", "1").run();
    assert_eq!(ran.expect(0).stdout, "4 cancelled, 4 came out\n");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let calls = trace.number("select count(*) from libraryCall");
    assert_eq!(calls + lost(&trace), 120_000, "{:?}", trace.lost());
}

/// Calls of HIP too do without disabling cancellation, whichever way they are observed.
#[test]
fn threads_that_are_cancelled_before_they_call_hip() {
    let program = program("hip_cancelled");
    for loading in [None, Some(Loading::Preload), Some(Loading::Symbols)] {
        let dir = Dir::new();
        let mut run = Run::new(&dir, &program).gpus(1).arg("20000").env("RPDT_BUFFER_MB", "1");
        if let Some(loading) = loading {
            run = run.recorded(loading);
        }
        assert_eq!(run.run().expect(0).stdout, "4 cancelled, 4 came out\n", "{loading:?}");
        if loading.is_some() {
            let trace = dir.trace("trace.rpd");
            trace.check_integrity();
            // A kernel whose call was lost has a call that the recorder made up.
            let calls = trace.number("select count(*) from api where apiName <> 'hsaDispatch'");
            let kernels = trace.number("select count(*) from rocpd_op");
            let (called, launched) = (80_000 + 5001 + 5 + 1, 5001);
            assert_eq!(calls + kernels + lost(&trace), called + launched, "{loading:?}: {:?}", trace.lost());
        }
    }
}

#[test]
fn a_handler_that_marks_while_a_mark_is_pushed() {
    let dir = Dir::new();
    let ran = recorded(&dir, "handler").arg("200000").run();
    ran.expect(0);
    let pushed: Vec<i64> = ran.stderr.split_whitespace().map(|count| count.parse().unwrap()).collect();
    assert!(pushed[1] > 0, "the timer never struck: {ran}");
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    let markers = markers(&trace);
    assert_eq!(markers["program"], pushed[0]);
    // A push inside a push is refused and counted.
    let lost = trace.lost();
    let reentered: i64 = lost.get("session::0::lost::reentered").map_or(0, |count| count.parse().unwrap());
    assert_eq!(markers.get("handler").copied().unwrap_or(0) + reentered, pushed[1], "{lost:?}");
    assert_eq!(lost.len(), usize::from(reentered > 0), "{lost:?}");
}

/// 8 KB have long been what programs give their handlers (SIGSTKSZ).
#[test]
fn a_first_mark_on_a_small_signal_stack() {
    let dir = Dir::new();
    let ran = recorded(&dir, "small_stack").arg("8192").env("RPDT_BUFFER_MB", "x").run();
    let taken = |what: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(what)).unwrap_or_default();
        line.rsplit(' ').next().unwrap().parse::<i64>().unwrap_or_else(|_| panic!("no {what}: {ran}"))
    };
    ran.expect(0);
    assert!(taken("first") < 3500 && taken("thread") < 2000 && taken("later") < 1000, "{ran}");
    assert_eq!(dir.trace("trace.rpd").number("select count(*) from api"), 3);
}

/// The leak sanitizer of GCC, which looks at the end, finds nothing of ours.
#[test]
fn a_program_with_the_address_sanitizer() {
    let dir = Dir::new();
    let plain = Run::new(&dir, hazard("sanitized")).run();
    assert_eq!(plain.expect(7).stdout, "sanitized\n");
    for loading in Loading::BOTH {
        let dir = Dir::new();
        let ran = Run::new(&dir, hazard("sanitized")).recorded(loading).run();
        assert_eq!(ran.expect(7).expect_silent().stdout, "sanitized\n", "{loading:?}");
        assert_clean(&dir, 1);
    }
    // The loader of recordings that are started from outside has a copy of the same code.
    let ran = Run::new(&dir, hazard("sanitized")).preload(&[loader()]).run();
    assert_eq!(ran.expect(7).expect_silent().stdout, "sanitized\n");
    // Leaks of the program's own are found as without us.
    let ran = recorded(&dir, "sanitized").arg("leak").run();
    assert!(ran.stderr.contains("LeakSanitizer") && !ran.stderr.contains("librpd_tracer"), "{ran}");
}

#[test]
fn a_program_with_the_thread_sanitizer() {
    let dir = Dir::new();
    let plain = Run::new(&dir, hazard("sanitized_threads")).run();
    if plain.status.code() != Some(7) {
        not_tested(format!("the thread sanitizer does not run here: {plain}"));
        return;
    }
    let suppressions = super::build::root().join("scripts/tsan.suppressions");
    let options = format!("suppressions={}", suppressions.display());
    let ran = recorded(&dir, "sanitized_threads").env("TSAN_OPTIONS", options).run();
    assert_eq!(ran.expect(7).expect_silent().stdout, "sanitized\n");
    assert_clean(&dir, 1);
}

#[test]
fn loaded_privately_and_unloaded() {
    let dir = Dir::new();
    let ran = Run::new(&dir, hazard("late_load")).arg(recorder()).run();
    ran.expect(0).expect_silent();
    let trace = assert_clean(&dir, 1);
    assert_eq!(markers(&trace), [("first".to_string(), 1), ("second".to_string(), 1)].into());
}

#[test]
fn a_program_with_the_rights_of_another_user() {
    let dir = Dir::new();
    let (program, library) = (dir.path("secure"), dir.path("library.so"));
    std::fs::copy(hazard("secure"), &program).unwrap();
    std::fs::copy(recorder(), &library).unwrap();
    std::fs::set_permissions(dir.path(""), PermissionsExt::from_mode(0o777)).unwrap();
    let ran = Run::new(&dir, &program).arg(&library).run();
    assert_eq!(ran.expect(0).stdout, "secure 0\n");
    assert!(dir.names().contains(&"trace.rpd".to_string()), "an ordinary program records: {ran}");
    std::fs::remove_file(dir.path("trace.rpd")).unwrap();
    // Set-user-id to nobody: another user than whoever runs this.
    if chown(&program, Some(65534), None).is_err() {
        return not_tested("only root can make a program of another user");
    }
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let ran = Run::new(&dir, &program).arg(&library).run();
    if ran.stdout == "secure 0\n" {
        return not_tested(format!("set-user-id programs are not allowed in {}", dir.path("").display()));
    }
    assert_eq!(ran.expect(0).expect_silent().stdout, "secure 1\n", "{ran}");
    assert_eq!(dir.names(), ["library.so", "secure"]);
}

/// Printed, not judged: other programs run on this machine too.
#[test]
fn start_up_of_a_program_without_a_gpu() {
    let dir = Dir::new();
    let once = |preload: Option<&std::path::Path>| {
        let mut command = crate::harness::command(program("noop"));
        command.current_dir(dir.path("")).stdout(std::process::Stdio::null());
        preload.map(|library| command.env("LD_PRELOAD", library));
        let begin = Instant::now();
        assert!(command.status().unwrap().success());
        begin.elapsed()
    };
    let library = recorder();
    let (mut plain, mut with): (Vec<Duration>, Vec<Duration>) =
        (0..100).map(|_| (once(None), once(Some(&library)))).unzip();
    plain.sort();
    with.sort();
    let (plain, with) = (plain[50], with[50]);
    println!(
        "start and end of a program: {plain:?} plain, {with:?} with the recorder ({:.2} times)",
        with.as_secs_f64() / plain.as_secs_f64()
    );
    assert_eq!(dir.names(), Vec::<String>::new());
    // By any of the ways to load it.
    Run::new(&dir, program("noop")).recorded(Loading::Both).run().expect(0).expect_silent();
    assert_eq!(dir.names(), Vec::<String>::new());
}
