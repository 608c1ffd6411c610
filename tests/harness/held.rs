//! A thread of a program that stands still, as under a debugger, while the rest of the program goes on.

use std::fs;

use super::{Running, wait_for};

/// It goes on when this is dropped, which the thread that has made it must do.
pub(crate) struct HeldThread(libc::pid_t);

impl HeldThread {
    /// The thread of that name, as soon as it waits for work: one that is held at its work may have a lock that others want.
    #[track_caller]
    pub(crate) fn of(running: &Running, name: &str) -> HeldThread {
        wait_for(name, || {
            let thread = thread(running, name).filter(|thread| waits(running, *thread))?;
            // A thread that has ended meanwhile is none; another may follow.
            ask(thread, libc::PTRACE_SEIZE).ok()?;
            let held = HeldThread(thread);
            ask(thread, libc::PTRACE_INTERRUPT).ok()?;
            // SAFETY: the status may be left out; the thread is traced by this one and was told to stop.
            let stopped = unsafe { libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL) };
            (stopped == thread && waits(running, thread)).then_some(held)
        })
    }
}

impl Drop for HeldThread {
    fn drop(&mut self) {
        if ask(self.0, libc::PTRACE_DETACH).is_err() {
            // The program has ended meanwhile. It is gone when its end has been taken notice of here.
            // SAFETY: the status may be left out.
            unsafe { libc::waitpid(self.0, std::ptr::null_mut(), libc::__WALL) };
        }
    }
}

fn ask(thread: libc::pid_t, what: libc::c_uint) -> std::io::Result<()> {
    let nothing = std::ptr::null_mut::<libc::c_void>();
    // SAFETY: a thread of a child; these requests take no pointer.
    let answer = unsafe { libc::ptrace(what, thread, nothing, nothing) };
    if answer == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Whether the thread waits for work (futex(2)): for some time at most, or where another process could wake it. Locks are waited for without a
/// limit, and are the process's own.
fn waits(running: &Running, thread: libc::pid_t) -> bool {
    let call = format!("/proc/{}/task/{thread}/syscall", running.pid());
    let call = fs::read_to_string(call).unwrap_or_default();
    let words: Vec<&str> = call.split(' ').collect();
    let [number, _, operation, _, limit, ..] = words[..] else { return false };
    let operation =
        i32::from_str_radix(operation.trim_start_matches("0x"), 16).unwrap_or(libc::FUTEX_PRIVATE_FLAG);
    number == libc::SYS_futex.to_string() && (limit != "0x0" || operation & libc::FUTEX_PRIVATE_FLAG == 0)
}

fn thread(running: &Running, name: &str) -> Option<libc::pid_t> {
    let tasks = fs::read_dir(format!("/proc/{}/task", running.pid())).unwrap().flatten();
    let mut named = tasks.filter(|task| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|comm| comm.trim_end() == name)
    });
    Some(named.next()?.file_name().to_str().unwrap().parse().unwrap())
}
