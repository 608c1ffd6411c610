//! Counters of what was recorded, and of what was lost, by cause. The writer stores the sums in the file's metadata.

use std::sync::atomic::{AtomicU64, Ordering};

use rpd_preload::clock;

/// Why a record is missing from the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The buffers were full up to RPDT_BUFFER_MB and the wait was over.
    BufferFull,
    /// The operation had not completed when recording ended.
    Incomplete,
    /// The device gave no usable start or end tick.
    NoTimes,
    /// Two operations completed through one signal and the times of one could not be told apart.
    SharedSignal,
    /// No signal could be had to time the operation.
    NoSignal,
    /// A record was pushed from inside a push, in a signal handler.
    Reentered,
    /// The file could not be written.
    Write,
    /// The call was left without returning: by a jump out of it, an exception, the end of its thread.
    Abandoned,
    /// The file that it was in was deleted, replaced, emptied or damaged.
    FileGone,
    /// By a thread whose thread-local data of ours is gone, in a destructor of such data of the application's: a call of HIP, or a record
    /// that other such threads left no time for.
    EndingThread,
    /// The GPU vendor's library that records had no room for it.
    VendorFull,
    /// That library could not read on in a buffer of its own: one for each such buffer, whatever else was in it.
    VendorUnreadable,
}

impl Cause {
    /// All causes with the names they have in the file.
    pub const ALL: [(Cause, &'static str); 12] = [
        (Cause::BufferFull, "buffer_full"),
        (Cause::Incomplete, "incomplete"),
        (Cause::NoTimes, "no_times"),
        (Cause::SharedSignal, "shared_signal"),
        (Cause::NoSignal, "no_signal"),
        (Cause::Reentered, "reentered"),
        (Cause::Write, "write"),
        (Cause::Abandoned, "abandoned"),
        (Cause::FileGone, "file_gone"),
        (Cause::EndingThread, "ending_thread"),
        (Cause::VendorFull, "cupti_full"),
        (Cause::VendorUnreadable, "cupti_unreadable"),
    ];

    /// Its name in the file.
    pub fn name(self) -> &'static str {
        Cause::ALL[self as usize].1
    }
}

/// Lost records, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost([u64; Cause::ALL.len()]);

impl Lost {
    /// What was lost after `earlier`.
    pub fn since(self, earlier: Lost) -> Lost {
        Lost(std::array::from_fn(|cause| self.0[cause].saturating_sub(earlier.0[cause])))
    }

    /// As somebody counts by the causes' names.
    pub fn by(count: impl Fn(&str) -> u64) -> Lost {
        Lost(Cause::ALL.map(|(_, name)| count(name)))
    }

    /// These and others.
    pub fn and(self, others: Lost) -> Lost {
        Lost(std::array::from_fn(|cause| self.0[cause] + others.0[cause]))
    }

    /// All of them.
    pub fn records(self) -> u64 {
        self.0.iter().sum()
    }

    /// With the causes' names; causes without a loss are left out.
    pub fn by_name(self) -> impl Iterator<Item = (&'static str, u64)> {
        Cause::ALL.iter().map(move |(cause, name)| (*name, self.0[*cause as usize])).filter(|(_, n)| *n > 0)
    }
}

/// Counts of one process.
#[derive(Default)]
pub struct Counters {
    lost: [AtomicU64; Cause::ALL.len()],
    /// When the first record was lost that [`Counters::take_lost_time`] has not returned, and when the last one was: ns of CLOCK_MONOTONIC,
    /// 0 where there is none.
    lost_from: AtomicU64,
    lost_to: AtomicU64,
    /// Records from rings that are in the file, or counted as lost.
    accounted: AtomicU64,
    /// Times that were corrected: starts that lay after the end, or before the operation was submitted (of NVIDIA's GPUs: before the call).
    pub clamped: AtomicU64,
    /// Time that application threads waited for buffer space, ns.
    pub waited_ns: AtomicU64,
    /// Longest time that the writer waited for other processes to begin a transaction, ns.
    pub longest_turn_ns: AtomicU64,
    /// CPU time of the recorder's own threads, in ns.
    pub cpu_ns: AtomicU64,
    /// Launches of one kernel of which HIP made commands that it times, and how many of those have completed.
    pub commanded: AtomicU64,
    /// See `commanded`.
    pub completed: AtomicU64,
}

impl Counters {
    /// Counts `n` records lost to `cause`.
    pub fn lose(&self, cause: Cause, n: u64) {
        if n == 0 {
            return;
        }
        let now = clock::monotonic();
        let _ = self.lost_from.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        self.lost_to.fetch_max(now, Ordering::Relaxed);
        // Who sees the count sees the times.
        self.lost[cause as usize].fetch_add(n, Ordering::Release);
    }

    /// When the first record was lost since the last call, and when the last one was: ns of CLOCK_MONOTONIC. For whom [`Counters::lost`] has
    /// told that there are some.
    pub fn take_lost_time(&self) -> (u64, u64) {
        let from = self.lost_from.swap(0, Ordering::Relaxed);
        let to = self.lost_to.load(Ordering::Relaxed);
        // Of records that were being counted at the last call, the time was taken then.
        (if from == 0 { to } else { from.min(to) }, to)
    }

    /// So many records from rings are in the file, or counted as lost.
    pub fn account(&self, records: u64) {
        self.accounted.fetch_add(records, Ordering::Relaxed);
    }

    /// Records from rings that are in the file, or counted as lost, so far.
    pub fn accounted(&self) -> u64 {
        self.accounted.load(Ordering::Relaxed)
    }

    /// Whether HIP has commands that it will tell the times of.
    pub fn has_commands(&self) -> bool {
        self.commanded.load(Ordering::Relaxed) > self.completed.load(Ordering::Relaxed)
    }

    /// Lost records so far.
    pub fn lost(&self) -> Lost {
        Lost(std::array::from_fn(|cause| self.lost[cause].load(Ordering::Acquire)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_stands_at_its_own_place() {
        for (place, (cause, _)) in Cause::ALL.iter().enumerate() {
            assert_eq!(*cause as usize, place);
        }
    }

    #[test]
    fn the_time_of_losses_is_from_the_first_to_the_last_and_reported_once() {
        let counters = Counters::default();
        let before = clock::monotonic();
        counters.lose(Cause::Write, 0);
        assert_eq!(counters.take_lost_time(), (0, 0));
        counters.lose(Cause::Write, 1);
        let between = clock::monotonic();
        counters.lose(Cause::BufferFull, 2);
        let (from, to) = counters.take_lost_time();
        assert!(before <= from && from <= between && between <= to && to <= clock::monotonic());
        counters.lose(Cause::Write, 1);
        let (later, _) = counters.take_lost_time();
        assert!(later >= to);
    }
}
