//! From a completed operation to its record: ticks become ns of CLOCK_MONOTONIC, what has no usable times is counted.

use std::sync::atomic::Ordering;

use rpd_transport::counters::Cause;
use rpd_transport::records::{self, Kind};
use rpd_transport::thread::{self, Patience};

use super::app_signal::OperationTimes;
use super::in_flight::CopyInFlight;
use super::state::Hsa;
use crate::hsa_runtime::abi::SUCCESS;
use crate::hsa_runtime::agent::Gpu;

/// How far translated times may be off, ns. What is earlier is something else, which the file shows.
const MOST_EARLY: u64 = 100_000;

/// Times of a completed dispatch, and its record.
pub(super) fn dispatch(hsa: &Hsa, gpu: &Gpu, mut record: records::Dispatch, outcome: OperationTimes) {
    let without = match outcome {
        // A kernel may start and end in the same tick.
        OperationTimes::Done(start, end) if start != 0 && end >= start => {
            (record.start_tick, record.end_tick) = (start, end);
            // End first: the runtime may synchronise its clocks for the later tick, and the earlier then uses the same pair.
            match (translate(hsa, gpu, end), translate(hsa, gpu, start)) {
                (Some(end), Some(start)) => {
                    (record.start, record.end) = clamped(hsa, start, end, record.submit_start);
                    None
                }
                _ => Some(Cause::NoTimes),
            }
        }
        OperationTimes::Done(..) => Some(Cause::NoTimes),
        OperationTimes::Overwritten | OperationTimes::Pending => Some(Cause::SharedSignal),
    };
    let pushed = push_dispatch(hsa, &record);
    // What is lost is counted once.
    if let Some(cause) = without.filter(|_| pushed) {
        hsa.recorder.counters.lose(cause, 1);
    }
}

/// The record of a dispatch that is over. False: it is lost, and counted.
pub(super) fn push_dispatch(hsa: &Hsa, record: &records::Dispatch) -> bool {
    let pushed = push(hsa, Kind::Dispatch, bytemuck::bytes_of(record));
    if !pushed && record.ends_launch() {
        hsa.recorder.lost_launches.add(record.correlation);
    }
    pushed
}

/// Times of a copy if it has completed, and its record. True: it is through.
pub(super) fn copy(hsa: &Hsa, copy: &mut CopyInFlight) -> bool {
    let without = match copy.times.outcome() {
        OperationTimes::Pending => return false,
        OperationTimes::Done(start, end) if start != 0 && end != 0 => {
            let (start, end) = (hsa.known.clock.monotonic(start), hsa.known.clock.monotonic(end));
            (copy.record.start, copy.record.end) = clamped(hsa, start, end, copy.record.submit_start);
            None
        }
        OperationTimes::Done(..) => Some(Cause::NoTimes),
        OperationTimes::Overwritten => Some(Cause::SharedSignal),
    };
    let pushed = push(hsa, Kind::Copy, bytemuck::bytes_of(&copy.record));
    if let Some(cause) = without.filter(|_| pushed) {
        hsa.recorder.counters.lose(cause, 1);
    }
    true
}

/// A device tick in ns of CLOCK_MONOTONIC.
fn translate(hsa: &Hsa, gpu: &Gpu, tick: u64) -> Option<u64> {
    let mut system = 0;
    // SAFETY: a GPU agent of this runtime, a valid place.
    let status = unsafe { (hsa.originals.convert_tick)(gpu.agent, tick, &mut system) };
    (status == SUCCESS).then(|| hsa.known.clock.monotonic(system))
}

/// Times that can be, and those that cannot are counted.
fn clamped(hsa: &Hsa, start: u64, end: u64, submitted: u64) -> (u64, u64) {
    let possible = possible(start, end, submitted);
    if possible != (start, end) {
        hsa.recorder.counters.clamped.fetch_add(1, Ordering::Relaxed);
    }
    possible
}

/// Translating may turn the order of two ticks around by a few ns. And it may be off, by 34 us on a busy machine: what would begin before it was
/// submitted is moved to that moment, and lasts as long.
fn possible(start: u64, end: u64, submitted: u64) -> (u64, u64) {
    let start = start.min(end);
    let early = submitted.saturating_sub(start);
    if (1..=MOST_EARLY).contains(&early) { (start + early, end + early) } else { (start, end) }
}

/// Never waits: what comes behind would be late, submission would be held back, and the runtime may be about to go. False: the record is
/// lost, and counted.
pub(super) fn push(hsa: &Hsa, kind: Kind, body: &[u8]) -> bool {
    thread::push(hsa.recorder, kind, body, [&[], &[]], Patience::Drops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_begins_before_it_was_submitted() {
        assert_eq!(possible(50, 60, 40), (50, 60));
        assert_eq!(possible(61, 60, 40), (60, 60), "ticks that were turned around");
        assert_eq!(possible(1_000, 11_000, 35_000), (35_000, 45_000));
        assert_eq!(possible(30_000, 90_000, 35_000), (35_000, 95_000));
        assert_eq!(possible(1, 2, 2 * MOST_EARLY), (1, 2), "no error of translation");
        assert_eq!(possible(5, 6, 0), (5, 6), "nobody knows when");
    }
}
