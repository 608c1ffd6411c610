//! The trace of this process, from the first record to the end: opened when there is something to write, one transaction per
//! drain.
//!
//! The file is the user's: it may be deleted, moved, replaced or emptied at any time, which is noticed before each transaction
//! and carried on from in the file that is there then. What cannot be written waits in the rings while there is room, and is then
//! drained and counted, so that a full disk never fills the application's memory.

mod failure;
mod opening;
mod ownership;
mod parts;

use std::time::Instant;

use rpd_preload::clock;
use rpd_schema::{Appender, Error, ErrorKind};

use super::access::Access;
use super::duration_log::LogFeed;
use super::held::Held;
use super::history::FileHistory;
use super::inputs::Inputs;
use super::reported::Reported;
use super::rows::Rows;
use super::session::Sums;
use super::sink::{AtStake, Sink};
use super::system_calls;
use super::turn::Turns;

use crate::counters::{Cause, Lost};
use crate::recorder::Recorder;
use parts::Parts;

pub(super) struct TraceFile {
    recorder: &'static Recorder,
    inputs: Inputs,
    held: Held,
    rows: Rows,
    appender: Option<Appender>,
    turns: Turns,
    /// State of the file after this process's last transaction.
    state: u64,
    access: Access,
    parts: Parts,
    history: FileHistory,
    reported: Reported,
    log: Option<LogFeed>,
}

/// What ends with a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Until {
    /// Nothing.
    Next,
    /// The session.
    FileChanges,
    /// The session: nothing is drained, what comes next goes into the next part of the recording.
    PartEnds,
    /// The session and what is open.
    ProcessEnds,
}

impl TraceFile {
    /// Touches nothing yet.
    pub(super) fn new(recorder: &'static Recorder) -> TraceFile {
        TraceFile {
            recorder,
            inputs: Inputs::new(recorder),
            held: Held::default(),
            rows: Rows::new(recorder),
            appender: None,
            turns: Turns::default(),
            state: 0,
            access: Access::default(),
            parts: Parts::new(recorder.config.rotation),
            history: FileHistory::default(),
            reported: Reported::new(recorder),
            log: LogFeed::new(recorder),
        }
    }

    /// Operations in the file, and in those before it.
    pub(super) fn ops(&self) -> u64 {
        self.history.operations()
    }

    /// What could not be written a moment ago is tried at once.
    pub(super) fn try_again(&mut self) {
        self.access.try_again();
    }

    /// Puts what has been recorded so far into the file.
    pub(super) fn drain(&mut self) {
        let switched = self.inputs.take_new();
        // A switch that turns where nothing was ever recorded is nothing to write down.
        let switched = switched && (self.appender.is_some() || !self.inputs.is_empty());
        let is_wanted = self.access.file_is_wanted(self.recorder);
        let files = self.appender.is_some() && self.rows.has_more_files();
        let is_due = files || self.reported.is_due(self.rows.recorded());
        if is_wanted || switched || self.has_records() || is_due {
            if self.has_records() {
                self.change_part();
            }
            self.inputs.collect_operations();
            let begin = Instant::now();
            self.transact(clock::monotonic(), Until::Next);
            if begin.elapsed() > self.recorder.config.flush_interval {
                // What has come meanwhile has waited long enough.
                self.recorder.requests.wake();
            }
        }
    }

    fn has_records(&self) -> bool {
        self.held.len() > 0 || self.rows.has_waiting_stacks() || self.inputs.has_records()
    }

    /// Works out the names of stack frames that came with the last drain; true: there are some to be written. May take long, and
    /// holds up nobody but this thread.
    pub(super) fn name_frames(&mut self) -> bool {
        !self.recorder.requests.exit_wait.is_late() && self.rows.name_stacks()
    }

    /// The session's end: open ranges end now, the counts are final.
    pub(super) fn end(&mut self) {
        self.access.try_for_the_last_time();
        let is_all_said =
            self.appender.is_none() && !self.has_records() && !self.reported.has_unsaid_losses();
        let ended = is_all_said || self.transact(clock::monotonic(), Until::ProcessEnds);
        // What is still in the rings has nowhere to go.
        self.discard();
        self.recorder.counters.lose(Cause::Write, self.rows.discard_analyzed());
        self.history.count_gone(self.recorder, &mut self.reported);
        if ended {
            self.appender = None;
            return;
        }
        // On a full disk the counts may still find room, which they have had before.
        let mut appender = self.appender.take();
        if appender.as_mut().is_none_or(|appender| self.write_counts(appender, true).is_err()) {
            self.leave_note(appender.as_ref(), Sums::of(self.recorder), true);
        }
    }

    /// A transaction without rows: what the session has recorded and lost so far, and its end if it ends.
    fn write_counts(&mut self, appender: &mut Appender, ends: bool) -> Result<(), Error> {
        self.turns.begin(self.recorder, appender)?;
        let said = self.reported.all(appender, self.history.committed(), ends);
        let said = said.and_then(|sums| {
            self.rows.files(appender, ends)?;
            self.turns.commit(self.recorder, appender)?;
            Ok(sums)
        });
        self.rows.end_files(said.is_ok());
        match said {
            Ok(sums) => self.reported.all_committed(self.history.committed(), sums),
            Err(_) => self.turns.roll_back(appender),
        }
        said.map(|_| ())
    }

    /// The file cannot be had: what was lost is said beside it.
    fn leave_note(&mut self, appender: Option<&Appender>, sums: Sums, ends: bool) {
        if !self.access.is_not_ours() {
            self.reported.leave_note(appender, self.history.committed(), sums, ends);
        }
    }

    /// The program comes down while others have the file: what waits for it is said beside it.
    pub(super) fn leave_early_note(&mut self) {
        let appender = self.appender.take();
        self.note_early(appender.as_ref(), 0);
        self.appender = appender;
    }

    /// The same, with so many records that are in the open transaction.
    fn note_early(&mut self, appender: Option<&Appender>, open: u64) {
        self.recorder.requests.note_done();
        self.inputs.take_new_rings();
        let missing = open + self.held.len() as u64 + self.inputs.waiting();
        let missing = Lost::by(|cause| if cause == Cause::Write.name() { missing } else { 0 });
        let sums = Sums::of(self.recorder);
        self.leave_note(appender, sums.with_lost(sums.lost.and(missing)), false);
    }

    /// Ends the session in this file. Ranges that are open go on in the next.
    fn leave(&mut self) {
        self.access.try_again();
        if self.appender.is_some() {
            self.transact(clock::monotonic(), Until::FileChanges);
            self.appender = None;
            self.leave_file();
            self.recorder.requests.progress.left();
        }
    }

    /// What comes from now on is another session's.
    fn begin_session(&mut self) {
        self.history.begin_session();
        self.reported.begin_session();
        self.access.session_began();
        self.rows.begin_session();
        self.held.forget_calls();
    }

    /// What is in the file stays there, and is not this one's any more.
    fn leave_file(&mut self) {
        self.history.leave_file();
        self.rows.forget_counts();
    }

    /// One transaction with everything that is in the rings; whether it was committed.
    fn transact(&mut self, now: u64, until: Until) -> bool {
        let Some(mut appender) = self.take_appender() else { return false };
        let state = system_calls::trace_state();
        let mut is_as_left = state == self.state;
        if !is_as_left && appender.has_session() {
            // SQLite knows other writers by a count in the file's head, which another file may have as well.
            let _ = appender.forget_pages();
        }
        match self.turns.begin(self.recorder, &mut appender) {
            Ok(()) => is_as_left &= state == system_calls::trace_state(),
            Err(error) if *error.kind() == ErrorKind::Locked && until == Until::Next => {
                self.appender = Some(appender);
                self.give_up(&error);
                return false;
            }
            Err(error) => {
                self.fail(appender, &error, AtStake::default());
                return false;
            }
        }
        if !is_as_left && appender.has_session() && !self.history.is_in(&appender, self.recorder) {
            self.turns.roll_back(&mut appender);
            self.leave_overwritten(appender);
            return self.transact(now, until);
        }
        let begun = ownership::check(&appender, self.recorder)
            .and_then(|()| self.reported.withdraw_note(&mut appender))
            .and_then(|()| self.begin_file(&mut appender));
        if let Err(error) = begun {
            self.fail(appender, &error, AtStake::default());
            return false;
        }
        let (at_stake, filled) = self.fill(&mut appender, now, until);
        match filled.and_then(|()| self.commit(&mut appender, at_stake)) {
            Ok(noted) => {
                self.rows.commit();
                self.history.commit(self.recorder, &appender, self.rows.recorded(), at_stake.drained);
                self.reported.committed(&appender, noted);
                self.access.stop_when_large(self.recorder, &appender);
                self.state = system_calls::trace_state();
                self.access.succeeded();
                self.appender = Some(appender);
                true
            }
            Err(error) => {
                self.fail(appender, &error, at_stake);
                false
            }
        }
    }

    /// Commits. Where a reader holds that up, and the program comes down, a note is left meanwhile; true: there is one now.
    fn commit(&mut self, appender: &mut Appender, at_stake: AtStake) -> Result<bool, Error> {
        let mut noted = false;
        loop {
            match self.turns.commit(self.recorder, appender) {
                Err(error) if *error.kind() == ErrorKind::Locked && self.recorder.requests.note_is_due() => {
                    self.note_early(Some(appender), at_stake.records());
                    noted = self.reported.has_note();
                }
                other => return other.map(|()| noted),
            }
        }
    }

    fn end_drain_of_log(&mut self) {
        if let Some(log) = &mut self.log {
            log.end_drain();
        }
    }

    /// What a session's first transaction has before any row. A file that is made now is complete before there are rows: where those
    /// find no room, what brings it back to what it was may find none either.
    fn begin_file(&mut self, appender: &mut Appender) -> Result<(), Error> {
        self.reported.introduce(appender)?;
        if appender.creates() {
            self.turns.commit(self.recorder, appender)?;
            self.reported.introduced();
            self.turns.begin(self.recorder, appender)?;
        }
        Ok(())
    }

    /// The rings are drained next.
    fn begin_drain(&mut self, until: Until) {
        // At the end nothing is left for another transaction.
        let calls = self.inputs.begin(until == Until::Next);
        self.held.begin(calls, self.recorder.lost_calls.take(), until == Until::ProcessEnds);
        let ended = self.held.end_lost_launches(self.recorder.lost_launches.take());
        self.rows.end_launches(ended.all);
        self.history.end_launches(ended.committed);
    }

    /// Rows of all records; what of them is lost if the transaction fails.
    fn fill(&mut self, appender: &mut Appender, now: u64, until: Until) -> (AtStake, Result<(), Error>) {
        let drains = until != Until::PartEnds;
        if drains {
            self.begin_drain(until);
        }
        let TraceFile { recorder, turns, rows, held, history, log, .. } = self;
        let mut sink = Sink::new(recorder, appender, turns, rows, held, history, log.as_mut());
        sink.waiting_stacks();
        if drains {
            self.inputs.drain(&mut sink, now, until);
        }
        if until != Until::Next {
            sink.last_stacks();
        }
        let (at_stake, filled) = sink.end();
        self.end_drain_of_log();
        if at_stake.skipped > 0 {
            self.recorder.counters.lose(Cause::Write, at_stake.skipped);
            self.access.complain(
                "RPDT_EXIT_MS is too short for all that is to be written; what is missing is counted",
            );
        }
        let ends = until != Until::Next;
        let facts = filled
            .and_then(|()| self.reported.facts(appender, self.rows.recorded(), ends))
            .and_then(|()| self.rows.files(appender, ends && drains));
        (at_stake, facts)
    }
}
