//! A thread of a program that stands still, as under a debugger, while the rest of the program goes on.

use std::fs;

use super::{Running, wait_for};

/// It goes on when this is dropped, which the thread that has made it must do.
pub(crate) struct HeldThread(libc::pid_t);

impl HeldThread {
    /// The thread of that name, as soon as there is one.
    #[track_caller]
    pub(crate) fn of(running: &Running, name: &str) -> HeldThread {
        let thread = wait_for(name, || thread(running, name));
        let nothing = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: a thread of a child; neither request takes a pointer.
        let errors = unsafe {
            [libc::PTRACE_SEIZE, libc::PTRACE_INTERRUPT]
                .map(|ask| libc::ptrace(ask, thread, nothing, nothing))
        };
        assert_eq!(errors, [0, 0], "{}", std::io::Error::last_os_error());
        HeldThread(thread)
    }
}

impl Drop for HeldThread {
    fn drop(&mut self) {
        let nothing = std::ptr::null_mut::<libc::c_void>();
        // SAFETY: as above; it has stopped.
        unsafe { libc::ptrace(libc::PTRACE_DETACH, self.0, nothing, nothing) };
    }
}

fn thread(running: &Running, name: &str) -> Option<libc::pid_t> {
    let tasks = fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().flatten();
    let mut named = tasks.filter(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    Some(named.next()?.file_name().to_str().unwrap().parse().unwrap())
}
