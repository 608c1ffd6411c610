//! The memory by which `rpdRemote` and the loader inside a process, `librpd_remote.so`, talk.
//!
//! Each process has one [`SharedBlock`], in a memfd of its own. Commands find it under `/proc/PID/fd`, which the kernel opens to the
//! same user (and root) alone. It needs no directory, goes away with the process however that ends, and is sealed against
//! shrinking, so that no access to it can fault.
//!
//! A command writes one [`Request`] at a time, numbers it, and rings the bell; the loader's thread sleeps on that bell, does what
//! is asked, leaves an [`AnswerSlot`] under the same number and wakes the command. [`SharedStatus`] has what is known of the recorder.
//!
//! Either side may read what a stranger of the same user wrote: all of it is atomics, every byte pattern is a value, and every
//! length is checked.

pub mod futex;
mod status;
mod text;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

pub use status::{Reading, RecorderState, SharedStatus, SignalOwner};
pub use text::SharedText;

/// Name of the memfd: `/proc/PID/fd` shows it as `/memfd:rpd-remote (deleted)`.
pub const NAME: &std::ffi::CStr = c"rpd-remote";
/// Bytes of the memfd.
pub const SIZE: usize = 1 << 14;
/// How long a stop waits for the GPU work that was launched before it, unless told otherwise.
pub const DRAIN: Duration = Duration::from_secs(2);
/// Value by which rpdRemote marks the signals that it queues: they are nobody else's.
pub const SIGNAL_MARK: usize = 0x7270_6452;

const MAGIC: u64 = u64::from_le_bytes(*b"rpd.rmt\n");
/// Raised when what is in a block changes its place or meaning.
const LAYOUT: u32 = 2;
/// Answers that are kept: a command that is late finds its own.
const ANSWERS: usize = 4;

/// What a command may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RequestVerb {
    /// Renew what [`SharedStatus`] says.
    Look = 1,
    /// Load the recorder if it is not there, and record.
    Start,
    /// Stop recording, and put everything into the file.
    Stop,
    /// Put everything into the file.
    Flush,
}

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RequestOutcome {
    /// It was done.
    Done = 1,
    /// There was nothing to do: it was as asked for already.
    Already,
    /// Stopped as far as this goes, but the program itself wants recording too.
    StillRecording,
    /// The recorder could not be loaded; the text says why.
    NoRecorder,
    /// Another file was asked for than the one already recorded into, which the text names.
    OtherFile,
    /// The recorder complained; the text is what it said.
    Problem,
    /// The process is ending.
    Ending,
    /// This loader does not know the request.
    Unknown,
    /// Recording has begun, but not of all that the program does; the text says why.
    Partly,
}

/// One number for each of an enum's values, from 1; nothing for other numbers.
macro_rules! from_number {
    ($name:ident: $($value:ident)*) => {
        impl $name {
            /// The value of that number, which another process may have written.
            pub fn from_number(number: u32) -> Option<$name> {
                [$($name::$value),*].into_iter().find(|value| *value as u32 == number)
            }
        }
    };
}
pub(crate) use from_number;

from_number!(RequestVerb: Look Start Stop Flush);
from_number!(RequestOutcome: Done Already StillRecording NoRecorder OtherFile Problem Ending Unknown Partly);

/// What is asked for. Commands write it, one at a time: they hold a lock (flock) on the block meanwhile.
#[repr(C)]
pub struct Request {
    verb: AtomicU32,
    _unused: AtomicU32,
    /// For [`RequestVerb::Start`]: stop again after that long, ns; 0 for never. For [`RequestVerb::Stop`]: how long to wait for GPU work, ns.
    duration_ns: AtomicU64,
    /// For [`RequestVerb::Start`]: absolute path of the trace; empty for the recorder's own choice.
    file: SharedText<4096>,
}

/// What became of a request.
#[repr(C)]
pub struct AnswerSlot {
    number: AtomicU64,
    outcome: AtomicU32,
    _unused: AtomicU32,
    text: SharedText<512>,
}

/// See the crate.
#[repr(C)]
pub struct SharedBlock {
    magic: AtomicU64,
    layout: AtomicU32,
    /// The process as it calls itself, which in a PID namespace is not what others call it.
    pid: AtomicU32,
    /// When the process started, clock ticks since boot (field 22 of `/proc/PID/stat`); 0 for unknown. A block whose process
    /// started at another time is a copy that a child inherited.
    start_time: AtomicU64,
    /// 1: starts and stops are taken from here; 0: only by signals.
    pub takes_requests: AtomicU32,
    /// Futex of the loader's thread.
    pub bell: AtomicU32,
    /// Futex of commands that wait for an answer.
    pub answer_bell: AtomicU32,
    _unused: AtomicU32,
    asked: AtomicU64,
    seen: AtomicU64,
    done: AtomicU64,
    request: Request,
    answers: [AnswerSlot; ANSWERS],
    /// Commands that came as signals and were carried out.
    pub signals_done: AtomicU64,
    /// What became of the last of those.
    pub signal_answer: AnswerSlot,
    /// What the loader knows.
    pub status: SharedStatus,
}

const _: () = assert!(size_of::<SharedBlock>() <= SIZE);

/// What a command asks for.
#[derive(Clone, Debug)]
pub struct Command {
    /// See [`RequestVerb`].
    pub verb: RequestVerb,
    /// For a start: stop again after that long, ns. For a stop: how long to wait for the GPU work that was launched before it, ns.
    pub duration_ns: u64,
    /// Absolute path of the trace, or nothing.
    pub file: Vec<u8>,
}

impl AnswerSlot {
    /// Writes the answer to request `number`.
    pub fn write(&self, number: u64, outcome: RequestOutcome, text: &[u8]) {
        self.number.store(0, Ordering::Relaxed);
        std::sync::atomic::fence(Ordering::Release);
        self.text.set(text);
        self.outcome.store(outcome as u32, Ordering::Relaxed);
        self.number.store(number, Ordering::Release);
    }

    /// Outcome and text of request `number`; nothing when a later answer has taken the place.
    pub fn read(&self, number: u64) -> Option<(RequestOutcome, Vec<u8>)> {
        let is_it = || self.number.load(Ordering::Acquire) == number;
        if !is_it() {
            return None;
        }
        let found = (RequestOutcome::from_number(self.outcome.load(Ordering::Relaxed))?, self.text.get());
        std::sync::atomic::fence(Ordering::Acquire);
        is_it().then_some(found)
    }
}

impl SharedBlock {
    /// Says whose block it is: the process as it calls itself, and when it started, 0 for unknown.
    pub fn belongs_to(&self, pid: u32, start_time: u64) {
        self.pid.store(pid, Ordering::Relaxed);
        self.start_time.store(start_time, Ordering::Relaxed);
    }

    /// The process as it calls itself.
    pub fn number(&self) -> u32 {
        self.pid.load(Ordering::Relaxed)
    }

    /// When the process started, clock ticks since boot; 0 for unknown.
    pub fn started(&self) -> u64 {
        self.start_time.load(Ordering::Relaxed)
    }

    /// Makes a block of zeros one that commands accept; what they look at first must be there by then.
    pub fn publish(&self) {
        self.layout.store(LAYOUT, Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// Whether this is a block of this layout; otherwise the layout it has, 0 for none.
    ///
    /// # Errors
    /// The other layout.
    pub fn check(&self) -> Result<(), u32> {
        if self.magic.load(Ordering::Acquire) != MAGIC {
            return Err(0);
        }
        match self.layout.load(Ordering::Relaxed) {
            LAYOUT => Ok(()),
            other => Err(other),
        }
    }

    /// Writes a request and wakes the loader's thread; the number under which the answer will be. The caller holds the lock and
    /// has seen [`SharedBlock::is_idle`].
    pub fn ask(&self, command: &Command) -> u64 {
        self.request.verb.store(command.verb as u32, Ordering::Relaxed);
        self.request.duration_ns.store(command.duration_ns, Ordering::Relaxed);
        self.request.file.set(&command.file);
        let number = self.asked.fetch_add(1, Ordering::Release) + 1;
        self.ring();
        number
    }

    /// Whether every request has its answer.
    pub fn is_idle(&self) -> bool {
        self.done.load(Ordering::Acquire) == self.asked.load(Ordering::Relaxed)
    }

    /// The answer to request `number`: nothing yet, or what became of it (nothing again when that was long ago).
    pub fn answer(&self, number: u64) -> Option<Option<(RequestOutcome, Vec<u8>)>> {
        let answered = self.done.load(Ordering::Acquire) >= number;
        answered.then(|| self.answers[number as usize % ANSWERS].read(number))
    }

    /// The request that has no answer yet. Its verb is `None` where this loader does not know it.
    pub fn asked(&self) -> Option<(u64, Option<RequestVerb>, Command)> {
        let number = self.asked.load(Ordering::Acquire);
        if number == self.done.load(Ordering::Relaxed) {
            return None;
        }
        let verb = RequestVerb::from_number(self.request.verb.load(Ordering::Relaxed));
        let duration_ns = self.request.duration_ns.load(Ordering::Relaxed);
        Some((
            number,
            verb,
            Command { verb: verb.unwrap_or(RequestVerb::Look), duration_ns, file: self.request.file.get() },
        ))
    }

    /// The loader's thread has seen request `number`.
    pub fn taken(&self, number: u64) {
        self.seen.store(number, Ordering::Release);
    }

    /// Whether the loader's thread has seen the last request, so that somebody serves this block.
    pub fn is_served(&self) -> bool {
        self.seen.load(Ordering::Acquire) == self.asked.load(Ordering::Relaxed)
    }

    /// Answers request `number`.
    pub fn reply(&self, number: u64, outcome: RequestOutcome, text: &[u8]) {
        self.answers[number as usize % ANSWERS].write(number, outcome, text);
        self.done.store(number, Ordering::Release);
        self.answered();
    }

    /// Wakes the loader's thread. May be called in a signal handler.
    pub fn ring(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        futex::wake(&self.bell);
    }

    /// Wakes the commands that wait.
    pub fn answered(&self) {
        self.answer_bell.fetch_add(1, Ordering::Release);
        futex::wake(&self.answer_bell);
    }
}

#[cfg(test)]
mod tests;
