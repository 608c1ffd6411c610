//! The flow that the original's features page describes, as written there: a Python program with the loader, a trace prepared by
//! rocpd, start and stop from another terminal, sqlite3 while the program runs.

use std::path::Path;

use super::{ask, check, end, with_loader};
use crate::harness::{Dir, tool};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

#[test]
fn the_flow_of_the_features_page() {
    let dir = Dir::new();
    let program = root().join("tests/programs/remote/hip_by_ctypes.py");
    let mut running = with_loader(&dir, "python3").arg(program).start();
    running.wait_for_output("ready");
    let trace = dir.path("trace.rpd");
    let prepared = std::process::Command::new("python3")
        .args(["-m", "rocpd.schema", "--create"])
        .arg(&trace)
        .env("PYTHONPATH", root().join("python"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .unwrap();
    assert!(prepared.status.success(), "{prepared:?}");
    ask("start", &["--wait"], &running).done();
    std::thread::sleep(std::time::Duration::from_millis(300));
    ask("stop", &["--wait"], &running).done();
    let count = |what: &str| {
        let sql = format!("select count(*) from {what}");
        tool("sqlite3", &[trace.as_os_str(), sql.as_ref()]).trim().parse::<i64>().unwrap()
    };
    let first = count("api where apiName = 'hipMemset'");
    assert!(first > 0 && running.is_alive());
    std::thread::sleep(std::time::Duration::from_millis(100));
    assert_eq!(count("api where apiName = 'hipMemset'"), first, "stopped");
    ask("start", &["--wait"], &running).done();
    std::thread::sleep(std::time::Duration::from_millis(100));
    ask("stop", &["--wait"], &running).done();
    assert!(count("api where apiName = 'hipMemset'") > first, "further starts append");
    end(&dir);
    running.finish().expect(0).expect_silent();
    let trace = dir.trace("trace.rpd");
    check(&trace);
    assert_eq!(trace.session_count(), 1);
}
