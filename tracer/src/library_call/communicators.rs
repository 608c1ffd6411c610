//! How many ranks the communicators of RCCL and NCCL have, which a collective does not say itself, and which of them is this one.
//!
//! Noted when a communicator is made, whether or not anything is recorded, and asked by the writer. A handle may come again: what holds for
//! a call is what was noted last before it.

use std::sync::Mutex;

use rpd_preload::lock::lock;

/// Communicators that are remembered.
const MOST: usize = 1 << 12;

/// A communicator as it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Communicator {
    pub(super) handle: u64,
    pub(super) ranks: u32,
    pub(super) rank: u32,
}

/// Each with the time when it was there.
static KNOWN: Mutex<Vec<(u64, Communicator)>> = Mutex::new(Vec::new());

/// These have been made by `time`.
pub(super) fn note(made: Vec<Communicator>, time: u64) {
    let mut known = lock(&KNOWN);
    known.extend(made.into_iter().map(|communicator| (time, communicator)));
    let old = known.len().saturating_sub(MOST);
    known.drain(..old);
}

/// What is to be said of the communicator with that handle in a call that began at `time`, behind its other arguments.
pub(super) fn text(handle: u64, time: u64) -> String {
    let known = lock(&KNOWN);
    let mut found = known.iter().rev();
    found
        .find(|(since, communicator)| communicator.handle == handle && *since <= time)
        .map_or_else(String::new, |(_, communicator)| {
            format!(" | nranks={} | rank={}", communicator.ranks, communicator.rank)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_comes_again_is_another_communicator() {
        let communicator = |ranks| Communicator { handle: 0xc0, ranks, rank: 1 };
        note(vec![communicator(2)], 10);
        note(vec![communicator(8)], 20);
        assert_eq!(text(0xc0, 9), "");
        assert_eq!(text(0xc0, 15), " | nranks=2 | rank=1");
        assert_eq!(text(0xc0, 20), " | nranks=8 | rank=1");
    }
}
