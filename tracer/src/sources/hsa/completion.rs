//! The thread that sees operations end.
//!
//! It comes by about once a millisecond while anything is in flight, more rarely when nothing ends, and sleeps otherwise. Each
//! operation is looked at where its times will appear, so one that never ends holds back no other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use rpd_preload::clock::{self, Clock};
use rpd_preload::lock::{lock, lock_within};
use rpd_preload::threads;
use rpd_schema::session_fact;
use rpd_transport::counters::Cause;
use rpd_transport::log;
use rpd_transport::provoked;
use rpd_transport::records::{KernelId, Kind};
use rpd_transport::thread;

use super::app_signal::OperationTimes;
use super::in_flight::{CopyInFlight, InFlight, TimesFrom};
use super::queue::{Ends, HwQueue};
use super::state::Hsa;
use super::{finished, signal};
use crate::hsa_runtime::abi::Signal;

/// Time between two looks while operations complete.
const BUSY: Duration = Duration::from_millis(1);
/// Time between two looks while the application waits for completions that are passed on.
const RELAYED: Duration = Duration::from_micros(200);
/// Longest time between two looks while operations are in flight and none completes.
const SLOW: Duration = Duration::from_millis(20);
/// Time between two looks with nothing in flight; submissions wake the thread.
const IDLE: Duration = Duration::from_millis(200);
/// How long the thread keeps looking after the last operation, so that a slow trickle of them need not wake it each time.
const LINGER: Duration = Duration::from_millis(50);
/// Operations looked at behind one that has not completed; all of them in every look number [`FULL_LOOK`].
const LOOK_BEHIND: usize = 64;
/// See [`LOOK_BEHIND`].
const FULL_LOOK: u64 = 32;
/// A kernel that has not completed so long after its launch may never do so: the file then says what it is, ns.
const LONG: u64 = 1_000_000_000;
/// A candidate that has been the oldest kernel of its queue for so long is named to the user, ns.
const VERY_LONG: u64 = 10_000_000_000;
/// Launches of one queue that have not completed, which the file names at once at most: the oldest.
const MOST_NAMED: usize = 10_000;

#[derive(Default)]
struct CompletionRequests {
    looks_wanted: u64,
    looks_done: u64,
    /// Stop when nothing is in flight, or at this time.
    finish: Option<Instant>,
    finished: bool,
    /// Somebody wants to know of the oldest of each queue, and what they are.
    oldest_wanted: bool,
    oldest: Vec<Oldest>,
    /// The program calls `abort`, and wants its trace to say what they are.
    aborting: bool,
    /// Recording may end here: what was launched and has not completed is to be in the file.
    telling: bool,
}

/// A kernel that has not completed, before all others of its queue.
pub(super) struct Oldest {
    /// Where it is.
    pub(super) queue: &'static HwQueue,
    /// Its place there.
    pub(super) index: u64,
    /// What it is.
    pub(super) kernel: KernelId,
}

/// How hooks and the rest of the recorder talk to the thread.
#[derive(Default)]
pub(super) struct Completion {
    thread: OnceLock<Thread>,
    started: AtomicBool,
    /// The thread could not be started, or has ended by an error: nothing may depend on it.
    failed: AtomicBool,
    /// The thread sleeps for long: a submission must wake it.
    asleep: AtomicBool,
    /// Operations in flight that are recorded, at the last look.
    recorded: AtomicUsize,
    new_queues: Mutex<Vec<Ends>>,
    new_copies: Mutex<Vec<CopyInFlight>>,
    requests: Mutex<CompletionRequests>,
    changed: Condvar,
    /// Held while signals are looked at.
    looking: Mutex<()>,
}

impl Completion {
    /// A queue to look after; starts the thread with the first.
    pub(super) fn add_queue(&self, hsa: &'static Hsa, ends: Ends) {
        lock(&self.new_queues).push(ends);
        self.start(hsa);
    }

    /// A copy to look after.
    pub(super) fn add_copy(&self, hsa: &'static Hsa, copy: CopyInFlight) {
        lock(&self.new_copies).push(copy);
        self.start(hsa);
        self.notice(false);
    }

    /// Something was submitted; `much`: so much that the thread should look at once.
    #[inline]
    pub(super) fn notice(&self, much: bool) {
        if much || self.asleep.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Whether what is submitted will be looked at.
    #[inline]
    pub(super) fn works(&self) -> bool {
        !self.failed.load(Ordering::Relaxed)
    }

    /// Returns when everything that has completed by now is a record, or after `deadline`. False: it may not be one yet.
    pub(super) fn collect(&self, deadline: Duration) -> bool {
        if !self.started.load(Ordering::Acquire) || !self.works() {
            return true;
        }
        let Some(mut requests) = lock_within(&self.requests, deadline) else { return false };
        requests.looks_wanted += 1;
        let mine = requests.looks_wanted;
        self.wake();
        let waiting =
            self.changed.wait_timeout_while(requests, deadline, |w| w.looks_done < mine && !w.finished);
        let (requests, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        requests.looks_done >= mine || requests.finished
    }

    /// Returns when everything that was submitted by now and is recorded has completed, or after `deadline`. The next
    /// [`Completion::collect`] makes records of what has been launched but has not completed.
    pub(super) fn drain(&self, deadline: Duration) {
        let begin = Instant::now();
        loop {
            self.collect(deadline.saturating_sub(begin.elapsed()));
            let left = self.recorded.load(Ordering::Relaxed) > 0 && self.works();
            if !left || begin.elapsed() >= deadline {
                break;
            }
            std::thread::park_timeout(BUSY);
        }
        if let Some(mut requests) = lock_within(&self.requests, BUSY) {
            requests.telling = true;
        }
    }

    /// Ends the thread when nothing is in flight any more, after `deadline` at the latest.
    pub(super) fn finish(&self, deadline: Duration) {
        if !self.started.load(Ordering::Acquire) {
            return;
        }
        let Some(mut requests) = lock_within(&self.requests, deadline) else { return };
        requests.finish = Some(Instant::now() + deadline);
        self.wake();
        // The thread needs a moment beyond the deadline to count what is left.
        let patience = deadline + Duration::from_millis(500);
        let waiting = self.changed.wait_timeout_while(requests, patience, |w| !w.finished);
        drop(waiting.unwrap_or_else(PoisonError::into_inner));
    }

    /// The oldest kernel of each queue that has not completed, after everything that has is a record. Empty after `deadline`.
    pub(super) fn oldest(&self, deadline: Duration) -> Vec<Oldest> {
        if let Some(mut requests) = lock_within(&self.requests, deadline) {
            requests.oldest_wanted = true;
        }
        self.collect(deadline);
        let requests = lock_within(&self.requests, deadline);
        requests.map(|mut requests| std::mem::take(&mut requests.oldest)).unwrap_or_default()
    }

    /// As [`Completion::collect`]; the session says which kernels have not completed.
    pub(super) fn abort(&self, deadline: Duration) {
        if let Some(mut requests) = lock_within(&self.requests, deadline) {
            requests.aborting = true;
        }
        self.collect(deadline);
    }

    /// Whether the thread looks at no signals at this moment, or has ceased to within `deadline`. Asked when the runtime counts as
    /// gone, so that it will not begin again.
    pub(super) fn has_left(&self, deadline: Duration) -> bool {
        lock_within(&self.looking, deadline).is_some()
    }

    #[cold]
    fn wake(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn start(&self, hsa: &'static Hsa) {
        if self.started.swap(true, Ordering::AcqRel) {
            return;
        }
        if let Err(error) = threads::spawn(c"rpd-completion", move || run(hsa)) {
            log::problem(&format!("cannot start a thread ({error}): recording is off for this process"));
            hsa.recorder.switch.disable();
            self.failed.store(true, Ordering::Relaxed);
            lock(&self.requests).finished = true;
        }
    }

    /// Tells those who wait how far the thread is.
    fn report(&self, looks: u64, finished: bool) {
        let mut requests = lock(&self.requests);
        requests.looks_done = looks;
        requests.finished |= finished;
        drop(requests);
        self.changed.notify_all();
    }
}

/// The thread's id, 0 before there is one.
static TID: AtomicU32 = AtomicU32::new(0);

/// Whether `tid` is the thread that makes records of operations.
pub(crate) fn is_thread(tid: u32) -> bool {
    TID.load(Ordering::Relaxed) == tid
}

fn run(hsa: &'static Hsa) {
    TID.store(thread::tid(), Ordering::Relaxed);
    let _ = hsa.completion.thread.set(std::thread::current());
    let body = std::panic::AssertUnwindSafe(|| Watcher::new(hsa).serve());
    if std::panic::catch_unwind(body).is_err() {
        hsa.recorder.switch.disable();
        hsa.completion.failed.store(true, Ordering::Relaxed);
        // The application waits for these, whatever became of the recorder.
        let relayed = || {
            let _looking = lock(&hsa.completion.looking);
            !hsa.lives() || hsa.app_signals.relay(hsa) == 0
        };
        while !relayed() {
            std::thread::sleep(BUSY);
        }
    }
    hsa.completion.report(u64::MAX, true);
}

/// One queue as the thread sees it.
struct Watched {
    ends: Ends,
    waiting: VecDeque<InFlight>,
    /// Of those, how many are recorded.
    recorded: usize,
    /// Index behind the last packet fetched.
    seen: u64,
    /// Index of the oldest of them that takes long, and when it was found to be the oldest, ns.
    oldest: (u64, u64),
}

/// The thread's own state.
struct Watcher {
    hsa: &'static Hsa,
    queues: Vec<Watched>,
    copies: Vec<CopyInFlight>,
    looks: u64,
    /// Completions still to be passed on.
    relayed: usize,
}

impl Watcher {
    fn new(hsa: &'static Hsa) -> Watcher {
        Watcher { hsa, queues: Vec::new(), copies: Vec::new(), looks: 0, relayed: 0 }
    }

    fn serve(&mut self) {
        let hsa = self.hsa;
        let completion = &hsa.completion;
        let mut cpu = clock::read(Clock::ThreadCpu);
        let (mut pause, mut active, mut reported) = (BUSY, Instant::now(), 0);
        loop {
            let (wanted, oldest_wanted, aborting, telling, finish) = {
                let mut requests = lock(&completion.requests);
                let (aborting, telling) =
                    (std::mem::take(&mut requests.aborting), std::mem::take(&mut requests.telling));
                (requests.looks_wanted, requests.oldest_wanted, aborting, telling, requests.finish)
            };
            provoked::panic("completion");
            let ended = {
                let _looking = lock(&completion.looking);
                if !self.hsa.lives() {
                    // The runtime did not wait for this thread any longer.
                    return self.give_up();
                }
                self.look(wanted > reported)
            };
            match aborting || telling || oldest_wanted {
                true => self.queues.iter_mut().for_each(|queue| queue.tell(hsa, 0, MOST_NAMED)),
                false => self.tell_of_long_ones(),
            }
            if aborting {
                let oldest: Vec<String> = self.oldest().iter().map(Oldest::described).collect();
                if !oldest.is_empty() {
                    self.hsa.recorder.failures.add(session_fact::ABORT_KERNELS, oldest.join("; "));
                }
            }
            if oldest_wanted {
                let oldest = self.oldest();
                let mut requests = lock(&completion.requests);
                (requests.oldest, requests.oldest_wanted) = (oldest, false);
            }
            let in_flight = self.in_flight();
            let recorded = self.queues.iter().map(|queue| queue.recorded).sum::<usize>() + self.copies.len();
            completion.recorded.store(recorded, Ordering::Relaxed);
            let now = clock::read(Clock::ThreadCpu);
            self.hsa.recorder.counters.cpu_ns.fetch_add(now - cpu, Ordering::Relaxed);
            cpu = now;
            let finish = finish.or_else(|| (ended == 0 && threads::are_alone()).then(Instant::now));
            if finish.is_some_and(|deadline| in_flight == 0 || Instant::now() >= deadline) {
                let _looking = lock(&completion.looking);
                return self.give_up();
            }
            completion.report(wanted, false);
            reported = wanted;
            if ended > 0 || in_flight > 0 {
                active = Instant::now();
            }
            pause = match (self.relayed, ended) {
                (0, 0) if finish.is_none() => (pause * 2).min(SLOW),
                (0, _) => BUSY,
                _ => RELAYED,
            };
            let long = active.elapsed() > LINGER;
            completion.asleep.store(long, Ordering::SeqCst);
            // A submission between the last look and the store is found after IDLE at the latest.
            std::thread::park_timeout(if long { IDLE } else { pause });
            completion.asleep.store(false, Ordering::Relaxed);
        }
    }

    /// A process that waits for a kernel in vain is killed in the end, of which nobody hears: by then the file names the kernel.
    fn tell_of_long_ones(&mut self) {
        let hsa = self.hsa;
        let mut waiting = self.queues.iter_mut().filter(|queue| queue.recorded > 0).peekable();
        if waiting.peek().is_some() {
            let long_ago = clock::monotonic().saturating_sub(LONG);
            waiting.for_each(|queue| queue.tell(hsa, long_ago, 1));
        }
    }

    fn oldest(&self) -> Vec<Oldest> {
        let oldest = |watched: &Watched| {
            let dispatch = watched.waiting.iter().find(|dispatch| dispatch.recorded)?;
            let (index, kernel) = (dispatch.record.sequence, dispatch.record.kernel);
            Some(Oldest { queue: watched.ends.queue?, index, kernel })
        };
        self.queues.iter().filter_map(oldest).collect()
    }

    fn in_flight(&self) -> usize {
        self.queues.iter().map(|queue| queue.waiting.len()).sum::<usize>() + self.copies.len()
    }

    /// Makes records of what has completed; how many that were. `at_all`: somebody asks for all of them.
    fn look(&mut self, at_all: bool) -> usize {
        let hsa = self.hsa;
        self.looks += 1;
        hsa.known.clock.refresh();
        let new = std::mem::take(&mut *lock(&hsa.completion.new_queues));
        self.queues.extend(new.into_iter().map(|ends| Watched {
            ends,
            waiting: VecDeque::new(),
            recorded: 0,
            seen: 0,
            oldest: (u64::MAX, 0),
        }));
        self.copies.append(&mut lock(&hsa.completion.new_copies));
        // Fetched before the signals are looked at: what is fetched has been claimed.
        let full = at_all || self.looks.is_multiple_of(FULL_LOOK);
        for queue in &mut self.queues {
            queue.fetch();
        }
        self.relayed = hsa.app_signals.relay(hsa);
        hsa.app_signals.poll(hsa, false);
        let (mut ended, mut dead) = (0, 0);
        for queue in &mut self.queues {
            // Asked first: what completed before its queue was destroyed is found by the look.
            let destroyed = queue.is_destroyed();
            ended += queue.look(hsa, if full || destroyed { usize::MAX } else { LOOK_BEHIND });
            if destroyed {
                dead += queue.give_up(hsa, true);
            }
        }
        if dead > 0 {
            hsa.recorder.counters.lose(Cause::Incomplete, dead);
            log::info(|| {
                format!("{dead} kernels had not completed when their queue was destroyed; they have no times")
            });
        }
        self.queues.retain(|queue| !queue.is_gone());
        let before = self.copies.len();
        self.copies.retain_mut(|copy| !finished::copy(hsa, copy));
        ended + before - self.copies.len()
    }

    /// What is still in flight will not be waited for: its submission is recorded, its execution is counted as lost.
    fn give_up(&mut self) {
        let (hsa, recorder) = (self.hsa, self.hsa.recorder);
        hsa.app_signals.poll(hsa, true);
        self.copies.retain_mut(|copy| !finished::copy(hsa, copy));
        let dispatches: u64 = self.queues.iter_mut().map(|queue| queue.give_up(hsa, false)).sum();
        let copies = self.copies.drain(..);
        let pushed = |copy: CopyInFlight| finished::push(hsa, Kind::Copy, bytemuck::bytes_of(&copy.record));
        let left = dispatches + copies.filter_map(|copy| pushed(copy).then_some(())).count() as u64;
        if left > 0 {
            recorder.counters.lose(Cause::Incomplete, left);
            log::problem(&format!(
                "{left} GPU operations had not completed when the process ended; they have no times"
            ));
        }
    }
}

impl Watched {
    fn fetch(&mut self) {
        self.ends.in_flight.drain(|dispatch| {
            self.seen = dispatch.record.sequence + 1;
            self.recorded += usize::from(dispatch.recorded);
            self.waiting.push_back(dispatch);
        });
    }

    /// Makes records of what has completed, looking at most `behind` operations past one that has not.
    fn look(&mut self, hsa: &'static Hsa, behind: usize) -> usize {
        let Some(queue) = self.ends.queue else { return 0 };
        let (mut place, mut ended) = (0, 0);
        while place < self.waiting.len().min(behind) && hsa.lives() {
            let outcome = self.waiting[place].timing.outcome();
            if outcome == OperationTimes::Pending {
                place += 1;
                continue;
            }
            let Some(dispatch) = self.waiting.remove(place) else { break };
            if dispatch.recorded {
                self.recorded -= 1;
                finished::dispatch(hsa, queue.gpu, dispatch.record, outcome);
            }
            if let TimesFrom::Own(own) = dispatch.timing {
                // SAFETY: the dispatch that carried it has completed and its ticks were read.
                unsafe { signal::rearm(own) };
                if !self.ends.return_signal(own) {
                    // SAFETY: as above.
                    unsafe { signal::destroy(&hsa.originals, own) };
                }
            }
            if let Some(in_use) = dispatch.in_use {
                in_use.complete();
            }
            ended += 1;
        }
        queue.ended.fetch_add(ended as u64, Ordering::Release);
        queue.frontier.store(
            self.waiting.front().map_or(self.seen, |oldest| oldest.record.sequence),
            Ordering::Release,
        );
        ended
    }

    /// Makes records of what was launched, of the oldest `most` that are recorded: those of them that were submitted before `before`, if
    /// that is not 0, and whose launch the file leaves to their completion.
    fn tell(&mut self, hsa: &'static Hsa, before: u64, most: usize) {
        let oldest = self.waiting.iter_mut().filter(|dispatch| dispatch.recorded).take(most);
        for dispatch in oldest {
            let record = &mut dispatch.record;
            let is_long = before != 0 && record.submit_end < before;
            if is_long {
                let now = before + LONG;
                if self.oldest.0 != record.sequence {
                    self.oldest = (record.sequence, now);
                }
                if let Some(in_use) = dispatch.in_use.as_mut().filter(|_| now - self.oldest.1 >= VERY_LONG) {
                    in_use.say_that_it_is_long(record.kernel);
                }
            }
            if record.launch == 1 && (before == 0 || is_long) {
                finished::push(hsa, Kind::Launch, bytemuck::bytes_of(record));
                record.launch = 2;
            }
        }
    }

    /// Submissions without an execution; how many of them are recorded. `destroyed`: the device has their signals no longer.
    fn give_up(&mut self, hsa: &'static Hsa, destroyed: bool) -> u64 {
        let mut recorded = 0;
        self.recorded = 0;
        for dispatch in self.waiting.drain(..) {
            match &dispatch.timing {
                TimesFrom::Application(times) => {
                    hsa.app_signals.withdraw(Signal(dispatch.record.completion), times);
                }
                // SAFETY: the queue is gone, and with it every packet that carried our signal.
                TimesFrom::Own(own) if destroyed => unsafe { signal::destroy(&hsa.originals, *own) },
                TimesFrom::Own(_) => {}
            }
            // What finds no room is counted as that.
            if dispatch.recorded && finished::push_dispatch(hsa, &dispatch.record) {
                recorded += 1;
            }
        }
        recorded
    }

    /// The runtime is through with the queue, and everything submitted to it was fetched.
    fn is_destroyed(&self) -> bool {
        self.ends.queue.is_some_and(|queue| queue.destroyed.load(Ordering::Acquire))
            && self.ends.in_flight.is_over()
    }

    /// The queue was destroyed and everything on it has ended.
    fn is_gone(&self) -> bool {
        self.ends.in_flight.is_over() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_under_way_is_waited_for() {
        let completion = Completion::default();
        let looking = lock(&completion.looking);
        assert!(!completion.has_left(Duration::from_millis(5)));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| completion.has_left(Duration::from_secs(600)));
            drop(looking);
            assert!(waiting.join().unwrap());
        });
    }
}
