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
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The signals by which people end a program.
pub(crate) const ENDING: [i32; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];

/// The signals that ask a program to do something and that people send to the process they started.
const FORWARDED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Signals that rpd ignores, whatever its caller does. Rust's start ignores SIGPIPE. rpd ignores SIGXFSZ, so that a limit on the size of
/// files is an error of the write that meets it, and not the end of rpd.
const CHANGED: [i32; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// Which of [`CHANGED`] the caller ignores, a bit each.
static IGNORED_BY_CALLER: AtomicU64 = AtomicU64::new(0);

/// Which of the standard streams the caller has closed, a bit each. Rust's start opens /dev/null in their place.
static CLOSED_BY_CALLER: AtomicU64 = AtomicU64::new(0);

/// Before Rust's own start.
#[used]
#[unsafe(link_section = ".init_array")]
static CHANGE: extern "C" fn() = change;

extern "C" fn change() {
    // SAFETY: no pointers.
    let is_closed = |stream: &i32| unsafe { libc::fcntl(*stream, libc::F_GETFD) } < 0;
    let closed = (0..=2).filter(is_closed).fold(0, |closed, stream| closed | 1 << stream);
    CLOSED_BY_CALLER.store(closed, Ordering::SeqCst);
    let is_ignored =
        |signal: &i32| action(*signal, None).is_ok_and(|action| action.sa_sigaction == libc::SIG_IGN);
    let ignored = CHANGED.into_iter().filter(is_ignored).fold(0, |ignored, signal| ignored | 1 << signal);
    IGNORED_BY_CALLER.store(ignored, Ordering::SeqCst);
    // SAFETY: ignoring a signal runs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

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

/// Signals that wait until [`Signals::wait`] takes them, while this lives.
pub(crate) struct Signals {
    /// [`FORWARDED`] without those that are ignored (`nohup`, a job of a script in the background), and SIGCHLD.
    taken: libc::sigset_t,
    /// The mask from before.
    mask: libc::sigset_t,
    /// What SIGCHLD did before, where the caller has it ignored.
    child_before: Option<libc::sigaction>,
}

/// What came of a wait.
pub(crate) struct WaitOutcome {
    /// The command has ended; otherwise it is late.
    pub(crate) is_ended: bool,
    /// The last of [`ENDING`] that came, from a terminal too.
    pub(crate) asked_to_end: Option<i32>,
}

impl Signals {
    /// Begins to take signals, those that were `held` too.
    ///
    /// # Errors
    /// When the kernel refuses it; nothing is changed then.
    pub(crate) fn take(held: Option<HeldSignals>) -> io::Result<Signals> {
        let mask = match held.and_then(|mut held| held.before.take()) {
            Some(before) => before,
            None => block_forwarded()?,
        };
        let mut signals = Signals { taken: set_of(&[libc::SIGCHLD]), mask, child_before: None };
        for signal in FORWARDED {
            if action(signal, None)?.sa_sigaction != libc::SIG_IGN {
                // SAFETY: the set is initialised.
                unsafe { libc::sigaddset(&mut signals.taken, signal) };
            }
        }
        // With SIGCHLD ignored the kernel throws the exit status away.
        let before = action(libc::SIGCHLD, None)?;
        if before.sa_sigaction == libc::SIG_IGN {
            let mut child = before;
            child.sa_sigaction = libc::SIG_DFL;
            action(libc::SIGCHLD, Some(&child))?;
            signals.child_before = Some(before);
        }
        set_mask_by(libc::SIG_BLOCK, &signals.taken)?;
        Ok(signals)
    }

    /// Starts the command with the signal mask and dispositions that rpd was started with. What came before it was there is its own.
    ///
    /// # Errors
    /// Those of fork and exec.
    pub(crate) fn spawn(&self, command: &mut Command) -> io::Result<Child> {
        let mask = self.mask;
        let child_ignored = self.child_before.is_some();
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
            let closed_by_caller = CLOSED_BY_CALLER.load(Ordering::SeqCst);
            for stream in (0..=2).filter(|stream| closed_by_caller & 1 << stream != 0) {
                // SAFETY: the command has nothing there: neither the caller nor rpd gives it anything in this place.
                unsafe { libc::close(stream) };
            }
            set_mask(&mask)
        };
        // SAFETY: between fork and exec the closure calls sigaction, sigprocmask and close only, all
        // async-signal-safe; it does not allocate.
        unsafe { command.pre_exec(before_exec) };
        let child = command.spawn()?;
        while let Some(came) = self.next(Some(Duration::ZERO))? {
            if came.signal != libc::SIGCHLD {
                send(child.id(), came.signal);
            }
        }
        Ok(child)
    }

    /// Waits for the command's end, `patience` long if there is one. `pass_on` gets what other processes send to rpd meanwhile. The child
    /// is left to be reaped, so that its process id is not taken by another process.
    ///
    /// # Errors
    /// Those of the kernel other than an interruption.
    pub(crate) fn wait(
        &self,
        child: &Child,
        patience: Option<Duration>,
        mut pass_on: impl FnMut(i32),
    ) -> io::Result<WaitOutcome> {
        let begun = Instant::now();
        let mut waited = WaitOutcome { is_ended: false, asked_to_end: None };
        loop {
            waited.is_ended = has_ended(child)?;
            if waited.is_ended {
                return Ok(waited);
            }
            let left = patience.map(|patience| patience.saturating_sub(begun.elapsed()));
            let Some(came) = self.next(left)? else { return Ok(waited) };
            if came.signal == libc::SIGCHLD || came.sender == child.id() {
                // What the command sends to its group must not come back to it.
                continue;
            }
            if ENDING.contains(&came.signal) {
                waited.asked_to_end = Some(came.signal);
            }
            // The kernel's own signals (code > 0) are a terminal's and went to the whole group.
            if came.code <= 0 {
                pass_on(came.signal);
            }
        }
    }

    /// Waits so long; the signal of [`ENDING`] that came meanwhile.
    ///
    /// # Errors
    /// As [`Signals::wait`].
    pub(crate) fn asked_to_end(&self, patience: Duration) -> io::Result<Option<i32>> {
        let until = Instant::now() + patience;
        while let Some(came) = self.next(Some(until.saturating_duration_since(Instant::now())))? {
            if ENDING.contains(&came.signal) {
                return Ok(Some(came.signal));
            }
        }
        Ok(None)
    }

    /// The next signal, if one comes within `patience`.
    fn next(&self, patience: Option<Duration>) -> io::Result<Option<Came>> {
        let patience = patience.map(|patience| libc::timespec {
            tv_sec: patience.as_secs().cast_signed(),
            tv_nsec: patience.subsec_nanos().into(),
        });
        loop {
            let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
            let patience = patience.as_ref().map_or(ptr::null(), ptr::from_ref);
            // SAFETY: the set is initialised, `info` is writable memory of the right type, and `patience` is null or a time.
            let signal = unsafe { libc::sigtimedwait(&self.taken, info.as_mut_ptr(), patience) };
            if signal > 0 {
                // SAFETY: the call has filled it; what is read of it is there for the signals of the set.
                let (code, sender) = unsafe { ((*info.as_ptr()).si_code, (*info.as_ptr()).si_pid()) };
                return Ok(Some(Came { signal, code, sender: sender.cast_unsigned() }));
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::WouldBlock => return Ok(None),
                io::ErrorKind::Interrupted => {}
                _ => return Err(error),
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What has come up to now was for the command.
        while let Ok(Some(_)) = self.next(Some(Duration::ZERO)) {}
        if let Some(before) = &self.child_before {
            let _ = action(libc::SIGCHLD, Some(before));
        }
        let _ = set_mask(&self.mask);
    }
}

/// A signal.
struct Came {
    signal: i32,
    /// As `si_code` has it: above 0 of the kernel.
    code: i32,
    sender: u32,
}

/// Whether it can be reaped.
fn has_ended(child: &Child) -> io::Result<bool> {
    loop {
        let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
        let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        // SAFETY: `info` is writable memory of the right type; WNOWAIT leaves the child as it is.
        let rc = unsafe { libc::waitid(libc::P_PID, child.id(), info.as_mut_ptr(), options) };
        let error = io::Error::last_os_error();
        if rc == 0 {
            // SAFETY: zeroed, or filled by the call; a process id that is not 0 says which.
            return Ok(unsafe { (*info.as_ptr()).si_pid() } != 0);
        }
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Sends it to a process; one that is gone does not get it.
pub(crate) fn send(pid: u32, signal: i32) {
    // SAFETY: only sends a signal.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

/// Kills the process group of `child`, which was started as the first of one, and may have just been reaped.
pub(crate) fn kill_group(child: &Child) {
    // SAFETY: only sends a signal.
    unsafe { libc::killpg(child.id() as i32, libc::SIGKILL) };
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
    set_mask_by(libc::SIG_BLOCK, &set_of(&FORWARDED))
}

fn set_of(signals: &[i32]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is writable memory of the right type, which the first call initialises.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

fn set_mask(mask: &libc::sigset_t) -> io::Result<()> {
    set_mask_by(libc::SIG_SETMASK, mask).map(|_| ())
}

/// Changes the mask; the one from before.
fn set_mask_by(how: i32, set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    let mut old = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: `set` is a valid set, and `old`, valid as zeros too, is overwritten by the call.
    unsafe {
        match libc::sigprocmask(how, set, old.as_mut_ptr()) {
            0 => Ok(old.assume_init()),
            _ => Err(io::Error::last_os_error()),
        }
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
