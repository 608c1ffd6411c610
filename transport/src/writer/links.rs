//! The decision whether an operation may be linked to its call: only when the call's row is in the file, or comes with the same
//! transaction.
//!
//! An operation often reaches the writer before its call has returned. A process that is killed then would leave a link to a row
//! that nobody ever writes. So each drain first asks which calls are open: those that have ended have their record in a ring that
//! is about to be drained, and operations of those that have not are held back until a later drain.

use std::collections::BTreeSet;

use crate::correlation;

use crate::lost_calls::MOST;

/// What is to become of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// Its call's row is there.
    Now,
    /// Its call has not ended.
    Later,
    /// Its call's row is not in this session, and will not be.
    Never,
}

/// Calls as one drain saw them. Calls below `below` have been drained, except those that `open` may mean. The calls in `late`
/// have been drained too.
#[derive(Clone, Debug, Default)]
struct Drain {
    below: u64,
    open: Vec<u64>,
    late: BTreeSet<u64>,
}

impl Drain {
    /// Whether `call` may be open.
    fn is_open(&self, call: u64) -> bool {
        self.open.iter().any(|open| correlation::may_be(*open, call))
    }

    /// Whether the record of `call` has been drained. For calls that were beginning the answer is no.
    fn has_surely(&self, call: u64) -> bool {
        (call < self.below && !self.is_open(call)) || self.late.contains(&call)
    }

    /// Whether the record of `call` has been drained. For calls that were beginning, which cannot be told apart, the answer is yes.
    fn has(&self, call: u64) -> bool {
        (call < self.below && !self.open.contains(&call)) || self.late.contains(&call)
    }
}

#[derive(Debug, Default)]
pub(super) struct Links {
    drain: Drain,
    /// The drain before.
    previous: Drain,
    /// Calls drained so far went to another session, or got lost with a transaction.
    gone: Drain,
    lost: BTreeSet<u64>,
    /// Calls drained so far have their rows in earlier parts of the recording.
    earlier: Drain,
    /// An operation of this drain was linked to a call whose row may be still to come.
    linked: bool,
    /// All calls of this drain have been drained, and are in the file.
    all_drained: bool,
    all_committed: bool,
}

impl Links {
    /// A drain begins. `watermark`: the next id, read before the rings' open calls (`open`).
    pub(super) fn begin(&mut self, watermark: u64, open: Vec<u64>) {
        let mut drain = Drain { below: watermark, open, late: BTreeSet::new() };
        // Those that were drained while another call was beginning, which still is.
        let late = self.drain.late.iter().copied();
        drain.late = late.filter(|call| drain.is_open(*call)).collect();
        self.previous = std::mem::replace(&mut self.drain, drain);
        (self.linked, self.all_drained, self.all_committed) = (false, false, false);
    }

    /// The record of `call` was drained.
    pub(super) fn drained(&mut self, call: u64) {
        // It is over, whichever call it is that is beginning.
        if call >= self.drain.below || self.drain.is_open(call) {
            self.drain.late.insert(call);
        }
    }

    /// The records of all calls that this drain has were drained.
    pub(super) fn all_drained(&mut self) {
        self.all_drained = true;
    }

    /// What was drained so far is in the file; the drain goes on.
    pub(super) fn committed(&mut self) {
        self.all_committed |= self.all_drained;
    }

    /// Whether the file may be left as the drain has made it so far: every call that an operation was linked to has its row.
    pub(super) fn may_commit(&self) -> bool {
        self.all_drained || !self.linked
    }

    /// The record of `call` will never come.
    pub(super) fn lose(&mut self, call: u64) {
        self.lost.insert(call);
        if self.lost.len() > MOST {
            self.lost.pop_first();
        }
    }

    /// Rows of calls drained so far are not in the session that is written from now on.
    pub(super) fn forget(&mut self) {
        self.gone = self.drain.clone();
    }

    /// Rows of calls drained so far are in the part of the recording that is left now. Between two drains.
    pub(super) fn leave_part(&mut self) {
        self.earlier = self.drain.clone();
    }

    /// Whether the row of `call`, to which an operation is linked, is in an earlier part.
    pub(super) fn is_in_earlier_part(&self, call: u64) -> bool {
        self.earlier.has_surely(call)
    }

    /// Whether the row of `call` is in this session by a transaction before the open one.
    pub(super) fn is_committed(&self, call: u64) -> bool {
        let committed = if self.all_committed { &self.drain } else { &self.previous };
        !self.gone.has(call) && !self.lost.contains(&call) && committed.has_surely(call)
    }

    /// [`Links::of`] an operation that gets its row now. `is_behind`: the record of its call was drained before it, by this drain or another.
    pub(super) fn link(&mut self, call: u64, is_behind: bool) -> Link {
        let link = self.of(call);
        self.linked |= link == Link::Now && !is_behind;
        link
    }

    /// What is to become of an operation of `call`.
    pub(super) fn of(&self, call: u64) -> Link {
        if self.gone.has(call) || self.lost.contains(&call) {
            Link::Never
        } else if self.drain.has_surely(call) {
            Link::Now
        } else {
            Link::Later
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correlation::OPENING;

    #[test]
    fn calls_that_are_open_or_new_hold_their_operations_back() {
        let mut links = Links::default();
        links.begin(10, vec![4]);
        assert_eq!(
            [3, 4, 5, 10].map(|call| links.of(call)),
            [Link::Now, Link::Later, Link::Now, Link::Later]
        );
        links.drained(10);
        assert_eq!(links.of(10), Link::Now, "it came with this drain after all");
        links.begin(12, vec![]);
        assert_eq!([4, 11, 12].map(|call| links.of(call)), [Link::Now, Link::Now, Link::Later]);
    }

    #[test]
    fn calls_of_earlier_drains_are_in_the_file_unless_those_failed() {
        let mut links = Links::default();
        links.begin(10, vec![4]);
        links.drained(11);
        assert!([3, 4, 11].iter().all(|call| !links.is_committed(*call)), "this drain is not committed yet");
        links.begin(20, vec![]);
        assert_eq!([3, 4, 11, 12].map(|call| links.is_committed(call)), [true, false, true, false]);
        links.forget();
        links.begin(30, vec![]);
        assert_eq!([3, 12, 25].map(|call| links.is_committed(call)), [false; 3]);
        links.begin(40, vec![]);
        assert_eq!([3, 12, 25].map(|call| links.is_committed(call)), [false, false, true]);
    }

    #[test]
    fn a_call_that_is_beginning_may_be_any_from_there_on() {
        let mut links = Links::default();
        links.begin(10, vec![OPENING | 8]);
        assert_eq!([7, 8, 9].map(|call| links.of(call)), [Link::Now, Link::Later, Link::Later]);
    }

    #[test]
    fn a_call_that_was_drained_holds_nothing_back_while_another_is_beginning() {
        let mut links = Links::default();
        links.begin(10, vec![OPENING | 7]);
        links.drained(9);
        assert_eq!([8, 9].map(|call| links.of(call)), [Link::Later, Link::Now]);
        for watermark in [12, 14] {
            links.begin(watermark, vec![OPENING | 7]);
            assert_eq!([8, 9].map(|call| links.of(call)), [Link::Later, Link::Now], "it is still beginning");
        }
        links.begin(16, vec![]);
        assert_eq!([8, 9].map(|call| links.of(call)), [Link::Now; 2]);
    }

    #[test]
    fn calls_of_an_earlier_session_are_not_linked_to() {
        let mut links = Links::default();
        links.begin(10, vec![4]);
        links.drained(11);
        links.forget();
        links.begin(20, vec![]);
        let of = [3, 4, 10, 11, 12].map(|call| links.of(call));
        assert_eq!(of, [Link::Never, Link::Now, Link::Now, Link::Never, Link::Now], "4 and 10 came later");
    }

    #[test]
    fn calls_of_earlier_parts_are_linked_to_and_known() {
        let mut links = Links::default();
        links.begin(10, vec![4, OPENING | 8]);
        links.drained(9);
        links.drained(11);
        links.leave_part();
        links.begin(20, vec![]);
        let calls = [3, 4, 8, 9, 10, 11, 12];
        assert_eq!(calls.map(|call| links.of(call)), [Link::Now; 7]);
        let earlier = calls.map(|call| links.is_in_earlier_part(call));
        assert_eq!(earlier, [true, false, false, true, false, true, false], "4, 8, 10 and 12 came later");
        links.leave_part();
        links.begin(30, vec![]);
        assert_eq!([4, 12, 20].map(|call| links.is_in_earlier_part(call)), [true, true, false]);
        links.forget();
        assert_eq!(links.of(12), Link::Never, "that file is gone");
    }

    #[test]
    fn a_drain_is_committed_in_its_middle_only_where_every_link_has_its_call() {
        let mut links = Links::default();
        links.begin(10, vec![4]);
        assert!(links.may_commit(), "no operation so far");
        assert_eq!(links.link(4, false), Link::Later);
        assert!(links.may_commit(), "it waits");
        assert_eq!(links.link(3, true), Link::Now);
        assert!(links.may_commit(), "the row of call 3 came before");
        assert_eq!(links.link(3, false), Link::Now);
        assert!(!links.may_commit(), "the row of call 3 may be still to come");
        links.all_drained();
        assert!(links.may_commit() && !links.is_committed(3));
        links.committed();
        assert_eq!([3, 4].map(|call| links.is_committed(call)), [true, false]);
        links.begin(20, vec![]);
        assert_eq!([3, 4].map(|call| links.is_committed(call)), [true, false], "4 came with this drain");
        links.link(4, false);
        assert!(!links.may_commit());
    }

    #[test]
    fn a_lost_call_is_not_linked_to() {
        let mut links = Links::default();
        links.begin(10, vec![]);
        links.lose(5);
        assert_eq!([4, 5].map(|call| links.of(call)), [Link::Now, Link::Never]);
        (100..100 + 2 * MOST as u64).for_each(|call| links.lose(call));
        assert!(links.lost.len() <= MOST);
    }
}
