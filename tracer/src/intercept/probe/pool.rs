//! The memory of a GPU's instrumented dispatches, and these dispatches on their way to the GPU's reader.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

use crossbeam_queue::ArrayQueue;
use rpd_codeobject::Launch;
use rpd_preload::errands::Errands;
use rpd_preload::lock::{lock, lock_within};
use rpd_transport::records::KernelId;
use rpd_transport::{log, recorder};

use super::analysis::{self, AnalysisWork, AnalyzedCode, DispatchAnalysis};
use super::memory::MessageMemory;
use super::{ProbeConfig, reader};
use crate::hsa_runtime::agent::Gpu;
use crate::intercept::gate::{DispatchGate, DispatchPlace};
use crate::intercept::kernargs::Taken;
use crate::intercept::runtime::Runtime;

/// Dispatches that the reader has not looked at yet.
const MOST_BEGUN: usize = 1 << 12;
/// Dispatches that have memory at the same time, where those that have it wait for others.
pub(super) const MOST_MEMORY: usize = 1 << 10;
/// Bytes of messages that may wait to be analyzed.
const MOST_WAITING: usize = 64 << 20;
/// Time between two looks at whether a reader has ended.
const GLANCE: Duration = Duration::from_millis(1);

/// All of them, for the end of the runtime.
static POOLS: Mutex<Vec<Arc<Pool>>> = Mutex::new(Vec::new());

pub(crate) struct Pool {
    pub(super) config: &'static ProbeConfig,
    runtime: Runtime,
    gpu: &'static Gpu,
    /// Memory that no dispatch has, how many pieces there are, and how many there may be.
    free: ArrayQueue<MessageMemory>,
    all: AtomicUsize,
    allowed: AtomicUsize,
    /// Dispatches that wait for memory. Later ones have to wait too: one that is behind another in a queue would keep what that needs.
    waiting: AtomicUsize,
    begun: ArrayQueue<Arc<Dispatched>>,
    pub(super) analysis: &'static Errands<AnalysisWork>,
    /// Dispatches for which there was neither memory nor a gate.
    missed: AtomicU64,
    reader: OnceLock<Thread>,
    serves: AtomicBool,
    /// Nothing more begins; the reader is to end.
    stop: AtomicBool,
    left: AtomicBool,
    /// How often somebody said that no dispatch which has not ended will still end, and how often the reader has seen that.
    given_up: AtomicU64,
    given_up_seen: AtomicU64,
}

impl Pool {
    /// Starts the reader of that GPU.
    pub(crate) fn start(runtime: Runtime, gpu: &'static Gpu, config: &'static ProbeConfig) -> Arc<Pool> {
        let most = MOST_WAITING.max(4 * config.capacity);
        let pool = Arc::new(Pool {
            config,
            runtime,
            gpu,
            free: ArrayQueue::new(MOST_MEMORY),
            all: AtomicUsize::new(0),
            allowed: AtomicUsize::new(config.in_flight),
            waiting: AtomicUsize::new(0),
            begun: ArrayQueue::new(MOST_BEGUN),
            analysis: Box::leak(Box::new(Errands::new(c"rpd-analysis", most, analysis::work))),
            missed: AtomicU64::new(0),
            reader: OnceLock::new(),
            serves: AtomicBool::new(true),
            stop: AtomicBool::new(false),
            left: AtomicBool::new(false),
            given_up: AtomicU64::new(0),
            given_up_seen: AtomicU64::new(0),
        });
        pool.bring_memory();
        if let Err(error) = reader::start(Arc::clone(&pool)) {
            pool.serves.store(false, Ordering::SeqCst);
            log::problem(&format!(
                "cannot start a thread ({error}): no kernel is instrumented on GPU {}",
                gpu.index
            ));
        }
        lock(&POOLS).push(Arc::clone(&pool));
        pool
    }

    /// Brings more memory where dispatches have taken all of it, up to what the user allows.
    pub(crate) fn bring_memory(&self) {
        if !self.free.is_empty()
            || self.all.load(Ordering::Relaxed) >= self.allowed.load(Ordering::Relaxed)
            || !(self.runtime.lives)()
        {
            return;
        }
        let (count, capacity) = (self.config.sub_buffers, self.config.capacity);
        // SAFETY: the runtime lives, and waits for the candidates' thread, which calls this, before it goes.
        match unsafe { MessageMemory::allocate(&self.runtime, self.gpu.agent, count, capacity) } {
            Some(memory) => {
                self.all.fetch_add(1, Ordering::Relaxed);
                let _ = self.free.push(memory);
                self.wake();
            }
            None if self.all.load(Ordering::Relaxed) == 0 => {
                // Not tried again and again.
                self.allowed.store(0, Ordering::Relaxed);
                log::problem(&format!(
                    "the runtime has no memory for messages of GPU {}: no kernel is instrumented there (RPDT_PROBE_SUB_BUFFERS, RPDT_PROBE_SUB_BUFFER_KB)",
                    self.gpu.index
                ));
                self.serves.store(false, Ordering::SeqCst);
            }
            None => self.allowed.store(0, Ordering::Relaxed),
        }
    }

    /// Gives a dispatch memory or a gate, and tells the reader of it.
    pub(super) fn begin(&self, mut dispatch: Dispatched) -> Option<Arc<Dispatched>> {
        if !self.serves.load(Ordering::SeqCst) || self.stop.load(Ordering::SeqCst) {
            return None;
        }
        let nobody_waits = self.waiting.load(Ordering::SeqCst) == 0;
        match nobody_waits.then(|| self.free.pop()).flatten() {
            Some(memory) => dispatch.give(memory),
            None => dispatch.gate = DispatchGate::take(),
        }
        if dispatch.gate.is_none() && lock(&dispatch.memory).is_none() {
            self.missed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let waits = dispatch.gate.is_some();
        self.waiting.fetch_add(usize::from(waits), Ordering::SeqCst);
        let dispatch = Arc::new(dispatch);
        if self.begun.push(Arc::clone(&dispatch)).is_err() {
            self.missed.fetch_add(1, Ordering::Relaxed);
            self.waiting.fetch_sub(usize::from(waits), Ordering::SeqCst);
            if let Some(memory) = dispatch.take_memory() {
                self.give_back(memory);
            }
            return None;
        }
        self.wake();
        Some(dispatch)
    }

    /// The next dispatch that the reader has not seen.
    pub(super) fn next(&self) -> Option<Arc<Dispatched>> {
        self.begun.pop()
    }

    /// Memory for a dispatch that waits, where some is free.
    pub(super) fn take_memory(&self) -> Option<MessageMemory> {
        self.free.pop()
    }

    /// A dispatch waits no longer: it has memory, or will never run.
    pub(super) fn waited(&self) {
        self.waiting.fetch_sub(1, Ordering::SeqCst);
    }

    /// Those that have memory do not end, perhaps because they wait for one that has none: one more piece is allowed.
    pub(super) fn allow_more(&self) {
        let all = self.all.load(Ordering::Relaxed);
        self.allowed.fetch_max((all + 1).min(MOST_MEMORY), Ordering::Relaxed);
    }

    /// Nobody streams into this memory any more.
    pub(super) fn give_back(&self, memory: MessageMemory) {
        let _ = self.free.push(memory);
    }

    /// Whether the reader is to end.
    pub(super) fn is_left(&self) -> bool {
        self.left.load(Ordering::SeqCst)
    }

    /// How often somebody said that no dispatch which has not ended will still end.
    pub(super) fn given_up(&self) -> u64 {
        self.given_up.load(Ordering::SeqCst)
    }

    /// The reader has handed all dispatches to the analyzers that began before that was said for the `often`-th time.
    pub(super) fn has_given_up(&self, often: u64) {
        self.given_up_seen.store(often, Ordering::SeqCst);
    }

    /// Says that no dispatch which has not ended will still end, and has what it wrote so far analyzed. Waits for that until `end`; whether
    /// all of it was analyzed.
    fn give_up(&self, end: Instant) -> bool {
        let often = self.given_up.fetch_add(1, Ordering::SeqCst) + 1;
        self.wake();
        while self.serves.load(Ordering::SeqCst) && self.given_up_seen.load(Ordering::SeqCst) < often {
            if Instant::now() > end {
                return false;
            }
            std::thread::sleep(GLANCE);
        }
        let left = || end.saturating_duration_since(Instant::now());
        // One hands over to the next.
        self.analysis.finish(left()) & self.config.handlers.iter().all(|handler| handler.finish(left()))
    }

    /// This thread reads.
    pub(super) fn reads(&self) {
        let _ = self.reader.set(std::thread::current());
    }

    /// The reader ends: nothing begins any more.
    pub(super) fn ends(&self) {
        self.serves.store(false, Ordering::SeqCst);
    }

    fn wake(&self) {
        if let Some(reader) = self.reader.get() {
            reader.unpark();
        }
    }
}

/// The program comes down: what dispatches in flight have streamed out is analyzed, `deadline` at most.
pub(crate) fn abort(deadline: Duration) {
    let end = Instant::now() + deadline;
    let Some(pools) = lock_within(&POOLS, deadline) else { return };
    for pool in pools.iter() {
        pool.give_up(end);
    }
}

/// Nothing more is recorded: waits until everything that came is analyzed, RPDT_EXIT_MS at most. Kernels that still run are given room
/// until the runtime goes down, which may wait for them.
pub(crate) fn finish() {
    let patience = recorder::get().map(|recorder| recorder.config.exit_wait).unwrap_or_default();
    let end = Instant::now() + patience;
    let pools = lock(&POOLS);
    pools.iter().for_each(|pool| pool.stop.store(true, Ordering::SeqCst));
    for pool in pools.iter() {
        if !pool.give_up(end) {
            log::problem("messages of instrumented kernels were not analyzed to their end");
        }
    }
    let missed: u64 = pools.iter().map(|pool| pool.missed.load(Ordering::Relaxed)).sum();
    if missed > 0 {
        log::problem(&format!(
            "{missed} dispatches ran the application's kernel: too many instrumented ones were in flight (RPDT_PROBE_IN_FLIGHT)"
        ));
    }
}

/// The runtime goes down, and what it ran has ended or never will: its memory is not read when this returns, within `deadline`.
pub(crate) fn leave(deadline: Duration) {
    let end = Instant::now() + deadline;
    let pools = std::mem::take(&mut *lock(&POOLS));
    for pool in &pools {
        pool.left.store(true, Ordering::SeqCst);
        pool.wake();
    }
    for pool in &pools {
        while pool.serves.load(Ordering::SeqCst) && Instant::now() < end {
            std::thread::sleep(GLANCE);
        }
    }
}

/// Where a dispatch is.
const RUNNING: u8 = 0;
const COMPLETED: u8 = 1;
const ABANDONED: u8 = 2;

/// An instrumented dispatch.
pub(super) struct Dispatched {
    pub(super) place: DispatchPlace,
    pub(super) kernel: KernelId,
    pub(super) launch: Launch,
    pub(super) code: Arc<AnalyzedCode>,
    /// Its arguments, and where in them the address of its memory is.
    kernargs: Mutex<Taken>,
    argument: u32,
    /// Before the reader has it.
    memory: Mutex<Option<MessageMemory>>,
    gate: Option<Arc<DispatchGate>>,
    state: AtomicU8,
    /// Bytes that no analyzer was given.
    pub(super) dropped: AtomicU64,
    pub(super) analysis: Mutex<DispatchAnalysis>,
}

impl Dispatched {
    /// Has no memory yet.
    pub(super) fn new(
        place: DispatchPlace,
        kernel: KernelId,
        launch: Launch,
        code: Arc<AnalyzedCode>,
        kernargs: Taken,
        argument: u32,
    ) -> Dispatched {
        Dispatched {
            place,
            kernel,
            launch,
            code,
            kernargs: Mutex::new(kernargs),
            argument,
            memory: Mutex::new(None),
            gate: None,
            state: AtomicU8::new(RUNNING),
            dropped: AtomicU64::new(0),
            analysis: Mutex::default(),
        }
    }

    fn give(&mut self, memory: MessageMemory) {
        self.name(&memory);
        *lock(&self.memory) = Some(memory);
    }

    /// Writes the address of the memory into the arguments.
    fn name(&self, memory: &MessageMemory) {
        let place = self.argument as usize..self.argument as usize + 8;
        if let Some(argument) = lock(&self.kernargs).bytes().get_mut(place) {
            argument.copy_from_slice(&memory.descriptor().to_le_bytes());
        }
    }

    /// What it waits at, where there was no memory for it.
    pub(super) fn gate(&self) -> Option<&DispatchGate> {
        self.gate.as_deref()
    }

    /// Lets it run, with that memory.
    pub(super) fn release(&self, memory: &MessageMemory) {
        self.name(memory);
        if let Some(gate) = &self.gate {
            gate.open();
        }
    }

    /// The memory that it was given at its begin.
    pub(super) fn take_memory(&self) -> Option<MessageMemory> {
        lock(&self.memory).take()
    }

    /// The dispatch has completed, or never will. The first call decides.
    pub(super) fn end(&self, completed: bool) {
        let state = if completed { COMPLETED } else { ABANDONED };
        let _ = self.state.compare_exchange(RUNNING, state, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Whether it has completed; nothing while it may still run.
    pub(super) fn ended(&self) -> Option<bool> {
        match self.state.load(Ordering::Acquire) {
            RUNNING => None,
            state => Some(state == COMPLETED),
        }
    }
}
