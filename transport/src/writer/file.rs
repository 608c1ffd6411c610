//! The trace of this process, from the first record to the end: opened when there is something to write, one transaction per
//! drain.
//!
//! The file is the user's: it may be deleted, moved, replaced or emptied at any time, which is noticed before each transaction
//! and carried on from in the file that is there then. What cannot be written waits in the rings while there is room, and is then
//! drained and counted, so that a full disk never fills the application's memory.

mod failure;
mod opening;

use std::io::ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rpd_preload::clock;
use rpd_preload::lock::lock;
use rpd_schema::{Appender, Error, ErrorKind};

use super::frames::Frames;
use super::links::{Link, Links};
use super::process_ranges::ProcessRanges;
use super::ranges::Ranges;
use super::rows::{Recorded, Rows};
use super::session::{self, State, Sums};
use super::sink::{Operation, Sink};
use super::system_calls;
use super::turn::Turns;
use crate::counters::{Cause, Lost};
use crate::log::Complaint;
use crate::recorder::Recorder;
use crate::records::ring::Consumer;
use crate::switch::Change;
use crate::{correlation, log};

/// Changes of the switch to remember.
const CHANGES_REMEMBERED: usize = 64;
/// How often the counts in the file are renewed while recording; losses are written at once.
const COUNTS: Duration = Duration::from_secs(10);
/// How long to wait for the thread that records operations.
const COLLECT: Duration = Duration::from_millis(500);
/// Operations held back at most; what comes beyond is not linked to its call.
const MOST_HELD: usize = 1 << 16;

/// The records and open ranges of one thread.
struct ThreadInput {
    consumer: Consumer,
    ranges: Ranges,
    /// Records of operations came out of it, and of calls. By HIP's own times commands complete on the program's threads too; the
    /// completion thread makes no calls.
    operations: bool,
    calls: bool,
}

/// See the module.
pub(super) struct File {
    recorder: &'static Recorder,
    appender: Option<Appender>,
    rows: Rows,
    drain: Drain,
    retry_at: Option<Instant>,
    complaint: Complaint,
    /// The file has reached its largest size.
    full: bool,
    /// There is no other chance to write.
    ending: bool,
    /// The file at that path is not one to be written.
    is_not_ours: bool,
    /// Nothing is to be written but a file to be there.
    opening: bool,
    turns: Turns,
    /// Sums at the last commit: a rollback goes back to them.
    committed: Recorded,
    /// Operations in files that were left for others.
    left: u64,
    /// What sessions before this one have put into this file.
    earlier: Recorded,
    /// What went with a file that is gone, as far as the next one is no copy of it.
    gone: Option<Gone>,
    /// State of the file after this process's last transaction.
    state: u64,
    reported: Reported,
}

/// What comes out of the rings, and what of it waits for a later transaction.
#[derive(Default)]
struct Drain {
    inputs: Vec<ThreadInput>,
    process_ranges: ProcessRanges,
    links: Links,
    /// The calls of the next transaction, and with them the records that are for it.
    calls: Option<Calls>,
    /// Operations whose call has not ended.
    held: Vec<Operation>,
    /// Launches whose call has not ended, and whose operation was lost.
    lost_launches: Vec<u64>,
    /// Changes of the switch that some input has not seen yet.
    changes: Vec<Change>,
}

/// What the session in the file has been told of itself.
#[derive(Default)]
struct Reported {
    /// What is known of the process when its session begins.
    introduced: bool,
    /// What is known of the GPUs.
    gpus: bool,
    /// When it was told its counts last, and which.
    counted: Option<(Instant, Recorded, Sums)>,
    /// Sums that sessions in files have been told of, and those of them that were not this one.
    sums: Sums,
    before: Sums,
    /// Sums that sessions in files before this one have been told of.
    before_file: Sums,
    /// How many failures.
    failures: u32,
    /// How many launches had not completed.
    without_op: u64,
    /// A note beside the file says what was missing from it.
    noted: bool,
}

/// What a file had from this process.
#[derive(Clone, Copy)]
struct Gone {
    /// The last session in it.
    session: u32,
    recorded: Recorded,
    /// What sessions in files before it were told.
    reported: Sums,
    /// Events of that session alone, and what sessions before it were told.
    events: u64,
    before: Sums,
}

/// What is lost if a transaction fails.
#[derive(Clone, Copy, Default)]
struct AtStake {
    records: u64,
    /// The same with those that are counted as lost already.
    drained: u64,
    /// Of those, operations of launches that are in the file already.
    launches: u64,
}

/// Which calls have ended: all below `watermark` but `open`.
struct Calls {
    watermark: u64,
    open: Vec<u64>,
}

/// What ends with a transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// Nothing.
    Next,
    /// The session.
    FileChanges,
    /// The session and what is open.
    ProcessEnds,
}

impl File {
    /// Touches nothing yet.
    pub(super) fn new(recorder: &'static Recorder) -> File {
        File {
            recorder,
            appender: None,
            rows: Rows::new(recorder),
            drain: Drain::default(),
            reported: Reported::default(),
            retry_at: None,
            complaint: Complaint::default(),
            full: false,
            ending: false,
            is_not_ours: false,
            opening: false,
            turns: Turns::default(),
            committed: Recorded::default(),
            left: 0,
            earlier: Recorded::default(),
            gone: None,
            state: 0,
        }
    }

    /// Operations in the file, and in those before it.
    pub(super) fn ops(&self) -> u64 {
        self.left + self.recorded_here().operations()
    }

    /// What this process has put into this file.
    fn recorded_here(&self) -> Recorded {
        self.earlier.and(&self.committed)
    }

    /// What could not be written a moment ago is tried at once.
    pub(super) fn try_again(&mut self) {
        self.retry_at = None;
    }

    /// Puts what has been recorded so far into the file.
    pub(super) fn drain(&mut self) {
        self.forget_changes();
        self.take_new_rings();
        // What cannot be written for long does not pile up here.
        let room = self.drain.changes.len() < 2 * CHANGES_REMEMBERED;
        let changes = if room { self.recorder.switch.take_changes() } else { Vec::new() };
        // A switch that turns where nothing was ever recorded is nothing to write down.
        let changed = !changes.is_empty() && (self.appender.is_some() || !self.drain.inputs.is_empty());
        self.drain.changes.extend(changes);
        self.opening = self.recorder.requests.file_is_wanted();
        if self.opening {
            self.try_again();
        }
        let failed = self.reported.failures != self.recorder.failures.count();
        if self.opening || changed || failed || self.has_records() || self.counts_are_old() {
            self.collect_operations();
            let begin = Instant::now();
            self.transact(clock::monotonic(), Until::Next);
            if begin.elapsed() > self.recorder.config.flush_interval {
                // What has come meanwhile has waited long enough.
                self.recorder.requests.wake();
            }
        }
    }

    /// Notes which calls are for the next transaction, and has what completed before those ended recorded: a call that waited for an
    /// operation is never in the file without it.
    fn collect_operations(&mut self) {
        self.drain.calls = Some(self.note_calls());
        let sources = self.recorder.setup.sources;
        let of_calls =
            |input: &&mut ThreadInput| !sources.iter().any(|source| source.is_own_thread(input.consumer.tid));
        self.drain.inputs.iter_mut().filter(of_calls).for_each(|input| input.consumer.note_end());
        let before = self.drain.inputs.len();
        sources.iter().for_each(|source| source.collect(COLLECT));
        // That thread may have made its ring only now. Other new ones are for the next transaction.
        self.take_new_rings();
        self.drain.inputs[before..]
            .iter_mut()
            .filter(of_calls)
            .for_each(|input| input.consumer.note_nothing());
    }

    /// Changes of the switch that every range has seen, but for the latest: a record may come in late.
    fn forget_changes(&mut self) {
        let applied =
            self.drain.inputs.iter().map(|input| input.ranges.applied()).min().unwrap_or(usize::MAX);
        let old = applied
            .min(self.drain.process_ranges.applied())
            .min(self.drain.changes.len().saturating_sub(CHANGES_REMEMBERED));
        self.drain.changes.drain(..old);
        self.drain.inputs.iter_mut().for_each(|input| input.ranges.forget(old));
        self.drain.process_ranges.forget(old);
    }

    /// Works out the names of stack frames that came with the last drain; true: there are some to be written. May take long, and
    /// holds up nobody but this thread.
    pub(super) fn name_frames(&mut self) -> bool {
        let is_late = self.recorder.requests.is_late(self.recorder);
        !is_late && self.rows.frames.as_mut().is_some_and(Frames::name)
    }

    /// The session's end: open ranges end now, the counts are final.
    pub(super) fn end(&mut self) {
        // The last chance of what could not be written a moment ago.
        (self.ending, self.retry_at) = (true, None);
        let ended = self.appender.is_none() && !self.has_records()
            || self.transact(clock::monotonic(), Until::ProcessEnds);
        // What is still in the rings has nowhere to go.
        self.discard();
        self.count_gone();
        if ended {
            self.appender = None;
            return;
        }
        // On a full disk the counts may still find room, which they have had before.
        let mut appender = self.appender.take();
        if appender.as_mut().is_none_or(|appender| self.write_counts(appender, true).is_err()) {
            self.leave_note(appender.as_ref());
        }
    }

    /// A transaction without rows: what the session has recorded and lost so far, and its end if it ends.
    fn write_counts(&mut self, appender: &mut Appender, ends: bool) -> Result<(), Error> {
        self.turns.begin(self.recorder, appender)?;
        let sums = Sums::of(self.recorder);
        let said = self
            .withdraw_note(appender)
            .and_then(|()| self.state(&mut |key, value| appender.session_fact(key, value), sums, ends))
            .and_then(|()| self.rows.names.candidates(appender))
            .and_then(|()| self.turns.commit(self.recorder, appender));
        match said {
            Ok(()) => {
                self.rows.names.commit();
                (self.reported.sums, self.reported.introduced, self.reported.noted) = (sums, true, false);
                self.reported.counted = Some((Instant::now(), self.committed, sums));
            }
            Err(_) => {
                self.rows.names.roll_back();
                self.turns.roll_back(appender);
            }
        }
        said
    }

    /// All that the session says of itself.
    fn state(&self, state: &mut State<'_>, sums: Sums, ends: bool) -> Result<(), Error> {
        self.introduce(state)?;
        session::counts(state, self.recorder, &self.committed, sums.since(self.reported.before))?;
        if ends { session::end(state) } else { Ok(()) }
    }

    /// What is known of the process when its session begins, in the session's first transaction.
    fn introduce(&self, state: &mut State<'_>) -> Result<(), Error> {
        if self.reported.introduced { Ok(()) } else { session::begin(state, self.recorder) }
    }

    /// The file could not be had to the end: what was lost is said beside it.
    fn leave_note(&mut self, appender: Option<&Appender>) {
        let sums = Sums::of(self.recorder);
        let lost = sums.since(self.reported.sums).lost.records();
        if lost > 0 && !self.is_not_ours {
            self.say_beside(appender, sums, lost, true);
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
        self.take_new_rings();
        let waiting: u64 = self.drain.inputs.iter().map(|input| input.consumer.waiting()).sum();
        let missing = open + self.drain.held.len() as u64 + waiting;
        let sums = Sums::of(self.recorder);
        let lost = sums.since(self.reported.sums).lost.records() + missing;
        if lost > 0 && !self.is_not_ours {
            let missing = Lost::by(|cause| if cause == Cause::Write.name() { missing } else { 0 });
            self.say_beside(appender, sums.with_lost(sums.lost.and(missing)), lost, false);
        }
    }

    /// Leaves a note with what the session has lost, in place of an earlier one.
    fn say_beside(&mut self, appender: Option<&Appender>, sums: Sums, lost: u64, ends: bool) {
        let mut facts = vec![];
        let mut state = |key: &str, value: &str| {
            facts.push((key.to_owned(), value.to_owned()));
            Ok(())
        };
        // Nothing here fails.
        let _ = self.state(&mut state, sums, ends);
        let path = lock(&self.recorder.filename).expanded();
        let path = appender.map_or(&*path, Appender::path);
        let session = appender.filter(|appender| appender.has_session()).map(Appender::session);
        let name = session::name_of_note(self.recorder);
        if self.reported.noted {
            rpd_schema::remove_note(path, &name);
        }
        // Why the file cannot be written was said when that began.
        let shown = path.display();
        match rpd_schema::leave_note(path, &name, session, &facts) {
            Ok(()) => {
                self.reported.noted = true;
                log::info(|| format!("{shown}: {lost} records lost, said beside it"));
            }
            // What keeps the file from being written keeps the note from it, and was said.
            Err(error) if !matches!(error.kind(), NotADirectory | AlreadyExists | PermissionDenied) => {
                log::info(|| format!("{shown}: {lost} records lost, not said beside it: {error}"));
            }
            Err(error) => log::problem(&format!(
                "{shown}: {lost} records lost, which the trace will not say: no note can be written into {shown}-lost ({error}); that must \
                 be a directory that this process may write, or not exist"
            )),
        }
    }

    /// What was said beside the file gets in after all, with the open transaction; others may have taken the note in.
    fn withdraw_note(&mut self, appender: &mut Appender) -> Result<(), Error> {
        if self.reported.noted {
            appender.withdraw_note(&session::name_of_note(self.recorder))?;
            // The session's own counts stand no more.
            self.reported.counted = None;
        }
        Ok(())
    }

    /// Ends the session in this file. Ranges that are open go on in the next.
    pub(super) fn leave(&mut self) {
        self.retry_at = None;
        if self.appender.is_some() {
            self.transact(clock::monotonic(), Until::FileChanges);
            self.appender = None;
            self.forget_file();
            self.recorder.requests.progress.left();
        }
    }

    /// What comes from now on is another session's.
    fn begin_session(&mut self) {
        self.earlier = self.earlier.and(&self.committed);
        (self.rows.recorded, self.committed) = Default::default();
        (self.reported.introduced, self.reported.gpus, self.reported.counted) = (false, false, None);
        self.is_not_ours = false;
        self.reported.before = self.reported.sums;
        self.rows.new_session();
        self.drain.links.forget();
    }

    /// What is in the file stays there, and is not this one's any more.
    fn forget_file(&mut self) {
        self.left += self.recorded_here().operations();
        (self.earlier, self.committed, self.rows.recorded) = Default::default();
    }

    fn has_records(&self) -> bool {
        !self.drain.held.is_empty()
            || self.rows.frames.as_ref().is_some_and(Frames::has_named)
            || self.drain.inputs.iter().any(|input| input.consumer.has_records())
    }

    fn counts_are_old(&self) -> bool {
        self.reported.counted.is_some_and(|(at, recorded, counted)| {
            // After a stop nothing may come for long, and somebody wants to know what was recorded.
            let due = at.elapsed() > COUNTS || !self.recorder.switch.is_on();
            self.recorder.counters.lost() != counted.lost || (recorded != self.rows.recorded && due)
        })
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
        if !is_as_left && appender.has_session() && !self.is_same_trace(&appender) {
            self.turns.roll_back(&mut appender);
            self.leave_overwritten(appender);
            return self.transact(now, until);
        }
        if let Err(error) = self.withdraw_note(&mut appender).and_then(|()| self.begin_file(&mut appender)) {
            self.fail(appender, &error, AtStake::default());
            return false;
        }
        let (at_stake, filled) = self.fill(&mut appender, now, until);
        match filled.and_then(|()| self.commit(&mut appender, at_stake)) {
            Ok(noted) => {
                self.rows.commit();
                self.account(at_stake.drained);
                // Others may have taken it in by now, which the next transaction finds.
                self.reported.noted = noted;
                if noted {
                    rpd_schema::remove_note(appender.path(), &session::name_of_note(self.recorder));
                }
                (self.committed, self.reported.introduced) = (self.rows.recorded, true);
                self.reported.sums = self.reported.counted.map_or(self.reported.sums, |(.., sums)| sums);
                self.recorder.requests.progress.committed(
                    &appender,
                    self.committed.events(),
                    self.committed.launches_without_op(),
                );
                self.stop_when_large(&appender);
                self.state = system_calls::trace_state();
                (self.appender, self.retry_at) = (Some(appender), None);
                true
            }
            Err(error) => {
                self.fail(appender, &error, at_stake);
                false
            }
        }
    }

    /// So many records from rings are in the file, or counted as lost.
    fn account(&self, records: u64) {
        self.recorder.counters.accounted.fetch_add(records, Ordering::Relaxed);
    }

    /// Commits. Where a reader holds that up, and the program comes down, a note is left meanwhile; true: there is one now.
    fn commit(&mut self, appender: &mut Appender, at_stake: AtStake) -> Result<bool, Error> {
        let mut noted = false;
        loop {
            match self.turns.commit(self.recorder, appender) {
                Err(error) if *error.kind() == ErrorKind::Locked && self.recorder.requests.note_is_due() => {
                    self.note_early(Some(appender), at_stake.records);
                    noted = self.reported.noted;
                }
                other => return other.map(|()| noted),
            }
        }
    }

    /// What stands in a session's first transaction before any row. A file that is made now is complete before there are rows: where those
    /// find no room, what brings it back to what it was may find none either.
    fn begin_file(&mut self, appender: &mut Appender) -> Result<(), Error> {
        self.introduce(&mut |key, value| appender.session_fact(key, value))?;
        if appender.creates() {
            self.turns.commit(self.recorder, appender)?;
            self.reported.introduced = true;
            self.turns.begin(self.recorder, appender)?;
        }
        Ok(())
    }

    /// RPDT_MAX_MB: recording ends for this process, which says so.
    fn stop_when_large(&mut self, appender: &Appender) {
        let Some(most) = self.recorder.config.max_bytes else { return };
        let size = std::fs::metadata(appender.path()).map_or(0, |file| file.len());
        if size >= most && !self.full {
            self.full = true;
            self.recorder.switch.disable();
            let path = appender.path().display();
            log::problem(&format!(
                "{path} has reached RPDT_MAX_MB={}: recording ends here for this process",
                most >> 20
            ));
        }
    }

    fn take_new_rings(&mut self) {
        let new = self.recorder.take_new_rings();
        self.drain.inputs.extend(new.into_iter().map(|consumer| ThreadInput {
            consumer,
            ranges: Ranges::default(),
            operations: false,
            calls: false,
        }));
    }

    /// Which calls are open, before it is said where the rings are drained to (see [`Links`]).
    fn note_calls(&mut self) -> Calls {
        let watermark = correlation::watermark();
        self.take_new_rings();
        let open = self.drain.inputs.iter().map(|input| input.consumer.open_call());
        let open = open.filter(|call| *call != correlation::NONE).collect();
        self.drain.inputs.iter_mut().for_each(|input| input.consumer.forget_end());
        Calls { watermark, open }
    }

    /// The rings are drained next: to where that was `noted`, or to their ends.
    fn begin_links(&mut self, noted: Option<Calls>) {
        let Calls { watermark, open } = noted.unwrap_or_else(|| self.note_calls());
        self.drain.links.begin(watermark, open);
        for call in self.recorder.lost_calls.take() {
            self.drain.links.lose(call);
        }
    }

    /// Launches whose operation got lost on its way here: those in the file wait for nothing any more.
    fn settle_lost_launches(&mut self) {
        self.drain.lost_launches.extend(self.recorder.lost_launches.take());
        for call in std::mem::take(&mut self.drain.lost_launches) {
            match self.drain.links.of(call) {
                Link::Never => {}
                Link::Later if self.drain.lost_launches.len() < MOST_HELD => {
                    self.drain.lost_launches.push(call)
                }
                Link::Later => {}
                Link::Now => {
                    self.rows.recorded.launches_done += 1;
                    // A rollback does not bring it back.
                    self.committed.launches_done += u64::from(self.drain.links.is_committed(call));
                }
            }
        }
    }

    /// Rows of all records; what of them is lost if the transaction fails.
    fn fill(&mut self, appender: &mut Appender, now: u64, until: Until) -> (AtStake, Result<(), Error>) {
        // At the end nothing is left for another transaction.
        let noted = self.drain.calls.take().filter(|_| until == Until::Next);
        self.begin_links(noted);
        self.settle_lost_launches();
        let held = std::mem::take(&mut self.drain.held);
        let mut sink = Sink {
            appender,
            rows: &mut self.rows,
            process_ranges: &mut self.drain.process_ranges,
            links: &mut self.drain.links,
            held: &mut self.drain.held,
            // At the end nothing is left to wait for.
            most_held: if until == Until::ProcessEnds { 0 } else { MOST_HELD },
            changes: &self.drain.changes,
            turns: &mut self.turns,
            recorder: self.recorder,
            calls_drained: false,
            linked: false,
            operations: 0,
            calls: 0,
            committed: &mut self.committed,
            records: 0,
            launches_ended: 0,
            calls_committed: false,
            failed: None,
            late: self.recorder.requests.is_late(self.recorder),
            wanted: 0,
            skipped: 0,
        };
        sink.named_stacks();
        for begun in self.recorder.waiting.take() {
            sink.start(begun);
        }
        // Calls before the operations that they caused.
        let operations_alone = |input: &ThreadInput| input.operations && !input.calls;
        self.drain.inputs.sort_by_key(operations_alone);
        let mut held = Some(held);
        for input in &mut self.drain.inputs {
            if operations_alone(input) {
                sink.calls_drained = true;
                held.take().into_iter().flatten().for_each(|operation| sink.operation(operation));
            }
            let before = (sink.operations, sink.calls);
            let (tid, ranges) = (input.consumer.tid, &mut input.ranges);
            let gone = input.consumer.drain(|entry| sink.add(tid, ranges, &entry));
            if gone {
                // It may have ended inside a call.
                sink.links.lose(input.consumer.open_call());
            }
            input.operations |= sink.operations > before.0;
            input.calls |= sink.calls > before.1;
            sink.pause(tid, ranges, now);
            if gone || until == Until::ProcessEnds {
                sink.end(tid, ranges, now);
            }
            input.consumer.gone = gone;
        }
        sink.calls_drained = true;
        held.into_iter().flatten().for_each(|operation| sink.operation(operation));
        sink.drained(now, until == Until::ProcessEnds);
        if until != Until::Next {
            sink.last_stacks();
        }
        let (records, launches_ended, skipped, failed) =
            (sink.records, sink.launches_ended, sink.skipped, sink.failed);
        if skipped > 0 {
            self.recorder.counters.lose(Cause::Write, skipped);
            self.complaint
                .say("RPDT_EXIT_MS is too short for all that is to be written; what is missing is counted");
        }
        self.drain.inputs.retain(|input| !input.consumer.gone);
        let result = failed.map_or(Ok(()), Err).and_then(|()| self.facts(appender, until));
        (
            AtStake { records: records.saturating_sub(skipped), drained: records, launches: launches_ended },
            result,
        )
    }

    fn facts(&mut self, appender: &mut Appender, until: Until) -> Result<(), Error> {
        if !self.reported.gpus {
            self.reported.gpus = session::gpus(appender, self.recorder)?;
        }
        self.rows.names.candidates(appender)?;
        let ending = until != Until::Next;
        let failures = self.recorder.failures.count();
        if ending
            || self.counts_are_old()
            || self.reported.counted.is_none()
            || self.reported.failures != failures
        {
            let sums = Sums::of(self.recorder);
            let mut state = |key: &str, value: &str| appender.session_fact(key, value);
            session::counts(
                &mut state,
                self.recorder,
                &self.rows.recorded,
                sums.since(self.reported.before),
            )?;
            self.reported.counted = Some((Instant::now(), self.rows.recorded, sums));
            self.reported.failures = failures;
        } else if self.reported.without_op != self.rows.recorded.launches_without_op() {
            // A process that is killed must have told it with what it wrote last.
            let mut state = |key: &str, value: &str| appender.session_fact(key, value);
            session::launches_without_op(&mut state, &self.rows.recorded)?;
        }
        session::committed(appender, &self.rows.recorded)?;
        self.reported.without_op = self.rows.recorded.launches_without_op();
        if ending { session::end(&mut |key, value| appender.session_fact(key, value)) } else { Ok(()) }
    }
}
