//! Operations that complete through a signal of the application.
//!
//! Such a signal stays in its packet or copy: the device completes it, so the application sees what it would see without us,
//! at the same moment, and cannot hang if we do. The recorder reads the times out of it before anything can overwrite them,
//! which happens only when the signal is used for another operation or destroyed - and all of those pass our hooks. Until
//! then the completion thread finds it done by its end tick (dispatches) or its value (copies).
//!
//! One case cannot be read that way: a signal that several operations complete (a count-down). Its times are those of the
//! last. There each operation gets a signal of ours and we pass times and decrement on to the application's: the runtime's
//! event thread does for the first [`MAX_FORWARDS`] in flight, which get an interrupt, the completion thread for more
//! (docs/completion-signals.md says why).

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::abi::*;
use super::{Hsa, get, signal};
use crate::guard::guard;
use crate::sync::lock;

/// Interrupt signals of ours at most; each takes one of the process's kernel events.
const MAX_FORWARDS: usize = 256;

/// Where the times of one operation arrive.
#[derive(Default)]
pub(super) struct Harvest {
    state: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
}

/// What has become of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Not completed yet.
    Pending,
    /// (start, end): device ticks of a dispatch, ns of the system clock of a copy.
    Done(u64, u64),
    /// Its times were overwritten by another operation on the same signal.
    Overwritten,
}

const DONE: u32 = 1;
const OVERWRITTEN: u32 = 2;

impl Harvest {
    /// See [`Outcome`].
    pub(super) fn outcome(&self) -> Outcome {
        match self.state.load(Ordering::Acquire) {
            DONE => Outcome::Done(self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed)),
            OVERWRITTEN => Outcome::Overwritten,
            _ => Outcome::Pending,
        }
    }

    fn done(&self, (start, end): (u64, u64)) {
        self.start.store(start, Ordering::Relaxed);
        self.end.store(end, Ordering::Relaxed);
        self.state.store(DONE, Ordering::Release);
    }

    fn overwritten(&self) {
        self.state.store(OVERWRITTEN, Ordering::Release);
    }
}

/// What is about to happen to a signal when its times are looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    /// Nothing known.
    Unknown,
    /// Another operation, or its end: the application is through with the last one.
    Reuse,
}

/// How to see that the operation on a signal has completed.
#[derive(Clone, Copy)]
enum Until {
    /// A dispatch: the end tick is no longer the one of the signal's previous use.
    EndTick { previous: u64 },
    /// A copy: the value fell below the one at submission. Where the application has set the signal up again before
    /// anybody looked, times later than the submission (system clock) tell that it had completed.
    Value { at_submission: i64, submitted: u64 },
}

struct Pending {
    until: Until,
    harvest: Arc<Harvest>,
}

/// How an operation with an application's signal is to be submitted.
pub(super) enum Claim {
    /// As it is; the times will be read from the application's signal.
    InPlace(Arc<Harvest>),
    /// With this signal of ours, which passes its completion on.
    Forwarded(Signal, Arc<Harvest>),
    /// With a signal of ours whose completion the completion thread passes on by [`relay`].
    Relayed,
}

/// What an operation is, as far as its times go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Dispatch,
    /// With the time of submission, ns of the system clock.
    Copy {
        submitted: u64,
    },
}

/// All signals of the application that an operation in flight will complete.
#[derive(Default)]
pub(super) struct AppSignals {
    pending: Mutex<HashMap<Signal, Pending>>,
    /// Size of `pending`, so that hooks need no lock where there is none.
    count: AtomicUsize,
    spare: Mutex<Vec<Signal>>,
    forwards: AtomicUsize,
}

impl AppSignals {
    /// Prepares an operation that completes `signal`. Call before it is submitted.
    pub(super) fn claim(&self, hsa: &'static Hsa, signal: Signal, operation: Operation) -> Claim {
        let mut pending = lock(&self.pending);
        if let Some(earlier) = pending.get(&signal)
            && harvest(hsa, signal, earlier, Next::Reuse)
        {
            pending.remove(&signal);
        }
        // SAFETY: the application is submitting work that completes this signal, so it is alive.
        let memory = unsafe { signal.memory() };
        let value = memory.value.load(Ordering::Relaxed);
        if value > 1 || pending.contains_key(&signal) {
            drop(pending);
            return self.forward(hsa, signal, operation);
        }
        let until = match operation {
            Operation::Dispatch => Until::EndTick { previous: memory.end_ts.load(Ordering::Relaxed) },
            Operation::Copy { submitted } => Until::Value { at_submission: value, submitted },
        };
        let harvest = Arc::new(Harvest::default());
        pending.insert(signal, Pending { until, harvest: harvest.clone() });
        self.count.store(pending.len(), Ordering::Release);
        Claim::InPlace(harvest)
    }

    /// `signal` is about to be used by something that is not timed (a barrier), or to be destroyed: reads the times of an
    /// operation that has completed through it, gives up on one that has not.
    #[inline]
    pub(super) fn release(&self, hsa: &'static Hsa, signal: Signal) {
        if signal.0 != 0 && self.count.load(Ordering::Acquire) > 0 {
            self.release_slowly(hsa, signal);
        }
    }

    #[cold]
    fn release_slowly(&self, hsa: &'static Hsa, signal: Signal) {
        let mut pending = lock(&self.pending);
        if let Some(earlier) = pending.remove(&signal)
            && !harvest(hsa, signal, &earlier, Next::Reuse)
        {
            earlier.harvest.overwritten();
        }
        self.count.store(pending.len(), Ordering::Release);
    }

    /// Takes back a claim whose operation was refused by the runtime.
    pub(super) fn withdraw(&self, signal: Signal) {
        let mut pending = lock(&self.pending);
        pending.remove(&signal);
        self.count.store(pending.len(), Ordering::Release);
    }

    /// Reads the times of all operations that have completed.
    pub(super) fn poll(&self, hsa: &'static Hsa) {
        if self.count.load(Ordering::Acquire) > 0 {
            let mut pending = lock(&self.pending);
            pending.retain(|signal, operation| !harvest(hsa, *signal, operation, Next::Unknown));
            self.count.store(pending.len(), Ordering::Release);
        }
    }

    fn forward(&self, hsa: &'static Hsa, target: Signal, operation: Operation) -> Claim {
        let Some(own) = self.interrupt_signal(hsa) else { return Claim::Relayed };
        let harvest = Arc::new(Harvest::default());
        let job = Box::into_raw(Box::new(Forward { hsa, own, target, operation, harvest: harvest.clone() }));
        // SAFETY: `own` is live and armed with 1; `passed_on` frees the job, once, because it answers false.
        let status =
            unsafe { (hsa.originals.signal_async_handler)(own, CONDITION_LT, 1, passed_on, job.cast()) };
        if status != SUCCESS {
            // SAFETY: the runtime did not take the job.
            drop(unsafe { Box::from_raw(job) });
            lock(&self.spare).push(own);
            return Claim::Relayed;
        }
        Claim::Forwarded(own, harvest)
    }

    fn interrupt_signal(&self, hsa: &Hsa) -> Option<Signal> {
        if let Some(signal) = lock(&self.spare).pop() {
            return Some(signal);
        }
        if self.forwards.fetch_add(1, Ordering::Relaxed) >= MAX_FORWARDS {
            self.forwards.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let mut signal = Signal(0);
        // SAFETY: no consumers, a valid place for the handle.
        let status = unsafe { (hsa.originals.signal_create)(1, 0, std::ptr::null(), &mut signal) };
        (status == SUCCESS).then_some(signal)
    }

    /// The runtime is about to shut down: gives back the signals that nothing in flight uses.
    pub(super) fn retire(&self, hsa: &Hsa) {
        for signal in lock(&self.spare).drain(..) {
            // SAFETY: our own, armed and unused.
            unsafe { (hsa.originals.signal_destroy)(signal) };
        }
    }
}

/// Reads the times if the operation has completed. True: it has.
fn harvest(hsa: &Hsa, signal: Signal, pending: &Pending, next: Next) -> bool {
    match pending.until {
        Until::EndTick { previous } => {
            // SAFETY: destroying the signal passes our hook, which removes it from the map first.
            let (start, end) = unsafe { signal.ticks() };
            if end == previous {
                return false;
            }
            pending.harvest.done((start, end));
        }
        Until::Value { at_submission, submitted } => {
            // SAFETY: as above.
            let fell = unsafe { signal.memory() }.value.load(Ordering::Acquire) < at_submission;
            // Not asked for earlier: the runtime complains on stderr about signals without times.
            if !fell && next == Next::Unknown {
                return false;
            }
            let mut times = Times::default();
            // SAFETY: a live signal, a valid place.
            let known = unsafe { (hsa.originals.get_async_copy_time)(signal, &mut times) } == SUCCESS;
            if !(fell || known && times.end >= submitted) {
                return false;
            }
            pending.harvest.done((times.start, times.end));
        }
    }
    true
}

/// A completion to pass on.
struct Forward {
    hsa: &'static Hsa,
    own: Signal,
    target: Signal,
    operation: Operation,
    harvest: Arc<Harvest>,
}

/// Runs on the runtime's event thread when a signal of ours has completed.
unsafe extern "C" fn passed_on(_value: i64, job: *mut c_void) -> bool {
    // SAFETY: the box made by `forward`; the runtime calls once because the answer is false.
    let job = unsafe { Box::from_raw(job.cast::<Forward>()) };
    // SAFETY: `own` has completed; the application keeps `target` until the operation that completes it has.
    let times = unsafe { relay(job.hsa, job.own, job.target, job.operation) };
    guard((), || {
        job.harvest.done(times);
        // SAFETY: completed, and its handler has run: nobody else uses it.
        unsafe { signal::rearm(job.own) };
        lock(&job.hsa.app_signals.spare).push(job.own);
    });
    false
}

/// Passes the completion of `own` on to the application's `target`: its ticks, then the decrement. Returns the times as
/// [`Outcome::Done`] has them.
///
/// # Safety
/// The runtime is alive, `own` is ours and has completed, `target` is a live signal.
pub(super) unsafe fn relay(hsa: &Hsa, own: Signal, target: Signal, operation: Operation) -> (u64, u64) {
    // The application waits for the decrement, whatever happens to the times.
    let times = guard((0, 0), || match operation {
        Operation::Dispatch => {
            // SAFETY: the caller's promise.
            let (start, end) = unsafe { own.ticks() };
            let pending = lock(&hsa.app_signals.pending);
            // Not while another operation's times are expected in place there.
            if !pending.contains_key(&target) {
                // SAFETY: the caller's promise.
                let memory = unsafe { target.memory() };
                memory.start_ts.store(start, Ordering::Relaxed);
                memory.end_ts.store(end, Ordering::Release);
            }
            (start, end)
        }
        Operation::Copy { .. } => {
            let mut times = Times::default();
            // SAFETY: the caller's promise, a valid place.
            unsafe { (hsa.originals.get_async_copy_time)(own, &mut times) };
            (times.start, times.end)
        }
    });
    // SAFETY: the caller's promise.
    unsafe { (hsa.originals.signal_subtract)(target, 1) };
    times
}

/// hsa_signal_destroy.
pub(super) unsafe extern "C" fn destroy(signal: Signal) -> Status {
    let Some(hsa) = get() else { return 0x1000 };
    if hsa.usable() {
        guard((), || hsa.app_signals.release(hsa, signal));
    }
    // SAFETY: the caller's argument, passed on.
    unsafe { (hsa.originals.signal_destroy)(signal) }
}
