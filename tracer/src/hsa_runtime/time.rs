//! From the runtime's clock to CLOCK_MONOTONIC.
//!
//! HSA_SYSTEM_INFO_TIMESTAMP counts ns of CLOCK_BOOTTIME (ROCr >= 5.3) or of the driver's boot clock (before). Both run with
//! CLOCK_MONOTONIC and differ from it by the time the host was suspended, so one measured offset holds until the next
//! suspend; it is measured again all the same, because a host may sleep while a process records.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use rpd_preload::clock;

use super::abi::{SUCCESS, SystemGetInfo, system_info};

/// The offset between the runtime's clock and the file's.
pub(crate) struct SystemClock {
    ask: SystemGetInfo,
    /// System clock minus CLOCK_MONOTONIC, ns.
    offset: AtomicI64,
    /// When it was last checked, ns of CLOCK_MONOTONIC.
    checked: AtomicU64,
    /// Ticks of the system clock per second.
    frequency: u64,
}

/// How often the offset is checked, ns.
const CHECK_INTERVAL: u64 = 1_000_000_000;

/// Bounds of the offset, from one reading between two of CLOCK_MONOTONIC.
#[derive(Clone, Copy)]
struct Bracket {
    low: i64,
    high: i64,
}

impl SystemClock {
    /// Measures the offset.
    pub(crate) fn measure(ask: SystemGetInfo) -> SystemClock {
        let mut frequency = 0u64;
        // SAFETY: TIMESTAMP_FREQUENCY is a u64.
        unsafe { ask(system_info::TIMESTAMP_FREQUENCY, (&raw mut frequency).cast()) };
        let frequency = if frequency == 0 { 1_000_000_000 } else { frequency };
        let offset = narrowest(ask, frequency).map_or(0, |b| (b.low + b.high) / 2);
        let checked = AtomicU64::new(clock::monotonic());
        SystemClock { ask, offset: AtomicI64::new(offset), checked, frequency }
    }

    /// Checks the offset once a second. It is replaced only when the new measurement excludes it, so that measuring noise
    /// does not move neighbouring operations against each other.
    pub(crate) fn refresh(&self) {
        let now = clock::monotonic();
        if now.saturating_sub(self.checked.load(Ordering::Relaxed)) < CHECK_INTERVAL {
            return;
        }
        self.checked.store(now, Ordering::Relaxed);
        if let Some(bracket) = narrowest(self.ask, self.frequency) {
            let old = self.offset.load(Ordering::Relaxed);
            if old < bracket.low || old > bracket.high {
                self.offset.store((bracket.low + bracket.high) / 2, Ordering::Relaxed);
            }
        }
    }

    /// A reading of the system clock as ns of CLOCK_MONOTONIC.
    pub(crate) fn monotonic(&self, ticks: u64) -> u64 {
        scale(ticks, self.frequency).saturating_add_signed(-self.offset.load(Ordering::Relaxed))
    }
}

impl SystemClock {
    /// The system clock's reading at `monotonic` ns of CLOCK_MONOTONIC.
    pub(crate) fn system(&self, monotonic: u64) -> u64 {
        let ns = monotonic.saturating_add_signed(self.offset.load(Ordering::Relaxed));
        scale_back(ns, self.frequency)
    }
}

fn narrowest(ask: SystemGetInfo, frequency: u64) -> Option<Bracket> {
    // The first reading is cold; preemption widens some of the others.
    (0..12).filter_map(|_| bracket(ask, frequency)).min_by_key(|b| b.high - b.low)
}

fn bracket(ask: SystemGetInfo, frequency: u64) -> Option<Bracket> {
    let mut ticks = 0u64;
    let before = clock::monotonic();
    // SAFETY: TIMESTAMP is a u64.
    let status = unsafe { ask(system_info::TIMESTAMP, (&raw mut ticks).cast()) };
    let after = clock::monotonic();
    let time = scale(ticks, frequency) as i64;
    (status == SUCCESS).then_some(Bracket { low: time - after as i64, high: time - before as i64 })
}

/// Ticks as ns.
fn scale(ticks: u64, frequency: u64) -> u64 {
    if frequency == 1_000_000_000 {
        return ticks;
    }
    (u128::from(ticks) * 1_000_000_000 / u128::from(frequency)) as u64
}

/// Ns as ticks.
fn scale_back(ns: u64, frequency: u64) -> u64 {
    if frequency == 1_000_000_000 {
        return ns;
    }
    (u128::from(ns) * u128::from(frequency) / 1_000_000_000) as u64
}

#[cfg(test)]
mod tests {
    #[test]
    fn other_frequencies_are_scaled() {
        assert_eq!(super::scale(100_000_000, 100_000_000), 1_000_000_000);
        assert_eq!(super::scale(u64::MAX >> 1, 1_000_000_000), u64::MAX >> 1);
    }
}
