//! When launches may have gone into a graph instead of to the GPU: between the beginning and the end of a capture.
//!
//! Several threads may launch into the stream that one of them captures (PyTorch's backward pass does), so a capture is one of the whole
//! process. Records of threads come in any order, also an end before its beginning.

use std::collections::VecDeque;

use super::functions::Capture;

/// Captures that are remembered of each kind, the latest.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Captures {
    /// Those without an end: thread and begin.
    open: VecDeque<(u32, u64)>,
    /// Ends without a beginning.
    ends: VecDeque<u64>,
    /// Begin and end.
    over: VecDeque<(u64, u64)>,
}

impl Captures {
    /// A call of `thread` from `start` to `end`; the capture of which both ends are known now.
    pub(super) fn note(
        &mut self,
        capture: Capture,
        thread: u32,
        (start, end): (u64, u64),
    ) -> Option<(u64, u64)> {
        let over = match capture {
            Capture::Begins => match self.ends.iter().position(|end| *end >= start) {
                Some(place) => (start, self.ends.remove(place)?),
                None => {
                    keep(&mut self.open, (thread, start));
                    return None;
                }
            },
            Capture::Ends => {
                let before = |own: bool| {
                    self.open.iter().rposition(|(other, begin)| *begin <= end && (!own || *other == thread))
                };
                match before(true).or_else(|| before(false)) {
                    Some(place) => (self.open.remove(place)?.1, end),
                    None => {
                        keep(&mut self.ends, end);
                        return None;
                    }
                }
            }
        };
        keep(&mut self.over, over);
        Some(over)
    }

    /// Whether what was launched at that time may have been captured.
    pub(super) fn has(&self, time: u64) -> bool {
        self.open.iter().any(|(_, begin)| *begin <= time)
            || self.over.iter().any(|(begin, end)| (*begin..=*end).contains(&time))
    }
}

fn keep<T>(items: &mut VecDeque<T>, item: T) {
    if items.len() == MOST {
        items.pop_front();
    }
    items.push_back(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_of_all_threads() {
        let mut captures = Captures::default();
        assert_eq!(captures.note(Capture::Begins, 1, (10, 11)), None);
        assert!(captures.has(15) && !captures.has(9));
        assert_eq!(captures.note(Capture::Ends, 1, (20, 21)), Some((10, 21)));
        assert!(captures.has(15) && !captures.has(22));
        assert_eq!(captures.note(Capture::Begins, 1, (30, 31)), None);
        assert_eq!(captures.note(Capture::Begins, 2, (32, 33)), None);
        assert_eq!(captures.note(Capture::Ends, 1, (40, 41)), Some((30, 41)), "its own");
        assert_eq!(captures.note(Capture::Ends, 3, (50, 51)), Some((32, 51)), "that of another thread");
        assert!(!captures.has(60));
    }

    #[test]
    fn an_end_may_be_heard_of_first() {
        let mut captures = Captures::default();
        assert_eq!(captures.note(Capture::Ends, 2, (20, 21)), None);
        assert!(!captures.has(15));
        assert_eq!(captures.note(Capture::Begins, 1, (30, 31)), None, "another one");
        assert_eq!(captures.note(Capture::Begins, 1, (10, 11)), Some((10, 21)));
        assert!(captures.has(15) && !captures.has(25) && captures.has(35));
        for time in 0..1000 {
            captures.note(Capture::Begins, 1, (100 * time, 100 * time));
        }
        assert_eq!(captures.open.len(), MOST);
    }
}
