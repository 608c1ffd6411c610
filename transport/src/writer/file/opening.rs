//! The file that is there now: opened, and opened again when its owner has put another in its place.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rpd_preload::lock::lock;
use rpd_schema::{Appender, Error, ErrorKind};

use super::{AtStake, TraceFile};
use crate::config::Template;
use crate::log;
use crate::writer::{history, system_calls, turn};

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

impl TraceFile {
    /// The open file, opened now if it has to be.
    pub(super) fn take_appender(&mut self) -> Option<Appender> {
        if self.access.is_to_wait() {
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
            self.access.refuse(&error);
            return false;
        }
        self.leave();
        self.parts.begin();
        *lock(&self.recorder.filename) = name;
        self.recorder.switch.find_file();
        true
    }

    pub(super) fn is_still_there(&self, appender: &Appender) -> bool {
        let same = system_calls::has_open(identity(appender.path())) && system_calls::descriptors_are_ours();
        if !same {
            let path = appender.path().display();
            log::info(|| format!("{path}: moved, replaced or emptied; going on with the file there now"));
        }
        same
    }

    /// The path means another file now. What is in the old one may be gone with it.
    fn leave_behind(&mut self, session: u32) {
        if system_calls::trace_is_gone() {
            return self.lose_file(session);
        }
        self.reported.leave_unended(session, self.history.committed());
        self.leave_file();
    }

    /// Another trace, or an older copy of this one, was written into this very file.
    pub(super) fn leave_overwritten(&mut self, appender: Appender) {
        let path = appender.path().display();
        log::info(|| format!("{path}: overwritten; going on with what is there now"));
        self.lose_file(appender.session());
    }

    /// What is in the file is gone with it.
    fn lose_file(&mut self, session: u32) {
        self.history.lose_file(session, &self.reported);
        self.rows.forget_counts();
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
        let trace = lock(&self.recorder.filename).expanded();
        let (path, part) = self.parts.find(&trace);
        self.reported.set_part(part);
        match self.begin(&path) {
            Ok(appender) => {
                self.history.find_gone(&appender, self.recorder, &mut self.reported);
                let is_of_process = |session| history::is_of_process(&appender, session, self.recorder);
                self.reported.find_unended(is_of_process);
                self.reported.begin_file();
                self.begin_session();
                self.access.succeeded();
                Some(appender)
            }
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    /// The file was cut short or damaged since this process began to write it. What is left of it stays its owner's, under another
    /// name, and the next transaction makes a new one. Nobody can say what of it can still be read: all of it counts as gone.
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
            self.lose_file(appender.session());
            let aside = Path::new(&aside).display();
            return self
                .access
                .complain(&format!("{error}; it is {aside} now, recording goes on in a new file"));
        }
        system_calls::leave_turn();
    }

    pub(super) fn begin(&self, path: &Path) -> Result<Appender, Error> {
        has_directory(path)?;
        let mut appender = turn::open(path)?;
        // Who wants small buffers wants little memory taken.
        let buffers = self.recorder.buffers.bytes();
        appender.set_string_budget(self.recorder.buffers.text_bytes());
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
