//! From a completed operation to its record: ticks become ns of CLOCK_MONOTONIC, what has no usable times is counted.

use std::sync::atomic::Ordering;

use super::abi::SUCCESS;
use super::app_signal::Outcome;
use super::in_flight::CopyInFlight;
use super::{Gpu, Hsa};
use crate::counters::Cause;
use crate::record::{self, Kind};
use crate::thread::{self, Patience};

/// Times of a completed dispatch, and its record.
pub(super) fn dispatch(hsa: &Hsa, gpu: &Gpu, mut record: record::Dispatch, outcome: Outcome) {
    let counters = &hsa.recorder.counters;
    match outcome {
        // A kernel may start and end in the same tick.
        Outcome::Done(start, end) if start != 0 && end >= start => {
            (record.start_tick, record.end_tick) = (start, end);
            // End first: the runtime may synchronise its clocks for the later tick, and the earlier then uses the same pair.
            match (translate(hsa, gpu, end), translate(hsa, gpu, start)) {
                (Some(end), Some(start)) => (record.start, record.end) = clamped(hsa, start, end),
                _ => counters.lose(Cause::NoTimes, 1),
            }
        }
        Outcome::Done(..) => counters.lose(Cause::NoTimes, 1),
        Outcome::Overwritten | Outcome::Pending => counters.lose(Cause::SharedSignal, 1),
    }
    push(hsa, Kind::Dispatch, bytemuck::bytes_of(&record));
}

/// Times of a copy if it has completed, and its record. True: it is through.
pub(super) fn copy(hsa: &Hsa, copy: &mut CopyInFlight) -> bool {
    let counters = &hsa.recorder.counters;
    match copy.harvest.outcome() {
        Outcome::Pending => return false,
        Outcome::Done(start, end) if start != 0 && end != 0 => {
            let (start, end) = (hsa.clock.monotonic(start), hsa.clock.monotonic(end));
            (copy.record.start, copy.record.end) = clamped(hsa, start, end);
        }
        Outcome::Done(..) => counters.lose(Cause::NoTimes, 1),
        Outcome::Overwritten => counters.lose(Cause::SharedSignal, 1),
    }
    push(hsa, Kind::Copy, bytemuck::bytes_of(&copy.record));
    true
}

/// A device tick in ns of CLOCK_MONOTONIC.
fn translate(hsa: &Hsa, gpu: &Gpu, tick: u64) -> Option<u64> {
    let mut system = 0;
    // SAFETY: a GPU agent of this runtime, a valid place.
    let status = unsafe { (hsa.originals.convert_tick)(gpu.agent, tick, &mut system) };
    (status == SUCCESS).then(|| hsa.clock.monotonic(system))
}

/// Translating may turn the order of two ticks around by a few ns.
fn clamped(hsa: &Hsa, start: u64, end: u64) -> (u64, u64) {
    if start > end {
        hsa.recorder.counters.clamped.fetch_add(1, Ordering::Relaxed);
    }
    (start.min(end), end)
}

/// Never waits: what comes behind would be late, submission would be held back, and the runtime may be about to go.
pub(super) fn push(hsa: &Hsa, kind: Kind, body: &[u8]) {
    thread::push(hsa.recorder, kind, body, [&[], &[]], Patience::Drops);
}
