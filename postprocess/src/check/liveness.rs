//! Whether a recording process is still there, and who else has the file open: what /proc tells.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rpd_schema::{SessionInfo, session_fact};

use crate::system;

/// How a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionState {
    /// It says when it ended, or never said anything of itself.
    Ended,
    /// Its process runs on this host.
    Running,
    /// Its process ran on this host, and is gone.
    Killed,
    /// The same, and it had called `abort`: all that it had recorded by then is in the file.
    Aborted,
    /// It ran elsewhere, or before this host was booted, or does not say where.
    Elsewhere,
}

/// How a session stands, as far as can be seen from here.
pub fn state(session: &SessionInfo) -> SessionState {
    if session.get(session_fact::END_MONOTONIC_NS).is_some() {
        return SessionState::Ended;
    }
    let Some(pid) = session.pid() else { return SessionState::Ended };
    // Containers of one machine share the boot, some the name too, but not the process ids.
    let here = is_of_this_boot(session)
        && session.host().is_none_or(is_this_host)
        && session.get(session_fact::PID_NAMESPACE).is_none_or(is_own_namespace);
    match here {
        false => SessionState::Elsewhere,
        true if is_same_process(pid, session.number(session_fact::START_MONOTONIC_NS)) => {
            SessionState::Running
        }
        true if session.get(session_fact::ABORT_MONOTONIC_NS).is_some() => SessionState::Aborted,
        true => SessionState::Killed,
    }
}

/// Whether the process may be recording where nobody sees it from here: on another host, or in another container. What was recorded
/// before this host was booted has ended.
pub fn may_run_elsewhere(session: &SessionInfo) -> bool {
    let in_another_container =
        || is_of_this_boot(session) && !session.get(session_fact::PID_NAMESPACE).is_none_or(is_own_namespace);
    state(session) == SessionState::Elsewhere
        && session.host().is_some_and(|host| !is_this_host(host) || in_another_container())
}

fn is_of_this_boot(session: &SessionInfo) -> bool {
    let boot = session.get(session_fact::BOOT_ID);
    boot.is_some_and(|id| is_content(id, "/proc/sys/kernel/random/boot_id"))
}

fn is_this_host(host: &str) -> bool {
    is_content(host, "/proc/sys/kernel/hostname")
}

fn is_content(expected: &str, file: &str) -> bool {
    fs::read_to_string(file).is_ok_and(|content| content.trim() == expected.trim())
}

/// Whether these are the process ids that this process sees; so is what cannot be told.
fn is_own_namespace(namespace: &str) -> bool {
    let own = fs::read_link("/proc/self/ns/pid");
    namespace.is_empty() || own.is_ok_and(|own| own.to_string_lossy() == namespace)
}

/// Whether the process exists, lives, and is not another one with the same id that began after `began`.
pub fn is_same_process(pid: u32, began: Option<u64>) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The name, in parentheses, may hold anything.
    let Some((_, fields)) = stat.rsplit_once(')') else { return false };
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let is_dead = matches!(fields.first(), Some(&("Z" | "X")));
    let started_ticks: Option<u64> = fields.get(19).and_then(|field| field.parse().ok());
    let is_later = started_ticks.zip(began).is_some_and(|(ticks, began)| {
        let started = ticks.saturating_mul(1_000_000_000 / system::clock_ticks_per_second());
        // The kernel counts the time a machine slept, CLOCK_MONOTONIC does not: this is the earliest it can be.
        started.saturating_sub(system::time_asleep_ns()) > began
    });
    !is_dead && !is_later
}

/// Another process that has the file open for writing, as far as this user may see: its id and name.
pub fn other_writer(file: &Path) -> Option<(u32, String)> {
    writer_now(file)?;
    // A process that was just forked has its parent's descriptors for a moment, until it becomes another
    // program.
    thread::sleep(Duration::from_millis(100));
    writer_now(file)
}

fn writer_now(file: &Path) -> Option<(u32, String)> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let ids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut others = ids.filter(|&pid| pid != std::process::id());
    let pid = others.find(|&pid| is_writer(pid, file) == Some(true))?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, name.trim().to_string()))
}

/// Whether the process has the file open for writing. None where this user may not see it.
pub fn is_writer(pid: u32, file: &Path) -> Option<bool> {
    let wanted = fs::metadata(file).ok()?;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    Some(descriptors.flatten().any(|descriptor| {
        // Looked at through the link, never opened: closing it would drop SQLite's locks.
        let is_it = fs::metadata(descriptor.path())
            .is_ok_and(|found| (found.dev(), found.ino()) == (wanted.dev(), wanted.ino()));
        is_it && is_writable(pid, &descriptor.file_name().to_string_lossy())
    }))
}

/// Whether a descriptor is open for writing.
fn is_writable(pid: u32, descriptor: &str) -> bool {
    let info = fs::read_to_string(format!("/proc/{pid}/fdinfo/{descriptor}")).unwrap_or_default();
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
    flags.is_some_and(|flags| flags & libc::O_ACCMODE != libc::O_RDONLY)
}
