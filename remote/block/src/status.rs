//! The recorder's status as the loader knows it, for commands to read at any time.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::text::SharedText;

/// How far the recorder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum RecorderState {
    /// Not loaded: nobody has asked for a recording.
    Ready = 1,
    /// Being loaded.
    Loading,
    /// It records.
    Recording,
    /// Loaded, not recording.
    Stopped,
}
crate::from_number!(RecorderState: Ready Loading Recording Stopped);

/// Whose a signal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum SignalOwner {
    /// Nobody asked for this channel.
    Off = 1,
    /// The loader's alone.
    Ours,
    /// The loader's, and passed on to a handler of the program.
    Chained,
    /// The program has put its own handler in the place of the loader's.
    Taken,
}
crate::from_number!(SignalOwner: Off Ours Chained Taken);

/// One consistent reading of a [`SharedStatus`].
#[derive(Clone, Debug)]
pub struct Reading {
    /// How far it is.
    pub state: RecorderState,
    /// A start was asked for last, not a stop.
    pub wanted: bool,
    /// Whose SIGUSR1 (start) and SIGUSR2 (stop) are.
    pub signals: [SignalOwner; 2],
    /// Number of the recording in the file, if there is one yet.
    pub session: Option<u32>,
    /// Calls, operations and markers in the file.
    pub events: u64,
    /// Records lost.
    pub lost: u64,
    /// Recorded launches that had no operation when recording was last stopped.
    pub launches_without_op: u64,
    /// The trace; empty before the recorder is there.
    pub file: Vec<u8>,
    /// What the recorder last complained of; empty for nothing.
    pub problem: Vec<u8>,
}

impl Reading {
    /// Before anybody asked for anything.
    pub fn nothing() -> Reading {
        Reading {
            state: RecorderState::Ready,
            wanted: false,
            signals: [SignalOwner::Off; 2],
            session: None,
            events: 0,
            lost: 0,
            launches_without_op: 0,
            file: vec![],
            problem: vec![],
        }
    }
}

/// A [`Reading`] in shared memory. One thread writes it; an odd `version` says that it is doing so.
#[repr(C)]
pub struct SharedStatus {
    pub(crate) version: AtomicU32,
    state: AtomicU32,
    wanted: AtomicU32,
    signals: [AtomicU32; 2],
    _unused: AtomicU32,
    /// One more than the session, 0 for none.
    session: AtomicU64,
    events: AtomicU64,
    lost: AtomicU64,
    launches_without_op: AtomicU64,
    file: SharedText<4096>,
    problem: SharedText<512>,
}

/// Readings that are tried before the writer counts as stuck.
const TRIES: u32 = 1000;

impl SharedStatus {
    /// Writes all of it.
    pub fn write(&self, known: &Reading) {
        self.version.fetch_add(1, Ordering::Relaxed);
        fence(Ordering::Release);
        self.state.store(known.state as u32, Ordering::Relaxed);
        self.wanted.store(known.wanted.into(), Ordering::Relaxed);
        for (place, signal) in self.signals.iter().zip(known.signals) {
            place.store(signal as u32, Ordering::Relaxed);
        }
        self.session.store(known.session.map_or(0, |session| u64::from(session) + 1), Ordering::Relaxed);
        self.events.store(known.events, Ordering::Relaxed);
        self.lost.store(known.lost, Ordering::Relaxed);
        self.launches_without_op.store(known.launches_without_op, Ordering::Relaxed);
        self.file.set(&known.file);
        self.problem.set(&known.problem);
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Reads all of it; nothing where the process stands still in the middle of writing, or what it wrote makes no sense.
    pub fn read(&self) -> Option<Reading> {
        for _ in 0..TRIES {
            let before = self.version.load(Ordering::Acquire);
            let known = self.contents();
            fence(Ordering::Acquire);
            if before.is_multiple_of(2) && self.version.load(Ordering::Relaxed) == before {
                return known;
            }
            std::thread::yield_now();
        }
        None
    }

    fn contents(&self) -> Option<Reading> {
        let signal = |place: usize| SignalOwner::from_number(self.signals[place].load(Ordering::Relaxed));
        Some(Reading {
            state: RecorderState::from_number(self.state.load(Ordering::Relaxed))?,
            wanted: self.wanted.load(Ordering::Relaxed) != 0,
            signals: [signal(0)?, signal(1)?],
            session: self.session.load(Ordering::Relaxed).checked_sub(1).and_then(|n| u32::try_from(n).ok()),
            events: self.events.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            launches_without_op: self.launches_without_op.load(Ordering::Relaxed),
            file: self.file.get(),
            problem: self.problem.get(),
        })
    }
}
