//! What can go wrong around a recorder inside somebody else's process, one test for each entry of docs/hazards.md. Short
//! versions; the full ones with RPD_SOAK=1.

mod build;
mod ends;
mod file;
mod filesystems;
mod full;
mod gpu;
mod invisible;
mod kills;
mod limits;
mod locks;
mod panics;
mod processes;
mod stress;

use std::collections::BTreeMap;

use crate::harness::{Dir, Loading, Ran, Run, Trace, not_installed, not_tested};
pub(crate) use build::hazard;
use build::source;

/// Whether the long versions are asked for.
fn soak() -> bool {
    std::env::var_os("RPD_SOAK").is_some_and(|value| value == "1")
}

/// A program of tests/programs/hazards with the recorder.
fn recorded<'a>(dir: &'a Dir, name: &str) -> Run<'a> {
    Run::new(dir, hazard(name)).recorded(Loading::Preload)
}

/// Whether this is root, who may do everything.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// A script of tests/programs/hazards that mounts what it needs, which nobody else sees. Others than root may mount little, and that
/// only where the system gives them namespaces of their own.
fn in_own_mounts<'a>(dir: &'a Dir, script: &str) -> Run<'a> {
    let run = Run::new(dir, "unshare").arg("--mount");
    let run = if is_root() { run } else { run.arg("--map-root-user") };
    run.arg("sh").arg(source(script))
}

/// Whether such a script could not make what it needs (status 77) or found a program missing (78); says so.
fn not_here(ran: &Ran) -> bool {
    let why = ran.stderr.lines().last().unwrap_or_default();
    match ran.status.code() {
        Some(78) => not_installed(why),
        Some(77) => not_tested(why),
        _ if ran.stderr.contains("unshare") => not_tested(why),
        _ => return false,
    }
    true
}

/// How often each marker's text is in the file.
pub(crate) fn markers(trace: &Trace) -> BTreeMap<String, i64> {
    let sql = "select args, count(*) from api where apiName = 'UserMarker' group by args";
    trace.rows(sql, |row| Ok((row.get(0)?, row.get(1)?))).into_iter().collect()
}

/// Markers in the file.
const MARKER_COUNT: &str = "select count(*) from api where apiName = 'UserMarker'";

/// Number of markers in the file.
fn marker_count(trace: &Trace) -> i64 {
    trace.number(MARKER_COUNT)
}

/// Sessions that ended by themselves.
fn ended_sessions(trace: &Trace) -> usize {
    trace.metadata("session::%::end_monotonic_ns").len()
}

/// The sum of what the file says was lost.
fn lost(trace: &Trace) -> i64 {
    trace.lost().values().map(|count| count.parse::<i64>().unwrap()).sum()
}

/// The trace is sound, alone, complete and ended well.
#[track_caller]
fn assert_clean(dir: &Dir, sessions: usize) -> Trace {
    let mut names = dir.names();
    names.retain(|name| name != "gpu.toml");
    assert_eq!(names, ["trace.rpd"]);
    let trace = dir.trace("trace.rpd");
    trace.check_integrity();
    assert_eq!((trace.session_count(), ended_sessions(&trace)), (sessions, sessions));
    assert!(trace.lost().is_empty(), "{:?}", trace.lost());
    trace
}
