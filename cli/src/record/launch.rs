//! Running the command of `rpd record` so that nobody can tell the difference: its standard streams,
//! signals, and the way it ends are its own.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitCode};
use std::{fs, io};

use anyhow::{Context, Result};

use crate::record::executable::NotRunnable;
use crate::system::signals::{self, HeldSignals, Signals};

/// How a command ended, and as what.
#[derive(Debug)]
pub(crate) struct EndedCommand {
    /// How.
    pub(crate) ending: Ending,
    /// Its process.
    pub(crate) pid: u32,
    /// What the kernel called the process at its end: the first 15 bytes of the name of the program that it ran last (`env` and
    /// shells are replaced by others), unless it took another name. Empty if that is not known.
    pub(crate) name: Vec<u8>,
    /// The last signal that came meanwhile, from a terminal too, of those that ask programs to end.
    pub(crate) asked_to_end: Option<i32>,
}

/// How the command came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It exited with this status.
    Exited(u8),
    /// This signal ended it.
    Killed(i32),
}

/// Why there was no run.
#[derive(Debug)]
pub(crate) enum LaunchFailure {
    /// The command cannot be executed: a shell's 126 or 127.
    NotRunnable(NotRunnable),
    /// Anything else that went wrong before it started.
    Other(anyhow::Error),
}

/// Runs `command` (the program and its arguments) with `environment` on top of this process's own, passes
/// signals on, those that were `held` too, and waits for its end. `prepare` is done before, to what is started.
///
/// # Errors
/// When it cannot be started; nothing of it has run then.
pub(crate) fn run(
    command: &[OsString],
    environment: &[(&OsStr, OsString)],
    held: Option<HeldSignals>,
    prepare: impl FnOnce(&mut process::Command) -> Result<()>,
) -> Result<EndedCommand, LaunchFailure> {
    run_passing(command, environment, held, prepare, signals::send)
}

/// The same, where `pass_on` gets the process and what signals come for it.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_passing(
    command: &[OsString],
    environment: &[(&OsStr, OsString)],
    held: Option<HeldSignals>,
    prepare: impl FnOnce(&mut process::Command) -> Result<()>,
    mut pass_on: impl FnMut(u32, i32),
) -> Result<EndedCommand, LaunchFailure> {
    let (program, arguments) =
        command.split_first().ok_or(LaunchFailure::NotRunnable(NotRunnable::Missing))?;
    let mut child = process::Command::new(program);
    child.args(arguments).envs(environment.iter().map(|(key, value)| (key, value)));
    let signals = Signals::take(held).context("cannot take signals").map_err(LaunchFailure::Other)?;
    prepare(&mut child).map_err(LaunchFailure::Other)?;
    let mut child = signals.spawn(&mut child).map_err(|error| not_started(program, error))?;
    let pid = child.id();
    let waited = signals.wait(&child, None, |signal| pass_on(pid, signal));
    drop(signals);
    // It is not reaped yet, so this is still its own.
    let name = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default().trim_ascii_end().to_vec();
    let (asked_to_end, status) = waited
        .and_then(|waited| Ok((waited.asked_to_end, child.wait()?)))
        .with_context(|| format!("cannot wait for {}", program.display()))
        .map_err(LaunchFailure::Other)?;
    let ending = match (status.code(), status.signal()) {
        // A status is the low eight bits of what was passed to exit.
        (Some(code), _) => Ending::Exited(code.to_le_bytes()[0]),
        (None, signal) => Ending::Killed(signal.unwrap_or(libc::SIGKILL)),
    };
    Ok(EndedCommand { ending, pid, name, asked_to_end })
}

fn not_started(program: &OsStr, error: io::Error) -> LaunchFailure {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR) => LaunchFailure::NotRunnable(NotRunnable::Missing),
        Some(libc::EACCES | libc::EPERM | libc::ENOEXEC | libc::ELOOP) => {
            LaunchFailure::NotRunnable(NotRunnable::Denied)
        }
        _ => LaunchFailure::Other(
            anyhow::Error::new(error).context(format!("cannot start {}", program.display())),
        ),
    }
}

impl Ending {
    /// Ends rpd the same way; with 128 + n where the signal cannot end it.
    pub(crate) fn repeat(self) -> ExitCode {
        match self {
            Ending::Exited(code) => ExitCode::from(code),
            Ending::Killed(signal) => {
                signals::die_by(signal);
                ExitCode::from(128_u8.saturating_add(signal.to_le_bytes()[0]))
            }
        }
    }
}
