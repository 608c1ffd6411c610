//! The memory of a kernel's counters, and how what they count gets to the file: with the record of the last dispatch that added to them.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rpd_preload::lock::{lock, lock_within};
use rpd_transport::records::Analyzed;
use rpd_transport::source::{AnalysisText, Block, Finding};
use rpd_transport::{analyzed, log, recorder};

use super::CountingKernel;
use crate::gpu::kernels;
use crate::hsa_runtime::abi::Agent;
use crate::hsa_runtime::agent::Gpu;
use crate::intercept::gate::DispatchPlace;
use crate::intercept::outcomes;
use crate::intercept::runtime::Runtime;

/// What the file calls the analyzer.
const ANALYZER: &str = "blocks";
/// Time between two readings of counters that nobody else waits for.
const PAUSE: Duration = Duration::from_secs(1);
/// How long a copy to the device may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a counter.
const COUNTER: usize = 8;

/// All of them, for the end of the runtime.
static ALL: Mutex<Vec<Arc<BlockCounters>>> = Mutex::new(Vec::new());

/// Memory of a device for counters, and memory of the host of the same size that they are copied through.
pub(in crate::intercept) struct CounterMemory {
    runtime: Runtime,
    agent: Agent,
    device: NonNull<u8>,
    host: Mutex<HostMemory>,
    /// Bytes of both.
    size: usize,
}

struct HostMemory(NonNull<u8>);

// SAFETY: memory of the process that is bound to no thread.
unsafe impl Send for HostMemory {}
// SAFETY: as above; nobody dereferences the device's address here, and the host's is behind a lock.
unsafe impl Send for CounterMemory {}
// SAFETY: as above.
unsafe impl Sync for CounterMemory {}

impl CounterMemory {
    /// So many bytes, which are zero.
    ///
    /// # Errors
    /// What the runtime refuses.
    ///
    /// # Safety
    /// The runtime lives, and as long as this is used.
    pub(in crate::intercept) unsafe fn allocate(
        runtime: &Runtime,
        agent: Agent,
        size: usize,
    ) -> Result<CounterMemory, &'static str> {
        const NO_MEMORY: &str = "the runtime has no memory for counters";
        // SAFETY: the caller's promise.
        let host = unsafe { runtime.memory.kernargs(&[agent], size) }.ok_or(NO_MEMORY)?;
        // SAFETY: the caller's promise; so many bytes that were just allocated. Those of a copy that did not end stay.
        let device = unsafe {
            host.write_bytes(0, size);
            let Some(device) = runtime.memory.of_device(agent, size) else {
                runtime.memory.free(host);
                return Err(NO_MEMORY);
            };
            if !runtime.copy_to(agent, device.as_ptr() as u64, host, size, PATIENCE) {
                return Err("the memory of its counters cannot be written");
            }
            device
        };
        let host = Mutex::new(HostMemory(host));
        Ok(CounterMemory { runtime: *runtime, agent, device, host, size })
    }

    /// Copies to the device; whether that went well.
    ///
    /// # Safety
    /// The runtime lives; so many bytes at `to` are memory of the agent that no kernel uses.
    pub(in crate::intercept) unsafe fn write(&self, to: u64, bytes: &[u8]) -> bool {
        let (memory, agent) = (self.runtime.memory, self.agent);
        // SAFETY: the caller's promise; memory for the copy alone, which stays where the copy does not end.
        unsafe {
            let Some(host) = memory.kernargs(&[agent], bytes.len()) else { return false };
            host.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
            let written = self.runtime.copy_to(agent, to, host, bytes.len(), PATIENCE);
            if written {
                memory.free(host);
            }
            written
        }
    }

    /// Its address for kernels.
    fn address(&self) -> u64 {
        self.device.as_ptr() as u64
    }

    /// The counters from byte `from` on; nothing where they cannot be read before `end`.
    fn read(&self, from: usize, count: usize, end: Instant) -> Option<Vec<u64>> {
        let bytes = count * COUNTER;
        if from + bytes > self.size || !(self.runtime.lives)() {
            return None;
        }
        let left = || end.saturating_duration_since(Instant::now());
        let host = lock_within(&self.host, left())?;
        let device = self.address() + from as u64;
        // SAFETY: the runtime lives, and waits for the threads that call this before it goes; so many bytes on both sides.
        unsafe {
            self.runtime.copy_from(self.agent, device, host.0, bytes, left()).then_some(())?;
            Some((0..count).map(|place| host.0.cast::<u64>().add(place).read_volatile()).collect())
        }
    }

    /// Gives it back.
    ///
    /// # Safety
    /// The runtime lives, and no kernel that may run has counters here.
    pub(in crate::intercept) unsafe fn free(&self) {
        // SAFETY: the caller's promise.
        unsafe {
            self.runtime.memory.free(self.device);
            self.runtime.memory.free(lock(&self.host).0);
        }
    }
}

/// Where among the counters of a slot those of a block are.
pub(in crate::intercept) struct CountedBlock {
    pub(in crate::intercept) block: Block,
    pub(in crate::intercept) waves: Option<usize>,
    pub(in crate::intercept) lanes: Option<usize>,
    /// The sums of the times at which waves entered the block and left it.
    pub(in crate::intercept) times: Option<(usize, usize)>,
}

/// Which idle slots are read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::intercept) enum Visit {
    /// Those that dispatches wait for, or that were last read a while ago.
    Due,
    /// All of them.
    All,
    /// All of them, for the last time: what cannot be read is lost.
    Last,
}

/// The counters of one kernel, and what they have counted.
pub(in crate::intercept) struct BlockCounters {
    pub(in crate::intercept) kernel: Arc<CountingKernel>,
    gpu: &'static Gpu,
    memory: Arc<CounterMemory>,
    /// Where its counters begin there, in bytes.
    from: usize,
    /// How many counters a slot has.
    count: usize,
    blocks: Vec<CountedBlock>,
    slots: Mutex<Vec<ReadSlot>>,
    /// Which reasons of [`BlockCounters::refuse_launches`] were said.
    said: [AtomicBool; 4],
}

/// What is known of a slot.
#[derive(Clone)]
struct ReadSlot {
    /// The counters when they were last read.
    before: Vec<u64>,
    /// The last dispatch that has ended, whose record waits for the counts.
    last: Option<DispatchPlace>,
    read: Instant,
}

impl BlockCounters {
    /// Bytes of the counters of a kernel with that many slots of so many counters.
    pub(in crate::intercept) fn size(slots: usize, count: usize) -> usize {
        slots * count * COUNTER
    }

    /// Those of `kernel`, which are zero, from byte `from` of `memory` on.
    pub(in crate::intercept) fn new(
        kernel: Arc<CountingKernel>,
        gpu: &'static Gpu,
        memory: Arc<CounterMemory>,
        (from, count): (usize, usize),
        blocks: Vec<CountedBlock>,
    ) -> Arc<BlockCounters> {
        let slot = ReadSlot { before: vec![0; count], last: None, read: Instant::now() };
        let slots = Mutex::new(vec![slot; kernel.slots.len()]);
        let counters = Arc::new(BlockCounters {
            kernel,
            gpu,
            memory,
            from,
            count,
            blocks,
            slots,
            said: Default::default(),
        });
        lock(&ALL).push(Arc::clone(&counters));
        counters
    }

    /// Whether its counters are there.
    pub(in crate::intercept) fn is_in(&self, memory: &Arc<CounterMemory>) -> bool {
        Arc::ptr_eq(&self.memory, memory)
    }

    /// Address of the counters of a slot.
    pub(in crate::intercept) fn address(&self, slot: usize) -> u64 {
        self.memory.address() + (self.from + slot * self.count * COUNTER) as u64
    }

    /// Makes the records of dispatches that have ended, and reads idle slots. It closes those that have been busy for too long.
    pub(in crate::intercept) fn visit(&self, which: Visit, end: Instant) {
        self.refuse_launches();
        let Some(mut slots) = lock_within(&self.slots, end.saturating_duration_since(Instant::now())) else {
            return;
        };
        self.take_ended(&mut slots);
        let is_short = self.kernel.slots.iter().all(|slot| slot.state.load(Ordering::Relaxed) != 0);
        for number in 0..slots.len() {
            let due = which != Visit::Due || is_short || slots[number].read.elapsed() >= PAUSE;
            if due && self.kernel.slots[number].dispatches.load(Ordering::Relaxed) > 0 {
                let was_idle = self.kernel.while_idle(number, || {
                    self.take_ended(&mut slots);
                    self.read(number, &mut slots[number], which == Visit::Last, end)
                });
                // Not at once: other grids need free slots.
                if !was_idle && slots[number].read.elapsed() >= PAUSE {
                    self.kernel.close(number);
                }
            }
        }
    }

    /// The records of dispatches that have ended, but for the last of each slot.
    fn take_ended(&self, slots: &mut [ReadSlot]) {
        while let Some((slot, place)) = self.kernel.ended.pop() {
            if let Some(before) = slots[slot].last.replace(place) {
                self.push(before, Vec::new(), String::new());
            }
        }
    }

    /// What a slot that nobody uses has counted since it was last read; whether that is known, or never will be since this is the `last_time`.
    fn read(&self, number: usize, slot: &mut ReadSlot, last_time: bool, end: Instant) -> bool {
        slot.read = Instant::now();
        let from = self.from + number * self.count * COUNTER;
        let now = self.memory.read(from, self.count, end);
        if now.is_none() && !last_time {
            return false;
        }
        let dispatches = self.kernel.slots[number].dispatches.swap(0, Ordering::Relaxed);
        let (now, last) = match (now, slot.last.take()) {
            (Some(now), Some(last)) => (now, last),
            (Some(now), None) => {
                slot.before = now;
                return true;
            }
            (None, last) => {
                let lost = |last| self.push(last, Vec::new(), "the counters could not be read".into());
                last.into_iter().for_each(lost);
                return true;
            }
        };
        let since = |place: usize| now[place].wrapping_sub(slot.before[place]);
        let finding = |counted: &CountedBlock| Finding::BlockCount {
            block: counted.block.clone(),
            dispatches,
            waves: counted.waves.map(since),
            lanes: counted.lanes.map(since),
            // A wave that ended in code without counters has not left the block.
            ticks: counted.times.and_then(|(entered, left)| {
                let ticks = since(left).wrapping_sub(since(entered));
                (ticks as i64 >= 0).then_some(ticks)
            }),
        };
        let findings: Vec<Finding> = self.blocks.iter().map(finding).collect();
        self.push(last, findings, String::new());
        slot.before = now;
        true
    }

    fn push(&self, place: DispatchPlace, findings: Vec<Finding>, reason: String) {
        let Some(recorder) = recorder::get() else { return };
        let (gpu, queue, sequence) = place;
        let record = Analyzed { sequence, gpu, queue, kernel: self.kernel.kernel, completed: 1 };
        let analysis =
            AnalysisText { analyzer: ANALYZER.into(), reason, findings, ..AnalysisText::default() };
        analyzed::push(recorder, &record, &[analysis]);
    }

    /// Says, once for each reason, that some launches run the application's kernel.
    fn refuse_launches(&self) {
        let reasons = [
            (
                &self.kernel.too_large,
                "its workgroups have too many waves for the registers that it needs when it is counted",
            ),
            (
                &self.kernel.may_hang,
                "its workgroups may wait for each other, and would no longer all run at once (rpd probe --any-grid counts it there too)",
            ),
            (
                &self.kernel.is_beside,
                "its workgroups may wait for each other, as those of another kernel beside it, and both might no longer fit together \
                 (rpd probe --any-grid counts it there too)",
            ),
            (
                &self.kernel.is_tried,
                "its workgroups may wait for each other, and the first launch shows whether another such kernel runs beside it \
                 (rpd probe --any-grid counts it there too)",
            ),
        ];
        for ((happened, why), said) in reasons.into_iter().zip(&self.said) {
            if !happened.load(Ordering::Relaxed) || said.swap(true, Ordering::Relaxed) {
                continue;
            }
            outcomes::refuse(
                &self.gpu.target,
                format!("{} is not counted on GPU {} in some launches: {why}", self.name(), self.gpu.index),
            );
        }
    }

    fn name(&self) -> String {
        kernels::get(self.kernel.kernel).map(|kernel| kernel.name()).unwrap_or_default()
    }

    /// Says how many dispatches were not counted, and why.
    fn say_missed(&self) {
        self.kernel.early.say();
        let missed = self.kernel.missed.load(Ordering::Relaxed);
        if missed > 0 {
            log::problem(&format!(
                "dispatches of {} were not counted, since too many different grids were in flight or had just ended: {missed}",
                self.name()
            ));
        }
    }

    /// The application's kernel is gone: whether everything that was launched before is in its records. Then nothing comes any more.
    pub(in crate::intercept) fn retire(self: &Arc<BlockCounters>) -> bool {
        self.visit(Visit::Last, Instant::now() + PAUSE);
        let is_over = self.kernel.slots.iter().all(|slot| slot.state.load(Ordering::Acquire) == 0);
        if is_over {
            self.say_missed();
            lock(&ALL).retain(|other| !Arc::ptr_eq(other, self));
        }
        is_over
    }
}

/// Recording stops for a while: the counters of what has ended are read, within `patience`.
pub(in crate::intercept) fn read_all(patience: Duration) {
    let end = Instant::now() + patience;
    let all = lock_within(&ALL, patience).map(|all| all.clone());
    all.iter().flatten().for_each(|counters| counters.visit(Visit::All, end));
}

/// Nothing more is recorded, or the program comes down: the counters are read, within `patience`.
pub(in crate::intercept) fn finish(patience: Duration) {
    let end = Instant::now() + patience;
    let Some(mut all) = lock_within(&ALL, patience) else { return };
    for counters in all.drain(..) {
        counters.visit(Visit::Last, end);
        counters.say_missed();
    }
}
