//! The one process-wide object: configuration, rings, counters, the on/off switch and the writer.
//!
//! It is made when the library is loaded, costs nothing until something is recorded, and is never freed: hooks on any
//! thread may hold a reference at any time. A forked child gets a fresh one, because its copy of the locks, the rings and
//! the database connection belongs to the parent.

use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use rpd_preload::cancellation;
use rpd_preload::clock::{self, Clock};

use crate::buffers::RecordBuffers;
use crate::config::{Config, Template};
use crate::counters::Counters;
use crate::failure::Failures;
use crate::lost_calls::LostCalls;
use crate::process_range::Waiting;
use crate::records::ring::Producer;
use crate::requests::Requests;
use crate::sensors::AnothersSensors;
use crate::source::{GpuTable, Source};
use crate::stack::{Demangle, Stacks};
use crate::switch::Switch;
use crate::thread::Orphans;

static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(std::ptr::null_mut());
/// Counts the recorders of this process and its ancestors: state kept per thread is valid for one of them only.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// See the module. What belongs together is a type of the module that works with it; this is the list of them.
pub struct Recorder {
    /// What it is made of.
    pub setup: Setup,
    /// What the user asked for.
    pub config: Config,
    /// The process it records.
    pub pid: u32,
    /// When it was made: ns of CLOCK_MONOTONIC and CLOCK_REALTIME.
    pub began: (u64, u64),
    /// Records and texts in memory.
    pub buffers: RecordBuffers,
    /// The trace: RPDT_FILENAME, until the program names another.
    pub filename: Mutex<Template>,
    /// Recorded and lost.
    pub counters: Counters,
    /// What the program ran into.
    pub failures: Failures,
    /// Recording or paused.
    pub switch: Switch,
    /// Ranges begun in a pause.
    pub waiting: Waiting,
    /// Whose calls they are, if that is recorded.
    pub stacks: Option<Stacks>,
    /// The thread that owns the file.
    pub requests: Requests,
    /// Ids of calls whose record was lost, since the writer last asked.
    pub lost_calls: LostCalls,
    /// Launches in the file, or about to be, whose operation was lost, since the writer last asked.
    pub lost_launches: LostCalls,
    /// The ring of threads whose own thread-local storage is gone.
    pub orphans: Orphans,
    /// Whose sensors other processes record into the file.
    pub sensors: AnothersSensors,
}

/// What a recorder is made of, besides what the user asked for.
#[derive(Clone, Copy)]
pub struct Setup {
    /// Where records come from, in the order in which they are told of anything.
    pub sources: &'static [&'static dyn Source],
    /// What is known of GPUs and kernels.
    pub gpus: &'static dyn GpuTable,
    /// How C++ names of stack frames are worked out.
    pub demangle: Demangle,
    /// The body of the thread that writes: `writer::run`.
    pub writer: fn(&'static Recorder),
}

/// Makes the recorder of this process.
pub fn install(config: Config, setup: Setup) -> &'static Recorder {
    let switch = config.schedule.switch();
    let stacks = config.stack_frames.then(|| Stacks::new(setup.demangle));
    put(config, setup, switch, stacks)
}

/// Makes the recorder of a forked child, which is as far as its parent: recording or paused, inside the same window of time. The
/// parent's is forgotten, not freed.
pub fn inherit(parent: &Recorder) {
    let mut config = parent.config.clone();
    // Another thread of the parent may have held the lock at the fork: it was about to change the name.
    if let Ok(filename) = parent.filename.try_lock() {
        config.filename = filename.clone();
    }
    put(config, parent.setup, parent.switch.inherited(), parent.stacks.as_ref().map(Stacks::inherited));
}

/// This process records nothing.
pub fn forget() {
    RECORDER.store(std::ptr::null_mut(), Ordering::Release);
}

fn put(config: Config, setup: Setup, switch: Switch, stacks: Option<Stacks>) -> &'static Recorder {
    let recorder = Box::leak(Box::new(Recorder {
        pid: std::process::id(),
        began: (clock::monotonic(), clock::read(Clock::Realtime)),
        buffers: RecordBuffers::new(config.buffers),
        filename: Mutex::new(config.filename.clone()),
        counters: Counters::default(),
        failures: Failures::default(),
        switch,
        waiting: Waiting::default(),
        stacks,
        requests: Requests::new(config.exit_wait),
        lost_calls: LostCalls::default(),
        lost_launches: LostCalls::default(),
        orphans: Orphans::default(),
        sensors: AnothersSensors::default(),
        setup,
        config,
    }));
    EPOCH.fetch_add(1, Ordering::Relaxed);
    RECORDER.store(recorder, Ordering::Release);
    recorder
}

/// The recorder, unless the library was loaded where it must not record or was switched off by [`disable`].
#[inline]
pub fn get() -> Option<&'static Recorder> {
    // SAFETY: the pointer is null or comes from a leaked box, so it is valid for ever.
    unsafe { RECORDER.load(Ordering::Acquire).as_ref() }
}

/// Number of the present recorder, from 1.
#[inline]
pub fn epoch() -> u32 {
    EPOCH.load(Ordering::Relaxed)
}

/// No more recording in this process: what is in the rings still reaches the file, hooks only pass through.
pub fn disable() {
    if let Some(recorder) = get() {
        recorder.switch.disable();
    }
}

impl Recorder {
    /// The source of that number.
    pub fn source(&self, number: u8) -> Option<&'static dyn Source> {
        self.setup.sources.iter().find(|source| source.number() == number).copied()
    }

    /// A ring for thread `tid`; starts the writer when it is the first. Nothing when the budget is used up.
    pub fn add_ring(&'static self, tid: u32) -> Option<Producer> {
        let producer = self.buffers.add_ring(tid)?;
        self.requests.start(self);
        Some(producer)
    }

    /// Somebody uses the recorder: where recording begins or ends by the clock, the writer must be there to see to it.
    #[inline]
    pub fn in_use(&'static self) {
        if self.switch.is_timed() {
            cancellation::rarely(|| {
                self.requests.start(self);
                self.switch.keep_time();
            });
        }
    }

    /// How many records have been pushed that are neither in the file nor counted as lost. Nothing where that is not known in time.
    pub fn unaccounted(&self, patience: Duration) -> Option<u64> {
        let accounted = self.counters.accounted();
        Some(self.buffers.pushed(patience)?.saturating_sub(accounted))
    }
}
