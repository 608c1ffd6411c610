//! Whether a trace is being recorded by the job that this process belongs to: a rank that starts late adds to what the others have
//! recorded, a second run of the same command must not.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use rpd_postprocess::check::liveness::{SessionState, state};
use rpd_schema::{SessionInfo, session_fact};
use rpd_settings::job;

/// Where the ranks of a run of torchrun meet.
const MEETING_POINT: [&str; 2] = ["MASTER_ADDR", "MASTER_PORT"];

/// Whether `file` has a session of this job: one with the launcher's id of this process, or one that is being recorded right now
/// in this process group (a script that starts several commands) or by ranks that meet at the same place.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn records_into(file: &Path) -> Result<bool> {
    let (trace, _) = rpd_schema::open_read(file)?;
    let sessions = rpd_schema::sessions(&trace).with_context(|| format!("cannot read {}", file.display()))?;
    Ok(sessions.iter().any(|session| is_same_launch(session) || is_beside(session)))
}

fn is_same_launch(session: &SessionInfo) -> bool {
    job::is_same_launch(|name| session.get(&session_fact::env(name)))
}

fn is_beside(session: &SessionInfo) -> bool {
    let Some(pid) = session.pid().filter(|_| state(session) == SessionState::Running) else { return false };
    let group = process_group(&pid.to_string());
    (group.is_some() && group == process_group("self")) || meets_here(pid)
}

/// The process group: a shell without job control has one for all that it starts, one with it has one for each command line.
fn process_group(pid: &str) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in parentheses, may hold anything; state and parent come before the group.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(2).map(str::to_string)
}

fn meets_here(pid: u32) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let theirs = |name: &str| {
        environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(name.as_bytes())?.strip_prefix(b"="))
    };
    let ours = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
    MEETING_POINT.iter().all(|name| ours(name).is_some_and(|ours| theirs(name) == Some(ours.as_bytes())))
}
