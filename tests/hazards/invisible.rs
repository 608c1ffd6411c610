//! What a program could notice of the recorder: errno, masks, handlers, loading and unloading, its own start-up.

use std::os::unix::fs::{PermissionsExt, chown};
use std::time::{Duration, Instant};

use super::{assert_clean, hazard, markers, recorded};
use crate::harness::{Dir, Loading, Run, program, recorder};

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
        eprintln!("not tested: only root can make a program of another user");
        return;
    }
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o4755)).unwrap();
    let ran = Run::new(&dir, &program).arg(&library).run();
    if ran.stdout == "secure 0\n" {
        eprintln!("not tested: set-user-id programs are not allowed in {}", dir.path("").display());
        return;
    }
    assert_eq!(ran.expect(0).expect_silent().stdout, "secure 1\n", "{ran}");
    assert_eq!(dir.names(), ["library.so", "secure"]);
}

/// Printed, not judged: other programs run on this machine too.
#[test]
fn start_up_of_a_program_without_a_gpu() {
    let dir = Dir::new();
    let once = |preload: Option<&std::path::Path>| {
        let mut command = std::process::Command::new(program("noop"));
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
