//! The facts about one packet: a cell that any thread fills and any thread reads, without waiting.
//!
//! A thread that fills the cell claims it first, and numbers it last. A reader reads the number, the content, and the number again; what
//! it read belongs to that number only if both are the same. models/tests/reservation.rs tries every order of these steps.

// The parent's, which are loom's in the model.
use super::atomic::{AtomicU64, Ordering};

/// The number of a place that a thread is filling. No queue counts so far.
const CLAIMED: u64 = u64::MAX;

#[derive(Default)]
pub(super) struct Place {
    /// Index of the packet, and 1: 0 is none.
    number: AtomicU64,
    content: [AtomicU64; 2],
}

impl Place {
    /// This is known of packet `index`. Nothing changes while another thread fills the place: of two packets, one is known.
    #[inline]
    pub(super) fn put(&self, index: u64, content: [u64; 2]) {
        let before = self.number.load(Ordering::Relaxed);
        if before == CLAIMED {
            return;
        }
        // Acquire: this content comes after that of whoever numbered the place before.
        if self.number.compare_exchange(before, CLAIMED, Ordering::Acquire, Ordering::Relaxed).is_err() {
            return;
        }
        for (cell, value) in self.content.iter().zip(content) {
            // A Release store is not visible before the claim. A reader that sees it sees that the old number is gone.
            cell.store(value, Ordering::Release);
        }
        // A reader that sees the number sees the content.
        self.number.store(index + 1, Ordering::Release);
    }

    /// What is known of packet `index`.
    #[inline]
    pub(super) fn get(&self, index: u64) -> Option<[u64; 2]> {
        if self.number.load(Ordering::Acquire) != index + 1 {
            return None;
        }
        // Acquire: the second load of the number comes after these.
        let content = [&self.content[0], &self.content[1]].map(|cell| cell.load(Ordering::Acquire));
        (self.number.load(Ordering::Relaxed) == index + 1).then_some(content)
    }
}
