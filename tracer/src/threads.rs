//! The recorder's own threads.

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
    let spawned = std::thread::Builder::new().name(name.into()).stack_size(1 << 20).spawn(body);
    // SAFETY: `old` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    spawned.map(drop)
}
