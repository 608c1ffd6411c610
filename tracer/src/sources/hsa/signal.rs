//! Signals of ours that time dispatches without a completion signal.
//!
//! They are signals without an interrupt (HSA_AMD_SIGNAL_AMD_GPU_ONLY): the device writes its ticks and the new value into
//! memory, and nobody is woken. They cost no kernel event, of which a process has some 4,096, so a hundred thousand can be in
//! flight; the completion thread looks at them when it comes by.

use std::sync::atomic::Ordering;

use super::table::Originals;
use crate::hsa_runtime::abi::{SIGNAL_AMD_GPU_ONLY, SUCCESS, Signal};

/// Value of a signal whose dispatch has not completed; completion subtracts one.
const ARMED: i64 = 1;

/// A new armed signal, or nothing when the runtime has no memory for it.
pub(super) fn create(originals: &Originals) -> Option<Signal> {
    let mut signal = Signal(0);
    // SAFETY: no consumers, a valid place for the handle.
    let status = unsafe {
        (originals.amd_signal_create)(ARMED, 0, std::ptr::null(), SIGNAL_AMD_GPU_ONLY, &mut signal)
    };
    (status == SUCCESS && signal.0 != 0).then_some(signal)
}

/// Gives an unused signal back to the runtime, which complains on stderr about those it misses when it shuts down.
///
/// # Safety
/// `signal` is one of ours, the runtime is alive, and no packet in flight carries it.
pub(super) unsafe fn destroy(originals: &Originals, signal: Signal) {
    // SAFETY: the caller's promise.
    unsafe { (originals.signal_destroy)(signal) };
}

/// Start and end tick once the dispatch that carries `signal` has completed.
///
/// # Safety
/// `signal` is one of ours and the runtime is alive.
pub(super) unsafe fn completed(signal: Signal) -> Option<(u64, u64)> {
    // SAFETY: the caller's promise.
    let memory = unsafe { signal.memory() };
    (memory.value.load(Ordering::Acquire) < ARMED).then(|| {
        // SAFETY: as above.
        unsafe { signal.ticks() }
    })
}

/// Makes a completed signal ready for another dispatch.
///
/// # Safety
/// As for [`completed`], and no packet in flight carries it.
pub(super) unsafe fn rearm(signal: Signal) {
    // SAFETY: the caller's promise. Nobody waits on the signal, so writing its value is all that a store does.
    let memory = unsafe { signal.memory() };
    memory.start_ts.store(0, Ordering::Relaxed);
    memory.end_ts.store(0, Ordering::Relaxed);
    memory.value.store(ARMED, Ordering::Release);
}
