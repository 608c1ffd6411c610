//! The file that is there now: opened, and opened again when its owner has put another in its place.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Instant;

use rpd_schema::{Appender, Error};

use super::File;
use crate::log;
use crate::sync::lock;
use crate::writer::{session, system_calls, turn};

/// Bytes of the file's pages in memory at most.
const MOST_PAGES: usize = 8 << 20;
/// Bytes of rows that are written at once: enough that what a transaction costs by itself does not count.
const MOST_ROWS: usize = 2 << 20;

/// Texts and stack frames of a drain at most, whose ids the session gives out itself. A call has some hundred frames, so with
/// those a session ends after tens of millions of calls.
const MOST_OWN_IDS: u64 = 1 << 29;

/// Which file a path meant when it was opened: (device, inode).
pub(super) type Identity = Option<(u64, u64)>;

impl File {
    /// The open file, opened now if it has to be.
    pub(super) fn take_appender(&mut self) -> Option<Appender> {
        if self.retry_at.is_some_and(|at| Instant::now() < at) {
            self.make_room();
            return None;
        }
        match self.appender.take().filter(|appender| self.is_still_there(appender)) {
            Some(appender) if self.rows.exhausted() || appender.is_short_of_ids(MOST_OWN_IDS) => {
                self.with_another_session(appender)
            }
            Some(appender) => Some(appender),
            None => self.open(),
        }
    }

    fn is_still_there(&self, appender: &Appender) -> bool {
        let same = self.identity == identity(appender.path()) && system_calls::descriptors_are_ours();
        if !same {
            let path = appender.path().display();
            log::info(|| format!("{path}: moved, replaced or emptied; going on with the file there now"));
        }
        same
    }

    /// A session has room for so many rows.
    fn with_another_session(&mut self, mut appender: Appender) -> Option<Appender> {
        let another = self
            .end_without_rows(&mut appender)
            .and_then(|()| appender.next_session())
            .and_then(|()| session::begin(&mut appender, self.recorder));
        match another {
            Ok(()) => {
                self.begin_session();
                Some(appender)
            }
            Err(error) => {
                self.fail(appender, &error, 0);
                None
            }
        }
    }

    fn open(&mut self) -> Option<Appender> {
        system_calls::replace();
        let path = lock(&self.recorder.filename).expanded();
        match self.begin(&path) {
            Ok(appender) => {
                self.begin_session();
                (self.identity, self.retry_at) = (identity(&path), None);
                Some(appender)
            }
            Err(error) => {
                self.give_up(&error);
                None
            }
        }
    }

    fn begin(&self, path: &Path) -> Result<Appender, Error> {
        let mut appender = turn::open(path)?;
        // Who wants small buffers wants little memory taken.
        let config = &self.recorder.config;
        appender.set_string_budget(config.text_bytes());
        appender.set_page_cache((config.buffer_bytes / 8).min(MOST_PAGES))?;
        appender.set_waiting((config.buffer_bytes / 16).min(MOST_ROWS));
        session::begin(&mut appender, self.recorder)?;
        Ok(appender)
    }
}

/// What `path` means now; nothing for a missing or empty file. Only asks: opening and closing the file would drop the locks that
/// SQLite holds on it for the whole process.
fn identity(path: &Path) -> Identity {
    std::fs::metadata(path).ok().filter(|file| file.len() > 0).map(|file| (file.dev(), file.ino()))
}
