//! The recorder's own threads.

use std::os::linux::fs::MetadataExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// The recorder's threads that run.
static RUNNING: AtomicU32 = AtomicU32::new(0);

/// Starts a thread on which no signal handler of the application ever runs.
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
    RUNNING.fetch_add(1, Ordering::Relaxed);
    let spawned = std::thread::Builder::new().name(name.into()).stack_size(1 << 20).spawn(move || {
        body();
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    });
    if spawned.is_err() {
        RUNNING.fetch_sub(1, Ordering::Relaxed);
    }
    // SAFETY: `old` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    spawned.map(drop)
}

/// Whether the recorder's threads are all that is left: the application's have ended, the first one by pthread_exit. The C
/// library ends such a process with its last thread, so ours must not outlive the others.
pub(crate) fn are_alone() -> bool {
    // The folder has two links and one more per thread; the ended first thread still counts.
    let links = std::fs::metadata("/proc/self/task").map_or(0, |folder| folder.st_nlink());
    if links > u64::from(RUNNING.load(Ordering::Relaxed)) + 3 {
        return false;
    }
    let first =
        std::fs::read_to_string(format!("/proc/self/task/{}/stat", std::process::id())).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold anything.
    first.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'))
}

/// A forked child has none of its parent's.
pub(crate) fn forget() {
    RUNNING.store(0, Ordering::Relaxed);
}
