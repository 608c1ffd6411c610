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
use crate::batch::Batch;
use crate::create::{complete, connect, is_empty, require_v2};
use crate::error::{Error, ErrorKind};
use crate::facts::Facts;
use crate::id::LOCAL_IDS;
use crate::intern::{BUDGET, Interner};
use crate::note;
use crate::open::BUSY_TIME;
use crate::pending::Pending;
use crate::session::{claim, count};
use crate::sessions::{SessionInfo, sessions};
use crate::transfer::Transfer;
use crate::version::version_of;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of rows that wait, unless told otherwise: enough that the making of an image does not count.
const MOST_WAITING: usize = 2 << 20;

/// Appends one session's rows to a trace of schema 2.
#[derive(Debug)]
pub struct Appender {
    pub(crate) connection: Connection,
    pub(crate) path: PathBuf,
    pub(crate) session: u32,
    /// Whether the file knows of the session.
    taken: Presence,
    /// The open transaction makes the file.
    creates: bool,
    pub(crate) open: bool,
    pub(crate) interner: Interner,
    pub(crate) facts: Facts,
    pub(crate) rows: Pending,
    /// Bytes of `rows`, and how many may wait.
    pub(crate) waiting: usize,
    pub(crate) most_waiting: usize,
    /// Rows of the open transaction have been written.
    flushed: bool,
    transfer: Transfer,
    /// What is to be committed is written, and nothing else may be until then.
    sealed: bool,
    /// SQLite's number of the state that the file was in when others last wrote it.
    data_version: i64,
    /// Number of the schema when it was last known to be complete.
    schema_version: i64,
    /// Notes beside the file that the open transaction has taken in.
    notes: Vec<PathBuf>,
    pub(crate) next: OwnIds,
    added: LatePresence,
}

/// The next local ids of the tables whose rows have no id of the caller's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnIds {
    pub(crate) api_op: u64,
    pub(crate) input_signal: u64,
    pub(crate) monitor: u64,
    pub(crate) stack_frame: u64,
    pub(crate) validation: u64,
    pub(crate) instrumentation: u64,
    pub(crate) finding: u64,
}

/// Tables that no fresh file has: they are added with their first row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LateTables {
    KernelCodeObject,
    CodeObject,
    Replacement,
    Validation,
    Instrumentation,
    LibraryCall,
    LaunchAttribute,
    Tick,
}

impl LateTables {
    const COUNT: usize = 8;

    fn text(self) -> &'static str {
        match self {
            LateTables::KernelCodeObject => rpd_sql::ext::KERNELCODEOBJECT,
            LateTables::CodeObject => rpd_sql::ext::CODEOBJECT,
            LateTables::Replacement => rpd_sql::ext::REPLACEMENT,
            LateTables::Validation => rpd_sql::ext::VALIDATION,
            LateTables::Instrumentation => rpd_sql::ext::INSTRUMENTATION,
            LateTables::LibraryCall => rpd_sql::ext::LIBRARYCALL,
            LateTables::LaunchAttribute => rpd_sql::ext::LAUNCHATTRIBUTE,
            LateTables::Tick => rpd_sql::ext::TICK,
        }
    }
}

/// Which of them are known to be there, and which of them only in the open transaction.
type LatePresence = [Presence; LateTables::COUNT];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Unknown,
    InTransaction,
    Committed,
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
        let session = 0;
        Ok(Appender {
            connection,
            path: path.to_path_buf(),
            session,
            taken: Presence::Unknown,
            creates: false,
            open: false,
            interner: Interner::new(session, BUDGET),
            facts: Facts::new(session),
            rows: Pending::new(),
            waiting: 0,
            most_waiting: MOST_WAITING,
            flushed: false,
            transfer: Transfer::default(),
            sealed: false,
            notes: vec![],
            data_version: 0,
            schema_version: 0,
            next: OwnIds::FIRST,
            added: LatePresence::default(),
        })
    }

    /// The session number: every id this appender writes is the local one plus this times 2^32. Known from the first transaction on.
    #[must_use]
    pub fn session(&self) -> u32 {
        self.session
    }

    /// Whether the file has this session.
    #[must_use]
    pub fn has_session(&self) -> bool {
        self.taken == Presence::Committed
    }

    /// Whether the open transaction makes the file: a rollback leaves nothing of it.
    #[must_use]
    pub fn creates(&self) -> bool {
        self.open && self.creates
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
        self.facts.still_says(&self.connection, key, value).unwrap_or(false)
    }

    /// Whether the file knows that the number of this session has been taken, by whomever.
    #[must_use]
    pub fn is_session_taken(&self) -> bool {
        count(&self.connection).is_ok_and(|taken| taken > self.session)
    }

    /// Reads the file anew: somebody may have put other bytes in the place of those that SQLite remembers.
    ///
    /// # Errors
    ///
    /// None are known.
    pub fn forget_pages(&self) -> Result<(), Error> {
        self.run("PRAGMA shrink_memory")
    }

    /// How long to wait for other processes' locks from now on.
    ///
    /// # Errors
    ///
    /// None are known.
    pub fn set_busy_time(&mut self, busy: Duration) -> Result<(), Error> {
        self.connection.busy_timeout(busy).map_err(|error| self.error(error))
    }

    /// Who decides, in place of the busy time, whether to wait for other processes' locks: `wait` sleeps a while and says whether to
    /// try again. It is told how often it has been asked in the present wait.
    ///
    /// # Errors
    ///
    /// None are known.
    pub fn set_busy_handler(&mut self, wait: fn(i32) -> bool) -> Result<(), Error> {
        self.connection.busy_handler(Some(wait)).map_err(|error| self.error(error))
    }

    /// How many bytes of texts to remember, bookkeeping included (default 32 MiB). With less, a text that comes again
    /// after many others may get a second row.
    pub fn set_string_budget(&mut self, bytes: usize) {
        self.interner.set_budget(bytes);
    }

    /// How many bytes of the file's pages to keep in memory (default 16 MiB, which is also enough for most transactions). With less,
    /// a transaction that outgrows it writes pages before its end, and locks readers out from then on.
    ///
    /// # Errors
    ///
    /// None are known.
    pub fn set_page_cache(&mut self, bytes: usize) -> Result<(), Error> {
        self.run(&format!("PRAGMA cache_size = -{}", bytes >> 10))
    }

    /// How many bytes of rows may wait to be written (default 2 MiB); three times as much is needed for a moment to write them.
    pub fn set_waiting(&mut self, bytes: usize) {
        self.most_waiting = bytes;
    }

    /// Takes another session of the same file, when this one has no ids left. Local ids and facts start afresh; ids of
    /// texts stay valid, new ones come from the new session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InTransaction`] between `begin` and `commit`; those of SQLite, and then the old session stays.
    pub fn next_session(&mut self) -> Result<(), Error> {
        if self.open {
            return Err(Error::new(ErrorKind::InTransaction, &self.path));
        }
        let old = (self.session, self.interner.clone(), self.facts.clone(), self.next);
        self.taken = Presence::Unknown;
        let taken = self.take_session();
        if taken.is_err() {
            (self.session, self.interner, self.facts, self.next) = old;
            self.taken = Presence::Committed;
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
        let OwnIds { api_op, input_signal, monitor, stack_frame, validation, instrumentation, finding } =
            self.next;
        let own = [
            api_op,
            input_signal,
            monitor,
            stack_frame,
            validation,
            instrumentation,
            finding,
            self.interner.next(),
        ];
        own.into_iter().any(|next| next + rows > LOCAL_IDS)
    }

    /// Begins a transaction; waits for other writers up to the busy time. The first one takes the session.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] when that was not enough, [`ErrorKind::InTransaction`] when one is open.
    pub fn begin(&mut self) -> Result<(), Error> {
        if self.open {
            return Err(Error::new(ErrorKind::InTransaction, &self.path));
        }
        self.run("BEGIN IMMEDIATE")?;
        self.open = true;
        if self.taken == Presence::Unknown {
            let begun = self.begin_session();
            if begun.is_err() {
                self.rollback();
            }
            return begun;
        }
        let looked = self.look_for_changes();
        if looked.is_err() {
            self.rollback();
        }
        looked
    }

    /// Whether others have written the file since this writer's last transaction: then its owner may have deleted from it.
    fn look_for_changes(&mut self) -> Result<(), Error> {
        let sqlite = |error| Error::sqlite(&self.path, error);
        let version = data_version(&self.connection).map_err(sqlite)?;
        if version == self.data_version {
            return Ok(());
        }
        self.data_version = version;
        self.interner.doubt();
        if schema_version(&self.connection).map_err(sqlite)? != self.schema_version {
            // A table may be gone.
            self.added = LatePresence::default();
            complete(&self.connection).map_err(sqlite)?;
            self.schema_version = schema_version(&self.connection).map_err(sqlite)?;
        }
        let empty = self.interner.empty();
        if !has_text(&self.connection, empty).map_err(sqlite)? {
            let again = "INSERT INTO rocpd_string (id, string) VALUES (?1, '')";
            self.connection.execute(again, [empty.0]).map_err(sqlite)?;
        }
        Ok(())
    }

    /// Makes the file complete and takes a session, in the open transaction.
    fn begin_session(&mut self) -> Result<(), Error> {
        let sqlite = |error| Error::sqlite(&self.path, error);
        let connection = &self.connection;
        self.creates = is_empty(connection).map_err(sqlite)?;
        if !self.creates {
            let version = version_of(connection).map_err(|error| error.at(&self.path))?;
            require_v2(connection, version, &self.path)?;
        }
        complete(connection).map_err(sqlite)?;
        let session = claim(connection).map_err(sqlite)?;
        self.session = session.ok_or_else(|| Error::new(ErrorKind::NoSessionLeft, &self.path))?;
        self.notes = note::take_in(connection, &self.path).map_err(sqlite)?;
        self.taken = Presence::InTransaction;
        self.interner = Interner::new(self.session, self.interner.budget());
        self.facts = Facts::new(self.session);
        self.next = OwnIds::FIRST;
        self.data_version = data_version(connection).map_err(sqlite)?;
        self.schema_version = schema_version(connection).map_err(sqlite)?;
        Ok(())
    }

    /// Writes what is waiting and commits: other processes see the transaction, and a kill no longer loses it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] when a reader held the file beyond the busy time: nothing is lost, call it again; until then the
    /// transaction takes no more rows. After any other error call [`Appender::rollback`].
    pub fn commit(&mut self) -> Result<(), Error> {
        if !self.sealed {
            self.admit(0)?;
            self.ensure_open()?;
            let finished = self.transfer.finish(&mut self.connection, &mut self.rows);
            (self.waiting, self.flushed) = (0, true);
            self.sealed = finished.map_err(|error| self.error(error))?;
        }
        self.run("COMMIT")?;
        self.unseal();
        (self.open, self.flushed, self.creates) = (false, false, false);
        self.transfer.end(&self.connection);
        self.interner.commit();
        self.facts.commit();
        self.change_added(Presence::InTransaction, Presence::Committed);
        self.taken = Presence::Committed;
        if !self.notes.is_empty() {
            note::remove_notes(&self.path, &std::mem::take(&mut self.notes));
        }
        Ok(())
    }

    /// The transaction is over: SQLite must not go by what it made of pages that were changed behind its back.
    fn unseal(&mut self) {
        if std::mem::take(&mut self.sealed) {
            // None is known that fails, but for memory; a statement that met such a page would say that the file is malformed.
            let _ = self.forget_pages();
        }
    }

    /// Undoes the open transaction: its rows, its facts and the texts that came with it, whose ids must not be used any
    /// more. Does nothing when none is open.
    pub fn rollback(&mut self) {
        if !self.open {
            return;
        }
        // Some failures (a full disk) have rolled the transaction back already.
        if !self.connection.is_autocommit() {
            // It fails only where the file is beyond help, and then nothing of it is in the file either.
            let _ = self.run("ROLLBACK");
        }
        self.unseal();
        (self.open, self.flushed) = (false, false);
        self.transfer.end(&self.connection);
        self.rows.all().for_each(Batch::clear);
        self.waiting = 0;
        self.interner.rollback();
        self.facts.rollback();
        self.change_added(Presence::InTransaction, Presence::Unknown);
        self.notes.clear();
        if self.taken == Presence::InTransaction {
            self.taken = Presence::Unknown;
        }
    }

    /// Whether so many rows have come since `begin` that they had better be committed: what comes now takes more memory until then,
    /// and in the end more time.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.flushed || self.waiting >= self.most_waiting
    }

    /// States a fact about this session, tag `session::N::key`; replaces what it said before. Key names are in
    /// [`crate::session_fact`]. Inside a transaction it is part of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn session_fact(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.ensure_unsealed()?;
        self.facts
            .session(&self.connection, self.open, key, value)
            .map_err(|error| Error::sqlite(&self.path, error))
    }

    /// What the note of that name says is not so any more: what it says is taken out of the file, where it was taken in, and it is removed with
    /// the commit of the open transaction. Losses of this session must be stated again.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn withdraw_note(&mut self, name: &str) -> Result<(), Error> {
        self.ensure_unsealed()?;
        let withdrawn = note::withdraw(&self.connection, &self.path, name, self.session);
        self.notes.push(withdrawn.map_err(|error| self.error(error))?);
        Ok(())
    }

    /// States a fact about a GPU, tag `gpu::N::key`; replaces what any session said before. Inside a transaction it is
    /// part of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn gpu_fact(&mut self, gpu: u32, key: &str, value: &str) -> Result<(), Error> {
        self.ensure_unsealed()?;
        self.facts.gpu(&self.connection, gpu, key, value).map_err(|error| Error::sqlite(&self.path, error))
    }

    /// Writes the rows that wait.
    pub(crate) fn flush(&mut self) -> Result<(), Error> {
        self.ensure_open()?;
        let written = self.transfer.write(&mut self.connection, &mut self.rows);
        (self.waiting, self.flushed) = (0, true);
        written.map_err(|error| self.error(error))
    }

    /// After a `commit` that found the file locked there is only another, or a rollback.
    pub(crate) fn ensure_unsealed(&self) -> Result<(), Error> {
        match self.sealed {
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

    /// Makes sure that these tables are there, before a row with ids up to `largest_id`.
    pub(crate) fn add(&mut self, tables: LateTables, largest_id: u64) -> Result<(), Error> {
        self.admit(largest_id)?;
        if self.added[tables as usize] == Presence::Unknown {
            self.run(tables.text())?;
            self.added[tables as usize] = Presence::InTransaction;
        }
        Ok(())
    }

    fn change_added(&mut self, from: Presence, to: Presence) {
        for presence in self.added.iter_mut().filter(|presence| **presence == from) {
            *presence = to;
        }
    }

    pub(crate) fn run(&self, text: &str) -> Result<(), Error> {
        self.connection.execute_batch(text).map_err(|error| self.error(error))
    }

    pub(crate) fn error(&self, error: rusqlite::Error) -> Error {
        Error::sqlite(&self.path, error)
    }
}

impl OwnIds {
    const FIRST: OwnIds = OwnIds {
        api_op: 1,
        input_signal: 1,
        monitor: 1,
        stack_frame: 1,
        validation: 1,
        instrumentation: 1,
        finding: 1,
    };
}

/// Brings a trace that somebody put into WAL mode back. Where that fails, somebody has it open and WAL works there.
fn keep_rollback_journal(connection: &Connection) {
    let _ = connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
}

/// SQLite's number for what this connection sees of other writers: their commits change it, its own do not.
fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))
}

/// SQLite's number of the schema.
fn schema_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA schema_version", [], |row| row.get(0))
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
        appender.next.api_op = (1 << 32) - 1;
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
