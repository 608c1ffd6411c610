//! Asking by signal, where the process takes nothing else (RPD_REMOTE=signal).

use std::sync::atomic::Ordering;

use rpd_remote_block::{RequestVerb, SIGNAL_MARK, SignalOwner};

use crate::attach::Process;
use crate::process;
use crate::refusal::Refusal;
use crate::request::{Done, PATIENCE, meaning};

/// The signals and what they ask for.
const SIGNALS: [(libc::c_int, &str); 2] = [(libc::SIGUSR1, "SIGUSR1"), (libc::SIGUSR2, "SIGUSR2")];

/// How the program keeps the signal at `place` from the loader, if it does.
pub(crate) fn keeps(process: &Process, place: usize, owner: SignalOwner) -> Option<&'static str> {
    let (signal, _) = SIGNALS[place];
    if owner == SignalOwner::Taken {
        Some("its own handler is in the place of the loader's")
    } else if process::reads(process.pid, signal) {
        Some("it reads it by signalfd")
    } else if process::blocks(process.pid, signal) {
        Some("all its threads block it, or wait for it by sigwait")
    } else {
        None
    }
}

/// Sends the signal that asks for a start or stop, and waits for what became of it if `wait`.
///
/// # Errors
/// The program has the signal for itself, or it could not be done, or there is no answer.
pub(crate) fn ask(process: &Process, verb: RequestVerb, wait: bool) -> Result<Done, Refusal> {
    let place = match verb {
        RequestVerb::Start => 0,
        RequestVerb::Stop => 1,
        RequestVerb::Flush => return Err(Refusal::NeedsFlag("flush")),
        RequestVerb::Look => return process.look().map(|()| Done::Now),
    };
    process.look()?;
    let known = process.status.read().ok_or(Refusal::NoAnswer(0))?;
    let (number, signal) = SIGNALS[place];
    if let Some(how) = keeps(process, place, known.signals[place]) {
        return Err(Refusal::SignalTaken { signal, how });
    }
    // One signal on its way at a time: two that are the same become one, and two that differ may change places.
    process.alone(PATIENCE, || {
        let before = process.signals_done.load(Ordering::Acquire);
        // SAFETY: plain call; the process has a handler for it, as it just said.
        let sent = unsafe {
            libc::sigqueue(
                process.pid as libc::pid_t,
                number,
                libc::sigval { sival_ptr: SIGNAL_MARK as *mut _ },
            )
        };
        if sent != 0 {
            return Err(Refusal::System(format!(
                "cannot send {signal}: {}",
                std::io::Error::last_os_error()
            )));
        }
        if !wait {
            return Ok(Done::Asked);
        }
        let done = process.until(PATIENCE, || {
            let now = process.signals_done.load(Ordering::Acquire);
            (now > before).then(|| process.signal_answer.read(now)).flatten()
        });
        let (outcome, text) = done?;
        meaning(outcome, &text)
    })
}
