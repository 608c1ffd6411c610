//! The wait at the end of the process: how long it has lasted, and how long it may (RPDT_EXIT_MS).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpd_preload::clock;

/// How many times RPDT_EXIT_MS the end of the process may take where other processes write the file meanwhile.
const MOST_WAITS: u32 = 6;

pub(crate) struct ExitWait {
    /// RPDT_EXIT_MS.
    most: Duration,
    /// When the wait began, ns of CLOCK_MONOTONIC; 0 before. The time in which others got on is left out.
    began: AtomicU64,
    /// The same with that time.
    called: AtomicU64,
}

impl ExitWait {
    /// The process does not end yet.
    pub(crate) fn new(most: Duration) -> ExitWait {
        ExitWait { most, began: AtomicU64::new(0), called: AtomicU64::new(0) }
    }

    /// The wait begins.
    pub(crate) fn begin(&self) {
        let now = clock::monotonic();
        self.called.store(now, Ordering::Relaxed);
        self.began.store(now, Ordering::Relaxed);
    }

    /// Whether it has begun.
    pub(crate) fn has_begun(&self) -> bool {
        self.began.load(Ordering::Relaxed) != 0
    }

    /// What is left of RPDT_EXIT_MS.
    pub(crate) fn rest(&self) -> Duration {
        self.most.saturating_sub(self.waited())
    }

    /// Whether the process ends and has waited for rows as long as it may: half of RPDT_EXIT_MS. The rest are counted.
    pub(crate) fn is_late(&self) -> bool {
        self.has_waited(self.most / 2)
    }

    /// Whether the process ends and has waited for the file as long as it may; what is left of RPDT_EXIT_MS is for the commit.
    pub(crate) fn is_over(&self) -> bool {
        self.has_waited(self.for_file())
    }

    /// How long it may wait for the file; endless while the process does not end.
    pub(crate) fn time_for_file(&self) -> Duration {
        if self.has_begun() { self.for_file().saturating_sub(self.waited()) } else { Duration::MAX }
    }

    /// Other processes have written the file since this one began to wait for it. At the end of the process that time does not count.
    pub(crate) fn others_wrote(&self) {
        let (now, called) = (clock::monotonic(), self.called.load(Ordering::Relaxed));
        let most = MOST_WAITS.saturating_sub(1) * self.most;
        if self.has_begun() && now.saturating_sub(called) < most.as_nanos() as u64 {
            self.began.store(now, Ordering::Relaxed);
        }
    }

    fn for_file(&self) -> Duration {
        self.most / 4 * 3
    }

    fn has_waited(&self, time: Duration) -> bool {
        self.has_begun() && self.waited() > time
    }

    fn waited(&self) -> Duration {
        let began = self.began.load(Ordering::Relaxed);
        Duration::from_nanos(clock::monotonic().saturating_sub(began))
    }
}
