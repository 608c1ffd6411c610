//! The process that is writing into a trace now.

use std::path::Path;

use rusqlite::Connection;

use super::liveness;
use super::sessions::Sessions;
use crate::text;

/// The process that is recording into a file now, if there is one on this host.
///
/// # Errors
/// When the metadata cannot be read.
pub(crate) fn recorder(trace: &Connection) -> rusqlite::Result<Option<u32>> {
    let sessions = Sessions::of(trace)?;
    let file = trace.path().map(Path::new);
    // A copy has the sessions of its original.
    let is_its = |pid: &u32| file.and_then(|file| liveness::is_writer(*pid, file)) != Some(false);
    Ok(sessions.running_pids().find(is_its))
}

/// Who writes into a file now, and what to do about it, if somebody does.
///
/// # Errors
/// As [`recorder`].
pub(crate) fn writer(file: &Path, trace: &Connection) -> rusqlite::Result<Option<String>> {
    Ok(obstacle_of(file, recorder(trace)?))
}

/// Who is writing into `file`, if somebody is, and what to do then. `recorder` is a process that records into it.
pub(crate) fn obstacle_of(file: &Path, recorder: Option<u32>) -> Option<String> {
    if let Some(pid) = recorder {
        return Some(format!("process {pid} is recording into it; try again when that has ended"));
    }
    let (pid, name) = liveness::other_writer(file)?;
    let name = text::escape(&name);
    Some(format!("process {pid} ({name}) has it open for writing; try again when it has closed it"))
}

/// Who has a trace that is to be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordedBy {
    /// A process of this host, as people read it.
    Process(String),
    /// Perhaps a process that cannot be seen from here: its session has no end. The name of its host, as people read it.
    Elsewhere(String),
}

/// Who records into the file, or may do so: by what its sessions say, or because a process has it open.
pub fn recorded_by(path: &Path) -> Option<RecordedBy> {
    let sessions = rpd_schema::open_read(path).ok().and_then(|(trace, _)| Sessions::of(&trace).ok());
    let sessions = sessions.unwrap_or_default();
    let running = sessions.running_pid().map(|pid| format!("process {pid}"));
    let running = running.or_else(|| {
        let (pid, name) = liveness::other_writer(path)?;
        Some(format!("process {pid} ({})", text::escape(&name)))
    });
    let elsewhere = || sessions.host_elsewhere().map(|host| text::escape(host).into_owned());
    running.map(RecordedBy::Process).or_else(|| elsewhere().map(RecordedBy::Elsewhere))
}
