//! Tracks side by side for what overlaps: viewers drop or move slices of one track that overlap without nesting, and here no time is
//! bent.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Tracks on which slices follow each other: what a queue runs is not inside of anything.
#[derive(Default)]
pub(super) struct Lanes {
    /// End and number of those in use.
    busy: BinaryHeap<Reverse<(i64, u32)>>,
    free: BinaryHeap<Reverse<u32>>,
    count: u32,
}

impl Lanes {
    /// The first track that is free for a slice. Slices come in the order of their begin, of equal ones the longer first.
    pub(super) fn place(&mut self, (start, end): (i64, i64)) -> u32 {
        while let Some(Reverse((until, lane))) = self.busy.peek().copied()
            && until <= start
        {
            self.busy.pop();
            self.free.push(Reverse(lane));
        }
        let lane = match self.free.pop() {
            Some(Reverse(lane)) => lane,
            None => {
                self.count += 1;
                self.count - 1
            }
        };
        self.busy.push(Reverse((end, lane)));
        lane
    }
}

/// Tracks beyond these have no slices inside each other, so that a slice is placed in a time that does not grow with their number.
const NESTING: usize = 16;

/// Tracks on which slices may be inside each other: the calls of a thread.
#[derive(Default)]
pub(super) struct NestingLanes {
    /// Ends of the open slices of each, innermost last.
    open: Vec<Vec<i64>>,
    further: Lanes,
}

impl NestingLanes {
    /// The first track on which a slice is inside of what is open there, or nothing is. Order as in [`Lanes::place`].
    pub(super) fn place(&mut self, (start, end): (i64, i64)) -> u32 {
        for (lane, open) in self.open.iter_mut().enumerate() {
            while open.last().is_some_and(|until| *until <= start) {
                open.pop();
            }
            if open.last().is_none_or(|until| end <= *until) {
                open.push(end);
                return lane as u32;
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
    fn slices_of_a_lane_follow_each_other() {
        let mut lanes = Lanes::default();
        let slices = [(0, 10), (5, 20), (6, 7), (10, 10), (10, 12), (12, 30), (15, 16), (20, 21)];
        let placed = slices.map(|slice| lanes.place(slice));
        // At 10 the first lane is free, and a slice without length leaves it so.
        assert_eq!(placed, [0, 1, 2, 0, 0, 0, 2, 1]);
    }

    #[test]
    fn slices_inside_each_other_share_a_lane() {
        let mut lanes = NestingLanes::default();
        let slices = [(0, 100), (0, 50), (10, 50), (20, 60), (60, 100), (70, 120), (100, 110), (120, 121)];
        let placed = slices.map(|slice| lanes.place(slice));
        assert_eq!(placed, [0, 0, 0, 1, 0, 1, 0, 0]);
    }

    #[test]
    fn many_overlaps_have_lanes_of_their_own() {
        let mut lanes = NestingLanes::default();
        let placed: Vec<u32> = (0..100).map(|at| lanes.place((at, 1000 + at))).collect();
        assert_eq!(placed, (0..100).collect::<Vec<_>>());
        assert_eq!(lanes.place((2000, 2001)), 0);
    }
}
