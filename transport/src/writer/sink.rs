//! From the records of one drain to rows: takes every record, keeps the first error.

use std::sync::atomic::Ordering;

use rpd_schema::{Appender, Error, ErrorKind};

use super::frames::Frames;
use super::links::{Link, Links};
use super::process_ranges::ProcessRanges;
use super::ranges::{RangePart, Ranges};
use super::rows::{Recorded, Rows};
use super::session;
use super::turn::{GATE, Turns};
use crate::correlation;
use crate::process_range::Begun;
use crate::recorder::Recorder;
use crate::records::ring::Entry;
use crate::records::{Call, Copy, Dispatch, Kind, Marker};
use crate::switch::Change;

/// The record of something that a GPU did.
pub(super) enum Operation {
    Dispatch(Dispatch),
    Copy(Copy),
    /// A dispatch that has not completed: only what its call launched.
    Launch(Dispatch),
}

impl Operation {
    /// The call that caused it.
    pub(super) fn call(&self) -> u64 {
        match self {
            Operation::Dispatch(record) | Operation::Launch(record) => record.correlation,
            Operation::Copy(record) => record.correlation,
        }
    }

    /// That call launched this and nothing else, and nothing else comes of it.
    pub(super) fn settles_launch(&self) -> bool {
        matches!(self, Operation::Dispatch(record) if record.launch != 0)
    }
}

/// See the module.
pub(super) struct Sink<'a> {
    pub(super) appender: &'a mut Appender,
    pub(super) rows: &'a mut Rows,
    pub(super) process_ranges: &'a mut ProcessRanges,
    pub(super) links: &'a mut Links,
    /// Operations whose call has not ended, at most so many.
    pub(super) held: &'a mut Vec<Operation>,
    pub(super) most_held: usize,
    pub(super) changes: &'a [Change],
    pub(super) turns: &'a mut Turns,
    pub(super) recorder: &'a Recorder,
    /// The rows of all calls that have ended are there: what is left to drain are operations.
    pub(super) calls_drained: bool,
    /// An operation of this drain was linked to its call.
    pub(super) linked: bool,
    /// How many of each have been drained.
    pub(super) operations: u64,
    pub(super) calls: u64,
    /// Sums and records as of the last commit.
    pub(super) committed: &'a mut Recorded,
    pub(super) records: u64,
    /// Of those, operations of launches that earlier transactions have put into the file.
    pub(super) launches_ended: u64,
    /// All calls of this drain are in the file.
    pub(super) calls_committed: bool,
    pub(super) failed: Option<Error>,
    /// The process ends and has waited long enough: no more rows.
    pub(super) late: bool,
    /// Rows asked for, and those of them that there was no time for.
    pub(super) wanted: u64,
    pub(super) skipped: u64,
}

impl Sink<'_> {
    pub(super) fn add(&mut self, tid: u32, ranges: &mut Ranges, entry: &Entry<'_>) {
        if GATE.is_waiting() {
            self.renew();
        }
        match entry.kind {
            Kind::Dispatch => {
                return self.operation(Operation::Dispatch(bytemuck::pod_read_unaligned(entry.body)));
            }
            Kind::Copy => return self.operation(Operation::Copy(bytemuck::pod_read_unaligned(entry.body))),
            Kind::Launch => {
                return self.operation(Operation::Launch(bytemuck::pod_read_unaligned(entry.body)));
            }
            _ => self.records += 1,
        }
        match entry.kind {
            Kind::Call => {
                let call: Call = bytemuck::pod_read_unaligned(entry.body);
                self.links.drained(call.correlation);
                self.calls += 1;
                let behind = entry.text.split_at_checked(call.arguments as usize);
                let (arguments, frames) = behind.unwrap_or_default();
                self.keep(|rows, appender| {
                    rows.call(appender, tid, &call, arguments)?;
                    rows.stack(appender, &call, frames)
                });
            }
            Kind::Start | Kind::Stop => self.process_range(tid, entry),
            _ => self.marker(tid, ranges, entry),
        }
    }

    /// Stack frames of calls of earlier transactions, whose names have become known.
    pub(super) fn named_stacks(&mut self) {
        let mut stacks = self.rows.frames.as_mut().map(Frames::take_named).unwrap_or_default().into_iter();
        while self.failed.is_none()
            && !self.is_late()
            && let Some((frames, stack)) = self.rows.frames.as_mut().zip(stacks.next())
        {
            match frames.add_named(self.appender, stack) {
                Ok(written) => self.rows.recorded.stacks += written,
                Err(error) => self.failed = Some(error),
            }
            if self.appender.is_full() || GATE.is_waiting() {
                self.renew();
            }
        }
        if let Some(frames) = &mut self.rows.frames {
            frames.put_back(stacks);
        }
    }

    /// Works out the names of the frames that came with this drain, and writes them: there is no next transaction.
    pub(super) fn last_stacks(&mut self) {
        if !self.late && self.rows.frames.as_mut().is_some_and(Frames::name) {
            self.named_stacks();
        }
        if let Some(frames) = self.rows.frames.as_mut().filter(|_| self.failed.is_none()) {
            frames.lose_waiting();
        }
    }

    /// An operation, unless its call has not ended.
    pub(super) fn operation(&mut self, operation: Operation) {
        let call = operation.call();
        let link = if call == correlation::NONE { Link::Never } else { self.links.of(call) };
        if link == Link::Later && self.held.len() < self.most_held {
            self.held.push(operation);
            return;
        }
        self.records += 1;
        let linked = link == Link::Now;
        self.linked |= linked;
        self.operations += 1;
        if linked && operation.settles_launch() && (self.calls_committed || self.links.is_committed(call)) {
            self.launches_ended += 1;
        }
        self.keep(|rows, appender| match operation {
            Operation::Dispatch(record) => rows.dispatch(appender, &record, linked),
            Operation::Copy(record) => rows.copy(appender, &record, linked),
            Operation::Launch(record) if linked => rows.launched(appender, &record),
            Operation::Launch(_) => Ok(()),
        });
    }

    /// The transaction ends here and another begins: others write in between, and forks, which would leave their child unrecorded in
    /// mid-transaction, happen. Not where the row of a call is still to come that an operation in the file would lead to.
    #[cold]
    fn renew(&mut self) {
        if self.failed.is_some() || self.late || (self.linked && !self.calls_drained) {
            return;
        }
        self.failed = session::committed(self.appender, &self.rows.recorded).err();
        while self.failed.is_none() {
            self.failed = self.turns.commit(self.recorder, self.appender).err();
            let is_for_note = self.failed.as_ref().is_some_and(|error| *error.kind() == ErrorKind::Locked)
                && self.recorder.requests.note_is_due();
            if !is_for_note {
                break;
            }
            // In the middle of a drain nobody knows how much is left.
            self.recorder.requests.note_done();
            self.failed = None;
        }
        if self.failed.is_none() {
            self.rows.commit();
            self.recorder.counters.accounted.fetch_add(self.records, Ordering::Relaxed);
            (*self.committed, self.records, self.launches_ended) = (self.rows.recorded, 0, 0);
            self.calls_committed |= self.calls_drained;
            self.recorder.requests.progress.committed(
                self.appender,
                self.committed.events(),
                self.committed.launches_without_op(),
            );
            GATE.let_pass();
            self.failed = self.turns.go_on(self.recorder, self.appender).err();
        }
    }

    fn marker(&mut self, tid: u32, ranges: &mut Ranges, entry: &Entry<'_>) {
        let changes = self.changes;
        ranges.follow(entry, changes, |stretch| self.range(tid, &stretch));
        if entry.kind == Kind::Mark {
            let marker: Marker = bytemuck::pod_read_unaligned(entry.body);
            let (name, args) = entry.text.split_at(marker.name_len as usize);
            let (name, args) = (String::from_utf8_lossy(name), String::from_utf8_lossy(args));
            let mark = RangePart { name: &name, args: &args, start: marker.time, end: marker.time };
            self.keep(|rows, appender| rows.mark(appender, tid, &mark));
        }
    }

    fn process_range(&mut self, tid: u32, entry: &Entry<'_>) {
        self.with_process_ranges(|ranges, changes, emit| ranges.follow(tid, entry, changes, emit));
    }

    pub(super) fn start(&mut self, begun: Begun) {
        self.with_process_ranges(|ranges, changes, emit| ranges.start(begun, changes, emit));
    }

    /// All rings were drained.
    pub(super) fn drained(&mut self, now: u64, ending: bool) {
        self.with_process_ranges(|ranges, changes, emit| {
            ranges.drained(now, changes, &mut *emit);
            if ending {
                ranges.end(now, emit);
            }
        });
    }

    /// Runs `act` with the open process ranges, the changes of the switch and what makes rows of stretches.
    fn with_process_ranges(
        &mut self,
        act: impl FnOnce(&mut ProcessRanges, &[Change], &mut dyn FnMut(u32, RangePart<'_>)),
    ) {
        let mut ranges = std::mem::take(self.process_ranges);
        act(&mut ranges, self.changes, &mut |tid, stretch| self.range(tid, &stretch));
        *self.process_ranges = ranges;
    }

    /// Stops and resumes up to `time`.
    pub(super) fn pause(&mut self, tid: u32, ranges: &mut Ranges, time: u64) {
        let changes = self.changes;
        ranges.apply(changes, time, |stretch| self.range(tid, &stretch));
    }

    pub(super) fn end(&mut self, tid: u32, ranges: &mut Ranges, time: u64) {
        ranges.end(time, |stretch| self.range(tid, &stretch));
    }

    fn range(&mut self, tid: u32, stretch: &RangePart<'_>) {
        self.keep(|rows, appender| rows.range(appender, tid, stretch));
    }

    fn keep(&mut self, write: impl FnOnce(&mut Rows, &mut Appender) -> Result<(), Error>) {
        if self.failed.is_some() {
            return;
        }
        if self.is_late() {
            self.skipped += 1;
        } else {
            self.failed = write(self.rows, self.appender).err();
            if self.appender.is_full() {
                self.renew();
            }
        }
    }

    /// Whether there is no time for another row.
    fn is_late(&mut self) -> bool {
        self.wanted += 1;
        // Now and then: the question reads the clock.
        if self.wanted.is_multiple_of(64) {
            self.late = self.recorder.requests.is_late(self.recorder);
        }
        self.late
    }
}
