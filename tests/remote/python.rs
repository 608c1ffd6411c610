//! Python programs: the flow that the original's features page describes, as written there - the loader by its name, a trace prepared
//! by rocpd, start and stop from another terminal, sqlite3 while the program runs - and one that uses HSA alone.

use std::path::Path;

use super::{Said, ask, check, end, said, status, with_loader};
use crate::harness::{Dir, Run, Running, hip_library, loader, newer_rocm, rpd_remote, software_gpu, tool};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// What a terminal shows of `rpdRemote VERB PID`.
fn at_a_terminal(verb: &str, running: &Running) -> Said {
    let command = format!("{} {verb} {}", rpd_remote().display(), running.pid());
    let mut script = crate::harness::command("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    said(script)
}

#[test]
fn the_flow_of_the_features_page() {
    let dir = Dir::new();
    let program = root().join("tests/programs/remote/hip_by_ctypes.py");
    let preload = format!("{}:librpd_remote.so", software_gpu().display());
    let run = Run::new(&dir, "python3").arg(program).arg(hip_library()).env("LD_PRELOAD", preload);
    let mut running = run.env("LD_LIBRARY_PATH", loader().parent().unwrap()).start();
    running.wait_for_output("ready");
    let prepared = crate::harness::command("python3")
        .args(["-m", "rocpd.schema", "--create", "trace.rpd"])
        .current_dir(dir.path(""))
        .env("PYTHONPATH", root().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(prepared.status.success(), "{prepared:?}");
    let started = at_a_terminal("start", &running).done();
    assert_eq!(started.stdout.contains("whose own times are used"), !newer_rocm(), "{started:?}");
    let fills = "select count(*) from api where apiName = 'hipMemset'";
    dir.wait_for_rows("trace.rpd", fills, 1);
    at_a_terminal("stop", &running).done();
    let trace = dir.path("trace.rpd");
    let count = || tool("sqlite3", &[trace.as_os_str(), fills.as_ref()]).trim().parse::<i64>().unwrap();
    let first = count();
    assert!(first > 0 && running.is_alive());
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(count(), first, "stopped");
    ask("start", &["--wait"], &running).done();
    // Further starts append.
    dir.wait_for_rows("trace.rpd", fills, first + 1);
    ask("stop", &["--wait"], &running).done();
    end(&dir);
    running.finish().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert_eq!(trace.session_count(), 1);
}

#[test]
fn hsa_without_hip_is_said() {
    let dir = Dir::new();
    let program = root().join("tests/programs/remote/hsa_by_ctypes.py");
    let mut running = with_loader(&dir, "python3").arg(program).start();
    running.wait_for_output("ready");
    for _ in 0..2 {
        let said = ask("start", &["--wait"], &running).done();
        assert!(said.stdout.contains("trace.rpd; the program uses HSA without HIP"), "{said:?}");
        assert_eq!(status(&running)["state"], "recording");
        ask("stop", &["--wait"], &running).done();
    }
    end(&dir);
    let ran = running.finish();
    assert_eq!(ran.expect(0).stderr.lines().count(), 1, "said once: {ran}");
}
