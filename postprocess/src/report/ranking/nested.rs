//! Calls or markers of one thread that are inside each other: whose time is it?
//!
//! Where one ends inside of a later one, the later one has the time from its begin on, as `rpd markers` has it.

use std::collections::HashMap;

use anyhow::Result;
use bytemuck::{Pod, Zeroable};

use super::RunningSums;
use super::sums::{Named, Sums};
use crate::pass::parts::Key;

/// A call or marker; ordered as a stack takes them, thread after thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(super) struct NestedCall {
    /// Process, its id, and thread: ids alone may be equal.
    thread: [i64; 3],
    start: i64,
    /// The end with all bits turned over: of two with one start the longer one is the outer one.
    not_end: i64,
    /// Row of `rocpd_api`.
    id: i64,
    name: Named,
}

impl NestedCall {
    /// One that does not end before it starts.
    pub(super) fn new(thread: [i64; 3], (start, end): (i64, i64), id: i64, name: Named) -> NestedCall {
        NestedCall { thread, start, not_end: !end, id, name }
    }

    fn end(&self) -> i64 {
        !self.not_end
    }

    fn duration(&self) -> u64 {
        self.end().abs_diff(self.start)
    }
}

/// The open ones of a thread, outermost first, each with its duration without those directly inside it.
#[derive(Default)]
pub(super) struct NestedCalls {
    open: Vec<(NestedCall, u64)>,
    /// How many of a name are open.
    names: HashMap<Key, usize>,
}

impl NestedCalls {
    /// Takes the next one, and adds to `sums` what has ended by then.
    pub(super) fn enter(&mut self, range: NestedCall, sums: &mut Sums) -> Result<()> {
        if self.open.last().is_some_and(|(top, _)| top.thread != range.thread) {
            self.leave_all(sums)?;
        }
        while let Some((top, own)) = self.open.last_mut()
            && (top.end() <= range.start || top.end() < range.end())
        {
            let shared = top.end().saturating_sub(range.start).max(0).unsigned_abs();
            *own = own.saturating_sub(shared);
            self.leave(sums)?;
            if let Some((_, own)) = self.open.last_mut() {
                *own = own.saturating_add(shared);
            }
        }
        if let Some((_, own)) = self.open.last_mut() {
            *own = own.saturating_sub(range.duration());
        }
        self.open.push((range, range.duration()));
        *self.names.entry(range.name.key()).or_default() += 1;
        Ok(())
    }

    /// Ends all that are open.
    pub(super) fn leave_all(&mut self, sums: &mut Sums) -> Result<()> {
        while !self.open.is_empty() {
            self.leave(sums)?;
        }
        Ok(())
    }

    fn leave(&mut self, sums: &mut Sums) -> Result<()> {
        let Some((range, own)) = self.open.pop() else { return Ok(()) };
        let key = range.name.key();
        let outer = self.names.get(&key).map_or(0, |open| open - 1);
        match outer {
            0 => self.names.remove(&key),
            _ => self.names.insert(key, outer),
        };
        let duration = range.duration();
        let total_ns = if outer == 0 { duration } else { 0 };
        sums.add(range.name, RunningSums { total_ns, self_ns: own, ..RunningSums::of(duration) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls, total and self time of the names 1, 2 and 3.
    fn sums(ranges: &[(i64, i64, i64, i64)]) -> [(u64, u64, u64); 3] {
        let mut ranges: Vec<NestedCall> = ranges
            .iter()
            .enumerate()
            .map(|(at, &(thread, start, end, name))| {
                NestedCall::new([0, 1, thread], (start, end), at as i64, Named::of_place(name))
            })
            .collect();
        ranges.sort_unstable();
        let (mut stack, mut sums) = (NestedCalls::default(), Sums::new(false));
        for range in ranges {
            stack.enter(range, &mut sums).unwrap();
        }
        stack.leave_all(&mut sums).unwrap();
        let mut found = [(0, 0, 0); 3];
        sums.each(None, |added| {
            let sums = added.sums();
            found[added.name()[1] as usize - 1] = (sums.calls, sums.total_ns, sums.self_ns);
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn time_belongs_to_the_innermost() {
        let step = [(7, 0, 100, 1), (7, 10, 60, 2), (7, 20, 30, 3), (7, 70, 90, 2)];
        assert_eq!(sums(&step), [(1, 100, 30), (2, 70, 60), (1, 10, 10)]);
        let other_thread = [(7, 0, 100, 1), (8, 10, 60, 2)];
        assert_eq!(sums(&other_thread), [(1, 100, 100), (1, 50, 50), (0, 0, 0)]);
    }

    #[test]
    fn a_name_inside_itself_counts_its_time_once() {
        assert_eq!(sums(&[(7, 0, 100, 1), (7, 10, 60, 1), (7, 20, 30, 1)])[0], (3, 100, 100));
        assert_eq!(sums(&[(7, 0, 100, 1), (7, 10, 60, 2), (7, 20, 30, 1)])[0], (2, 100, 60));
    }

    #[test]
    fn neighbours_instants_and_overlaps() {
        assert_eq!(
            sums(&[(7, 0, 10, 1), (7, 10, 20, 2), (7, 10, 10, 3)]),
            [(1, 10, 10), (1, 10, 10), (1, 0, 0)]
        );
        // The second outlasts the first, which has no time of its own any more when the second begins.
        assert_eq!(sums(&[(7, 0, 20, 1), (7, 10, 30, 2)])[..2], [(1, 20, 10), (1, 20, 20)]);
        let in_another = [(7, 0, 50, 3), (7, 0, 20, 1), (7, 5, 15, 3), (7, 10, 30, 2)];
        assert_eq!(sums(&in_another), [(1, 20, 5), (1, 20, 20), (2, 50, 25)]);
    }
}
