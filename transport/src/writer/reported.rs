//! The report of a session, in the file's metadata or in a note beside it.

use std::time::{Duration, Instant};

use rpd_preload::lock::lock;
use rpd_schema::{Appender, Error, MOST_TIMES, SessionTime, session_fact, session_times_text};

use super::note::WriterNote;
use super::rows::Recorded;
use super::session::{self, AddFact, Part, Sums};
use crate::counters::Lost;
use crate::recorder::Recorder;
use crate::switch;

/// How often the counts in the file are renewed while recording; losses are written at once.
const COUNTS: Duration = Duration::from_secs(10);

/// Losses that are no further apart are written as one time, ns.
const APART_NS: u64 = 20_000_000;

/// Times of losses that the file gets: few, because it may have hardly any room left. Where there are more, the first become one.
const MOST_LOST_TIMES: usize = 64;

/// The counts that the session has, and when they were written.
#[derive(Clone, Copy)]
struct Counts {
    at: Instant,
    recorded: Recorded,
    sums: Sums,
}

pub(super) struct Reported {
    recorder: &'static Recorder,
    /// What is known of the process when its session begins.
    introduced: bool,
    /// Which part of the recording the session is in.
    part: Option<Part>,
    /// How many GPUs the session names.
    gpus: usize,
    counts: Option<Counts>,
    /// Sums that sessions in files have, and those that sessions before this one have.
    sums: Sums,
    before_session: Sums,
    /// Sums that sessions in files before this one have.
    before_file: Sums,
    /// How many failures.
    failures: u32,
    /// How many launches had not completed.
    without_op: u64,
    /// When records were lost in this session, and which of all that were lost these are.
    lost_times: Vec<SessionTime>,
    timed: Lost,
    /// When the switch had changed last, in what the file says of it.
    switched_at: Option<u64>,
    note: WriterNote,
    /// The session before this one, whose end its file does not say.
    unended: Option<Unended>,
}

/// A session of this process that had to be left as it was: the program has closed its file's descriptor, say.
struct Unended {
    session: u32,
    /// What its last transaction said.
    recorded: Recorded,
    sums: Sums,
}

impl Reported {
    /// Nothing so far.
    pub(super) fn new(recorder: &'static Recorder) -> Reported {
        let (before_session, before_file, sums) = Default::default();
        Reported {
            recorder,
            introduced: false,
            part: None,
            gpus: 0,
            counts: None,
            sums,
            before_session,
            before_file,
            failures: 0,
            without_op: 0,
            lost_times: Vec::new(),
            timed: Lost::default(),
            switched_at: None,
            note: WriterNote::default(),
            unended: None,
        }
    }

    /// The session has `recorded`, and cannot be ended now.
    pub(super) fn leave_unended(&mut self, session: u32, recorded: &Recorded) {
        let sums = self.sums.since(self.before_session);
        self.unended = Some(Unended { session, recorded: *recorded, sums });
    }

    /// A file was opened. Only that of the session that was left can say that it has ended.
    pub(super) fn find_unended(&mut self, is_of_process: impl FnOnce(u32) -> bool) {
        self.unended = self.unended.take().filter(|unended| is_of_process(unended.session));
    }

    fn end_the_one_before(&self, appender: &mut Appender) -> Result<(), Error> {
        let Some(Unended { session, recorded, sums }) = &self.unended else { return Ok(()) };
        let mut state = |key: &str, value: &str| appender.fact_for(*session, key, value);
        session::counts(&mut state, self.recorder, recorded, *sums)?;
        session::end(&mut state)
    }

    /// The sums that sessions before this one have.
    pub(super) fn before_session(&self) -> Sums {
        self.before_session
    }

    /// The sums that sessions in files before this one have.
    pub(super) fn before_file(&self) -> Sums {
        self.before_file
    }

    /// The file that is opened is that part of the recording.
    pub(super) fn set_part(&mut self, part: Option<Part>) {
        self.part = part;
    }

    /// What is reported next goes into another file.
    pub(super) fn begin_file(&mut self) {
        self.before_file = self.sums;
    }

    /// What is reported next goes into another session.
    pub(super) fn begin_session(&mut self) {
        (self.introduced, self.gpus, self.counts, self.switched_at) = (false, 0, None, None);
        self.before_session = self.sums;
        self.lost_times.clear();
    }

    /// What was reported after these sums is gone.
    pub(super) fn forget_since(&mut self, sums: Sums) {
        self.sums = sums;
    }

    /// Of losses, what was reported after these is gone.
    pub(super) fn forget_lost_since(&mut self, lost: Lost) {
        self.sums = self.sums.with_lost(lost);
    }

    /// Whether there is something to report, though there may be no records. `recorded` is what the session has by now.
    pub(super) fn is_due(&self, recorded: &Recorded) -> bool {
        self.has_new_failures() || self.counts_are_old(recorded)
    }

    /// Whether the session is in a file that does not say all that it has lost.
    pub(super) fn has_unsaid_losses(&self) -> bool {
        self.introduced && self.recorder.counters.lost() != self.sums.lost
    }

    fn has_new_failures(&self) -> bool {
        self.failures != self.recorder.failures.count()
    }

    fn counts_are_old(&self, now: &Recorded) -> bool {
        self.counts.is_some_and(|Counts { at, recorded, sums }| {
            // After a stop nothing may come for long, and somebody wants to know what was recorded.
            let due = at.elapsed() > COUNTS || !self.recorder.switch.is_on();
            self.recorder.counters.lost() != sums.lost || (recorded != *now && due)
        })
    }

    /// What is known of the process when its session begins, in the session's first transaction.
    pub(super) fn introduce(&self, appender: &mut Appender) -> Result<(), Error> {
        self.end_the_one_before(appender)?;
        self.introduce_to(&mut |key, value| appender.session_fact(key, value))
    }

    fn introduce_to(&self, state: &mut AddFact<'_>) -> Result<(), Error> {
        if self.introduced { Ok(()) } else { session::begin(state, self.recorder, self.part.as_ref()) }
    }

    /// What [`Reported::introduce`] said is in the file.
    pub(super) fn introduced(&mut self) {
        (self.introduced, self.unended) = (true, None);
    }

    /// The session's facts that have changed, in the open transaction, and its end if it ends.
    pub(super) fn facts(
        &mut self,
        appender: &mut Appender,
        recorded: &Recorded,
        ends: bool,
    ) -> Result<(), Error> {
        self.gpus = session::gpus(appender, self.recorder, self.gpus)?;
        let mut state = |key: &str, value: &str| appender.session_fact(key, value);
        if ends || self.counts.is_none() || self.is_due(recorded) {
            let sums = Sums::of(self.recorder);
            self.failures = self.recorder.failures.count();
            session::counts(&mut state, self.recorder, recorded, sums.since(self.before_session))?;
            self.counts = Some(Counts { at: Instant::now(), recorded: *recorded, sums });
            self.lost_times(&mut state)?;
        } else if self.without_op != recorded.launches_without_op() {
            // A process that is killed must have reported it with what it wrote last.
            session::launches_without_op(&mut state, recorded)?;
        }
        self.stops(&mut |key, value| appender.session_fact(key, value))?;
        session::committed(appender, recorded)?;
        self.without_op = recorded.launches_without_op();
        if ends { session::end(&mut |key, value| appender.session_fact(key, value)) } else { Ok(()) }
    }

    /// When records were lost, where some were.
    fn lost_times(&mut self, state: &mut AddFact<'_>) -> Result<(), Error> {
        let lost = self.recorder.counters.lost();
        let new = lost.since(self.timed);
        if new.records() > 0 {
            self.timed = lost;
            let (from, to) = self.recorder.counters.take_lost_time();
            let lost = new.by_name().map(|(cause, count)| (cause.to_owned(), count)).collect();
            self.lost_times.push(SessionTime { from, to: Some(to), lost });
            let last = self.lost_times.len() - 1;
            let ends = |time: &SessionTime| time.to.unwrap_or(time.from);
            if last > 0 && from.saturating_sub(ends(&self.lost_times[last - 1])) < APART_NS {
                join(&mut self.lost_times, last);
            } else if last == MOST_LOST_TIMES {
                join(&mut self.lost_times, 1);
            }
        }
        match self.lost_times.is_empty() {
            true => Ok(()),
            false => state(session_fact::LOST_TIMES, &session_times_text(&self.lost_times)),
        }
    }

    /// When recording was stopped, where that has changed.
    fn stops(&mut self, state: &mut AddFact<'_>) -> Result<(), Error> {
        let changed_at = self.recorder.switch.changed_at();
        if self.switched_at.replace(changed_at) == Some(changed_at) {
            return Ok(());
        }
        let stops = switch::stops(&self.recorder.switch.history(), self.recorder.began.0);
        let latest = stops.len().saturating_sub(MOST_TIMES);
        let time = |(from, to): &(u64, Option<u64>)| SessionTime { from: *from, to: *to, lost: Vec::new() };
        let times: Vec<SessionTime> = stops[latest..].iter().map(time).collect();
        if times.is_empty() { Ok(()) } else { state(session_fact::STOPPED, &session_times_text(&times)) }
    }

    /// All that the session says of itself, where there are no rows: what it has recorded and lost so far, and its end if it ends. What
    /// [`Reported::all_committed`] is to have.
    pub(super) fn all(
        &mut self,
        appender: &mut Appender,
        recorded: &Recorded,
        ends: bool,
    ) -> Result<Sums, Error> {
        let sums = Sums::of(self.recorder);
        self.withdraw_note(appender)?;
        let mut state = |key: &str, value: &str| appender.session_fact(key, value);
        self.all_to(&mut state, recorded, sums, ends)?;
        self.lost_times(&mut state)?;
        self.stops(&mut state)?;
        Ok(sums)
    }

    fn all_to(
        &self,
        state: &mut AddFact<'_>,
        recorded: &Recorded,
        sums: Sums,
        ends: bool,
    ) -> Result<(), Error> {
        self.introduce_to(state)?;
        session::counts(state, self.recorder, recorded, sums.since(self.before_session))?;
        if ends { session::end(state) } else { Ok(()) }
    }

    /// What [`Reported::all`] said is in the file.
    pub(super) fn all_committed(&mut self, recorded: &Recorded, sums: Sums) {
        (self.sums, self.introduced) = (sums, true);
        self.counts = Some(Counts { at: Instant::now(), recorded: *recorded, sums });
        self.note.forget();
    }

    /// What [`Reported::facts`] said is in the file. `noted`: a note was left while the commit waited.
    pub(super) fn committed(&mut self, appender: &Appender, noted: bool) {
        self.introduced();
        self.sums = self.counts.map_or(self.sums, |counts| counts.sums);
        self.note.committed(self.recorder, appender, noted);
    }

    /// The open transaction is not in the file.
    pub(super) fn roll_back(&mut self) {
        (self.gpus, self.counts, self.switched_at) = (0, None, None);
    }

    /// What was said beside the file gets in after all, with the open transaction; others may have taken the note in.
    pub(super) fn withdraw_note(&mut self, appender: &mut Appender) -> Result<(), Error> {
        if self.note.withdraw(self.recorder, appender)? {
            // The session's own counts stand no more.
            self.counts = None;
        }
        Ok(())
    }

    /// Whether a note beside the file says what was missing from it.
    pub(super) fn has_note(&self) -> bool {
        self.note.is_there()
    }

    /// Leaves a note with what the session has lost, in place of an earlier one. The file is that of `appender`, or the one that would be
    /// opened now.
    pub(super) fn leave_note(
        &mut self,
        appender: Option<&Appender>,
        recorded: &Recorded,
        sums: Sums,
        ends: bool,
    ) {
        let lost = sums.since(self.sums).lost.records();
        if lost == 0 {
            return;
        }
        let mut facts = vec![];
        let mut state = |key: &str, value: &str| {
            facts.push((key.to_owned(), value.to_owned()));
            Ok(())
        };
        // Nothing here fails.
        let _ = self.all_to(&mut state, recorded, sums, ends);
        let path = lock(&self.recorder.filename).expanded();
        let path = appender.map_or(&*path, Appender::path);
        let session = appender.filter(|appender| appender.has_session()).map(Appender::session);
        self.note.leave(self.recorder, path, session, &facts, lost);
    }
}

/// Makes the time at a place and the one in front of it one.
fn join(times: &mut Vec<SessionTime>, place: usize) {
    let SessionTime { from, to, lost } = times.remove(place);
    let before = &mut times[place - 1];
    before.from = before.from.min(from);
    before.to = before.to.max(to);
    for (cause, count) in lost {
        match before.lost.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, sum)) => *sum += count,
            None => before.lost.push((cause, count)),
        }
    }
}
