//! The one process-wide object: configuration, rings, counters, the on/off switch and the writer.
//!
//! It is made when the library is loaded, costs nothing until something is recorded, and is never freed: hooks on any
//! thread may hold a reference at any time. A forked child gets a fresh one, because its copy of the locks, the rings and
//! the database connection belongs to the parent.

use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpd_preload::cancellation;
use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::{lock, lock_within};

use crate::config::{Config, Template};
use crate::counters::Counters;
use crate::failure::Failures;
use crate::lost_calls::LostCalls;
use crate::process_range::Waiting;
use crate::records::budget::Budget;
use crate::records::ring::{self, Consumer, Producer, Tally};
use crate::requests::Requests;
use crate::sensors::AnothersSensors;
use crate::source::{GpuTable, Source};
use crate::stack::{Demangle, Stacks};
use crate::switch::{Period, Switch};
use crate::thread::Orphans;
use crate::{cgroup, log};

/// Bytes of texts remembered at most, however large the buffers are.
const MOST_TEXT: usize = 32 << 20;
/// Bytes of buffers at least, however little memory there is.
const LEAST_BUFFER: usize = 1 << 20;

static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(std::ptr::null_mut());
/// Counts the recorders of this process and its ancestors: state kept per thread is valid for one of them only.
static EPOCH: AtomicU32 = AtomicU32::new(0);

/// See the module.
pub struct Recorder {
    /// What it is made of.
    pub setup: Setup,
    /// What the user asked for.
    pub config: Config,
    /// The process it records.
    pub pid: u32,
    /// When it was made: ns of CLOCK_MONOTONIC and CLOCK_REALTIME.
    pub began: (u64, u64),
    /// Bytes that records and texts in memory may take: RPDT_BUFFER_MB or less, see [`Recorder::fit_into_memory`].
    buffer_bytes: AtomicUsize,
    /// Memory of all rings.
    pub budget: Arc<Budget>,
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
    /// What all rings have been given: those that there are, and the sum of those that are gone.
    tallies: Mutex<(Vec<Tally>, u64)>,
    /// Rings the writer has not yet taken over.
    new_rings: Mutex<Vec<Consumer>>,
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
    let began = clock::monotonic();
    let from = began + config.delay.as_nanos() as u64;
    let to = config.duration.map_or(u64::MAX, |duration| from.saturating_add(duration.as_nanos() as u64));
    // Without a delay the window is open from the beginning of time.
    let window = Period { from: if config.delay.is_zero() { 0 } else { from }, to };
    let switch = Switch::new(config.autostart, window);
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
        buffer_bytes: AtomicUsize::new(config.buffer_bytes),
        budget: Arc::new(Budget::new(config.buffer_bytes - text_bytes(config.buffer_bytes))),
        filename: Mutex::new(config.filename.clone()),
        counters: Counters::default(),
        failures: Failures::default(),
        switch,
        waiting: Waiting::default(),
        stacks,
        requests: Requests::new(config.exit_wait),
        tallies: Mutex::default(),
        new_rings: Mutex::default(),
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

/// Bytes of texts remembered at most: a part of all buffers, of which records get the rest.
pub fn text_bytes(buffer_bytes: usize) -> usize {
    (buffer_bytes / 8).min(MOST_TEXT)
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
        let (producer, consumer) = ring::ring(&self.budget, tid)?;
        lock(&self.tallies).0.push(consumer.tally());
        lock(&self.new_rings).push(consumer);
        self.requests.start(self);
        Some(producer)
    }

    /// Without RPDT_BUFFER_MB the buffers take an eighth of what the process's control group may have, where that is less than
    /// the default: whatever grows beyond it has the program killed.
    pub fn fit_into_memory(&self) {
        let Some(limit) = cgroup::memory_limit().filter(|_| self.config.buffer_is_default) else { return };
        let share = usize::try_from(limit / 8).unwrap_or(usize::MAX).max(LEAST_BUFFER);
        if share < self.buffer_bytes() {
            log::info(|| format!("{} KiB of buffers, an eighth of the control group's memory", share >> 10));
            self.buffer_bytes.store(share, Ordering::Relaxed);
            self.budget.set_limit(share - text_bytes(share));
        }
    }

    /// Bytes that records and texts in memory may take.
    pub fn buffer_bytes(&self) -> usize {
        self.buffer_bytes.load(Ordering::Relaxed)
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

    /// The rings added since the last call; the writer is about to drain all.
    pub fn take_new_rings(&self) -> Vec<Consumer> {
        self.budget.visited();
        let (rings, gone) = &mut *lock(&self.tallies);
        rings.retain(|ring| {
            *gone += if ring.is_over() { ring.pushed() } else { 0 };
            !ring.is_over()
        });
        std::mem::take(&mut lock(&self.new_rings))
    }

    /// How many records have been pushed that are neither in the file nor counted as lost. Nothing where that is not known in time.
    pub fn unaccounted(&self, patience: Duration) -> Option<u64> {
        let accounted = self.counters.accounted();
        let tallies = lock_within(&self.tallies, patience)?;
        let pushed = tallies.1 + tallies.0.iter().map(Tally::pushed).sum::<u64>();
        Some(pushed.saturating_sub(accounted))
    }

    /// Whether buffers fill faster than the writer empties them.
    pub fn pressed(&self) -> bool {
        self.budget.pressed()
    }
}
