//! Why something cannot be done in a process, in words that say what to do.

use thiserror::Error;

/// See the module; each is about one process.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Refusal {
    #[error("there is no such process")]
    NoSuchProcess,
    #[error("the process belongs to another user (uid {0}); only that user and root can control it")]
    OtherUser(u32),
    #[error(
        "the process may not be looked into: it runs with other rights than this command \
         (set-user-id, capabilities, PR_SET_DUMPABLE); root can control it"
    )]
    Guarded,
    #[error("the loader is not in the process; start the program with LD_PRELOAD=librpd_remote.so")]
    NoLoader,
    #[error(
        "the loader is in the process, but no GPU runtime has called it yet; try again when the program uses its \
         GPU, or start the program with RPD_REMOTE_FROM=start, as where CUDA_INJECTION64_PATH names another tool"
    )]
    NoRuntime,
    #[error("the process has the block of another process, which it inherited, and no loader of its own")]
    Inherited,
    #[error("the process has a loader of another version than this command (layout {0})")]
    OtherVersion(u32),
    #[error("what the process shows as its loader is none: it can change its size, or belongs to uid {0}")]
    Forged(u32),
    #[error("another command has been busy with the process for {0} s")]
    Busy(u64),
    #[error("the process is stopped (SIGSTOP, a debugger); it will do as asked when it goes on")]
    Stopped,
    #[error("the process has not answered for {0} s; it will do as asked when it can")]
    NoAnswer(u64),
    #[error(
        "the process ended before it had done so; the trace, if there is one, holds what was written until then"
    )]
    Gone,
    #[error(
        "the program has {signal} for itself ({how}); start it with RPD_REMOTE=flag or both and it can be controlled \
         without signals"
    )]
    SignalTaken { signal: &'static str, how: &'static str },
    #[error("{0} needs more than a signal can say: start the program with RPD_REMOTE=flag or both")]
    NeedsFlag(&'static str),
    #[error("the recorder cannot be loaded: {0}")]
    NoRecorder(String),
    #[error("recording into {0} has begun; the file cannot be changed any more")]
    OtherFile(String),
    #[error("{0}")]
    Problem(String),
    #[error("recording goes on: the program itself wants it too (RPDT_AUTOSTART, rpdstart)")]
    StillRecording,
    #[error("the process is ending")]
    Ending,
    #[error("the loader in the process is older than this command and does not know that")]
    Unknown,
    #[error("{0}")]
    System(String),
}
