//! The open ranges of one thread, as its push and pop records tell them, and the rows they become.
//!
//! A range is recorded in the parts in which recording was on: one that is open when recording stops ends there, and
//! goes on as another row from the resume time when it is still open then.

use crate::records::ring::Entry;
use crate::records::{Kind, Marker, Stack};
use crate::switch::SwitchChange;

/// A finished part of a range: the row's content.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RangePart<'a> {
    pub(super) name: &'a str,
    pub(super) args: &'a str,
    /// ns of CLOCK_MONOTONIC.
    pub(super) start: u64,
    /// ns of CLOCK_MONOTONIC, >= start.
    pub(super) end: u64,
}

struct OpenRange {
    stack: Stack,
    /// Start of the part being recorded; none while recording is paused.
    since: Option<u64>,
    name: String,
    args: String,
}

#[derive(Default)]
pub(super) struct Ranges {
    open: Vec<OpenRange>,
    /// Changes of the switch already applied.
    applied: usize,
}

impl Ranges {
    /// What the record of a marker means to the ranges; `changes` are all of the switch so far.
    pub(super) fn follow(
        &mut self,
        entry: &Entry<'_>,
        changes: &[SwitchChange],
        mut emit: impl FnMut(RangePart<'_>),
    ) {
        let marker: Marker = bytemuck::pod_read_unaligned(entry.body);
        let stack = Stack(marker.stack);
        self.apply(changes, marker.time, &mut emit);
        match entry.kind {
            Kind::Push => {
                let (name, args) = entry.text.split_at(marker.name_len as usize);
                let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                self.push(Some(marker.time), stack, text(name), text(args));
            }
            Kind::Pop => self.pop(marker.time, stack, emit),
            Kind::Discard => self.discard(stack),
            _ => {}
        }
    }

    /// A range begins; `since` is when, nothing while recording is paused.
    pub(super) fn push(&mut self, since: Option<u64>, stack: Stack, name: String, args: String) {
        self.open.push(OpenRange { stack, since, name, args });
    }

    /// The innermost range of `stack` ends at `time`. A pop without a push does nothing.
    pub(super) fn pop(&mut self, time: u64, stack: Stack, emit: impl FnOnce(RangePart<'_>)) {
        if let Some(range) = self.innermost(stack) {
            range.end(time, emit);
        }
    }

    /// The innermost range of `stack` ended while recording was paused.
    pub(super) fn discard(&mut self, stack: Stack) {
        self.innermost(stack);
    }

    fn innermost(&mut self, stack: Stack) -> Option<OpenRange> {
        let place = self.open.iter().rposition(|range| range.stack == stack)?;
        Some(self.open.remove(place))
    }

    /// How many changes of the switch are applied.
    pub(super) fn applied(&self) -> usize {
        self.applied
    }

    /// The oldest `changes` will not be seen again.
    pub(super) fn forget(&mut self, changes: usize) {
        self.applied -= changes;
    }

    /// Recording stopped or resumed; `all` are the changes so far, those up to `until` are applied.
    pub(super) fn apply(&mut self, all: &[SwitchChange], until: u64, mut emit: impl FnMut(RangePart<'_>)) {
        while let Some(change) = all.get(self.applied).filter(|change| change.time <= until) {
            self.applied += 1;
            for range in &mut self.open {
                if change.on {
                    range.since.get_or_insert(change.time);
                } else {
                    range.end(change.time, &mut emit);
                    range.since = None;
                }
            }
        }
    }

    /// The thread or the session ends at `time`.
    pub(super) fn end(&mut self, time: u64, mut emit: impl FnMut(RangePart<'_>)) {
        while let Some(range) = self.open.pop() {
            range.end(time, &mut emit);
        }
    }
}

impl OpenRange {
    fn end(&self, time: u64, emit: impl FnOnce(RangePart<'_>)) {
        if let Some(start) = self.since {
            emit(RangePart { name: &self.name, args: &self.args, start, end: time.max(start) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(part: RangePart<'_>) -> (String, u64, u64) {
        (part.name.to_string(), part.start, part.end)
    }

    #[test]
    fn nested_ranges_end_innermost_first() {
        let mut ranges = Ranges::default();
        let mut rows = Vec::new();
        ranges.push(Some(1), Stack::RPD, "outer".into(), String::new());
        ranges.push(Some(2), Stack::RPD, "inner".into(), String::new());
        ranges.pop(3, Stack::RPD, |s| rows.push(row(s)));
        ranges.pop(4, Stack::RPD, |s| rows.push(row(s)));
        ranges.pop(5, Stack::RPD, |s| rows.push(row(s)));
        assert_eq!(rows, [("inner".into(), 2, 3), ("outer".into(), 1, 4)]);
    }

    #[test]
    fn stacks_of_one_thread_do_not_end_each_others_ranges() {
        let mut ranges = Ranges::default();
        let mut rows = Vec::new();
        ranges.push(Some(1), Stack::ROCTX, "a".into(), String::new());
        ranges.push(Some(2), Stack::RPD, "b".into(), String::new());
        ranges.pop(3, Stack::ROCTX, |s| rows.push(row(s)));
        ranges.pop(4, Stack::ROCTX, |s| rows.push(row(s)));
        ranges.pop(5, Stack::RPD, |s| rows.push(row(s)));
        assert_eq!(rows, [("a".into(), 1, 3), ("b".into(), 2, 5)]);
    }

    #[test]
    fn a_pause_cuts_a_range_in_two() {
        let mut ranges = Ranges::default();
        let mut rows = Vec::new();
        let changes = [(0, true), (10, false), (20, true)].map(|(time, on)| SwitchChange { time, on });
        ranges.apply(&changes, 5, |s| rows.push(row(s)));
        ranges.push(Some(5), Stack::RPD, "a".into(), String::new());
        ranges.push(Some(6), Stack::RPD, "b".into(), String::new());
        ranges.apply(&changes, 25, |s| rows.push(row(s)));
        ranges.discard(Stack::RPD);
        ranges.pop(30, Stack::RPD, |s| rows.push(row(s)));
        assert_eq!(rows, [("a".into(), 5, 10), ("b".into(), 6, 10), ("a".into(), 20, 30)]);
    }

    #[test]
    fn what_is_open_at_the_end_ends_there_unless_paused() {
        let mut ranges = Ranges::default();
        let mut rows = Vec::new();
        ranges.push(Some(5), Stack::RPD, "a".into(), String::new());
        ranges.end(9, |s| rows.push(row(s)));
        ranges.push(Some(10), Stack::RPD, "b".into(), String::new());
        ranges.apply(&[SwitchChange { time: 11, on: false }], 12, |s| rows.push(row(s)));
        ranges.end(20, |s| rows.push(row(s)));
        assert_eq!(rows, [("a".into(), 5, 9), ("b".into(), 10, 11)]);
    }
}
