//! The thread of a GPU that takes messages out of memory while kernels run.
//!
//! A kernel that finds its memory full waits until this thread has emptied it: the thread copies the bytes, gives the room back and
//! does nothing else. Where messages come faster than they are analyzed it waits, and the kernels with it; where no analyzer takes
//! anything for a second, it drops what comes, and counts it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpd_preload::clock::{self, Clock};
use rpd_preload::threads;
use rpd_transport::{provoked, recorder};

use super::analysis::AnalysisWork;
use super::memory::MessageMemory;
use super::pool::{Dispatched, Pool};

/// How long analyzers may take nothing before messages are dropped.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a dispatch waits for memory until there is more than the user has allowed: as those that have some do not end, they may
/// wait for this one (hipStreamWaitValue32).
const STANDSTILL: Duration = Duration::from_secs(1);
/// Time between two looks at memory: while messages come, and at the longest.
const BUSY: Duration = Duration::from_micros(20);
const QUIET: Duration = Duration::from_millis(1);
/// Time between two looks at whether there is something to do.
const IDLE: Duration = Duration::from_millis(100);

/// Starts the thread.
pub(super) fn start(pool: Arc<Pool>) -> std::io::Result<()> {
    threads::spawn(c"rpd-messages", move || {
        pool.reads();
        let mut reader = MessageReader {
            pool: Arc::clone(&pool),
            active: Vec::new(),
            progress: Instant::now(),
            given_up: 0,
            hand: Hand { pool: Arc::clone(&pool), drops: false, is_mute: false },
        };
        // Kernels wait for this thread: whatever happens, it goes on until they have ended.
        while std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.serve())).is_err() {
            reader.hand.is_mute = true;
            recorder::disable();
        }
        pool.ends();
    })
}

/// A dispatch, and its memory unless it waits for some.
struct Active {
    dispatch: Arc<Dispatched>,
    memory: Option<MessageMemory>,
    /// It counts as one that never ends: its messages are not asked for any more, but it may still wait for room.
    is_given_up: bool,
}

struct MessageReader {
    pool: Arc<Pool>,
    active: Vec<Active>,
    hand: Hand,
    /// When a dispatch was last given memory, or none waited.
    progress: Instant,
    /// How often what runs was given up.
    given_up: u64,
}

/// Hands bytes over to be analyzed.
struct Hand {
    pool: Arc<Pool>,
    /// The last ones found no room in time.
    drops: bool,
    /// Nothing is analyzed any more.
    is_mute: bool,
}

impl MessageReader {
    fn serve(&mut self) {
        let mut pause = BUSY;
        let mut cpu = clock::read(Clock::ThreadCpu);
        loop {
            provoked::panic("messages");
            while let Some(dispatch) = self.pool.next() {
                self.active.push(Active { memory: dispatch.take_memory(), dispatch, is_given_up: false });
            }
            self.release();
            let given_up = self.pool.given_up();
            let moved = self.look();
            if given_up > self.given_up {
                let runs = self.active.iter_mut().filter(|active| !active.is_given_up);
                runs.for_each(|active| active.give_up(&mut self.hand));
                self.given_up = given_up;
                self.pool.has_given_up(given_up);
            }
            let now = clock::read(Clock::ThreadCpu);
            if let Some(recorder) = recorder::get() {
                recorder.counters.cpu_ns.fetch_add(now - cpu, Ordering::Relaxed);
            }
            cpu = now;
            if self.pool.is_left() {
                return;
            }
            if self.active.is_empty() {
                std::thread::park_timeout(IDLE);
                continue;
            }
            pause = if moved { BUSY } else { (pause * 2).min(QUIET) };
            std::thread::park_timeout(pause);
        }
    }

    /// Gives free memory to those that wait for some, in their order.
    fn release(&mut self) {
        for active in self.active.iter_mut().filter(|active| active.memory.is_none()) {
            if active.dispatch.ended().is_some() {
                continue;
            }
            let Some(memory) = self.pool.take_memory() else {
                if self.progress.elapsed() > STANDSTILL {
                    self.pool.allow_more();
                    self.progress = Instant::now();
                }
                return;
            };
            active.dispatch.release(&memory);
            active.memory = Some(memory);
            self.pool.waited();
            self.progress = Instant::now();
        }
        // Nobody waits.
        self.progress = Instant::now();
    }

    /// Takes out what has come; whether there was something.
    fn look(&mut self) -> bool {
        let (mut moved, mut place) = (false, 0);
        while let Some(active) = self.active.get_mut(place) {
            // Asked first: what the kernel has written before its end is found then.
            match (active.dispatch.ended(), &mut active.memory) {
                // It has never run, and has nothing to say.
                (Some(_), None) => {
                    self.active.remove(place);
                    self.pool.waited();
                }
                (Some(true), Some(memory)) => {
                    let mut hand = self.hand.of(&active.dispatch, active.is_given_up);
                    let trouble = memory.finish(|bytes| hand.over(bytes));
                    hand.end(true, trouble);
                    if let Some(memory) = self.active.remove(place).memory {
                        self.pool.give_back(memory);
                    }
                    moved = true;
                }
                (Some(false), Some(_)) if !active.is_given_up => active.give_up(&mut self.hand),
                (_, Some(memory)) => {
                    let mut hand = self.hand.of(&active.dispatch, active.is_given_up);
                    moved |= memory.drain(|bytes| hand.over(bytes));
                    place += 1;
                }
                (None, None) => place += 1,
            }
        }
        moved
    }
}

impl Active {
    /// It never ends: it has streamed out what it has. Nobody knows whether it still runs, so it is given room from here on too.
    fn give_up(&mut self, hand: &mut Hand) {
        if let Some(memory) = &mut self.memory {
            let mut hand = hand.of(&self.dispatch, self.is_given_up);
            let trouble = memory.finish(|bytes| hand.over(bytes));
            hand.end(false, trouble);
            self.is_given_up = true;
        }
    }
}

impl Hand {
    /// For what this dispatch has to say, which counts no more where it `is_given_up`.
    fn of<'a>(&'a mut self, dispatch: &'a Arc<Dispatched>, is_given_up: bool) -> HandOf<'a> {
        HandOf { hand: self, dispatch, is_given_up }
    }
}

/// See [`Hand::of`].
struct HandOf<'a> {
    hand: &'a mut Hand,
    dispatch: &'a Arc<Dispatched>,
    is_given_up: bool,
}

impl HandOf<'_> {
    /// Waits for room only where there was some lately.
    fn over(&mut self, bytes: &[u8]) {
        if self.is_given_up {
            return;
        }
        let HandOf { hand, dispatch, .. } = self;
        let weight = bytes.len();
        let patience = if hand.drops { Duration::ZERO } else { PATIENCE };
        let analysis = hand.pool.analysis;
        let work = || AnalysisWork::Bytes(Arc::clone(&hand.pool), Arc::clone(dispatch), bytes.to_vec());
        hand.drops =
            hand.is_mute || !analysis.wait_for_room(weight, patience) || !analysis.add(work(), weight);
        if hand.drops {
            dispatch.dropped.fetch_add(weight as u64, Ordering::Relaxed);
        }
    }

    fn end(&mut self, completed: bool, trouble: Vec<String>) {
        if self.is_given_up {
            return;
        }
        let HandOf { hand, dispatch, .. } = self;
        let end = AnalysisWork::End(Arc::clone(&hand.pool), Arc::clone(dispatch), completed, trouble);
        if !hand.pool.analysis.add(end, 0) {
            super::analysis::unanalyzed(&hand.pool, dispatch, completed);
        }
    }
}
