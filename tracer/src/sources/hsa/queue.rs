//! Queues of the application, made as intercept queues so that every packet passes [`super::dispatch`].

use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rpd_preload::lock::{self, lock, lock_within};
use rpd_transport::log;
use rpd_transport::source::Launched;

use super::dispatch::{self, QueueInterceptor};
use super::in_flight::InFlightReceiver;
use super::queue_error::ErrorCallback;
use super::reservation::{self, Reservations};
use super::signal;
use super::state::{self, Hsa, get};
use crate::guard::guard;
use crate::hsa_runtime::abi::*;
use crate::hsa_runtime::agent::Gpu;
use crate::hsa_runtime::known;
use crate::intercept::{self, QueueFacts};

/// Packets that an intercept queue gets at least where a full one aborts the program: before ROCr 6.0 a doorbell that covers
/// several packets fails an assertion when the hardware ring has no room for them (intercept_queue.cpp; fixed in 6.0).
const SAFE_SIZE: u32 = 16384;
/// Signals made ready before the first dispatch.
const FIRST_SIGNALS: usize = 256;
/// hsa_queue_type_t COOPERATIVE.
pub(super) const COOPERATIVE: u32 = 2;
/// How long destroying a queue waits for the times of what ran on it.
const DRAIN: Duration = Duration::from_secs(1);
/// How long to wait for the list of queues, which is held for moments: the holder may be the thread that is asked to wait.
const PATIENCE: Duration = Duration::from_millis(100);

/// A queue whose packets we see. It is never freed: the runtime keeps its address.
pub(super) struct HwQueue {
    /// The runtime it belongs to.
    pub(super) hsa: &'static Hsa,
    /// The GPU that executes it.
    pub(super) gpu: &'static Gpu,
    /// Its number on that GPU, from 1.
    pub(super) number: u32,
    /// Whoever sets this owns `interceptor` until it is reset. The runtime calls an interceptor under the queue's lock, so this is
    /// free in all cases known.
    busy: AtomicBool,
    interceptor: UnsafeCell<Option<QueueInterceptor>>,
    /// The calls of its packets.
    pub(super) reservations: Reservations,
    /// Dispatches handed over to the completion thread.
    pub(super) submitted: AtomicU64,
    /// Of those, how many it is through with.
    pub(super) ended: AtomicU64,
    /// The runtime has destroyed it: what has not completed never will.
    pub(super) destroyed: AtomicBool,
    /// Index of the oldest packet that the completion thread waits for, or behind the last one that it has seen.
    pub(super) frontier: AtomicU64,
    /// How far submission may run ahead of execution; none where the runtime copes by itself.
    pub(super) run_ahead: Option<RunAhead>,
    /// Compute units that its kernels may run on; 0 where that is not known.
    compute_units: AtomicU32,
}

// SAFETY: `interceptor` is reached only through `with_interceptor`, by whoever won `busy`.
unsafe impl Sync for HwQueue {}
// SAFETY: no part is bound to a thread.
unsafe impl Send for HwQueue {}

impl HwQueue {
    /// What decides which kernel runs in the place of one of its packets.
    #[inline]
    pub(super) fn facts(&self) -> QueueFacts {
        let compute_units = Some(self.compute_units.load(Ordering::Relaxed)).filter(|known| *known > 0);
        QueueFacts { compute_units, is_only: self.gpu.has_one_queue() }
    }

    /// Whether packets up to `end` are too far ahead of a dispatch that has not completed. Only dispatches are watched: with
    /// none outstanding nothing is known to be in the way.
    #[inline]
    pub(super) fn is_ahead(&self, end: u64) -> bool {
        let Some(run_ahead) = self.run_ahead.as_ref().filter(|_| self.hsa.completion.works()) else {
            return false;
        };
        let frontier = self.frontier.load(Ordering::Relaxed);
        end > frontier + run_ahead.limit
            && self.submitted.load(Ordering::Relaxed) != self.ended.load(Ordering::Relaxed)
            && (frontier != run_ahead.stuck.load(Ordering::Relaxed) || end > frontier + run_ahead.most)
    }

    /// Runs `act` on what the interceptor keeps for this queue; nothing when somebody else is at it or the queue is gone.
    #[inline]
    pub(super) fn with_interceptor<T>(&self, act: impl FnOnce(&mut QueueInterceptor) -> T) -> Option<T> {
        let _busy = lock::take(&self.busy)?;
        // SAFETY: `busy` was free and is ours until `_busy` is dropped.
        unsafe { &mut *self.interceptor.get() }.as_mut().map(act)
    }
}

/// The intercepted queues that exist.
#[derive(Default)]
pub(super) struct Queues {
    by_handle: Mutex<HashMap<usize, &'static HwQueue>>,
}

/// hsa_queue_create.
pub(super) unsafe extern "C-unwind" fn create(
    agent: Agent,
    size: u32,
    kind: u32,
    callback: QueueCallback,
    data: *mut c_void,
    private_segment: u32,
    group_segment: u32,
    queue: *mut *mut Queue,
) -> Status {
    let Some(hsa) = get() else { return ERROR };
    // HIP may have come after the runtime, and it needs a queue before anything else runs.
    guard((), known::notice);
    let gpu = hsa.known.gpus.of(agent).filter(|_| hsa.usable());
    let cooperative = kind == COOPERATIVE;
    let mut refused = false;
    if let Some(gpu) = gpu.filter(|_| !cooperative) {
        // SAFETY: the caller's arguments.
        let status = unsafe {
            create_intercepted((hsa, gpu), size, kind, callback, data, private_segment, group_segment, queue)
        };
        if status == SUCCESS {
            return status;
        }
        refused = true;
    }
    let create = hsa.originals.queue_create;
    let (callback, data) = match gpu {
        Some(_) => ErrorCallback::new(hsa, callback, data).for_runtime(),
        None => (callback, data),
    };
    // SAFETY: the caller's arguments, passed on, and a callback that calls the caller's.
    let status = unsafe { create(agent, size, kind, callback, data, private_segment, group_segment, queue) };
    if refused && status == SUCCESS {
        log::problem("a queue cannot be intercepted: its kernels are not recorded");
    }
    if cooperative && gpu.is_some() && status == SUCCESS {
        static SAID: AtomicBool = AtomicBool::new(false);
        say_shared(&SAID, "cooperative");
    }
    status
}

/// Says once, as `said` knows, that queues of a kind are not intercepted because the runtime gives several callers the same one.
fn say_shared(said: &AtomicBool, kind: &str) {
    if !said.swap(true, Ordering::Relaxed) {
        guard((), || {
            log::problem(&format!(
                "the program uses {kind} queues of the HSA runtime: their kernels are not recorded"
            ));
            intercept::cannot(&format!("on {kind} queues, which the runtime shares"));
        });
    }
}

/// hsa_amd_counted_queue_acquire: the runtime keeps such queues and shares them, so that they cannot be made as intercept queues.
pub(super) unsafe extern "C-unwind" fn counted_acquire(
    agent: Agent,
    kind: u32,
    priority: u32,
    callback: QueueCallback,
    data: *mut c_void,
    flags: u64,
    queue: *mut *mut Queue,
) -> Status {
    static SAID: AtomicBool = AtomicBool::new(false);
    let Some((hsa, acquire)) = get().and_then(|hsa| Some((hsa, hsa.originals.counted_queue_acquire?))) else {
        return ERROR;
    };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { acquire(agent, kind, priority, callback, data, flags, queue) };
    if status == SUCCESS && hsa.usable() {
        say_shared(&SAID, "counted");
    }
    status
}

/// hsa_amd_queue_intercept_create: another tool makes a queue to intercept. Ours is the interceptor nearest to the hardware, so its
/// times are those of the kernel whatever the other one adds.
pub(super) unsafe extern "C-unwind" fn intercept_create(
    agent: Agent,
    size: u32,
    kind: u32,
    callback: QueueCallback,
    data: *mut c_void,
    private_segment: u32,
    group_segment: u32,
    queue: *mut *mut Queue,
) -> Status {
    let Some(hsa) = get() else { return ERROR };
    match hsa.known.gpus.of(agent).filter(|_| hsa.usable() && kind != COOPERATIVE) {
        // SAFETY: the caller's arguments.
        Some(gpu) => unsafe {
            create_intercepted((hsa, gpu), size, kind, callback, data, private_segment, group_segment, queue)
        },
        // SAFETY: the caller's arguments, passed on.
        None => unsafe {
            let create = hsa.originals.intercept_create;
            create(agent, size, kind, callback, data, private_segment, group_segment, queue)
        },
    }
}

/// Makes a queue whose packets pass [`super::dispatch`].
///
/// # Safety
/// Arguments as for hsa_queue_create.
#[allow(clippy::too_many_arguments, reason = "those of hsa_queue_create")]
pub(super) unsafe fn create_intercepted(
    (hsa, gpu): (&'static Hsa, &'static Gpu),
    size: u32,
    kind: u32,
    callback: QueueCallback,
    data: *mut c_void,
    private_segment: u32,
    group_segment: u32,
    queue: *mut *mut Queue,
) -> Status {
    let create = hsa.originals.intercept_create;
    let ring = hsa.ring(gpu, size);
    let errors = ErrorCallback::new(hsa, callback, data);
    let (callback, data) = errors.for_runtime();
    // SAFETY: the caller's arguments but for the size, which the agent supports, and a callback that calls the caller's.
    let status =
        unsafe { create(gpu.agent, ring, kind, callback, data, private_segment, group_segment, queue) };
    if status == SUCCESS {
        // SAFETY: a successful call has written the queue.
        let created = unsafe { *queue };
        guard((), || intercept(hsa, gpu, created, size, errors));
    }
    status
}

impl Hsa {
    /// Packets of the ring for a queue of `size`: more where a full one could abort the program. What the runtime must refuse
    /// stays as it is.
    fn ring(&self, gpu: &Gpu, size: u32) -> u32 {
        let valid = size.is_power_of_two() && (64..=gpu.max_queue).contains(&size);
        if self.small_queues_abort && valid { size.max(gpu.max_queue.min(SAFE_SIZE)) } else { size }
    }
}

fn intercept(
    hsa: &'static Hsa,
    gpu: &'static Gpu,
    queue: *mut Queue,
    asked: u32,
    errors: &'static ErrorCallback,
) {
    state::find_event_thread(hsa);
    // SAFETY: a queue the runtime has just made.
    let size = unsafe { &*queue }.size as usize;
    // Twice the ring: what the device may hold, and as much again that the completion thread has not fetched. An intercept
    // queue takes more than its size, so a small one needs room as well.
    let capacity = (2 * size).next_power_of_two().max(SAFE_SIZE as usize);
    let (interceptor, mut ends) = QueueInterceptor::new(capacity);
    for _ in 0..FIRST_SIGNALS.min(capacity) {
        if let Some(signal) = signal::create(&hsa.originals) {
            ends.return_signal(signal);
        }
    }
    let state: &'static HwQueue = Box::leak(Box::new(HwQueue {
        hsa,
        gpu,
        number: gpu.next_queue(),
        busy: AtomicBool::new(false),
        interceptor: UnsafeCell::new(Some(interceptor)),
        reservations: Reservations::new(size.next_power_of_two()),
        submitted: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        destroyed: AtomicBool::new(false),
        frontier: AtomicU64::new(0),
        run_ahead: hsa.small_queues_abort.then(|| RunAhead::new(asked, size as u64)),
        compute_units: AtomicU32::new(gpu.compute_units.unwrap_or(0)),
    }));
    ends.queue = Some(state);
    let _ = errors.queue.set(state);
    hsa.recorder.in_use();
    hsa.completion.add_queue(hsa, ends);
    lock(&hsa.queues.by_handle).insert(queue as usize, state);
    reservation::queues_changed();
    // SAFETY: a live intercept queue; `state` lives for ever. Without profiling the device writes no ticks.
    let status = unsafe {
        (hsa.originals.set_profiler_enabled)(queue, 1);
        (hsa.originals.intercept_register)(
            queue,
            dispatch::intercept,
            std::ptr::from_ref(state).cast_mut().cast(),
        )
    };
    if status != SUCCESS {
        log::problem("a queue cannot be intercepted: its kernels are not recorded");
    }
}

/// How far submission may run ahead of execution, in packets.
///
/// A bare queue holds an application back when its ring is full. An intercept queue of the old runtimes does not: it takes
/// packets until the hardware ring overflows, and then may abort. So we hold back where the bare ring would have, with room
/// for the completion thread to be late. A wait that led nowhere is not repeated until execution moves, or the larger ring
/// that was made is nearly full: there may be packets that the application itself will let go.
pub(super) struct RunAhead {
    /// Where threads are held back.
    limit: u64,
    /// Where they are even if that led nowhere before.
    most: u64,
    /// The frontier at which it led nowhere.
    pub(super) stuck: AtomicU64,
}

impl RunAhead {
    /// For a ring of `size` packets where the application asked for `asked`.
    fn new(asked: u32, size: u64) -> RunAhead {
        let most = size - size / 8;
        RunAhead { limit: u64::from(asked).max(2048).min(most), most, stuck: AtomicU64::new(u64::MAX) }
    }
}

/// hsa_queue_destroy: first the times of what ran on the queue.
pub(super) unsafe extern "C-unwind" fn destroy(queue: *mut Queue) -> Status {
    let Some(hsa) = get() else { return ERROR };
    let state = if hsa.usable() { guard(None, || forget(hsa, queue)) } else { None };
    // SAFETY: the caller's argument, passed on.
    let status = unsafe { (hsa.originals.queue_destroy)(queue) };
    if let Some(state) = state {
        guard((), || bury(hsa, state));
    }
    status
}

fn forget(hsa: &'static Hsa, queue: *mut Queue) -> Option<&'static HwQueue> {
    let state = lock_within(&hsa.queues.by_handle, DRAIN)?.remove(&(queue as usize))?;
    reservation::queues_changed();
    let begin = Instant::now();
    while state.ended.load(Ordering::Acquire) < state.submitted.load(Ordering::Acquire)
        && begin.elapsed() < DRAIN
        && hsa.completion.works()
    {
        hsa.completion.collect(DRAIN.saturating_sub(begin.elapsed()));
    }
    intercept::queue_gone(state.gpu.index, state.number, DRAIN);
    // Closes the rings; the completion thread forgets the queue when it has emptied them.
    if !state.busy.swap(true, Ordering::Acquire) {
        // SAFETY: `busy` is ours, and it stays set: nobody uses the interceptor again.
        let interceptor = unsafe { &mut *state.interceptor.get() }.take();
        interceptor.into_iter().for_each(|mut interceptor| interceptor.retire(hsa));
    }
    Some(state)
}

/// The queue is gone. Signals of the application on what it had left are given up before the application uses them again.
fn bury(hsa: &'static Hsa, state: &HwQueue) {
    state.destroyed.store(true, Ordering::Release);
    if state.ended.load(Ordering::Acquire) < state.submitted.load(Ordering::Acquire) {
        hsa.completion.collect(DRAIN);
    }
}

impl Queues {
    /// The queue at that address; nothing while somebody keeps the lock whom this thread may have interrupted.
    pub(super) fn get(&self, queue: usize) -> Option<&'static HwQueue> {
        lock_within(&self.by_handle, PATIENCE)?.get(&queue).copied()
    }

    /// The dispatches of all of them.
    pub(super) fn launched(&self) -> Launched {
        let queues = self.all();
        // Before what was submitted, so that it is no more than that.
        let ended: u64 = queues.iter().map(|queue| queue.ended.load(Ordering::Acquire)).sum();
        let all: u64 = queues.iter().map(|queue| queue.submitted.load(Ordering::Acquire)).sum();
        Launched { all, in_flight: all - ended }
    }

    /// The runtime is about to shut down: gives back the signals of all queues that nothing in flight uses.
    pub(super) fn retire(&self, hsa: &Hsa) {
        // The runtime frees all signals when it shuts down; it only complains about those it was not given back.
        for queue in self.all() {
            queue.with_interceptor(|interceptor| interceptor.retire(hsa));
        }
    }

    /// All of them; none while somebody keeps the lock whom this thread may have interrupted.
    fn all(&self) -> Vec<&'static HwQueue> {
        lock_within(&self.by_handle, PATIENCE)
            .map_or_else(Vec::new, |queues| queues.values().copied().collect())
    }
}

/// hsa_amd_profiling_set_profiler_enabled: queues we time stay enabled.
pub(super) unsafe extern "C-unwind" fn set_profiler_enabled(queue: *mut Queue, enable: i32) -> Status {
    let Some(hsa) = get() else { return ERROR };
    if enable == 0 && hsa.usable() && hsa.queues.get(queue as usize).is_some() {
        return SUCCESS;
    }
    // SAFETY: the caller's arguments, passed on.
    unsafe { (hsa.originals.set_profiler_enabled)(queue, enable) }
}

/// hsa_amd_queue_cu_set_mask: what fits at once on the compute units of the mask.
pub(super) unsafe extern "C-unwind" fn set_cu_mask(
    queue: *const Queue,
    bits: u32,
    mask: *const u32,
) -> Status {
    let Some(hsa) = get() else { return ERROR };
    // SAFETY: the caller's arguments, passed on.
    let status = unsafe { (hsa.originals.set_cu_mask)(queue, bits, mask) };
    if status == SUCCESS || status == CU_MASK_REDUCED {
        guard((), || {
            let Some(state) = hsa.queues.get(queue as usize).filter(|_| hsa.usable()) else { return };
            let Some(all) = state.gpu.compute_units else { return };
            // SAFETY: the runtime has read so many bits there, a multiple of 32.
            let words = (0..bits as usize / 32).map(|word| unsafe { mask.add(word).read() });
            let usable = if bits == 0 { all } else { words.map(u32::count_ones).sum::<u32>().min(all) };
            state.compute_units.store(usable, Ordering::Relaxed);
        });
    }
    status
}

/// The completion thread's ends of a queue's rings.
pub(super) struct Ends {
    /// Whose they are.
    pub(super) queue: Option<&'static HwQueue>,
    /// Dispatches handed to the hardware.
    pub(super) in_flight: InFlightReceiver,
    /// Signals ready for use.
    spare: rtrb::Producer<Signal>,
}

impl Ends {
    /// Those of a queue that is not there yet.
    pub(super) fn new(in_flight: InFlightReceiver, spare: rtrb::Producer<Signal>) -> Ends {
        Ends { queue: None, in_flight, spare }
    }

    /// Gives a rearmed signal back for use. False: the queue has enough, or is gone.
    pub(super) fn return_signal(&mut self, signal: Signal) -> bool {
        !self.spare.is_abandoned() && self.spare.push(signal).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_never_given_back_holds_nobody_up() {
        let queues = Queues::default();
        let _kept = queues.by_handle.lock();
        assert!(queues.get(1).is_none());
        assert!(queues.all().is_empty());
    }
}
