//! Threads of our own, all called `rpd-...`, beside those of the program.

use std::arch::naked_asm;
use std::ffi::{CStr, c_int, c_void};
use std::io::{Error, Result};
use std::mem::{MaybeUninit, zeroed};
use std::os::linux::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

/// Bytes of a thread's stack.
const STACK: usize = 1 << 20;

type ThreadBody = Box<dyn FnOnce() + Send>;

/// What a new thread gets.
struct ThreadStart {
    name: &'static CStr,
    body: ThreadBody,
}

/// The calling thread's id. The C library has a function for it from glibc 2.30 on only.
pub fn id() -> libc::pid_t {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as libc::pid_t }
}

/// Starts a thread, called `rpd-...`, on which no signal handler of the application ever runs.
///
/// The first record of a process may come from a handler on a small stack, of which this takes little: the system's function, which looks
/// symbols up when it is called first, gets a stack of its own.
///
/// # Errors
/// The system has no room for another thread.
pub fn spawn(name: &'static CStr, body: impl FnOnce() + Send + 'static) -> Result<()> {
    let start = Box::into_raw(Box::new(ThreadStart { name, body: Box::new(body) }));
    let mut creation = Creation { start, failed: 0 };
    // SAFETY: a creation. A signal that came while this thread is on another stack would take that of a handler it has left for unused.
    without_signals(|| unsafe { on_own_stack(create, (&raw mut creation).cast()) });
    if creation.failed == 0 {
        return Ok(());
    }
    // SAFETY: made above, and no thread has it.
    drop(unsafe { Box::from_raw(start) });
    Err(Error::from_raw_os_error(creation.failed))
}

/// As [`spawn`], but the thread runs nothing but `body`, with `argument`.
///
/// # Errors
/// As [`spawn`].
///
/// # Safety
/// `body` may be called with `argument` on another thread, at any later time.
pub unsafe fn spawn_bare(
    name: &CStr,
    body: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> Result<()> {
    let mut thread = 0;
    // SAFETY: a place for the thread's handle; the default attributes; the caller's promise.
    let error = without_signals(|| unsafe { libc::pthread_create(&mut thread, ptr::null(), body, argument) });
    if error != 0 {
        return Err(Error::from_raw_os_error(error));
    }
    // SAFETY: the thread just made, which nobody joins or has detached; a NUL-terminated name.
    unsafe {
        libc::pthread_setname_np(thread, name.as_ptr());
        libc::pthread_detach(thread);
    }
    Ok(())
}

/// Gives the calling thread a table of descriptors of its own, with nothing in it: files that it opens take no number that the program
/// expects to be free, and nothing that the program closes stays open here. False, and nothing has changed: the system cannot do that.
pub fn leave_descriptors() -> bool {
    const UNSHARE: libc::c_uint = 1 << 1;
    // SAFETY: numbers alone. With that flag the descriptors of other threads stay as they are (close_range(2)).
    unsafe { libc::syscall(libc::SYS_close_range, 0 as libc::c_uint, libc::c_uint::MAX, UNSHARE) == 0 }
}

/// Runs `spawn` with all signals blocked: a new thread inherits that.
fn without_signals<T>(spawn: impl FnOnce() -> T) -> T {
    // SAFETY: an all-zero sigset_t is a valid place for sigfillset and pthread_sigmask to write to.
    let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = unsafe { zeroed() };
    // SAFETY: both sets are valid; the mask of the calling thread is put back below.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
    }
    let spawned = spawn();
    // SAFETY: `old` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, ptr::null_mut()) };
    spawned
}

/// A thread to be made, and what came of it.
struct Creation {
    start: *mut ThreadStart,
    failed: c_int,
}

/// # Safety
/// `creation` is one.
unsafe extern "C" fn create(creation: *mut c_void) {
    // SAFETY: the caller's promise.
    let creation = unsafe { &mut *creation.cast::<Creation>() };
    let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
    let mut thread = 0;
    // SAFETY: valid places; the attributes are initialised before they are used. `run` gets what it expects.
    unsafe {
        libc::pthread_attr_init(attributes.as_mut_ptr());
        libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), STACK);
        libc::pthread_attr_setdetachstate(attributes.as_mut_ptr(), libc::PTHREAD_CREATE_DETACHED);
        creation.failed = libc::pthread_create(&mut thread, attributes.as_ptr(), run, creation.start.cast());
        libc::pthread_attr_destroy(attributes.as_mut_ptr());
    }
}

/// Calls `function` on a stack that is made for it; on this one where the system has no memory for another.
///
/// # Safety
/// As for a call of `function`, which does not unwind; signals are blocked.
unsafe fn on_own_stack(function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    const SIZE: usize = 64 << 10;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a fresh anonymous mapping, nothing of which anybody else knows; it goes when nothing runs on it.
    unsafe {
        let stack = libc::mmap(ptr::null_mut(), SIZE, access, kind, -1, 0);
        if stack == libc::MAP_FAILED {
            return function(argument);
        }
        switch(argument, function, stack.byte_add(SIZE));
        libc::munmap(stack, SIZE);
    }
}

/// Calls `function` with the stack pointer at `end`.
///
/// # Safety
/// As for a call of `function`, which does not unwind; enough memory lies below `end`, which is a multiple of 16.
#[unsafe(naked)]
unsafe extern "C" fn switch(
    argument: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void),
    end: *mut c_void,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbp, 0",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdx",
        "call rsi",
        "mov rsp, rbp",
        ".cfi_def_cfa_register rsp",
        "pop rbp",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbp",
        "ret",
        ".cfi_endproc",
    )
}

extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: what `spawn` has made for this thread.
    let start = unsafe { Box::from_raw(start.cast::<ThreadStart>()) };
    // SAFETY: the calling thread, and a NUL-terminated name.
    unsafe { libc::pthread_setname_np(libc::pthread_self(), start.name.as_ptr()) };
    // An error of ours ends our thread, not the program.
    let _ = catch_unwind(AssertUnwindSafe(start.body));
    ptr::null_mut()
}

/// Whether the process has more threads than the calling one. Where the system does not tell, it may have.
pub fn others() -> bool {
    // The folder has two links and one more per thread.
    std::fs::metadata("/proc/self/task").map_or(true, |folder| folder.st_nlink() > 3)
}

/// Whether our threads are all that is left: the application's have ended, the first one by pthread_exit. The C library ends such a
/// process with its last thread, so ours must not outlive the others. Those of other libraries of ours count as ours.
pub fn are_alone() -> bool {
    let first = std::process::id().to_string();
    let stat = std::fs::read_to_string(format!("/proc/self/task/{first}/stat")).unwrap_or_default();
    // The state follows the name, which is in parentheses and may hold anything.
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
