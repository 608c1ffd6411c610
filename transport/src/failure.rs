//! Failures of the program that whoever opens its trace wants to know first: a queue that failed, a call of `abort`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rpd_preload::clock;
use rpd_preload::lock::lock_within;
use rpd_schema::session_fact;

use crate::thread;

/// How long a thread in trouble waits for others that are.
const PATIENCE: Duration = Duration::from_millis(100);
/// How long a thread that aborts waits for another that does: as long as that may take.
const ABORT_PATIENCE: Duration = Duration::from_secs(4);

/// Facts of the session about it.
#[derive(Default)]
pub struct Failures {
    facts: Mutex<Vec<(&'static str, String)>>,
    count: AtomicU32,
    /// When the program called `abort`, ns of CLOCK_MONOTONIC; 0 before.
    aborted_at: AtomicU64,
    /// The thread whose call of `abort` is being looked at, 0 for none: what that calls may abort too.
    aborting: AtomicU32,
}

impl Failures {
    /// One more; several of one key are in one fact.
    pub fn add(&self, key: &'static str, value: String) {
        let Some(mut facts) = lock_within(&self.facts, PATIENCE) else { return };
        match facts.iter_mut().find(|(known, _)| *known == key) {
            Some((_, text)) => *text = format!("{text}; {value}"),
            None => facts.push((key, value)),
        }
        self.count.fetch_add(1, Ordering::Release);
    }

    /// How many there were so far.
    pub fn count(&self) -> u32 {
        self.count.load(Ordering::Acquire)
    }

    /// All of them, by key.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let mut facts = lock_within(&self.facts, PATIENCE).map(|facts| facts.clone()).unwrap_or_default();
        let at = self.aborted_at.load(Ordering::Acquire);
        if at != 0 {
            facts.push((session_fact::ABORT_MONOTONIC_NS, at.to_string()));
        }
        facts
    }

    /// The program has called `abort`: runs `act`, unless that is what aborts. A thread that aborts meanwhile waits: its own `abort`
    /// would end what `act` does. Takes no memory: the call may come from a handler that interrupted the allocator.
    pub fn abort(&self, act: impl FnOnce()) {
        let (me, begin) = (thread::tid(), clock::monotonic());
        while let Err(other) = self.aborting.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
            if other == me || clock::monotonic() - begin > ABORT_PATIENCE.as_nanos() as u64 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.aborted_at.store(clock::monotonic(), Ordering::Release);
        self.count.fetch_add(1, Ordering::Release);
        act();
        self.aborting.store(0, Ordering::Release);
    }
}
