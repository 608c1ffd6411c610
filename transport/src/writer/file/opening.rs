//! The file that is there now: opened, and opened again when its owner has put another in its place.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rpd_preload::lock::lock;
use rpd_schema::session_fact::{COMMITTED_EVENTS, START_MONOTONIC_NS, lost};
use rpd_schema::{Appender, Error, ErrorKind};

use super::{AtStake, File, Gone};
use crate::config::Template;
use crate::counters::{Cause, Lost};
use crate::log;
use crate::recorder::text_bytes;
use crate::writer::{system_calls, turn};

/// Bytes of the file's pages in memory at most.
const MOST_PAGES: usize = 8 << 20;
/// Bytes of rows that are written at once: enough that what a transaction costs by itself does not count.
const MOST_ROWS: usize = 2 << 20;

/// How long to wait for others that move a damaged file aside.
const MOVE: Duration = Duration::from_millis(500);

/// Texts and stack frames of a drain at most, whose ids the session gives out itself. A call has some hundred frames, so with
/// those a session ends after tens of millions of calls.
const MOST_OWN_IDS: u64 = 1 << 29;

/// How long a look at a file that is to be the trace waits for others who write it.
const CHECK: Duration = Duration::from_millis(100);

impl File {
    /// The open file, opened now if it has to be.
    pub(super) fn take_appender(&mut self) -> Option<Appender> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            self.make_room();
            return None;
        }
        let appender = self.appender.take().filter(|appender| {
            let there = self.is_still_there(appender);
            if !there {
                self.leave_behind(appender.session());
            }
            there
        });
        match appender {
            Some(appender) if self.rows.exhausted() || appender.is_short_of_ids(MOST_OWN_IDS) => {
                self.with_another_session(appender)
            }
            Some(appender) => Some(appender),
            None => self.open(),
        }
    }

    /// Goes on in the trace of that name. False: none can have it, and nothing has changed.
    pub(in crate::writer) fn change_to(&mut self, name: Template) -> bool {
        system_calls::replace();
        let path = name.expanded();
        if let Err(error) = has_directory(&path).and_then(|()| rpd_schema::check_place(&path, CHECK)) {
            self.complaint.say_refused(&error);
            return false;
        }
        self.leave();
        *lock(&self.recorder.filename) = name;
        self.recorder.switch.find_file();
        true
    }

    fn is_still_there(&self, appender: &Appender) -> bool {
        let same = system_calls::has_open(identity(appender.path())) && system_calls::descriptors_are_ours();
        if !same {
            let path = appender.path().display();
            log::info(|| format!("{path}: moved, replaced or emptied; going on with the file there now"));
        }
        same
    }

    /// The path means another file now. What is in the old one may be gone with it.
    fn leave_behind(&mut self, session: u32) {
        if system_calls::trace_is_gone() { self.leave_gone(session) } else { self.forget_file() }
    }

    /// Another trace, or an older copy of this one, was written into this very file.
    pub(super) fn leave_overwritten(&mut self, appender: Appender) {
        let path = appender.path().display();
        log::info(|| format!("{path}: overwritten; going on with what is there now"));
        self.leave_gone(appender.session());
    }

    /// What is in the file is gone with it.
    fn leave_gone(&mut self, session: u32) {
        let recorded = self.recorded_here();
        if recorded.events() == 0 {
            return self.forget_file();
        }
        let before = self.gone.map(|gone| gone.recorded).unwrap_or_default();
        let reported = self.gone.map_or(self.reported.before_file, |gone| gone.reported);
        let events = self.committed.events();
        self.gone = Some(Gone {
            session,
            recorded: before.and(&recorded),
            reported,
            events,
            before: self.reported.before,
        });
        (self.earlier, self.committed, self.rows.recorded) = Default::default();
    }

    /// Whether the file has what this process has put into it, after others have written it. Its owner may have deleted the facts.
    pub(super) fn is_same_trace(&self, appender: &Appender) -> bool {
        let events = self.committed.events();
        if appender.still_says(COMMITTED_EVENTS, &events.to_string()) {
            return true;
        }
        match self.events_there(appender, appender.session()) {
            Some(there) => there >= events,
            None => {
                appender.fact_of(appender.session(), START_MONOTONIC_NS).is_none()
                    && appender.is_session_taken()
            }
        }
    }

    /// How many events of that session the file has, if that is one of this process.
    fn events_there(&self, appender: &Appender, session: u32) -> Option<u64> {
        let began = appender.fact_of(session, START_MONOTONIC_NS)?;
        let events = || appender.fact_of(session, COMMITTED_EVENTS)?.parse().ok();
        (began == self.recorder.began.0.to_string()).then(|| events().unwrap_or(0))
    }

    /// The file that is there now: counts what went with the one before, as far as this one is no copy of it.
    fn find_gone(&mut self, appender: &Appender) {
        let Some(gone) = self.gone else { return };
        let Some(there) = self.events_there(appender, gone.session) else { return self.count_gone() };
        // Trimmed or copied over itself, the file still has what went with the old one; an older copy has less.
        let missing = gone.events.saturating_sub(there);
        self.left += gone.recorded.operations().saturating_sub(missing);
        if missing > 0 {
            self.recorder.counters.lose(Cause::FileGone, missing);
            let lost = |cause: &str| appender.fact_of(gone.session, &lost(cause))?.parse().ok();
            let there = Lost::by(|cause| lost(cause).unwrap_or(0));
            self.reported.sums = self.reported.sums.with_lost(gone.before.lost.and(there));
        }
        self.gone = None;
    }

    /// Counts what went with a file that is gone, and tells the next session what that one had been told.
    pub(super) fn count_gone(&mut self) {
        if let Some(gone) = self.gone.take() {
            self.recorder.counters.lose(Cause::FileGone, gone.recorded.events());
            self.reported.sums = gone.reported;
        }
    }

    /// A session has room for so many rows.
    fn with_another_session(&mut self, mut appender: Appender) -> Option<Appender> {
        let another = self.write_counts(&mut appender, true).and_then(|()| appender.next_session());
        match another {
            Ok(()) => {
                self.begin_session();
                Some(appender)
            }
            Err(error) => {
                self.fail(appender, &error, AtStake::default());
                None
            }
        }
    }

    fn open(&mut self) -> Option<Appender> {
        system_calls::replace();
        let path = lock(&self.recorder.filename).expanded();
        match self.begin(&path) {
            Ok(appender) => {
                self.find_gone(&appender);
                self.reported.before_file = self.reported.sums;
                self.begin_session();
                self.retry_at = None;
                Some(appender)
            }
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    /// The file was cut short or damaged since this process began to write it. What is left of it stays its owner's, under another
    /// name, and the next transaction makes a new one.
    pub(super) fn move_aside(&mut self, appender: &Appender, error: &Error) {
        let path = appender.path();
        // Others that record into it find the same at the same time.
        let is_turn = turn::take_for(MOVE);
        if is_turn && system_calls::has_open(identity(path)) {
            let mut aside = OsString::from(path);
            aside.push(format!("-damaged-{}", self.recorder.pid));
            let moved = std::fs::rename(path, &aside);
            system_calls::leave_turn();
            if let Err(cannot) = moved {
                log::info(|| format!("{}: {cannot}", path.display()));
                return self.give_up(error);
            }
            self.forget_file();
            let aside = Path::new(&aside).display();
            return self
                .complaint
                .say(&format!("{error}; it is {aside} now, recording goes on in a new file"));
        }
        system_calls::leave_turn();
    }

    fn begin(&self, path: &Path) -> Result<Appender, Error> {
        has_directory(path)?;
        let mut appender = turn::open(path)?;
        // Who wants small buffers wants little memory taken.
        let buffers = self.recorder.buffer_bytes();
        appender.set_string_budget(text_bytes(buffers));
        appender.set_page_cache((buffers / 8).min(MOST_PAGES))?;
        appender.set_waiting((buffers / 16).min(MOST_ROWS));
        Ok(appender)
    }
}

/// A name that is relative by now was so when there was no working directory; what it would mean in another one, nobody has asked for.
fn has_directory(path: &Path) -> Result<(), Error> {
    if path.is_absolute() { Ok(()) } else { Err(Error::new(ErrorKind::NoWorkingDirectory, path)) }
}

/// What `path` means now; nothing for a missing or empty file. Only asks: opening and closing the file would drop the locks that
/// SQLite holds on it for the whole process.
fn identity(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().filter(|file| file.len() > 0).map(|file| (file.dev(), file.ino()))
}
