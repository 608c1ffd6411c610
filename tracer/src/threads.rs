//! The recorder's own threads.

use std::os::linux::fs::MetadataExt;

/// Starts a thread, called `rpd-...`, on which no signal handler of the application ever runs.
///
/// # Errors
/// The system has no room for another thread.
pub(crate) fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    // SAFETY: an all-zero sigset_t is a valid place for sigfillset and pthread_sigmask to write to.
    let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are valid; the mask of the calling thread is put back below. A new thread inherits it.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
    }
    let spawned = std::thread::Builder::new().name(name.into()).stack_size(1 << 20).spawn(body);
    // SAFETY: `old` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    spawned.map(drop)
}

/// Whether the process has more threads than the calling one.
pub(crate) fn others() -> bool {
    // The folder has two links and one more per thread.
    std::fs::metadata("/proc/self/task").is_ok_and(|folder| folder.st_nlink() > 3)
}

/// Whether our threads are all that is left: the application's have ended, the first one by pthread_exit. The C library ends such a
/// process with its last thread, so ours must not outlive the others. Ours are those called `rpd-...`: librpd_remote.so's too.
pub(crate) fn are_alone() -> bool {
    let first = std::process::id().to_string();
    let stat = std::fs::read_to_string(format!("/proc/self/task/{first}/stat")).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold anything.
    let first_ended = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    let Some(tasks) = first_ended.then(|| std::fs::read_dir("/proc/self/task").ok()).flatten() else {
        return false;
    };
    !tasks.flatten().any(|task| {
        // One that ends meanwhile has no name any more.
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        *task.file_name() != *first && !name.is_empty() && !name.starts_with("rpd-")
    })
}
