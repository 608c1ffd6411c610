//! What this process has put into files: into the session that it writes, and into those before it. It also knows what is gone with a file
//! that somebody deleted or replaced.

use rpd_schema::Appender;
use rpd_schema::session_fact::{COMMITTED_EVENTS, START_MONOTONIC_NS, lost};

use super::reported::Reported;
use super::rows::Recorded;
use super::session::Sums;
use crate::counters::{Cause, Lost};
use crate::recorder::Recorder;

#[derive(Default)]
pub(super) struct FileHistory {
    /// In this session, as of the last commit: a rollback goes back to it.
    committed: Recorded,
    /// In sessions before this one, in this file.
    earlier: Recorded,
    /// Operations in files that were left for others.
    left: u64,
    /// What went with a file that is gone, as far as the next one is no copy of it.
    gone: Option<Gone>,
}

/// What a file had from this process.
#[derive(Clone, Copy)]
struct Gone {
    /// The last session in it.
    session: u32,
    recorded: Recorded,
    /// The sums that sessions in files before it have.
    reported: Sums,
    /// Events of that session alone, and the sums that sessions before it have.
    events: u64,
    before: Sums,
}

impl FileHistory {
    /// Operations in the file, and in those before it.
    pub(super) fn operations(&self) -> u64 {
        self.left + self.in_file().operations()
    }

    /// In the session, as of the last commit.
    pub(super) fn committed(&self) -> &Recorded {
        &self.committed
    }

    fn in_file(&self) -> Recorded {
        self.earlier.and(&self.committed)
    }

    /// The session has `recorded` by now, and so many records from the rings are in it since the last commit, or counted as lost.
    pub(super) fn commit(
        &mut self,
        recorder: &Recorder,
        appender: &Appender,
        recorded: &Recorded,
        drained: u64,
    ) {
        recorder.counters.account(drained);
        self.committed = *recorded;
        let progress = &recorder.requests.progress;
        progress.committed(appender, recorded.events(), recorded.launches_without_op());
    }

    /// The operations of so many launches in the session are lost.
    pub(super) fn end_launches(&mut self, launches: u64) {
        self.committed.launches_done += launches;
    }

    /// What comes from now on is another session's.
    pub(super) fn begin_session(&mut self) {
        self.earlier = self.in_file();
        self.committed = Recorded::default();
    }

    /// What comes from now on is in the next part of the recording, whose session begins with `carried`.
    pub(super) fn begin_part(&mut self, carried: &Recorded) {
        self.leave_file();
        self.committed = *carried;
    }

    /// What is in the file stays there, and is not this one's any more.
    pub(super) fn leave_file(&mut self) {
        self.left += self.in_file().operations();
        (self.earlier, self.committed) = Default::default();
    }

    /// What is in the file is gone with it; `session` was the last in it.
    pub(super) fn lose_file(&mut self, session: u32, reported: &Reported) {
        let recorded = self.in_file();
        if recorded.events() == 0 {
            return self.leave_file();
        }
        let earlier = self.gone.map(|gone| gone.recorded).unwrap_or_default();
        self.gone = Some(Gone {
            session,
            recorded: earlier.and(&recorded),
            reported: self.gone.map_or(reported.before_file(), |gone| gone.reported),
            events: self.committed.events(),
            before: reported.before_session(),
        });
        (self.earlier, self.committed) = Default::default();
    }

    /// Whether the file has what this process has put into it, after others have written it. Its owner may have deleted the facts.
    pub(super) fn is_in(&self, appender: &Appender, recorder: &Recorder) -> bool {
        let events = self.committed.events();
        if appender.still_says(COMMITTED_EVENTS, &events.to_string()) {
            return true;
        }
        match events_there(appender, appender.session(), recorder) {
            Some(there) => there >= events,
            None => {
                appender.fact_of(appender.session(), START_MONOTONIC_NS).is_none()
                    && appender.is_session_taken()
            }
        }
    }

    /// Another file was opened: counts what went with the one before, as far as this one is no copy of it.
    pub(super) fn find_gone(&mut self, appender: &Appender, recorder: &Recorder, reported: &mut Reported) {
        let Some(gone) = self.gone else { return };
        let Some(there) = events_there(appender, gone.session, recorder) else {
            return self.count_gone(recorder, reported);
        };
        // Trimmed or copied over itself, the file still has what went with the old one; an older copy has less.
        let missing = gone.events.saturating_sub(there);
        self.left += gone.recorded.operations().saturating_sub(missing);
        if missing > 0 {
            recorder.counters.lose(Cause::FileGone, missing);
            let lost = |cause: &str| appender.fact_of(gone.session, &lost(cause))?.parse().ok();
            let there = Lost::by(|cause| lost(cause).unwrap_or(0));
            reported.forget_lost_since(gone.before.lost.and(there));
        }
        self.gone = None;
    }

    /// Counts what went with a file that is gone. The next session gets the sums that sessions in that one had.
    pub(super) fn count_gone(&mut self, recorder: &Recorder, reported: &mut Reported) {
        if let Some(gone) = self.gone.take() {
            recorder.counters.lose(Cause::FileGone, gone.recorded.events());
            reported.forget_since(gone.reported);
        }
    }
}

/// How many events of that session the file has, if that is one of this process.
fn events_there(appender: &Appender, session: u32, recorder: &Recorder) -> Option<u64> {
    let events = || appender.fact_of(session, COMMITTED_EVENTS)?.parse().ok();
    is_of_process(appender, session, recorder).then(|| events().unwrap_or(0))
}

/// Whether the file has that session, and this process has written it.
pub(super) fn is_of_process(appender: &Appender, session: u32, recorder: &Recorder) -> bool {
    appender.fact_of(session, START_MONOTONIC_NS) == Some(recorder.began.0.to_string())
}
