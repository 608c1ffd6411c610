//! The places of the events of one track, so that none covers another: in subtracks, from the top.
//!
//! A call lies below the calls that it is inside of. Operations of a queue are side by side, never inside each other: each takes the first
//! subtrack that is free. Events come by start, of those with one start the longest first.

/// Subtracks of one track. What finds none lies in one more, in which events may cover each other.
pub const MOST: usize = 255;

/// How the events of a track lie to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// Calls of a thread: one is inside another.
    Nested,
    /// Operations of a queue: they overlap.
    FirstFree,
}

/// The subtracks of one track while its events are placed.
#[derive(Debug)]
pub struct Layout {
    order: Placement,
    /// Where the last event of each subtrack ends, ns.
    ends: Vec<u64>,
}

impl Layout {
    /// None yet.
    pub fn new(order: Placement) -> Layout {
        Layout { order, ends: Vec::new() }
    }

    /// The subtrack of the next event: from `start` to `end`, ns.
    pub fn place(&mut self, start: u64, end: u64) -> usize {
        let above = match self.order {
            Placement::FirstFree => 0,
            // The lowest of those that it is inside of.
            Placement::Nested => {
                let surrounds = |last: &u64| *last > start && *last >= end;
                self.ends.iter().rposition(surrounds).map_or(0, |subtrack| subtrack + 1)
            }
        };
        let free = self.ends[above.min(self.ends.len())..].iter().position(|last| *last <= start);
        let subtrack = free.map_or(self.ends.len().max(above), |subtrack| above + subtrack).min(MOST);
        if subtrack == self.ends.len() {
            self.ends.push(end);
        } else {
            self.ends[subtrack] = self.ends[subtrack].max(end);
        }
        subtrack
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn placed(order: Placement, events: &[(u64, u64)]) -> Vec<usize> {
        let mut subtracks = Layout::new(order);
        events.iter().map(|(start, end)| subtracks.place(*start, *end)).collect()
    }

    #[test]
    fn calls_lie_below_those_that_they_are_inside_of() {
        let events = [(0, 10), (1, 2), (3, 6), (4, 5), (7, 9), (10, 12), (10, 11)];
        assert_eq!(placed(Placement::Nested, &events), [0, 1, 1, 2, 1, 0, 1]);
        // The second sticks out of the first; the third is inside of it.
        assert_eq!(placed(Placement::Nested, &[(0, 10), (5, 15), (11, 12)]), [0, 1, 2]);
    }

    #[test]
    fn operations_take_the_first_free_subtrack() {
        assert_eq!(placed(Placement::FirstFree, &[(0, 10), (5, 15), (11, 12), (12, 13)]), [0, 1, 0, 0]);
    }

    #[test]
    fn what_finds_no_subtrack_shares_the_last() {
        let events: Vec<_> = (0..1000).map(|start| (start, 2000)).collect();
        for order in [Placement::FirstFree, Placement::Nested] {
            let subtracks = placed(order, &events);
            assert_eq!(subtracks.iter().max(), Some(&MOST));
            assert_eq!(subtracks.iter().filter(|subtrack| **subtrack == MOST).count(), 1000 - MOST);
        }
    }

    proptest! {
        #[test]
        fn none_covers_another_and_each_is_below_what_it_is_inside_of(
            mut events in prop::collection::vec((0u64..200, 0u64..60), 0..80),
            nested: bool,
        ) {
            events.iter_mut().for_each(|event| event.1 += event.0);
            events.sort_by_key(|(start, end)| (*start, u64::MAX - end));
            let order = if nested { Placement::Nested } else { Placement::FirstFree };
            let subtracks = placed(order, &events);
            for (at, (start, end)) in events.iter().enumerate() {
                for before in 0..at {
                    let (_, other) = events[before];
                    if subtracks[before] == subtracks[at] {
                        prop_assert!(other <= *start);
                    }
                    if nested && other > *start && other >= *end {
                        prop_assert!(subtracks[before] < subtracks[at]);
                    }
                }
                if !nested {
                    // No subtrack above it was free.
                    for subtrack in 0..subtracks[at] {
                        let last = (0..at).filter(|other| subtracks[*other] == subtrack).map(|other| events[other].1).max();
                        prop_assert!(last.is_some_and(|last| last > *start));
                    }
                }
            }
        }
    }
}
