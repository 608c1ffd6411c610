//! A gate that holds a queue in front of a dispatch: one barrier says that all before it has completed, another waits until it is
//! opened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use crossbeam_queue::ArrayQueue;

use crate::hsa_runtime::abi::{Packet, Signal};
use crate::hsa_runtime::own_queue::QueueFunctions;
use crate::intercept::runtime::Runtime;

/// A dispatch, by its GPU, queue and place in the queue.
pub(crate) type DispatchPlace = (u32, u32, u64);

/// How many there may be: dispatches that can wait at the same time.
const MOST: usize = 256;
/// Value of a signal that nothing has changed yet.
const ARMED: i64 = 1;

/// Those that nobody uses.
static FREE: LazyLock<ArrayQueue<GateSignals>> = LazyLock::new(|| ArrayQueue::new(MOST));
/// Changes when the runtime goes down, and with it the signals that it has made.
static LIFE: AtomicU64 = AtomicU64::new(0);

#[derive(Clone, Copy)]
struct GateSignals {
    arrived: Signal,
    opened: Signal,
    functions: QueueFunctions,
    lives: fn() -> bool,
    life: u64,
}

/// See the module. Whoever has it last gives it back: by then the dispatch behind it has completed.
pub(crate) struct DispatchGate(GateSignals);

/// Makes so many of them, as far as the runtime has memory.
///
/// # Safety
/// The runtime lives.
pub(super) unsafe fn make(runtime: &Runtime, count: usize) {
    let (functions, life) = (*runtime.own_queues, LIFE.load(Ordering::Acquire));
    while FREE.len() < count.min(MOST) {
        // SAFETY: the caller's promise.
        let (arrived, opened) = unsafe { (functions.signal(), functions.signal()) };
        let Some((arrived, opened)) = arrived.zip(opened) else { return };
        let _ = FREE.push(GateSignals { arrived, opened, functions, lives: runtime.lives, life });
    }
}

/// The runtime goes down: gives back what nobody uses.
pub(super) fn forget() {
    LIFE.fetch_add(1, Ordering::AcqRel);
    while let Some(signals) = FREE.pop() {
        if (signals.lives)() {
            for signal in [signals.arrived, signals.opened] {
                // SAFETY: the runtime lives, and goes when this has returned. No packet has them.
                unsafe { (signals.functions.signal_destroy)(signal) };
            }
        }
    }
}

impl DispatchGate {
    /// One that nobody uses.
    pub(super) fn take() -> Option<Arc<DispatchGate>> {
        FREE.pop().map(|signals| Arc::new(DispatchGate(signals)))
    }

    /// The packets that are in front of the dispatch.
    pub(crate) fn packets(&self) -> [Packet; 2] {
        [Packet::barrier(self.0.arrived), Packet::gate(self.0.opened)]
    }

    /// Whether all before it has completed.
    pub(super) fn has_arrived(&self) -> bool {
        value(&self.0, self.0.arrived) < ARMED
    }

    /// Whether the dispatch behind it may run.
    pub(crate) fn is_open(&self) -> bool {
        value(&self.0, self.0.opened) < ARMED
    }

    /// Lets the dispatch behind it run.
    pub(super) fn open(&self) {
        if (self.0.lives)() {
            // SAFETY: a signal of a runtime that lives.
            unsafe { (self.0.functions.signal_store)(self.0.opened, 0) };
        }
    }
}

/// The signal's value; that of one that waits where the runtime is gone.
fn value(signals: &GateSignals, signal: Signal) -> i64 {
    match (signals.lives)() {
        // SAFETY: a signal of a runtime that lives, which stays until `forget`.
        true => unsafe { signal.memory() }.value.load(Ordering::Acquire),
        false => ARMED,
    }
}

impl Drop for DispatchGate {
    fn drop(&mut self) {
        let signals = self.0;
        // A thread that panics may drop it while the device still looks at it.
        let is_whole = !std::thread::panicking() && signals.life == LIFE.load(Ordering::Acquire);
        if is_whole && (signals.lives)() {
            for signal in [signals.arrived, signals.opened] {
                // SAFETY: as in `value`. Nobody waits on it, so writing its value is all that a store does.
                unsafe { signal.memory() }.value.store(ARMED, Ordering::Release);
            }
            let _ = FREE.push(signals);
        }
    }
}
