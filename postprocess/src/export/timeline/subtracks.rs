//! Tracks side by side for what overlaps: viewers drop or move slices of one track that overlap without nesting, and here no time is
//! bent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks on which slices follow each other: what a queue runs is not inside of anything.
#[derive(Default)]
pub(super) struct Subtracks {
    /// End and number of those in use.
    busy: BinaryHeap<Reverse<(i64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl Subtracks {
    /// The first track that is free for a slice. Slices come in the order of their begin, of equal ones the longer first.
    pub(super) fn place(&mut self, (start, end): (i64, i64)) -> u32 {
        while let Some(Reverse((until, subtrack))) = self.busy.peek().copied()
            && until <= start
        {
            self.busy.pop();
            self.free.push(Reverse(subtrack));
        }
        let subtrack = match self.free.pop() {
            Some(Reverse(subtrack)) => subtrack,
            None => {
                self.count += 1;
                self.count - 1
            }
        };
        self.busy.push(Reverse((end, subtrack)));
        subtrack
    }
}

/// Tracks beyond these have no slices inside each other, so that a slice is placed in a time that does not grow with their number.
const NESTING: usize = 16;

/// Tracks on which slices may be inside each other: the calls of a thread.
#[derive(Default)]
pub(super) struct NestingSubtracks {
    /// Ends of the open slices of each, innermost last.
    open: Vec<Vec<i64>>,
    further: Subtracks,
}

impl NestingSubtracks {
    /// The first track on which a slice is inside of what is open there, or nothing is. Order as in [`Subtracks::place`].
    pub(super) fn place(&mut self, (start, end): (i64, i64)) -> u32 {
        for (subtrack, open) in self.open.iter_mut().enumerate() {
            while open.last().is_some_and(|until| *until <= start) {
                open.pop();
            }
            if open.last().is_none_or(|until| end <= *until) {
                open.push(end);
                return subtrack as u32;
            }
        }
        if self.open.len() < NESTING {
            self.open.push(vec![end]);
            return self.open.len() as u32 - 1;
        }
        NESTING as u32 + self.further.place((start, end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_a_subtrack_follow_each_other() {
        let mut subtracks = Subtracks::default();
        let slices = [(0, 10), (5, 20), (6, 7), (10, 10), (10, 12), (12, 30), (15, 16), (20, 21)];
        let placed = slices.map(|slice| subtracks.place(slice));
        // At 10 the first subtrack is free, and a slice without length leaves it so.
        assert_eq!(placed, [0, 1, 2, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn slices_inside_each_other_share_a_subtrack() {
        let mut subtracks = NestingSubtracks::default();
        let slices = [(0, 100), (0, 50), (10, 50), (20, 60), (60, 100), (70, 120), (100, 110), (120, 121)];
        let placed = slices.map(|slice| subtracks.place(slice));
        assert_eq!(placed, [0, 0, 0, 1, 0, 1, 0, 0]);
    }

    #[test]
    fn many_overlaps_have_subtracks_of_their_own() {
        let mut subtracks = NestingSubtracks::default();
        let placed: Vec<u32> = (0..100).map(|at| subtracks.place((at, 1000 + at))).collect();
        assert_eq!(placed, (0..100).collect::<Vec<_>>());
        assert_eq!(subtracks.place((2000, 2001)), 0);
    }
}
