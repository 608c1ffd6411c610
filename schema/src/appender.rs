//! A writer's view of a trace: one process, one session, one connection.
//!
//! ```text
//! open -> begin -> intern, api, op ... -> commit -> begin -> ...
//! ```
//!
//! Used by one thread, which owns it. Calls may wait for other processes' locks, up to the busy time, in `open`,
//! `begin`, `commit` and `next_session`; never elsewhere.
//!
//! When something fails between `begin` and `commit`, call [`Appender::rollback`] and nothing of the transaction is in
//! the file. Two failures are no reason to: [`ErrorKind::Locked`] from `commit` (a reader took longer than the busy time;
//! call it again) and [`ErrorKind::SessionFull`] (commit, [`Appender::next_session`], go on).

use crate::append::has_text;
use crate::create::{complete, connect, is_empty, require_v2};
use crate::error::{Error, ErrorKind};
use crate::intern::BUDGET;
use crate::known_tables::KnownTables;
use crate::note;
use crate::open::BUSY_TIME;
use crate::pending::Pending;
use crate::session::{OwnSession, claim, count};
use crate::sessions::{SessionInfo, sessions};
use crate::transaction::{Presence, Transaction};
use crate::transfer::Transfer;
use crate::version::version_of;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Appends one session's rows to a trace of schema 2.
#[derive(Debug)]
pub struct Appender {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) session: OwnSession,
    pub(crate) tables: KnownTables,
    pub(crate) transaction: Option<Transaction>,
    pub(crate) rows: Pending,
    transfer: Transfer,
}

impl Appender {
    /// Opens a trace for appending and takes a session: creates the file if there is none or one of 0 bytes, and adds
    /// what an older file of schema 2 lacks. Waits up to [`BUSY_TIME`] for other writers, here and later.
    ///
    /// # Errors
    ///
    /// Says what the file is if it is no trace of schema 2, and leaves it alone.
    pub fn open(path: &Path) -> Result<Appender, Error> {
        Appender::open_within(path, BUSY_TIME)
    }

    /// [`Appender::open`], waiting up to `busy` for each lock, here and later.
    ///
    /// # Errors
    ///
    /// As [`Appender::open`].
    pub fn open_within(path: &Path, busy: Duration) -> Result<Appender, Error> {
        let mut appender = Appender::open_without_session(path, busy)?;
        appender.take_session()?;
        Ok(appender)
    }

    /// [`Appender::open_within`], but nothing is written: the first transaction that is committed creates the file and takes the
    /// session, so that one failure or wait is not followed by others, and no session is in the file that has nothing else.
    ///
    /// # Errors
    ///
    /// As [`Appender::open`]; what is wrong with the file may come from [`Appender::begin`] as well.
    pub fn open_without_session(path: &Path, busy: Duration) -> Result<Appender, Error> {
        let connection = connect(path, busy)?;
        keep_rollback_journal(&connection);
        Ok(Appender {
            connection,
            path: path.to_path_buf(),
            session: OwnSession::new(0, Presence::Unknown, BUDGET),
            tables: KnownTables::default(),
            transaction: None,
            rows: Pending::new(),
            transfer: Transfer::default(),
        })
    }

    /// The session number: every id this appender writes is the local one plus this times 2^32. Known from the first transaction on.
    #[must_use]
    pub fn session(&self) -> u32 {
        self.session.number
    }

    /// Whether the file has this session.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.session.presence == Presence::Committed
    }

    /// Whether the open transaction makes the file: a rollback leaves nothing of it.
    #[must_use]
    pub fn creates(&self) -> bool {
        self.transaction.as_ref().is_some_and(|open| open.creates)
    }

    /// The file, as it was named when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file says about some session; nothing where it cannot be read.
    #[must_use]
    pub fn fact_of(&self, session: u32, key: &str) -> Option<String> {
        let query = "SELECT CAST(value AS text) FROM rocpd_metadata WHERE tag = ?1 ORDER BY id DESC LIMIT 1";
        self.connection.query_row(query, [format!("session::{session}::{key}")], |row| row.get(0)).ok()
    }

    /// The sessions that say something of themselves, this one too.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn sessions(&self) -> Result<Vec<SessionInfo>, Error> {
        sessions(&self.connection).map_err(|error| self.error(error))
    }

    /// Whether the fact about this session is where it was put, with this value: answered without a search.
    #[must_use]
    pub fn still_says(&self, key: &str, value: &str) -> bool {
        self.session.facts.still_says(&self.connection, key, value).unwrap_or(false)
    }

    /// Whether the file knows that the number of this session has been taken, by whomever.
    #[must_use]
    pub fn is_session_taken(&self) -> bool {
        count(&self.connection).is_ok_and(|taken| taken > self.session.number)
    }

    /// Reads the file anew: somebody may have put other bytes in the place of those that SQLite remembers.
    pub fn forget_pages(&self) -> Result<(), Error> {
        self.run("PRAGMA shrink_memory")
    }

    /// Who decides, in place of the busy time, whether to wait for other processes' locks: `wait` sleeps a while and says whether to
    /// try again. It is told how often it has been asked in the present wait.
    pub fn set_busy_handler(&mut self, wait: fn(i32) -> bool) -> Result<(), Error> {
        self.connection.busy_handler(Some(wait)).map_err(|error| self.error(error))
    }

    /// How many bytes of texts to remember, bookkeeping included (default 32 MiB). With less, a text that comes again
    /// after many others may get a second row.
    pub fn set_string_budget(&mut self, bytes: usize) {
        self.session.interner.set_budget(bytes);
    }

    /// How many bytes of the file's pages to keep in memory (default 16 MiB, which is also enough for most transactions). With less,
    /// a transaction that outgrows it writes pages before its end, and locks readers out from then on.
    pub fn set_page_cache(&mut self, bytes: usize) -> Result<(), Error> {
        self.run(&format!("PRAGMA cache_size = -{}", bytes >> 10))
    }

    /// How many bytes of rows may wait to be written (default 2 MiB); three times as much is needed for a moment to write them.
    pub fn set_waiting(&mut self, bytes: usize) {
        self.rows.set_most(bytes);
    }

    /// Takes another session of the same file, when this one has no ids left. Local ids and facts start afresh; ids of
    /// texts stay valid, new ones come from the new session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InTransaction`] between `begin` and `commit`; those of SQLite, and then the old session stays.
    pub fn next_session(&mut self) -> Result<(), Error> {
        if self.transaction.is_some() {
            return Err(Error::new(ErrorKind::InTransaction, &self.path));
        }
        let old = self.session.clone();
        self.session.presence = Presence::Unknown;
        let taken = self.take_session();
        if taken.is_err() {
            self.session = old;
        }
        taken
    }

    /// Takes a session in a transaction of its own.
    fn take_session(&mut self) -> Result<(), Error> {
        let taken = self.begin().and_then(|()| self.commit());
        if taken.is_err() {
            self.rollback();
        }
        taken
    }

    /// Whether `rows` more rows of one kind might be more than this session has ids for: those of texts, links, monitors and stack
    /// frames, which are not the caller's. Then it is time for [`Appender::next_session`].
    #[must_use]
    pub fn is_short_of_ids(&self, rows: u64) -> bool {
        self.session.is_short_of_ids(rows)
    }

    /// Begins a transaction; waits for other writers up to the busy time. The first one takes the session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] when that was not enough, [`ErrorKind::InTransaction`] when one is open.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.transaction.is_some() {
            return Err(Error::new(ErrorKind::InTransaction, &self.path));
        }
        self.run("BEGIN IMMEDIATE")?;
        self.transaction = Some(Transaction::default());
        let begun = match self.session.presence {
            Presence::Unknown => self.begin_session(),
            _ => self.look_for_changes(),
        };
        if begun.is_err() {
            self.rollback();
        }
        begun
    }

    /// Whether others have written the file since this writer's last transaction: then its owner may have deleted from it.
    fn look_for_changes(&mut self) -> Result<(), Error> {
        let sqlite = |error| Error::sqlite(&self.path, error);
        let connection = &self.connection;
        if self.tables.are_in_doubt(connection).map_err(sqlite)? {
            self.session.interner.doubt();
            let empty = self.session.interner.empty();
            if !has_text(connection, empty).map_err(sqlite)? {
                let again = "INSERT INTO rocpd_string (id, string) VALUES (?1, '')";
                connection.execute(again, [empty.0]).map_err(sqlite)?;
            }
        }
        Ok(())
    }

    /// Makes the file complete and takes a session, in the open transaction.
    fn begin_session(&mut self) -> Result<(), Error> {
        let sqlite = |error| Error::sqlite(&self.path, error);
        let connection = &self.connection;
        let creates = is_empty(connection).map_err(sqlite)?;
        if !creates {
            let version = version_of(connection).map_err(|error| error.at(&self.path))?;
            require_v2(connection, version, &self.path)?;
        }
        complete(connection).map_err(sqlite)?;
        let session = claim(connection).map_err(sqlite)?;
        let session = session.ok_or_else(|| Error::new(ErrorKind::NoSessionLeft, &self.path))?;
        let notes = note::take_in(connection, &self.path).map_err(sqlite)?;
        self.tables.are_complete(connection).map_err(sqlite)?;
        self.session = OwnSession::new(session, Presence::InTransaction, self.session.interner.budget());
        self.transaction = Some(Transaction { creates, notes, ..Transaction::default() });
        Ok(())
    }

    /// Writes what is waiting and commits: other processes see the transaction, and a kill no longer loses it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] when a reader held the file beyond the busy time: nothing is lost, call it again; until then the
    /// transaction takes no more rows. After any other error call [`Appender::rollback`].
    pub fn commit(&mut self) -> Result<(), Error> {
        if self.ensure_unsealed().is_ok() {
            self.admit(0)?;
            self.ensure_open()?;
            let finished = self.transfer.finish(&mut self.connection, &mut self.rows);
            self.rows.written();
            let finished = finished.map_err(|error| self.error(error))?;
            if let Some(open) = &mut self.transaction {
                (open.has_written, open.is_sealed) = (true, finished);
            }
        }
        self.run("COMMIT")?;
        let notes = self.end_transaction();
        self.session.commit();
        self.tables.commit();
        if !notes.is_empty() {
            note::remove_notes(&self.path, &notes);
        }
        Ok(())
    }

    /// There is no transaction any more: the notes that it has taken in.
    fn end_transaction(&mut self) -> Vec<PathBuf> {
        let Some(over) = self.transaction.take() else { return vec![] };
        if over.is_sealed {
            // SQLite must not go by what it made of pages that were changed behind its back. None is known that fails, but for memory; a
            // statement that met such a page would say that the file is malformed.
            let _ = self.forget_pages();
        }
        self.transfer.end(&self.connection);
        over.notes
    }

    /// Undoes the open transaction: its rows, its facts and the texts that came with it, whose ids must not be used any
    /// more. Does nothing when none is open.
    pub fn rollback(&mut self) {
        if self.transaction.is_none() {
            return;
        }
        // Some failures (a full disk) have rolled the transaction back already.
        if !self.connection.is_autocommit() {
            // It fails only where the file is beyond help, and then nothing of it is in the file either.
            let _ = self.run("ROLLBACK");
        }
        self.end_transaction();
        self.rows.clear();
        self.session.roll_back();
        self.tables.roll_back();
    }

    /// Whether so many rows have come since `begin` that they had better be committed: what comes now takes more memory until then,
    /// and in the end more time.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.rows.is_full() || self.transaction.as_ref().is_some_and(|open| open.has_written)
    }

    /// States a fact about this session, tag `session::N::key`; replaces what it said before. Key names are in
    /// [`crate::session_fact`]. Inside a transaction it is part of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn session_fact(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.ensure_unsealed()?;
        self.session
            .facts
            .session(&self.connection, self.transaction.is_some(), key, value)
            .map_err(|error| Error::sqlite(&self.path, error))
    }

    /// What the note of that name says is not so any more: what it says is taken out of the file, where it was taken in, and it is removed with
    /// the commit of the open transaction. Losses of this session must be stated again.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn withdraw_note(&mut self, name: &str) -> Result<(), Error> {
        self.admit(0)?;
        let withdrawn = note::withdraw(&self.connection, &self.path, name, self.session.number);
        let withdrawn = withdrawn.map_err(|error| self.error(error))?;
        if let Some(open) = &mut self.transaction {
            open.notes.push(withdrawn);
        }
        Ok(())
    }

    /// States a fact about a GPU, tag `gpu::N::key`; replaces what any session said before. Inside a transaction it is
    /// part of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn gpu_fact(&mut self, gpu: u32, key: &str, value: &str) -> Result<(), Error> {
        self.state(&format!("gpu::{gpu}::{key}"), value)
    }

    /// States a fact about another session, which nobody writes any more; replaces what it said before. Inside a transaction it is part
    /// of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn fact_for(&mut self, session: u32, key: &str, value: &str) -> Result<(), Error> {
        self.state(&format!("session::{session}::{key}"), value)
    }

    fn state(&mut self, tag: &str, value: &str) -> Result<(), Error> {
        self.ensure_unsealed()?;
        crate::facts::state(&self.connection, tag, value).map_err(|error| Error::sqlite(&self.path, error))
    }

    /// Writes the rows that wait.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.ensure_open()?;
        let written = self.transfer.write(&mut self.connection, &mut self.rows);
        self.rows.written();
        if let Some(open) = &mut self.transaction {
            open.has_written = true;
        }
        written.map_err(|error| self.error(error))
    }

    /// After a `commit` that found the file locked there is only another, or a rollback.
    pub(crate) fn ensure_unsealed(&self) -> Result<(), Error> {
        match self.transaction.as_ref().is_some_and(|open| open.is_sealed) {
            true => Err(Error::new(ErrorKind::NoTransaction, &self.path)),
            false => Ok(()),
        }
    }

    /// Some failures (a full disk) roll the transaction back by themselves: what a caller adds after that must not
    /// be committed row by row.
    pub(crate) fn ensure_open(&self) -> Result<(), Error> {
        if self.connection.is_autocommit() {
            return Err(Error::new(ErrorKind::NoTransaction, &self.path));
        }
        Ok(())
    }

    pub(crate) fn run(&self, text: &str) -> Result<(), Error> {
        self.connection.execute_batch(text).map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, error: rusqlite::Error) -> Error {
        Error::sqlite(&self.path, error)
    }
}

/// Brings a trace that somebody put into WAL mode back. Where that fails, somebody has it open and WAL works there.
fn keep_rollback_journal(connection: &Connection) {
    let _ = connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ApiId, OpId};

    fn rows(appender: &Appender, table: &str) -> i64 {
        let query = format!("SELECT count(*) FROM {table}");
        appender.connection.query_row(&query, [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_full_disk_is_named_and_loses_the_open_transaction_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.rpd");
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        appender.api_op(ApiId::call(1), OpId(1)).unwrap();
        appender.commit().unwrap();
        let room = |pages: i64| {
            move |appender: &Appender| {
                let text = format!("PRAGMA max_page_count = {pages}");
                appender.connection.query_row(&text, [], |_| Ok(())).unwrap();
            }
        };
        // SQLite answers to its own limit as it does to a file system without space.
        room(60)(&appender);
        appender.begin().unwrap();
        let mut fill = || -> Result<(), Error> {
            (0..200_000).try_for_each(|number| appender.intern(&format!("text {number}")).map(|_| ()))
        };
        assert_eq!(fill().unwrap_err().kind(), &ErrorKind::DiskFull);
        // The transaction is gone already: what comes before the rollback must not be committed row by row.
        (0..1000).for_each(|number| appender.api_op(ApiId::call(2), OpId(number)).unwrap());
        assert!(appender.commit().is_err());
        appender.rollback();
        assert_eq!(rows(&appender, "rocpd_api_ops"), 1);
        assert_eq!(rows(&appender, "rocpd_string"), 1);
        // The same of rows that are written as pages, at the commit.
        appender.begin().unwrap();
        (0..20_000).for_each(|number| appender.api_op(ApiId::call(2), OpId(number)).unwrap());
        assert_eq!(appender.commit().unwrap_err().kind(), &ErrorKind::DiskFull);
        appender.rollback();
        assert_eq!(rows(&appender, "rocpd_api_ops"), 1);

        room(1 << 20)(&appender);
        appender.begin().unwrap();
        appender.intern("text 0").unwrap();
        appender.api_op(ApiId::call(2), OpId(2)).unwrap();
        appender.commit().unwrap();
        assert_eq!(rows(&appender, "rocpd_api_ops"), 2);
        assert_eq!(rows(&appender, "rocpd_string"), 2);
    }

    #[test]
    fn texts_and_links_that_do_not_fit_ask_for_another_session() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.rpd");
        let mut appender = Appender::open(&path).unwrap();
        appender.begin().unwrap();
        assert!(!appender.is_short_of_ids(1 << 31));
        appender.session.next.api_op = (1 << 32) - 1;
        assert!(!appender.is_short_of_ids(1) && appender.is_short_of_ids(2));
        appender.api_op(ApiId::call(1), OpId(1)).unwrap();
        assert_eq!(appender.api_op(ApiId::call(1), OpId(2)).unwrap_err().kind(), &ErrorKind::SessionFull);
        appender.commit().unwrap();
        appender.next_session().unwrap();
        assert!(!appender.is_short_of_ids(1 << 31));
        appender.begin().unwrap();
        appender.api_op(ApiId::call(1), OpId(2)).unwrap();
        appender.intern("in the second session").unwrap();
        appender.commit().unwrap();
        let largest = |table: &str| -> Vec<i64> {
            let query = format!("SELECT id FROM {table} ORDER BY id");
            let mut statement = appender.connection.prepare(&query).unwrap();
            statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        assert_eq!(largest("rocpd_api_ops"), [(1 << 32) - 1, (1 << 32) + 1]);
        assert_eq!(largest("rocpd_string"), [1, (1 << 32) + 1, (1 << 32) + 2]);
    }
}
