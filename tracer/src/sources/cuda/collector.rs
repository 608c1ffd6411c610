//! The thread that has CUPTI give its records back, each 100 ms and when asked, and reads them.
//!
//! CUPTI alone gives back only what is full. The thread lives while CUPTI is attached; whoever waits for it has a deadline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::lock_within;
use rpd_preload::threads;
use rpd_transport::counters::Cause;
use rpd_transport::log;
use rpd_transport::recorder::{self, Recorder};

use super::abi::{self, status};
use super::attach::{self, Attachment};
use super::buffers::Filled;
use super::decode::Decoder;
use super::device;
use super::late;
use super::record;
use super::state::{self, CuptiEvent};

/// How often CUPTI is asked.
const PERIOD: Duration = Duration::from_millis(100);
/// How long recording is off before CUPTI goes: who starts again at once need not attach again.
const PAUSE: Duration = Duration::from_millis(500);
/// How much longer it stays for kernels that were launched while recording was on.
const LAST_KERNELS: Duration = Duration::from_secs(2);
/// How long nothing is read before who waits gives up: the thread may wait that long for room in its ring, or be stuck in CUPTI.
const STANDSTILL: Duration = Duration::from_secs(2);
/// How often who waits looks whether the writer should rather write.
const GLANCE: Duration = Duration::from_millis(5);
/// How long the lock of [`Collector::state`] may take, which its holders keep for moments.
const PATIENCE: Duration = Duration::from_secs(1);

/// What the thread is asked for.
#[derive(Default)]
struct CollectorState {
    /// The process that it is of; in a forked child it is of another.
    pid: u32,
    /// Which thread it is of: one that ends may find that the next has begun.
    generation: u64,
    runs: bool,
    /// How often it was asked to collect, and how many of those it has done.
    asked: u64,
    done: u64,
    /// The process ends: with the next answer everything has come.
    is_last: bool,
    /// There is a full buffer.
    full: bool,
}

impl CollectorState {
    /// A thread is about to run; its generation.
    fn begin(&mut self) -> u64 {
        let generation = self.generation + 1;
        *self =
            CollectorState { pid: std::process::id(), generation, runs: true, ..CollectorState::default() };
        generation
    }

    /// The thread of that generation has done so much of what it was asked for.
    fn has_done(&mut self, generation: u64, done: u64) {
        if self.generation == generation {
            self.done = done;
        }
    }

    /// That thread has ended: nobody need wait for it.
    fn end(&mut self, generation: u64) {
        if self.generation == generation {
            (self.runs, self.done) = (false, self.asked);
        }
    }
}

/// The thread, for those who ask it and wait for it.
struct Collector {
    state: Mutex<CollectorState>,
    changed: Condvar,
    /// Launches whose kernel has not come.
    outstanding: AtomicU64,
    /// Buffers that were read so far.
    read: AtomicU64,
    /// The thread's number.
    tid: AtomicU64,
}

static COLLECTOR: Collector = Collector {
    state: Mutex::new(CollectorState {
        pid: 0,
        generation: 0,
        runs: false,
        asked: 0,
        done: 0,
        is_last: false,
        full: false,
    }),
    changed: Condvar::new(),
    outstanding: AtomicU64::new(0),
    read: AtomicU64::new(0),
    tid: AtomicU64::new(0),
};

/// Starts the thread. False: there is none.
pub(super) fn begin(recorder: &'static Recorder, attachment: &'static Attachment) -> bool {
    let Some(mut state) = lock_within(&COLLECTOR.state, PATIENCE) else { return false };
    let generation = state.begin();
    let spawned = threads::spawn(c"rpd-cuda", move || {
        let _ends = Ends(generation);
        run(recorder, attachment, generation);
    });
    state.runs = spawned.is_ok();
    state.runs
}

/// The thread of that generation ends, maybe by a panic.
struct Ends(u64);

impl Drop for Ends {
    fn drop(&mut self) {
        if let Some(mut state) = lock_within(&COLLECTOR.state, PATIENCE) {
            state.end(self.0);
        }
        COLLECTOR.changed.notify_all();
    }
}

/// A buffer is full.
pub(super) fn wake() {
    if let Some(mut state) = lock_within(&COLLECTOR.state, Duration::from_millis(1)) {
        state.full = true;
    }
    COLLECTOR.changed.notify_all();
}

/// Has all that CUPTI has by now recorded, within `deadline`.
pub(super) fn collect(deadline: Duration) {
    ask(deadline, false);
}

/// The process ends: has all recorded that CUPTI will ever have, as long as there is progress and RPDT_EXIT_MS is not over.
pub(super) fn finish() {
    let own = |recorder: &&'static Recorder| recorder.pid == std::process::id();
    let Some(recorder) = recorder::get().filter(own) else { return };
    // Nothing is attached from now on, but what is being attached is first.
    state::apply(CuptiEvent::ProcessEnds);
    late::wait(recorder.config.exit_wait.min(PATIENCE));
    ask(recorder.config.exit_wait, true);
}

/// Whether launches wait for their kernels.
pub(super) fn has_outstanding() -> bool {
    attach::current().is_some() && COLLECTOR.outstanding.load(Ordering::Relaxed) > 0
}

fn ask(deadline: Duration, is_last: bool) {
    // A forked child has a copy of the state, which nobody serves and somebody may have locked.
    if attach::current().is_none()
        || COLLECTOR.tid.load(Ordering::Relaxed) == u64::from(rpd_transport::thread::tid())
    {
        return;
    }
    let begin = Instant::now();
    let mut progress = (COLLECTOR.read.load(Ordering::Relaxed), begin);
    let Some(mut state) = lock_within(&COLLECTOR.state, deadline) else { return };
    if !state.runs || state.pid != std::process::id() {
        return;
    }
    state.asked += 1;
    state.is_last |= is_last;
    let mine = state.asked;
    COLLECTOR.changed.notify_all();
    while state.runs && state.done < mine && begin.elapsed() < deadline {
        // It may wait for room, which the writer makes, which may be who waits here.
        if !is_last && recorder::get().is_some_and(|recorder| recorder.buffers.budget.pressed()) {
            return;
        }
        let read = COLLECTOR.read.load(Ordering::Relaxed);
        if read != progress.0 {
            progress = (read, Instant::now());
        } else if progress.1.elapsed() > STANDSTILL {
            return;
        }
        state = COLLECTOR.changed.wait_timeout(state, GLANCE).unwrap_or_else(PoisonError::into_inner).0;
    }
}

/// What has come up.
struct Task {
    asked: u64,
    is_last: bool,
}

/// Nothing: another thread has begun.
fn wait(generation: u64, until: Instant) -> Option<Task> {
    let mut state = lock_within(&COLLECTOR.state, PATIENCE)?;
    if state.generation != generation {
        return None;
    }
    while state.asked == state.done && !state.full && Instant::now() < until {
        let left = until.saturating_duration_since(Instant::now());
        state = COLLECTOR.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    state.full = false;
    Some(Task { asked: state.asked, is_last: state.is_last })
}

fn run(recorder: &'static Recorder, attachment: &'static Attachment, generation: u64) {
    COLLECTOR.tid.store(rpd_transport::thread::tid().into(), Ordering::Relaxed);
    let is_on_wall_clock = attachment.is_on_wall_clock.load(Ordering::Relaxed);
    let mut decoder = Decoder::new(recorder, attachment.functions, is_on_wall_clock);
    let mut flushed = Instant::now();
    let mut off_since = None;
    let mut done = 0;
    let mut cpu = clock::read(Clock::ThreadCpu);
    loop {
        let Some(task) = wait(generation, flushed + PERIOD) else { return };
        read(recorder, attachment, &mut decoder);
        let is_due = flushed.elapsed() >= PERIOD || task.asked != done;
        if is_due {
            let is_off = !recorder.switch.is_on();
            let since = off_since.filter(|_| is_off).unwrap_or_else(Instant::now);
            off_since = is_off.then_some(since);
            let waits_for_kernels = decoder.outstanding > 0 && since.elapsed() < PAUSE + LAST_KERNELS;
            let is_over = is_off && since.elapsed() >= PAUSE && !waits_for_kernels;
            let goes = !task.is_last && (is_over || state::current().is_left());
            flush(recorder, attachment, &mut decoder, task.is_last || goes);
            flushed = Instant::now();
            done = task.asked;
            let spent = clock::read(Clock::ThreadCpu);
            recorder.counters.cpu_ns.fetch_add(spent - cpu, Ordering::Relaxed);
            cpu = spent;
            if let Some(mut state) = lock_within(&COLLECTOR.state, PATIENCE) {
                state.has_done(generation, done);
            }
            COLLECTOR.changed.notify_all();
            // The C library ends the process with its last thread.
            if task.is_last || threads::are_alone() || goes && attach::detach(recorder, attachment) {
                return;
            }
        }
    }
}

/// Has CUPTI give back what it has. `is_last`: also what it has not completed, for nothing will come afterwards.
fn flush(recorder: &'static Recorder, attachment: &Attachment, decoder: &mut Decoder, is_last: bool) {
    // A process that ends has said so, and its GPUs may be gone.
    let flag = if is_last { abi::FLUSH_FORCED } else { 0 };
    // SAFETY: on this process's own thread, which no fork has copied.
    let answer = unsafe { (attachment.cupti.flush_all)(flag) };
    if answer != status::SUCCESS {
        static SAID: Once = Once::new();
        say(&SAID, "give its records back: cuptiActivityFlushAll", attachment, answer);
        // Before that it is asked again.
        if is_last {
            // At least one, which it has whatever was recorded.
            lose(recorder, Cause::VendorUnreadable, attachment.buffers.given().max(1));
        }
    }
    let mut dropped = 0;
    // SAFETY: the buffers of the whole process, and a place for the number, which begins anew.
    let answer = unsafe { (attachment.cupti.dropped)(std::ptr::null_mut(), 0, &raw mut dropped) };
    if answer == status::SUCCESS && dropped > 0 {
        lose(recorder, Cause::VendorFull, dropped);
        decoder.has_lost();
    }
    read(recorder, attachment, decoder);
    decoder.end(is_last);
    COLLECTOR.outstanding.store(decoder.outstanding, Ordering::Relaxed);
    recorder.in_use();
}

/// So many are lost. The file says so, also where nothing else comes into it.
fn lose(recorder: &'static Recorder, cause: Cause, count: usize) {
    if count > 0 {
        recorder.counters.lose(cause, count as u64);
        if !recorder.requests.is_started() {
            recorder.requests.open(recorder, PATIENCE);
        }
    }
}

/// CUPTI could not do `what` was asked of it.
fn say(once: &'static Once, what: &str, attachment: &Attachment, answer: abi::CuptiStatus) {
    once.call_once(|| {
        let meaning = attachment.cupti.meaning(answer);
        log::problem(&format!(
            "CUPTI could not {what} answers {meaning}; kernels and copies are missing from the trace. RPDT_CUPTI names another CUPTI"
        ));
    });
}

/// Reads the buffers that CUPTI has given back.
fn read(recorder: &'static Recorder, attachment: &Attachment, decoder: &mut Decoder) {
    loop {
        let filled = attachment.buffers.filled();
        if filled.is_empty() {
            return attachment.buffers.prepare();
        }
        device::learn(attachment.driver);
        decoder.begin();
        for filled in filled {
            let answer = each_record(attachment, &filled, decoder);
            if answer != status::MAX_LIMIT_REACHED {
                static SAID: Once = Once::new();
                say(&SAID, "read its own records: cuptiActivityGetNextRecord", attachment, answer);
                lose(recorder, Cause::VendorUnreadable, 1);
                decoder.has_lost();
            }
            attachment.buffers.done(filled);
            COLLECTOR.read.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Every record in the buffer goes to the decoder. What CUPTI says behind the last one.
fn each_record(attachment: &Attachment, filled: &Filled, decoder: &mut Decoder) -> abi::CuptiStatus {
    let mut next = std::ptr::null_mut();
    // SAFETY: a buffer that CUPTI has filled so far; it steps from record to record, beginning with null.
    unsafe {
        loop {
            let answer = (attachment.cupti.next_record)(filled.buffer.start(), filled.valid, &raw mut next);
            if answer != status::SUCCESS {
                return answer;
            }
            if let Some(activity) = record::activity(next, attachment.cupti.version) {
                decoder.add(activity);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_ends_leaves_the_state_of_the_next_alone() {
        let mut state = CollectorState::default();
        let first = state.begin();
        let second = state.begin();
        state.asked = 3;
        state.has_done(first, 7);
        state.end(first);
        assert!(state.runs && state.done == 0);
        state.has_done(second, 2);
        assert!(state.runs && state.done == 2);
        state.end(second);
        assert!(!state.runs && state.done == 3, "who waits need not");
    }
}
