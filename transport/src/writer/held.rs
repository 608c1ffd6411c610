//! Operations that reach the writer before their call has ended. They wait here for its end, up to a number.

use super::links::{Link, Links};
use crate::correlation;
use crate::records::{Copy, Dispatch, LaunchAttributes};

/// Operations held at most; what comes beyond is not linked to its call.
pub(super) const MOST: usize = 1 << 16;

/// The record of something that a GPU did.
pub(super) enum Operation {
    Dispatch(Dispatch, LaunchAttributes),
    Copy(Copy),
    /// A dispatch that has not completed: only what its call launched.
    Launch(Dispatch),
}

impl Operation {
    /// The call that caused it.
    pub(super) fn call(&self) -> u64 {
        match self {
            Operation::Dispatch(record, _) | Operation::Launch(record) => record.correlation,
            Operation::Copy(record) => record.correlation,
        }
    }

    /// The number of the source that made the record.
    pub(super) fn source(&self) -> u8 {
        match self {
            Operation::Dispatch(record, _) | Operation::Launch(record) => record.source,
            Operation::Copy(record) => record.source,
        }
    }

    /// That call launched this and nothing else, and nothing else comes of it.
    fn ends_launch(&self) -> bool {
        matches!(self, Operation::Dispatch(record, _) if record.ends_launch())
    }
}

/// Which calls have ended: all below `watermark` but `open`.
pub(super) struct EndedCalls {
    pub(super) watermark: u64,
    pub(super) open: Vec<u64>,
}

/// How many launches wait for nothing any more.
#[derive(Clone, Copy, Default)]
pub(super) struct EndedLaunches {
    /// In the session, the open transaction included.
    pub(super) all: u64,
    /// Of those, the ones of earlier transactions: a rollback does not bring them back.
    pub(super) committed: u64,
}

/// What was drained and got no row.
#[derive(Clone, Copy, Default)]
pub(super) struct Discarded {
    pub(super) records: u64,
    /// Launches of earlier transactions that this leaves without their operation.
    pub(super) launches: u64,
}

#[derive(Default)]
pub(super) struct Held {
    links: Links,
    operations: Vec<Operation>,
    /// Those of earlier drains, until this one has had all calls.
    earlier: Vec<Operation>,
    /// Launches whose call has not ended, and whose operation was lost.
    lost_launches: Vec<u64>,
    /// The present drain is the last: nothing is left to wait for.
    is_last: bool,
}

impl Held {
    /// A drain begins. The records of the calls in `lost` will never come.
    pub(super) fn begin(&mut self, calls: EndedCalls, lost: Vec<u64>, is_last: bool) {
        self.links.begin(calls.watermark, calls.open);
        lost.into_iter().for_each(|call| self.links.lose(call));
        self.earlier.append(&mut self.operations);
        self.is_last = is_last;
    }

    /// The record of `call` was drained.
    pub(super) fn drained(&mut self, call: u64) {
        self.links.drained(call);
    }

    /// The record of `call` will never come.
    pub(super) fn lose(&mut self, call: u64) {
        self.links.lose(call);
    }

    /// The records of all calls that have ended were drained. The operations that may have waited for them.
    pub(super) fn all_calls_drained(&mut self) -> Vec<Operation> {
        self.links.all_drained();
        std::mem::take(&mut self.earlier)
    }

    /// An operation, and whether it may be linked to its call. Nothing: it is held until that has ended. `is_behind`: it came behind its call.
    pub(super) fn pass_or_hold(
        &mut self,
        operation: Operation,
        is_behind: bool,
    ) -> Option<(Operation, bool)> {
        let call = operation.call();
        let link = if call == correlation::NONE { Link::Never } else { self.links.link(call, is_behind) };
        if link == Link::Later && !self.is_last && self.operations.len() < MOST {
            self.operations.push(operation);
            return None;
        }
        Some((operation, link == Link::Now))
    }

    /// Whether a launch of an earlier transaction ends with this operation.
    pub(super) fn ends_committed_launch(&self, operation: &Operation) -> bool {
        operation.ends_launch() && self.links.is_committed(operation.call())
    }

    /// Launches whose operation got lost on its way here, as far as their calls have ended: `lost` since this was last asked.
    pub(super) fn end_lost_launches(&mut self, lost: Vec<u64>) -> EndedLaunches {
        let mut ended = EndedLaunches::default();
        self.lost_launches.extend(lost);
        for call in std::mem::take(&mut self.lost_launches) {
            match self.links.of(call) {
                Link::Never => {}
                Link::Later if self.lost_launches.len() < MOST => self.lost_launches.push(call),
                Link::Later => {}
                Link::Now => {
                    ended.all += 1;
                    ended.committed += u64::from(self.links.is_committed(call));
                }
            }
        }
        ended
    }

    /// How many operations wait for their calls.
    pub(super) fn len(&self) -> usize {
        self.operations.len()
    }

    /// Gives up all operations that wait; `each` sees them.
    pub(super) fn discard(&mut self, each: impl FnMut(&Operation)) -> Discarded {
        let operations: Vec<_> =
            [&mut self.earlier, &mut self.operations].into_iter().flat_map(std::mem::take).collect();
        operations.iter().for_each(each);
        let launches = operations.iter().filter(|operation| self.ends_committed_launch(operation)).count();
        Discarded { records: operations.len() as u64, launches: launches as u64 }
    }

    /// Whether the open transaction may be committed in the middle of a drain: not where it has an operation that is linked to a call whose
    /// row is still to come.
    pub(super) fn may_commit(&self) -> bool {
        self.links.may_commit()
    }

    /// What was drained so far is in the file.
    pub(super) fn committed(&mut self) {
        self.links.committed();
    }

    /// Rows of calls drained so far are in the part of the recording that is left now. Between two drains.
    pub(super) fn leave_part(&mut self) {
        self.links.leave_part();
    }

    /// Whether the row of the call that the operation is linked to is in an earlier part.
    pub(super) fn is_in_earlier_part(&self, operation: &Operation) -> bool {
        self.links.is_in_earlier_part(operation.call())
    }

    /// Rows of calls drained so far are not in the session that is written from now on.
    pub(super) fn forget_calls(&mut self) {
        self.links.forget();
    }
}
