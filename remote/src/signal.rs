//! SIGUSR1 starts, SIGUSR2 stops, where the user asked for it (RPD_REMOTE=signal or both).
//!
//! The handler only notes the command and wakes the thread. A program that has a handler of its own for these signals keeps it: ours
//! is in front and calls it. What the program sends to itself is its own and starts nothing; what rpdRemote queues (it
//! marks those) is not shown to the program.

use std::ffi::{c_int, c_void};
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use rpd_remote_block::{RequestVerb, SIGNAL_MARK, SignalOwner};

use crate::{fork, presence};

/// The signals, and what they ask for.
const SIGNALS: [(c_int, RequestVerb); 2] =
    [(libc::SIGUSR1, RequestVerb::Start), (libc::SIGUSR2, RequestVerb::Stop)];

/// The channel is in use.
static TAKEN: AtomicBool = AtomicBool::new(false);
/// The verb that the last signal asked for, as its number; 0 for none.
static COMMAND: AtomicU32 = AtomicU32::new(0);
/// What the program wants to happen at each signal, see [`Own`].
static OWN: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// The program's own action, in one word so that a handler reads all of it at once.
#[derive(Clone, Copy)]
struct Own {
    handler: usize,
    /// The handler takes three arguments.
    with_info: bool,
    /// The handler is called once.
    once: bool,
}

impl Own {
    const NONE: Own = Own { handler: libc::SIG_DFL, with_info: false, once: false };

    fn of(action: &libc::sigaction) -> Own {
        let has = |flag| action.sa_flags & flag != 0;
        Own { handler: action.sa_sigaction, with_info: has(libc::SA_SIGINFO), once: has(libc::SA_RESETHAND) }
    }

    fn is_handler(self) -> bool {
        self.handler != libc::SIG_DFL && self.handler != libc::SIG_IGN
    }

    // User space addresses have their two highest bits clear.
    fn to_word(self) -> u64 {
        (self.handler as u64) << 2 | u64::from(self.with_info) << 1 | u64::from(self.once)
    }

    fn from_word(word: u64) -> Own {
        Own { handler: (word >> 2) as usize, with_info: word & 2 != 0, once: word & 1 != 0 }
    }
}

unsafe extern "C" {
    /// glibc's sigaction under a name that this library does not interpose.
    fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}

/// The system's sigaction.
///
/// # Safety
/// That of sigaction.
pub(crate) unsafe fn system(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { __sigaction(signal, new, old) }
}

/// Takes the signals.
pub(crate) fn take() {
    fork::watch();
    for (place, (signal, _)) in SIGNALS.into_iter().enumerate() {
        // SAFETY: all-zero is a valid action to be overwritten.
        let mut before: libc::sigaction = unsafe { zeroed() };
        // SAFETY: a valid place; only asks.
        unsafe { system(signal, ptr::null(), &mut before) };
        OWN[place].store(Own::of(&before).to_word(), Ordering::Relaxed);
        let ours = ours(&before);
        // SAFETY: our handler calls nothing that a handler may not.
        unsafe { system(signal, &ours, ptr::null_mut()) };
    }
    TAKEN.store(true, Ordering::Release);
}

/// Our handler, with the mask and flags of the program's action.
fn ours(own: &libc::sigaction) -> libc::sigaction {
    let mut action = *own;
    action.sa_sigaction = handler as *const () as usize;
    action.sa_flags = (own.sa_flags & !libc::SA_RESETHAND) | libc::SA_SIGINFO;
    if !Own::of(own).is_handler() {
        // The program expects no interruption.
        action.sa_flags |= libc::SA_RESTART | libc::SA_ONSTACK;
    }
    action
}

fn place(signal: c_int) -> Option<usize> {
    SIGNALS.iter().position(|(one, _)| *one == signal)
}

/// Whether the program's actions for this signal are kept here instead of in the kernel.
pub(crate) fn is_held_here(signal: c_int) -> bool {
    place(signal).is_some() && TAKEN.load(Ordering::Acquire) && presence::is_own_process()
}

/// What sigaction would do if the signal were the program's alone.
///
/// # Safety
/// That of sigaction.
pub(crate) unsafe fn keep(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let Some(place) = place(signal) else { return -1 };
    // SAFETY: all-zero is a valid action to be overwritten.
    let mut kernels: libc::sigaction = unsafe { zeroed() };
    // SAFETY: the caller's promise: null or a valid action.
    let result = match unsafe { new.as_ref() } {
        Some(new) => {
            let before = OWN[place].swap(Own::of(new).to_word(), Ordering::AcqRel);
            // SAFETY: an action with our handler, and a valid place.
            let result = unsafe { system(signal, &ours(new), &mut kernels) };
            restore(&mut kernels, Own::from_word(before));
            result
        }
        None => {
            // SAFETY: a valid place; only asks.
            let result = unsafe { system(signal, ptr::null(), &mut kernels) };
            restore(&mut kernels, Own::from_word(OWN[place].load(Ordering::Acquire)));
            result
        }
    };
    if result == 0 && !old.is_null() {
        // SAFETY: the caller's promise.
        unsafe { old.write(kernels) };
    }
    result
}

/// What the program had asked for, from what the kernel has.
fn restore(kernels: &mut libc::sigaction, own: Own) {
    if kernels.sa_sigaction != handler as *const () as usize {
        return;
    }
    kernels.sa_sigaction = own.handler;
    let set = |flags: &mut c_int, flag: c_int, on| if on { *flags |= flag } else { *flags &= !flag };
    set(&mut kernels.sa_flags, libc::SA_SIGINFO, own.with_info);
    set(&mut kernels.sa_flags, libc::SA_RESETHAND, own.once);
    if !own.is_handler() {
        kernels.sa_flags &= !(libc::SA_RESTART | libc::SA_ONSTACK);
    }
}

extern "C" fn handler(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the location is this thread's own errno.
    let errno = unsafe { *libc::__errno_location() };
    let Some(place) = place(signal) else { return };
    // SAFETY: the kernel passes a valid siginfo to a handler installed with SA_SIGINFO; the fields read are those of its code.
    let (is_marked, is_from_outside) = unsafe {
        let (code, queued) = ((*info).si_code, (*info).si_code == libc::SI_QUEUE);
        let marked = queued && (*info).si_value().sival_ptr as usize == SIGNAL_MARK;
        let sent = code == libc::SI_USER || queued;
        (marked, sent && (*info).si_pid() as u32 != std::process::id())
    };
    if is_from_outside && presence::is_own_process() {
        COMMAND.store(SIGNALS[place].1 as u32, Ordering::SeqCst);
        if let Some(block) = presence::block() {
            block.ring();
        }
    }
    if !is_marked {
        pass_on(place, signal, info, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Calls the program's handler as the kernel would have.
fn pass_on(place: usize, signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let word = OWN[place].load(Ordering::Acquire);
    let own = Own::from_word(word);
    if !own.is_handler() {
        return;
    }
    if own.once {
        let none = Own::NONE.to_word();
        if OWN[place].compare_exchange(word, none, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return;
        }
    }
    // SAFETY: a handler that the program installed, called with the arguments that its flags promise it.
    unsafe {
        if own.with_info {
            let call: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                std::mem::transmute(own.handler);
            call(signal, info, context);
        } else {
            let call: extern "C" fn(c_int) = std::mem::transmute(own.handler);
            call(signal);
        }
    }
}

/// Whether a start has been asked for and not been taken yet.
pub(crate) fn asks_for_start() -> bool {
    COMMAND.load(Ordering::SeqCst) == RequestVerb::Start as u32
}

/// What a signal asked for since the last call.
pub(crate) fn take_command() -> Option<RequestVerb> {
    RequestVerb::from_number(COMMAND.swap(0, Ordering::SeqCst))
}

/// Whose the signals are now.
pub(crate) fn owners() -> [SignalOwner; 2] {
    std::array::from_fn(|place| {
        if !TAKEN.load(Ordering::Acquire) {
            return SignalOwner::Off;
        }
        // SAFETY: all-zero is a valid action to be overwritten.
        let mut now: libc::sigaction = unsafe { zeroed() };
        // SAFETY: a valid place; only asks.
        unsafe { system(SIGNALS[place].0, ptr::null(), &mut now) };
        if now.sa_sigaction != handler as *const () as usize {
            SignalOwner::Taken
        } else if Own::from_word(OWN[place].load(Ordering::Acquire)).is_handler() {
            SignalOwner::Chained
        } else {
            SignalOwner::Ours
        }
    })
}
