//! Facts about a process, from /proc.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// File name of the loader.
const LOADER: &str = "librpd_remote.so";
/// A thread that has begun to end, in the flags of its `stat` (Linux sched.h, PF_EXITING).
const EXITING: u64 = 4;
/// SIGKILL among a thread's pending signals, in the field `signal` of its `stat` (proc(5)). Every thread of a process that is killed or that calls
/// exit_group has it until it begins to end.
const KILLED: u64 = 1 << (libc::SIGKILL - 1);
/// Beginning of the names of the loader's and the recorder's threads.
const OUR_THREADS: &str = "rpd-";

/// A file of /proc/PID. Where the first thread has ended before the others, that is empty, and another thread's is the same.
pub(crate) fn path(pid: u32, file: &str) -> PathBuf {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let folder = if has_ended(&process) { living_thread(&process).unwrap_or(process) } else { process };
    folder.join(file)
}

fn living_thread(process: &Path) -> Option<PathBuf> {
    let threads = fs::read_dir(process.join("task")).ok()?;
    threads.flatten().map(|thread| thread.path()).find(|thread| !has_ended(thread))
}

/// Whether the thread of that folder has ended, or is about to: it has no files and no memory any more.
fn has_ended(folder: &Path) -> bool {
    fields(folder).is_none_or(|fields| is_over(&fields))
}

/// The same of a `stat` file's fields.
fn is_over(fields: &[String]) -> bool {
    let bits = |field: usize| fields.get(field).and_then(|bits| bits.parse::<u64>().ok()).unwrap_or(0);
    matches!(fields.first().map(String::as_str), Some("Z" | "X"))
        || bits(6) & EXITING != 0
        || bits(28) & KILLED != 0
}

/// Fields of a `stat` file from the third on: the second, the name, is in parentheses and may hold anything.
fn fields(folder: &Path) -> Option<Vec<String>> {
    let text = fs::read(folder.join("stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    Some(text.rsplit(')').next()?.split_whitespace().map(str::to_string).collect())
}

/// One reading of /proc/PID/stat.
pub(crate) struct Stat {
    /// A letter: R, S, T for stopped...
    pub(crate) state: char,
    pub(crate) parent: u32,
    /// Clock ticks since boot.
    pub(crate) start_time: u64,
}

/// What the process is doing; nothing when there is no such process, or when all of it has ended, or is about to.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let process = PathBuf::from(format!("/proc/{pid}"));
    let first = fields(&process)?;
    let other = if is_over(&first) { Some(fields(&living_thread(&process)?)?) } else { None };
    let state = other.as_ref().unwrap_or(&first).first()?.chars().next()?;
    Some(Stat { state, parent: first.get(1)?.parse().ok()?, start_time: first.get(19)?.parse().ok()? })
}

/// The user that the process belongs to; nothing when there is no such process.
pub(crate) fn owner(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|folder| folder.uid())
}

/// The user that this command runs as.
pub(crate) fn own_user() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

/// Its command line, arguments joined by blanks; its name where it has none. Untrusted.
pub(crate) fn command(pid: u32) -> String {
    let line = fs::read(path(pid, "cmdline")).unwrap_or_default();
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let line = words.join(" ").trim_end().to_string();
    if line.is_empty() {
        fs::read_to_string(path(pid, "comm")).unwrap_or_default().trim_end().to_string()
    } else {
        line
    }
}

/// All processes, in ascending order.
pub(crate) fn all() -> io::Result<Vec<u32>> {
    let entries = fs::read_dir("/proc")?;
    let mut pids: Vec<u32> =
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    pids.sort_unstable();
    Ok(pids)
}

/// Whether the loader is mapped.
///
/// # Errors
/// When the process may not be looked into, or is ending.
pub(crate) fn has_loader(pid: u32) -> io::Result<bool> {
    let maps = fs::read(path(pid, "maps"))?;
    if maps.is_empty() {
        // It is ending, and has no memory any more.
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(String::from_utf8_lossy(&maps).contains(LOADER))
}

/// Whether this process and that one count time since boot alike: start times compare then.
pub(crate) fn shares_clocks(pid: u32) -> bool {
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/time")).ok();
    namespace("self") == namespace(&pid.to_string())
}

/// How the process calls itself: another number than `pid` in a PID namespace.
pub(crate) fn own_number(pid: u32) -> Option<u32> {
    field(pid, "status", "NStgid:")?.split_whitespace().next_back()?.parse().ok()
}

fn field(pid: u32, file: &str, name: &str) -> Option<String> {
    let text = fs::read(path(pid, file)).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string)
}

/// Whether `mask`, hexadecimal as /proc writes it, has `signal` in it.
fn has_signal(mask: &str, signal: i32) -> bool {
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask >> (signal - 1) & 1 != 0)
}

/// Whether no handler ever sees `signal`: every thread of the program blocks it, or waits for it by sigwait (a system call in
/// which it does not count as blocked).
pub(crate) fn blocks(pid: u32, signal: i32) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return false };
    let theirs = tasks.flatten().filter_map(|task| {
        let status = fs::read_to_string(task.path().join("status")).ok()?;
        let field = |name| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let is_ours = field("Name:")?.starts_with(OUR_THREADS) || field("State:")?.starts_with('Z');
        let place = fs::read_to_string(task.path().join("wchan")).unwrap_or_default();
        let blocked = has_signal(field("SigBlk:")?, signal) || place.starts_with("do_sigtimedwait");
        (!is_ours).then_some(blocked)
    });
    let blocked: Vec<bool> = theirs.collect();
    !blocked.is_empty() && blocked.iter().all(|blocked| *blocked)
}

/// Whether the program reads `signal` from a descriptor (signalfd).
pub(crate) fn reads(pid: u32, signal: i32) -> bool {
    let Ok(descriptors) = fs::read_dir(path(pid, "fdinfo")) else { return false };
    descriptors.flatten().any(|descriptor| {
        let info = fs::read_to_string(descriptor.path()).unwrap_or_default();
        info.lines()
            .find_map(|line| line.strip_prefix("sigmask:"))
            .is_some_and(|mask| has_signal(mask, signal))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_thread_that_has_begun_to_end_is_over() {
        let over = |state: &str, flags: &str, pending: &str| {
            let mut fields = vec!["0".to_string(); 50];
            (fields[0], fields[6], fields[28]) = (state.into(), flags.into(), pending.into());
            super::is_over(&fields)
        };
        assert!(!over("S", "4194304", "0") && !over("R", "1077936128", "16384"));
        assert!(over("R", "4194308", "0") && over("Z", "4194304", "0") && over("S", "4194304", "256"));
    }
}
