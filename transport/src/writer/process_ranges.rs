//! The open ranges that any thread may end, as start and stop records tell them.
//!
//! A range is a row of the thread that began it. Its stop may come out of another thread's ring before its start does; such a
//! stop waits for one drain.

use std::collections::HashMap;

use super::ranges::{RangePart, Ranges};
use crate::marker::USER_MARKER;
use crate::process_range::Begun;
use crate::records::ring::Entry;
use crate::records::{Kind, ProcessRange, Stack};
use crate::switch::SwitchChange;

struct OpenProcessRange {
    tid: u32,
    /// The one range, and the parts of it that are rows already.
    range: Ranges,
}

struct Early {
    id: u64,
    time: u64,
    /// The drain it came with is over.
    waited: bool,
}

#[derive(Default)]
pub(super) struct ProcessRanges {
    open: HashMap<u64, OpenProcessRange>,
    early: Vec<Early>,
}

impl ProcessRanges {
    /// What a record of thread `tid` means to the ranges. `changes` are all of the switch so far.
    pub(super) fn follow(
        &mut self,
        tid: u32,
        entry: &Entry<'_>,
        changes: &[SwitchChange],
        emit: impl FnMut(u32, RangePart<'_>),
    ) {
        let ProcessRange { time, id } = bytemuck::pod_read_unaligned(entry.body);
        if entry.kind == Kind::Start {
            let (name, args) = (USER_MARKER.into(), String::from_utf8_lossy(entry.text).into_owned());
            self.start(Begun { id, tid, time, name, args }, changes, emit);
        } else {
            self.stop(id, time, changes, emit);
        }
    }

    /// A range begins. `changes` are all of the switch so far.
    pub(super) fn start(
        &mut self,
        begun: Begun,
        changes: &[SwitchChange],
        mut emit: impl FnMut(u32, RangePart<'_>),
    ) {
        let Begun { id, tid, time, name, args } = begun;
        let mut range = Ranges::default();
        range.apply(changes, time, |_| {});
        let is_on = match changes.iter().take_while(|change| change.time <= time).last() {
            Some(change) => change.on,
            // Before the oldest that is still known it was the other way round.
            None => changes.first().is_none_or(|change| !change.on),
        };
        range.push(is_on.then_some(time), Stack::RPD, name, args);
        // An id that comes again means that the stop of the first was lost.
        if let Some(mut lost) = self.open.insert(id, OpenProcessRange { tid, range }) {
            lost.range.end(time, |part| emit(lost.tid, part));
        }
    }

    /// A range ends at `time`.
    pub(super) fn stop(
        &mut self,
        id: u64,
        time: u64,
        changes: &[SwitchChange],
        mut emit: impl FnMut(u32, RangePart<'_>),
    ) {
        match self.open.remove(&id) {
            Some(OpenProcessRange { tid, mut range }) => {
                range.apply(changes, time, |part| emit(tid, part));
                range.end(time, |part| emit(tid, part));
            }
            None => self.early.push(Early { id, time, waited: false }),
        }
    }

    /// How many changes of the switch are applied to all that is open.
    pub(super) fn applied(&self) -> usize {
        self.open.values().map(|open| open.range.applied()).min().unwrap_or(usize::MAX)
    }

    /// The oldest `changes` will not be seen again.
    pub(super) fn forget(&mut self, changes: usize) {
        self.open.values_mut().for_each(|open| open.range.forget(changes));
    }

    /// All rings were drained, at `now`: early stops find their starts, pauses end what is open.
    pub(super) fn drained(
        &mut self,
        now: u64,
        changes: &[SwitchChange],
        mut emit: impl FnMut(u32, RangePart<'_>),
    ) {
        for early in std::mem::take(&mut self.early) {
            if self.open.contains_key(&early.id) {
                self.stop(early.id, early.time, changes, &mut emit);
            } else if !early.waited {
                self.early.push(Early { waited: true, ..early });
            }
        }
        for OpenProcessRange { tid, range } in self.open.values_mut() {
            range.apply(changes, now, |part| emit(*tid, part));
        }
    }

    /// The session ends at `now`, and every range with it.
    pub(super) fn end(&mut self, now: u64, mut emit: impl FnMut(u32, RangePart<'_>)) {
        for (_, OpenProcessRange { tid, mut range }) in self.open.drain() {
            range.end(now, |part| emit(tid, part));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Vec<(u32, u64, u64)>;

    fn begun(id: u64, tid: u32, time: u64) -> Begun {
        Begun { id, tid, time, name: "UserMarker".into(), args: String::new() }
    }

    fn to(rows: &mut Rows) -> impl FnMut(u32, RangePart<'_>) {
        |tid, part| rows.push((tid, part.start, part.end))
    }

    #[test]
    fn a_stop_may_come_first_and_overlap_is_no_nesting() {
        let (mut ranges, mut rows) = (ProcessRanges::default(), Rows::new());
        ranges.stop(2, 40, &[], to(&mut rows));
        ranges.start(begun(1, 7, 10), &[], to(&mut rows));
        ranges.start(begun(2, 8, 20), &[], to(&mut rows));
        ranges.stop(1, 30, &[], to(&mut rows));
        ranges.drained(50, &[], to(&mut rows));
        assert_eq!(rows, [(7, 10, 30), (8, 20, 40)]);
    }

    #[test]
    fn a_stop_without_a_start_is_forgotten() {
        let (mut ranges, mut rows) = (ProcessRanges::default(), Rows::new());
        ranges.stop(1, 5, &[], to(&mut rows));
        ranges.drained(6, &[], to(&mut rows));
        ranges.drained(7, &[], to(&mut rows));
        ranges.start(begun(1, 7, 10), &[], to(&mut rows));
        ranges.drained(20, &[], to(&mut rows));
        ranges.end(30, to(&mut rows));
        assert_eq!(rows, [(7, 10, 30)]);
    }

    #[test]
    fn pauses_cut_it() {
        let changes =
            [(0, true), (10, false), (20, true), (30, false)].map(|(time, on)| SwitchChange { time, on });
        let (mut ranges, mut rows) = (ProcessRanges::default(), Rows::new());
        ranges.start(begun(1, 7, 5), &changes, to(&mut rows));
        ranges.start(begun(2, 8, 15), &changes, to(&mut rows));
        ranges.start(begun(3, 9, 35), &changes, to(&mut rows));
        ranges.stop(1, 25, &changes, to(&mut rows));
        ranges.stop(2, 40, &changes, to(&mut rows));
        ranges.end(50, to(&mut rows));
        assert_eq!(rows, [(7, 5, 10), (7, 20, 25), (8, 20, 30)], "the third never was while recording");
    }

    #[test]
    fn a_range_may_be_older_than_the_changes_that_are_known() {
        let changes = [SwitchChange { time: 20, on: true }];
        let (mut ranges, mut rows) = (ProcessRanges::default(), Rows::new());
        ranges.start(begun(1, 7, 15), &changes, to(&mut rows));
        ranges.stop(1, 30, &changes, to(&mut rows));
        assert_eq!(rows, [(7, 20, 30)]);
    }
}
