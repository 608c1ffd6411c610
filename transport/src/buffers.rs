//! The memory in which records and texts wait for the writer, and the rings in it.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rpd_preload::lock::{lock, lock_within};
use rpd_settings::quantity::MILLISECOND;

use crate::env::{Env, LONGEST_WAIT};
use crate::records::budget::Budget;
use crate::records::ring::{self, Consumer, Producer, Tally};
use crate::{cgroup, log};

/// How large buffers may be set to be, bytes: below that not even one thread's records fit.
const SIZES: RangeInclusive<u64> = 1 << 20..=1 << 40;
/// Bytes of texts remembered at most, however large the buffers are.
const MOST_TEXT: usize = 32 << 20;
/// Bytes of buffers at least, however little memory there is.
const LEAST: usize = 1 << 20;

/// What the user asked for.
#[derive(Clone, Copy, Debug)]
pub struct BufferConfig {
    /// Bytes that records and texts may take.
    pub bytes: usize,
    /// Nobody has said how many: there may be a reason for fewer.
    pub is_default: bool,
    /// How long an application's thread may wait for room.
    pub wait: Duration,
}

impl BufferConfig {
    /// RPDT_BUFFER_MB and RPDT_WAIT_MS.
    pub(crate) fn read(env: &mut Env<'_>) -> BufferConfig {
        BufferConfig {
            bytes: env.size("RPDT_BUFFER_MB", 256 << 20, SIZES) as usize,
            is_default: env.text("RPDT_BUFFER_MB").is_none(),
            wait: env
                .time("RPDT_WAIT_MS", MILLISECOND, Some(Duration::from_secs(1)), LONGEST_WAIT)
                .unwrap_or_default(),
        }
    }
}

/// See the module.
pub struct RecordBuffers {
    /// RPDT_BUFFER_MB or less, see [`RecordBuffers::fit_into_memory`].
    bytes: AtomicUsize,
    is_default: bool,
    /// Memory of all rings.
    pub budget: Arc<Budget>,
    /// What all rings have been given: those that there are, and the sum of those that are gone.
    tallies: Mutex<(Vec<Tally>, u64)>,
    /// Rings the writer has not yet taken over.
    new_rings: Mutex<Vec<Consumer>>,
}

/// Bytes of texts remembered at most: a part of all buffers, of which records get the rest.
fn text_bytes(bytes: usize) -> usize {
    (bytes / 8).min(MOST_TEXT)
}

impl RecordBuffers {
    /// Without a ring.
    pub(crate) fn new(config: BufferConfig) -> RecordBuffers {
        RecordBuffers {
            bytes: AtomicUsize::new(config.bytes),
            is_default: config.is_default,
            budget: Arc::new(Budget::new(config.bytes - text_bytes(config.bytes))),
            tallies: Mutex::default(),
            new_rings: Mutex::default(),
        }
    }

    /// Without RPDT_BUFFER_MB the buffers take an eighth of what the process's control group may have, where that is less than
    /// the default: whatever grows beyond it has the program killed.
    pub fn fit_into_memory(&self) {
        let Some(limit) = cgroup::memory_limit().filter(|_| self.is_default) else { return };
        let share = usize::try_from(limit / 8).unwrap_or(usize::MAX).max(LEAST);
        if share < self.bytes() {
            log::info(|| format!("{} KiB of buffers, an eighth of the control group's memory", share >> 10));
            self.bytes.store(share, Ordering::Relaxed);
            self.budget.set_limit(share - text_bytes(share));
        }
    }

    /// Bytes that records and texts may take.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many of them are for texts.
    pub(crate) fn text_bytes(&self) -> usize {
        text_bytes(self.bytes())
    }

    /// A ring for thread `tid`. Nothing when the budget is used up.
    pub(crate) fn add_ring(&self, tid: u32) -> Option<Producer> {
        let (producer, consumer) = ring::ring(&self.budget, tid)?;
        lock(&self.tallies).0.push(consumer.tally());
        lock(&self.new_rings).push(consumer);
        Some(producer)
    }

    /// The rings added since the last call; the writer is about to drain all.
    pub(crate) fn take_new_rings(&self) -> Vec<Consumer> {
        self.budget.visited();
        let (rings, gone) = &mut *lock(&self.tallies);
        rings.retain(|ring| {
            *gone += if ring.is_over() { ring.pushed() } else { 0 };
            !ring.is_over()
        });
        std::mem::take(&mut lock(&self.new_rings))
    }

    /// How many records have been pushed. Nothing where that is not known in time.
    pub(crate) fn pushed(&self, patience: Duration) -> Option<u64> {
        let (rings, gone) = &*lock_within(&self.tallies, patience)?;
        Some(gone + rings.iter().map(Tally::pushed).sum::<u64>())
    }
}
