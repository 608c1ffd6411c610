//! Signals. `rpd record` is between the caller and the command, in the command's own process group.
//! What a terminal sends (Ctrl-C, Ctrl-\, Ctrl-Z, a hang-up) reaches the whole group, so the command has
//! it already and must not get it twice: some programs take the second Ctrl-C for "now". What another
//! process sends with kill(2) is addressed to rpd and is passed on. The two differ in `si_code`. (A kill(2)
//! to the whole group cannot be told from one to rpd alone: the command gets that one twice, which beats
//! not getting the other.) Stopping and continuing needs nothing: the group does it together, as the shell
//! expects.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

/// The signals that ask a program to do something and that people send to the process they started.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Signals that rpd ignores, whatever its caller does. Rust's start ignores SIGPIPE. rpd ignores SIGXFSZ, so that a limit on the size of
/// files is an error of the write that meets it, and not the end of rpd.
const CHANGED: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Which of [`CHANGED`] the caller ignores, a bit each.
static IGNORED_BY_CALLER: AtomicU64 = AtomicU64::new(0);

/// Before Rust's own start.
#[used]
#[unsafe(link_section = ".init_array")]
static CHANGE: extern "C" fn() = change;

extern "C" fn change() {
    let is_ignored =
        |signal: &i32| action(*signal, None).is_ok_and(|action| action.sa_sigaction == libc::SIG_IGN);
    let ignored = CHANGED.into_iter().filter(is_ignored).fold(0, |ignored, signal| ignored | 1 << signal);
    IGNORED_BY_CALLER.store(ignored, Ordering::SeqCst);
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// Process id of the command while it runs and is not reaped, otherwise 0.
static COMMAND: AtomicI32 = AtomicI32::new(0);
/// True while signals that arrived before the command existed are delivered: it has seen none of them.
static CATCHING_UP: AtomicBool = AtomicBool::new(false);

/// While this lives, [`FORWARDED`] wait.
pub(crate) struct HeldSignals {
    /// The mask from before; none where [`Signals`] has it.
    before: Option<libc::sigset_t>,
}

impl HeldSignals {
    /// Begins to hold them back.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub(crate) fn hold() -> io::Result<HeldSignals> {
        Ok(HeldSignals { before: Some(block_forwarded()?) })
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = set_mask(before);
        }
    }
}

/// What [`FORWARDED`] and SIGCHLD did before, so that the command starts with it and rpd ends with it.
pub(crate) struct Signals {
    before: Vec<(i32, libc::sigaction)>,
    mask: libc::sigset_t,
    child_ignored: bool,
}

impl Signals {
    /// Installs forwarding of the signals, which wait further until [`Signals::spawn`] has a process to send them
    /// to. Signals that are ignored (`nohup`, a job of a script in the background) stay ignored.
    ///
    /// # Errors
    /// When the kernel refuses a handler; nothing is left installed then.
    pub(crate) fn forward(held: Option<HeldSignals>) -> io::Result<Signals> {
        let mask = match held.and_then(|mut held| held.before.take()) {
            Some(before) => before,
            None => block_forwarded()?,
        };
        let mut signals = Signals { before: Vec::new(), mask, child_ignored: false };
        for signal in FORWARDED {
            let before = action(signal, None)?;
            if before.sa_sigaction == libc::SIG_IGN {
                continue;
            }
            let mut ours = before;
            ours.sa_sigaction = forward_to_command as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
            action(signal, Some(&ours))?;
            signals.before.push((signal, before));
        }
        // With SIGCHLD ignored the kernel throws the exit status away.
        let mut child = action(libc::SIGCHLD, None)?;
        if child.sa_sigaction == libc::SIG_IGN {
            signals.child_ignored = true;
            signals.before.push((libc::SIGCHLD, child));
            child.sa_sigaction = libc::SIG_DFL;
            action(libc::SIGCHLD, Some(&child))?;
        }
        Ok(signals)
    }

    /// Starts the command with the signal mask and dispositions that rpd was started with.
    ///
    /// # Errors
    /// Those of fork and exec.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mask = self.mask;
        let child_ignored = self.child_ignored;
        let before_exec = move || {
            // A handler would be reset by exec, but only then: a signal that comes earlier must not run
            // rpd's handler in the command's process.
            let mut default = action(libc::SIGCHLD, None)?;
            default.sa_sigaction = libc::SIG_DFL;
            for signal in FORWARDED {
                if action(signal, None)?.sa_sigaction != libc::SIG_IGN {
                    action(signal, Some(&default))?;
                }
            }
            let ignored_by_caller = IGNORED_BY_CALLER.load(Ordering::SeqCst);
            for signal in CHANGED {
                let is_ignored = ignored_by_caller & 1 << signal != 0;
                default.sa_sigaction = if is_ignored { libc::SIG_IGN } else { libc::SIG_DFL };
                action(signal, Some(&default))?;
            }
            if child_ignored {
                default.sa_sigaction = libc::SIG_IGN;
                action(libc::SIGCHLD, Some(&default))?;
            }
            set_mask(&mask)
        };
        // SAFETY: between fork and exec the closure calls sigaction and sigprocmask only, both
        // async-signal-safe; it does not allocate.
        unsafe { command.pre_exec(before_exec) };
        let child = command.spawn();
        if let Ok(child) = &child {
            COMMAND.store(child.id() as i32, Ordering::SeqCst);
            CATCHING_UP.store(true, Ordering::SeqCst);
        }
        set_mask(&self.mask)?;
        CATCHING_UP.store(false, Ordering::SeqCst);
        child
    }

    /// Waits for the command's end and stops forwarding before its process id can be taken by another
    /// process. The child is left to be reaped.
    ///
    /// # Errors
    /// Those of waitid other than an interruption.
    pub(crate) fn wait(&self, child: &Child) -> io::Result<()> {
        let ended = loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            // SAFETY: `info` is writable memory of the right type; WNOWAIT leaves the child as it is.
            let rc = unsafe {
                libc::waitid(libc::P_PID, child.id(), info.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT)
            };
            let error = io::Error::last_os_error();
            if rc == 0 {
                break Ok(());
            }
            if error.kind() != io::ErrorKind::Interrupted {
                break Err(error);
            }
        };
        COMMAND.store(0, Ordering::SeqCst);
        ended
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        COMMAND.store(0, Ordering::SeqCst);
        for (signal, before) in &self.before {
            let _ = action(*signal, Some(before));
        }
        let _ = set_mask(&self.mask);
    }
}

/// Kills the process group of `child`, which was started as the first of one, and may have just been reaped.
pub(crate) fn kill_group(child: &Child) {
    // SAFETY: only sends a signal.
    unsafe { libc::killpg(child.id() as i32, libc::SIGKILL) };
}

extern "C" fn forward_to_command(signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    let command = COMMAND.load(Ordering::SeqCst);
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO.
    let (code, sender) = unsafe { ((*info).si_code, (*info).si_pid()) };
    // The kernel's own signals (code > 0) are a terminal's and went to the whole group; one that the
    // command sends to its group must not come back to it.
    let has_it_already = (code > 0 || sender == command) && !CATCHING_UP.load(Ordering::SeqCst);
    if command == 0 || has_it_already {
        return;
    }
    // SAFETY: errno is this thread's; kill is async-signal-safe, and `command` cannot have been reused
    // because it is cleared before the child is reaped, on this same thread.
    unsafe {
        let errno = *libc::__errno_location();
        libc::kill(command, signal);
        *libc::__errno_location() = errno;
    }
}

/// Reads a signal's disposition and, if `new` is given, replaces it. A handler of ours must be async-signal-safe.
///
/// # Errors
/// Those of sigaction.
pub(crate) fn action(signal: i32, new: Option<&libc::sigaction>) -> io::Result<libc::sigaction> {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    let mut old = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: `new` is null or a valid sigaction whose handler, if it is ours, is async-signal-safe; the
    // all-zero `old` is a valid sigaction that the call overwrites.
    unsafe {
        match libc::sigaction(signal, new, old.as_mut_ptr()) {
            0 => Ok(old.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Blocks the forwarded signals and returns the mask from before.
fn block_forwarded() -> io::Result<libc::sigset_t> {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    let mut old = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: both sets are writable memory of the right type, and `set` is initialised before it is used.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in FORWARDED {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        match libc::sigprocmask(libc::SIG_BLOCK, set.as_ptr(), old.as_mut_ptr()) {
            0 => Ok(old.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `mask` is a valid set, and the old one is not asked for.
    match unsafe { libc::sigprocmask(libc::SIG_SETMASK, mask, ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The name of a signal that ends processes, as programs and shells print it.
pub(crate) fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_string()
}

/// Ends this process by `signal`, so that whoever waits for it sees what it would have seen of the
/// command. Leaves no second core file. Returns where a signal cannot end the process (process 1 of a
/// container).
pub(crate) fn die_by(signal: i32) {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: plain calls on local values; the default disposition runs no code of ours.
    unsafe {
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::signal(signal, libc::SIG_DFL);
        let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigprocmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
        libc::raise(signal);
    }
}
