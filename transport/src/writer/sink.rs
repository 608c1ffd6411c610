//! From the records of one drain to rows: takes every record, keeps the first error.

use rpd_schema::{Appender, Error, ErrorKind};

use super::duration_log::LogFeed;
use super::held::{self, Held, Operation};
use super::history::FileHistory;
use super::ranges::RangePart;
use super::rows::Rows;
use super::session;
use super::turn::{GATE, Turns};
use crate::analyzed;
use crate::correlation;
use crate::counters::Cause;
use crate::recorder::Recorder;
use crate::records::ring::Entry;
use crate::records::{Call, Kind, Marker, Sensor};

/// What came of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// The row of a call.
    Call,
    /// Rows of an operation.
    Operation,
    /// Something that waits: an operation for its call, what was analyzed for its operation.
    Held,
    /// The row of a sensor.
    Sensor,
    /// Nothing yet: it is about ranges.
    Marker,
}

/// What is lost if the open transaction fails.
#[derive(Clone, Copy, Default)]
pub(super) struct AtStake {
    /// Records that came out of the rings for it.
    pub(super) drained: u64,
    /// Rows that there was no time for: they are counted as lost already.
    pub(super) skipped: u64,
    /// Operations of launches that are in the file already.
    pub(super) launches: u64,
}

impl AtStake {
    /// Records that are in the open transaction.
    pub(super) fn records(&self) -> u64 {
        self.drained.saturating_sub(self.skipped)
    }
}

/// Whether the process ends and has waited long enough: there are no more rows then.
struct Time {
    is_over: bool,
    /// How often there was something to write.
    rows: u64,
}

impl Time {
    fn new(recorder: &Recorder) -> Time {
        Time { is_over: recorder.requests.exit_wait.is_late(), rows: 0 }
    }

    /// Whether there is no time for another row.
    fn is_over_for_a_row(&mut self, recorder: &Recorder) -> bool {
        self.rows += 1;
        // Now and then: the question reads the clock.
        if self.rows.is_multiple_of(64) {
            self.is_over = recorder.requests.exit_wait.is_late();
        }
        self.is_over
    }
}

pub(super) struct Sink<'a> {
    recorder: &'a Recorder,
    appender: &'a mut Appender,
    turns: &'a mut Turns,
    rows: &'a mut Rows,
    held: &'a mut Held,
    history: &'a mut FileHistory,
    log: Option<&'a mut LogFeed>,
    /// Sources whose operations come behind their calls, by their numbers.
    keeps_order: Vec<u8>,
    /// Kernels whose calls say how they were launched, until the rows of all calls that have ended are there.
    described: Vec<Operation>,
    calls_are_there: bool,
    at_stake: AtStake,
    time: Time,
    failed: Option<Error>,
}

impl<'a> Sink<'a> {
    /// Nothing so far, in the open transaction of `appender`.
    pub(super) fn new(
        recorder: &'a Recorder,
        appender: &'a mut Appender,
        turns: &'a mut Turns,
        rows: &'a mut Rows,
        held: &'a mut Held,
        history: &'a mut FileHistory,
        log: Option<&'a mut LogFeed>,
    ) -> Sink<'a> {
        let (at_stake, time) = (AtStake::default(), Time::new(recorder));
        let ordered = recorder.setup.sources.iter().filter(|source| source.keeps_order());
        let keeps_order = ordered.map(|source| source.number()).collect();
        Sink {
            recorder,
            appender,
            turns,
            rows,
            held,
            history,
            log,
            keeps_order,
            described: vec![],
            calls_are_there: false,
            at_stake,
            time,
            failed: None,
        }
    }

    /// What is in the transaction that is open now, and the first error.
    pub(super) fn end(self) -> (AtStake, Result<(), Error>) {
        (self.at_stake, self.failed.map_or(Ok(()), Err))
    }

    /// A record of thread `tid`.
    pub(super) fn add(&mut self, tid: u32, entry: &Entry<'_>) -> Added {
        if GATE.is_waiting() {
            self.renew();
        }
        match entry.kind {
            Kind::Dispatch => {
                let attributes = bytemuck::try_pod_read_unaligned(entry.text).unwrap_or_default();
                let dispatch = bytemuck::pod_read_unaligned(entry.body);
                return self.operation(Operation::Dispatch(dispatch, attributes));
            }
            Kind::Copy => return self.operation(Operation::Copy(bytemuck::pod_read_unaligned(entry.body))),
            Kind::Launch => {
                return self.operation(Operation::Launch(bytemuck::pod_read_unaligned(entry.body)));
            }
            Kind::Analyzed => {
                self.at_stake.drained += 1;
                match analyzed::read(entry) {
                    Some((dispatch, analyses)) => self.rows.analyzed(dispatch, analyses),
                    None => self.recorder.counters.lose(Cause::Write, 1),
                }
                return Added::Held;
            }
            Kind::Sensor => {
                self.at_stake.drained += 1;
                self.sensor(entry);
                return Added::Sensor;
            }
            _ => self.at_stake.drained += 1,
        }
        if entry.kind != Kind::Call {
            return Added::Marker;
        }
        let call: Call = bytemuck::pod_read_unaligned(entry.body);
        if call.correlation != correlation::NONE {
            self.held.drained(call.correlation);
        }
        if let Some(log) = &mut self.log {
            log.call(&call);
        }
        let behind = entry.text.split_at_checked(call.arguments as usize);
        let behind = behind.unwrap_or_default();
        self.write(|rows, appender| rows.call(appender, tid, &call, behind));
        Added::Call
    }

    /// The record of the call that a thread was in will never come: the thread has ended.
    pub(super) fn lose(&mut self, call: u64) {
        self.held.lose(call);
    }

    /// The rows of all calls that have ended are there: what is left to drain are operations.
    pub(super) fn all_calls_drained(&mut self) {
        self.calls_are_there = true;
        let described = std::mem::take(&mut self.described);
        for operation in described.into_iter().chain(self.held.all_calls_drained()) {
            self.operation(operation);
        }
    }

    /// Whether the operation had better wait for the row of its call, which may be in a ring that is still to be drained: where that says the
    /// same, the operation need not.
    fn waits_for_its_row(&self, operation: &Operation) -> bool {
        let described = matches!(operation, Operation::Dispatch(record, _) if record.is_described_by_call());
        described && !self.calls_are_there && self.described.len() < held::MOST
    }

    /// An operation, unless its call has not ended.
    fn operation(&mut self, operation: Operation) -> Added {
        let is_behind = self.keeps_order.contains(&operation.source());
        if !is_behind && self.waits_for_its_row(&operation) {
            self.described.push(operation);
            return Added::Operation;
        }
        let Some((operation, linked)) = self.held.pass_or_hold(operation, is_behind) else {
            return Added::Held;
        };
        self.at_stake.drained += 1;
        if linked && self.held.ends_committed_launch(&operation) {
            self.at_stake.launches += 1;
        }
        if let (Some(log), Operation::Dispatch(record, _)) = (&mut self.log, &operation) {
            log.dispatch(record);
        }
        let is_earlier = linked && self.held.is_in_earlier_part(&operation);
        self.write(|rows, appender| {
            if is_earlier {
                rows.stand_in(appender, &operation)?;
            }
            match operation {
                Operation::Dispatch(record, attributes) => {
                    rows.dispatch(appender, &record, &attributes, linked)
                }
                Operation::Copy(record) => rows.copy(appender, &record, linked),
                Operation::Launch(record) if linked => rows.launched(appender, &record),
                Operation::Launch(_) => Ok(()),
            }
        });
        Added::Operation
    }

    /// Stack frames of calls of earlier transactions, whose names have become known.
    pub(super) fn waiting_stacks(&mut self) {
        let mut stacks = self.rows.take_stacks();
        while self.failed.is_none()
            && !self.time.is_over_for_a_row(self.recorder)
            && let Some(stack) = stacks.next()
        {
            self.failed = self.rows.waiting_stack(self.appender, stack).err();
            if self.appender.is_full() || GATE.is_waiting() {
                self.renew();
            }
        }
        self.rows.put_back_stacks(stacks);
    }

    /// Works out the names of the frames that came with this drain, and writes them: there is no next transaction.
    pub(super) fn last_stacks(&mut self) {
        if !self.time.is_over && self.rows.name_stacks() {
            self.waiting_stacks();
        }
        if self.failed.is_none() {
            self.rows.lose_waiting_stacks();
        }
    }

    /// An instant that thread `tid` marks.
    pub(super) fn mark(&mut self, tid: u32, entry: &Entry<'_>) {
        let marker: Marker = bytemuck::pod_read_unaligned(entry.body);
        let (name, args) = entry.text.split_at(marker.name_len as usize);
        let (name, args) = (String::from_utf8_lossy(name), String::from_utf8_lossy(args));
        let mark = RangePart { name: &name, args: &args, start: marker.time, end: marker.time };
        self.write(|rows, appender| rows.mark(appender, tid, &mark));
    }

    /// A run of a sensor's values.
    fn sensor(&mut self, entry: &Entry<'_>) {
        let sensor: Sensor = bytemuck::pod_read_unaligned(entry.body);
        let Some((name, value)) = entry.text.split_at_checked(sensor.name_len as usize) else { return };
        let (name, value) = (String::from_utf8_lossy(name), String::from_utf8_lossy(value));
        self.write(|rows, appender| rows.sensor(appender, &sensor, &name, &value));
    }

    /// A range of thread `tid`, or a part of one.
    pub(super) fn range(&mut self, tid: u32, part: &RangePart<'_>) {
        self.write(|rows, appender| rows.range(appender, tid, part));
    }

    fn write(&mut self, write: impl FnOnce(&mut Rows, &mut Appender) -> Result<(), Error>) {
        if self.failed.is_some() {
            return;
        }
        if self.time.is_over_for_a_row(self.recorder) {
            self.at_stake.skipped += 1;
        } else {
            self.failed = write(self.rows, self.appender).err();
            if self.appender.is_full() {
                self.renew();
            }
        }
    }

    /// The transaction ends here and another begins: others write in between, and forks, which would leave their child unrecorded in
    /// mid-transaction, happen. Not where the row of a call is still to come that an operation in the file would lead to.
    #[cold]
    fn renew(&mut self) {
        if self.failed.is_some() || self.time.is_over || !self.held.may_commit() {
            return;
        }
        self.failed = self.commit().err();
        if self.failed.is_none() {
            GATE.let_pass();
            self.failed = self.turns.go_on(self.recorder, self.appender).err();
        }
    }

    fn commit(&mut self) -> Result<(), Error> {
        session::committed(self.appender, self.rows.recorded())?;
        loop {
            match self.turns.commit(self.recorder, self.appender) {
                // In the middle of a drain nobody knows how much is left for a note.
                Err(error) if *error.kind() == ErrorKind::Locked && self.recorder.requests.note_is_due() => {
                    self.recorder.requests.note_done();
                }
                result => break result?,
            }
        }
        self.rows.commit();
        self.held.committed();
        self.history.commit(self.recorder, self.appender, self.rows.recorded(), self.at_stake.drained);
        // What there was no time for stays to be said at the drain's end.
        self.at_stake = AtStake { skipped: self.at_stake.skipped, ..AtStake::default() };
        Ok(())
    }
}
