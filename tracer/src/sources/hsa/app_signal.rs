//! Operations that complete through a signal of the application.
//!
//! Such a signal stays in its packet or copy: the device completes it, so the application sees what it would see without us,
//! at the same moment, and cannot hang if we do. The recorder reads the times out of it before anything can overwrite them,
//! which happens only when the signal is used for another operation or destroyed - and all of those pass our hooks. Until
//! then the completion thread finds it done by its end tick (dispatches) or its value (copies).
//!
//! One case cannot be read that way: a signal that several operations complete (a count-down). Its times are those of the
//! last. A dispatch then gets a signal of ours and is followed by a barrier that completes the application's: by the device, in
//! the order of the queue. A copy gets a signal of ours whose completion this recorder passes on (docs/completion-signals.md).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rpd_preload::clock;
use rpd_preload::lock::lock;

use super::signal;
use super::state::{Hsa, get};
use crate::guard::guard;
use crate::hsa_runtime::abi::*;

/// How far translated times may be off, ns.
const CLOCK_ERROR: u64 = 1_000_000;

/// Where the times of one operation arrive.
#[derive(Default)]
pub(super) struct SignalTimes {
    state: AtomicU32,
    start: AtomicU64,
    end: AtomicU64,
}

/// The times of an operation, as far as they are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OperationTimes {
    /// Not completed yet.
    Pending,
    /// (start, end): device ticks of a dispatch, ns of the system clock of a copy.
    Done(u64, u64),
    /// Its times were overwritten by another operation on the same signal.
    Overwritten,
}

const DONE: u32 = 1;
const OVERWRITTEN: u32 = 2;

impl SignalTimes {
    /// See [`OperationTimes`].
    pub(super) fn outcome(&self) -> OperationTimes {
        match self.state.load(Ordering::Acquire) {
            DONE => {
                OperationTimes::Done(self.start.load(Ordering::Relaxed), self.end.load(Ordering::Relaxed))
            }
            OVERWRITTEN => OperationTimes::Overwritten,
            _ => OperationTimes::Pending,
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
enum NextUse {
    /// Nothing known.
    Unknown,
    /// Another operation, or its end: the application is through with the last one.
    Reuse,
}

/// How to see that the operation on a signal has completed.
#[derive(Clone, Copy)]
enum CompletionSign {
    /// A dispatch: the end tick is no longer the one of the signal's previous use.
    EndTick { previous: u64 },
    /// A copy: the value fell below the one at submission. Where the application has set the signal up again before
    /// anybody looked, times later than the submission (system clock) tell that it had completed.
    Value { at_submission: i64, submitted: u64 },
}

struct PendingOperation {
    until: CompletionSign,
    times: Arc<SignalTimes>,
}

/// How an operation with an application's signal is to be submitted.
pub(super) enum Claim {
    /// As it is; the times will be read from the application's signal.
    InPlace(Arc<SignalTimes>),
    /// Others complete the signal as well: its times would be anybody's.
    Shared,
}

/// What an operation is, as far as its times go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum OperationKind {
    Dispatch,
    /// With the time of submission, ns of the system clock.
    Copy {
        submitted: u64,
    },
}

/// Parts that the signals are divided into, each with a lock of its own: queues of different threads rarely meet at one.
const PARTS: usize = 64;
/// Signals that the completion thread looks at while it has the lock of their part.
const LOOKED_AT: usize = 32;

/// All signals of the application that an operation in flight will complete.
pub(super) struct AppSignals {
    parts: [SignalPart; PARTS],
    /// Copies whose completion is passed on.
    relays: Mutex<Vec<Relay>>,
}

/// One of the parts, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct SignalPart {
    pending: Mutex<HashMap<Signal, PendingOperation>>,
    /// Size of `pending`, so that hooks need no lock where there is none.
    count: AtomicUsize,
}

impl SignalPart {
    /// Runs `act` on the signals, alone.
    fn with<T>(&self, act: impl FnOnce(&mut HashMap<Signal, PendingOperation>) -> T) -> T {
        let mut pending = lock(&self.pending);
        let result = act(&mut pending);
        self.count.store(pending.len(), Ordering::Release);
        result
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    /// Forgets the operations of which `is_done` says that they have completed, and asks it of [`LOOKED_AT`] at a time: a thread that submits
    /// waits for no more.
    fn forget(&self, mut is_done: impl FnMut(Signal, &PendingOperation) -> bool) {
        let signals: Vec<Signal> = self.with(|pending| pending.keys().copied().collect());
        for some in signals.chunks(LOOKED_AT) {
            self.with(|pending| {
                for signal in some {
                    if pending.get(signal).is_some_and(|operation| is_done(*signal, operation)) {
                        pending.remove(signal);
                    }
                }
            });
        }
    }
}

impl Default for AppSignals {
    fn default() -> AppSignals {
        AppSignals { parts: std::array::from_fn(|_| SignalPart::default()), relays: Mutex::default() }
    }
}

/// A copy that completes a signal of ours in place of the application's.
struct Relay {
    own: Signal,
    target: Signal,
    times: Arc<SignalTimes>,
}

impl AppSignals {
    fn part(&self, signal: Signal) -> &SignalPart {
        // Signals are some hundred bytes apart from each other: the highest bits of the product are as good as drawn.
        &self.parts[(signal.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % PARTS]
    }

    /// Prepares an operation that completes `signal`. Call before it is submitted.
    pub(super) fn claim(&self, hsa: &'static Hsa, signal: Signal, operation: OperationKind) -> Claim {
        self.part(signal).with(|pending| {
            if let Some(earlier) = pending.get(&signal)
                && read_times(hsa, signal, earlier, NextUse::Reuse)
            {
                pending.remove(&signal);
            }
            // SAFETY: the application is submitting work that completes this signal, so it is alive.
            let memory = unsafe { signal.memory() };
            let value = memory.value.load(Ordering::Relaxed);
            if value > 1 || pending.contains_key(&signal) {
                return Claim::Shared;
            }
            let until = match operation {
                OperationKind::Dispatch => {
                    CompletionSign::EndTick { previous: memory.end_ts.load(Ordering::Relaxed) }
                }
                OperationKind::Copy { submitted } => {
                    CompletionSign::Value { at_submission: value, submitted }
                }
            };
            let times = Arc::new(SignalTimes::default());
            pending.insert(signal, PendingOperation { until, times: times.clone() });
            Claim::InPlace(times)
        })
    }

    /// `signal` is about to be used by something that is not timed (a barrier), or to be destroyed: reads the times of an
    /// operation that has completed through it, gives up on one that has not.
    #[inline]
    pub(super) fn release(&self, hsa: &'static Hsa, signal: Signal) {
        if signal.0 != 0 && !self.part(signal).is_empty() {
            self.release_slowly(hsa, signal);
        }
    }

    #[cold]
    fn release_slowly(&self, hsa: &'static Hsa, signal: Signal) {
        self.part(signal).with(|pending| {
            if let Some(earlier) = pending.remove(&signal)
                && !read_times(hsa, signal, &earlier, NextUse::Reuse)
            {
                earlier.times.overwritten();
            }
        });
    }

    /// Takes back a claim whose operation was refused by the runtime.
    pub(super) fn withdraw(&self, signal: Signal, claim: &Arc<SignalTimes>) {
        self.part(signal).with(|pending| {
            if pending.get(&signal).is_some_and(|operation| Arc::ptr_eq(&operation.times, claim)) {
                pending.remove(&signal);
            }
        });
    }

    /// A signal of ours for a copy that completes `target` with others. Call [`AppSignals::relay`] until it has been passed on.
    pub(super) fn stand_in(&self, hsa: &Hsa, target: Signal) -> Option<(Signal, Arc<SignalTimes>)> {
        let own = signal::create(&hsa.originals)?;
        let times = Arc::new(SignalTimes::default());
        lock(&self.relays).push(Relay { own, target, times: times.clone() });
        Some((own, times))
    }

    /// Takes back a stand-in whose copy was refused by the runtime.
    pub(super) fn dismiss(&self, hsa: &Hsa, own: Signal) {
        lock(&self.relays).retain(|relay| relay.own != own);
        // SAFETY: no copy carries it.
        unsafe { signal::destroy(&hsa.originals, own) };
    }

    /// Passes completions on; how many are still to come.
    pub(super) fn relay(&self, hsa: &Hsa) -> usize {
        let mut relays = lock(&self.relays);
        relays.retain(|relay| {
            // SAFETY: our own signal of a runtime that was alive a moment ago and waits for this look to end.
            if !hsa.lives() || unsafe { signal::completed(relay.own) }.is_none() {
                return true;
            }
            let mut times = Times::default();
            // SAFETY: as above, and a valid place. The application keeps its signal until the last copy on it is seen to
            // be done, which it is by this subtraction. The stand-in is in nobody's hands any more.
            unsafe {
                (hsa.originals.get_async_copy_time)(relay.own, &mut times);
                (hsa.originals.signal_subtract)(relay.target, 1);
                signal::destroy(&hsa.originals, relay.own);
            }
            relay.times.done((times.start, times.end));
            false
        });
        relays.len()
    }

    /// Reads the times of all operations that have completed. `last`: nobody will ask again, so a signal that was set up
    /// again since is looked at more closely.
    pub(super) fn poll(&self, hsa: &'static Hsa, last: bool) {
        let next = if last { NextUse::Reuse } else { NextUse::Unknown };
        for part in self.parts.iter().filter(|part| !part.is_empty()) {
            part.forget(|signal, operation| hsa.lives() && read_times(hsa, signal, operation, next));
        }
    }
}

/// Reads the times if the operation has completed. True: it has.
fn read_times(hsa: &Hsa, signal: Signal, pending: &PendingOperation, next: NextUse) -> bool {
    match pending.until {
        CompletionSign::EndTick { previous } => {
            // SAFETY: destroying the signal passes our hook, which removes it from the map first.
            let (start, end) = unsafe { signal.ticks() };
            if end == previous {
                return false;
            }
            pending.times.done((start, end));
        }
        CompletionSign::Value { at_submission, submitted } => {
            // SAFETY: as above.
            let fell = unsafe { signal.memory() }.value.load(Ordering::Acquire) < at_submission;
            // Not asked for earlier: the runtime complains on stderr about signals without times.
            if !fell && next == NextUse::Unknown {
                return false;
            }
            let mut times = Times::default();
            // SAFETY: a live signal, a valid place.
            let known = unsafe { (hsa.originals.get_async_copy_time)(signal, &mut times) } == SUCCESS;
            let now = hsa.known.clock.system(clock::monotonic());
            let completed = fell || known && is_of_copy(times, submitted, now);
            if !completed {
                return false;
            }
            pending.times.done((times.start, times.end));
        }
    }
    true
}

/// Whether a signal's times are those of the copy that was submitted at `submitted` and is over by `now`. Of a copy in flight
/// the runtime tells times that cannot be, or those of the signal's previous use: they ended before the submission. The
/// translated start of a copy that began at once may lie before its submission.
fn is_of_copy(times: Times, submitted: u64, now: u64) -> bool {
    times.start.saturating_add(CLOCK_ERROR) >= submitted
        && times.start <= times.end
        && (submitted..now.saturating_add(CLOCK_ERROR)).contains(&times.end)
}

/// hsa_signal_destroy.
pub(super) unsafe extern "C-unwind" fn destroy(signal: Signal) -> Status {
    let Some(hsa) = get() else { return ERROR };
    if hsa.usable() {
        guard((), || hsa.app_signals.release(hsa, signal));
    }
    // SAFETY: the caller's argument, passed on.
    unsafe { (hsa.originals.signal_destroy)(signal) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_copy_that_began_at_its_submission_are_its_own() {
        let is_own = |start, end| is_of_copy(Times { start, end }, 10_000_000, 20_000_000);
        assert!(is_own(10_000_000, 10_001_500));
        assert!(is_own(9_999_983, 10_001_500));
        assert!(is_own(10_000_000, 20_000_017));
        // The signal's previous use, a copy in flight, no times.
        assert!(!is_own(9_990_000, 9_999_000));
        assert!(!is_own(10_001_500, 10_000_500));
        assert!(!is_own(10_000_000, 30_000_000));
        assert!(!is_own(0, 0));
        assert!(!is_own(8_000_000, 10_001_500));
    }

    #[test]
    fn the_lock_of_a_part_is_free_between_two_looks() {
        let part = SignalPart::default();
        let signals = || (1..=1000).map(Signal);
        let operation =
            || PendingOperation { until: CompletionSign::EndTick { previous: 0 }, times: Arc::default() };
        part.with(|pending| pending.extend(signals().map(|signal| (signal, operation()))));
        let (mut asked, mut done) = (0, 0);
        part.forget(|signal, _| {
            if asked % LOOKED_AT == 0 {
                assert_eq!(
                    part.count.load(Ordering::Relaxed),
                    1000 - done,
                    "known anew when the lock is given back"
                );
            }
            let is_done = signal.0 % 2 == 0;
            (asked, done) = (asked + 1, done + usize::from(is_done));
            is_done
        });
        assert_eq!(asked, 1000);
        part.with(|pending| assert!(pending.len() == 500 && pending.keys().all(|signal| signal.0 % 2 == 1)));
    }

    #[test]
    fn signals_are_spread_over_the_parts() {
        let signals = AppSignals::default();
        for step in [64, 128, 256, 4096] {
            let mut counts = [0; PARTS];
            for signal in (0..PARTS as u64 * 100).map(|place| Signal(0x7f00_0000_0000 + place * step)) {
                let part = signals.parts.iter().position(|part| std::ptr::eq(part, signals.part(signal)));
                counts[part.unwrap()] += 1;
            }
            assert!(counts.iter().all(|count| (50..200).contains(count)), "{step}: {counts:?}");
        }
    }
}
