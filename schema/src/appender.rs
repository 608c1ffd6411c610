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

use crate::batch::Batch;
use crate::create::{complete, connect, immediate, is_empty, require_v2};
use crate::error::{Error, ErrorKind};
use crate::facts::Facts;
use crate::id::{ApiId, LOCAL_IDS, Offset, OpId, StringId};
use crate::intern::{BUDGET, Interned, Interner};
use crate::open::BUSY_TIME;
use crate::session::claim;
use crate::table::{
    ApiOp, ApiRow, BarrierRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow, InputSignal,
    KernelApiRow, MonitorRow, OpRow, OwnedMonitor, Row, StackFrame, StringRow, TickRow,
};
use crate::version::version_of;
use rusqlite::Connection;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Appends one session's rows to a trace of schema 2.
#[derive(Debug)]
pub struct Appender {
    connection: Connection,
    path: PathBuf,
    session: u32,
    open: bool,
    interner: Interner,
    facts: Facts,
    rows: Rows,
    next: OwnIds,
    added: Added,
}

/// Rows that wait for their statement.
#[derive(Debug)]
struct Rows {
    strings: Batch<StringRow>,
    apis: Batch<ApiRow>,
    kernel_apis: Batch<KernelApiRow>,
    copy_apis: Batch<CopyApiRow>,
    ops: Batch<OpRow>,
    api_ops: Batch<ApiOp>,
    dispatches: Batch<DispatchRow>,
    barriers: Batch<BarrierRow>,
    input_signals: Batch<InputSignal>,
    code_objects: Batch<CodeObjectRow>,
    ext_code_objects: Batch<ExtCodeObjectRow>,
    ticks: Batch<TickRow>,
    monitors: Batch<OwnedMonitor>,
    stack_frames: Batch<StackFrame>,
}

/// The next local ids of the tables whose rows have no id of the caller's.
#[derive(Clone, Copy, Debug)]
struct OwnIds {
    api_op: u64,
    input_signal: u64,
    monitor: u64,
    stack_frame: u64,
}

/// Which tables that no fresh file has are known to be there, and which of them only in the open transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Added {
    code_objects: Presence,
    ticks: Presence,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Presence {
    #[default]
    Unknown,
    InTransaction,
    Committed,
}

/// What every kind of row goes through on its way into its batch.
macro_rules! push {
    ($self:ident, $batch:ident, $row:expr) => {{
        let row = $row;
        $self.admit(row.largest_id())?;
        if $self.rows.$batch.push(row) {
            let offset = Offset::of_session($self.session);
            $self
                .rows
                .$batch
                .flush(&$self.connection, offset)
                .map_err(|error| Error::sqlite(&$self.path, error))
        } else {
            Ok(())
        }
    }};
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
        let connection = connect(path, busy)?;
        keep_rollback_journal(&connection);
        let session = take_session(&connection, path)?;
        Ok(Appender {
            connection,
            path: path.to_path_buf(),
            session,
            open: false,
            interner: Interner::new(session, BUDGET),
            facts: Facts::new(session),
            rows: Rows::new(),
            next: OwnIds::FIRST,
            added: Added::default(),
        })
    }

    /// The session number: every id this appender writes is the local one plus this times 2^32.
    #[must_use]
    pub fn session(&self) -> u32 {
        self.session
    }

    /// The file, as it was named when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long to wait for other processes' locks from now on.
    ///
    /// # Errors
    ///
    /// None are known.
    pub fn set_busy_time(&mut self, busy: Duration) -> Result<(), Error> {
        self.connection.busy_timeout(busy).map_err(|error| self.error(error))
    }

    /// How many bytes of texts to remember, bookkeeping included (default 32 MiB). With less, a text that comes again
    /// after many others may get a second row.
    pub fn set_string_budget(&mut self, bytes: usize) {
        self.interner.set_budget(bytes);
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
        let session = take_session(&self.connection, &self.path)?;
        self.session = session;
        self.interner = Interner::new(session, self.interner.budget());
        self.facts = Facts::new(session);
        self.next = OwnIds::FIRST;
        Ok(())
    }

    /// Begins a transaction; waits for other writers up to the busy time.
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
        Ok(())
    }

    /// Writes what is waiting and commits: other processes see the transaction, and a kill no longer loses it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] when a reader held the file beyond the busy time: nothing is lost, call it again. After
    /// any other error call [`Appender::rollback`].
    pub fn commit(&mut self) -> Result<(), Error> {
        self.admit(0)?;
        self.rows
            .flush(&self.connection, Offset::of_session(self.session))
            .map_err(|error| self.error(error))?;
        self.run("COMMIT")?;
        self.open = false;
        self.interner.commit();
        self.facts.commit();
        self.added = self.added.map(Presence::InTransaction, Presence::Committed);
        Ok(())
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
        self.open = false;
        self.rows.clear();
        self.interner.rollback();
        self.facts.rollback();
        self.added = self.added.map(Presence::InTransaction, Presence::Unknown);
    }

    /// The id of the empty text, in every session and outside of transactions too.
    #[must_use]
    pub fn empty(&self) -> StringId {
        self.interner.empty()
    }

    /// The id of a text; a text that is not remembered gets a row. Any text will do: quotes, newlines and NUL are kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SessionFull`], [`ErrorKind::NoTransaction`], those of SQLite.
    pub fn intern(&mut self, text: &str) -> Result<StringId, Error> {
        self.admit(0)?;
        match self.interner.intern(text) {
            None => Err(Error::new(ErrorKind::SessionFull, &self.path)),
            Some(Interned::Known(id)) => Ok(id),
            Some(Interned::New(id, text)) => {
                push!(self, strings, StringRow { id, text })?;
                Ok(id)
            }
        }
    }

    /// Adds an API call, marker or range.
    ///
    /// # Errors
    ///
    /// Of this and all other rows: [`ErrorKind::SessionFull`] when one of its ids does not fit (nothing is added),
    /// [`ErrorKind::NoTransaction`], those of SQLite.
    pub fn api(&mut self, row: &ApiRow) -> Result<(), Error> {
        push!(self, apis, *row)
    }

    /// Adds the launch arguments of a call.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn kernel_api(&mut self, row: &KernelApiRow) -> Result<(), Error> {
        push!(self, kernel_apis, *row)
    }

    /// Adds the copy arguments of a call.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn copy_api(&mut self, row: &CopyApiRow) -> Result<(), Error> {
        push!(self, copy_apis, *row)
    }

    /// Adds an op.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn op(&mut self, row: &OpRow) -> Result<(), Error> {
        push!(self, ops, *row)
    }

    /// Says that a call caused an op.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn api_op(&mut self, api: ApiId, op: OpId) -> Result<(), Error> {
        push!(self, api_ops, ApiOp { id: self.next.api_op, api, op })?;
        self.next.api_op += 1;
        Ok(())
    }

    /// Adds how a kernel op was launched.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn dispatch(&mut self, row: &DispatchRow) -> Result<(), Error> {
        push!(self, dispatches, *row)
    }

    /// Adds a barrier.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn barrier(&mut self, row: &BarrierRow) -> Result<(), Error> {
        push!(self, barriers, *row)
    }

    /// Says that op `to` waited for op `from`.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn input_signal(&mut self, from: OpId, to: OpId) -> Result<(), Error> {
        push!(self, input_signals, InputSignal { id: self.next.input_signal, from, to })?;
        self.next.input_signal += 1;
        Ok(())
    }

    /// Adds the registers of a kernel.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn code_object(&mut self, row: &CodeObjectRow) -> Result<(), Error> {
        push!(self, code_objects, *row)
    }

    /// Adds what else the code object says; the first one adds the table.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn ext_code_object(&mut self, row: &ExtCodeObjectRow) -> Result<(), Error> {
        self.admit(row.largest_id())?;
        if self.added.code_objects == Presence::Unknown {
            self.run(rpd_sql::ext::KERNELCODEOBJECT)?;
            self.added.code_objects = Presence::InTransaction;
        }
        push!(self, ext_code_objects, *row)
    }

    /// Adds the raw ticks of an op; the first one adds the table.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn tick(&mut self, row: &TickRow) -> Result<(), Error> {
        self.admit(row.largest_id())?;
        if self.added.ticks == Presence::Unknown {
            self.run(rpd_sql::ext::TICK)?;
            self.added.ticks = Presence::InTransaction;
        }
        push!(self, ticks, *row)
    }

    /// Adds a stretch of a sensor's value.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn monitor(&mut self, row: &MonitorRow<'_>) -> Result<(), Error> {
        push!(self, monitors, OwnedMonitor::new(self.next.monitor, row))?;
        self.next.monitor += 1;
        Ok(())
    }

    /// Adds a frame of a call's host stack; depth 0 is the innermost.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn stack_frame(&mut self, api: ApiId, depth: u32, name: StringId) -> Result<(), Error> {
        push!(self, stack_frames, StackFrame { id: self.next.stack_frame, api, depth, name })?;
        self.next.stack_frame += 1;
        Ok(())
    }

    /// States a fact about this session, tag `session::N::key`; replaces what it said before. Key names stand in
    /// [`crate::session_fact`]. Inside a transaction it is part of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn session_fact(&mut self, key: &str, value: &str) -> Result<(), Error> {
        self.facts
            .session(&self.connection, self.open, key, value)
            .map_err(|error| Error::sqlite(&self.path, error))
    }

    /// States a fact about a GPU, tag `gpu::N::key`; replaces what any session said before. Inside a transaction it is
    /// part of it, outside it is committed at once.
    ///
    /// # Errors
    ///
    /// Those of SQLite.
    pub fn gpu_fact(&mut self, gpu: u32, key: &str, value: &str) -> Result<(), Error> {
        self.facts.gpu(&self.connection, gpu, key, value).map_err(|error| Error::sqlite(&self.path, error))
    }

    /// Refuses what is outside of a transaction or does not fit into the session.
    fn admit(&self, largest_id: u64) -> Result<(), Error> {
        if !self.open {
            return Err(Error::new(ErrorKind::NoTransaction, &self.path));
        }
        if largest_id >= LOCAL_IDS {
            return Err(Error::new(ErrorKind::SessionFull, &self.path));
        }
        Ok(())
    }

    fn run(&self, text: &str) -> Result<(), Error> {
        self.connection.execute_batch(text).map_err(|error| self.error(error))
    }

    fn error(&self, error: rusqlite::Error) -> Error {
        Error::sqlite(&self.path, error)
    }
}

impl Rows {
    fn new() -> Rows {
        Rows {
            strings: Batch::new(),
            apis: Batch::new(),
            kernel_apis: Batch::new(),
            copy_apis: Batch::new(),
            ops: Batch::new(),
            api_ops: Batch::new(),
            dispatches: Batch::new(),
            barriers: Batch::new(),
            input_signals: Batch::new(),
            code_objects: Batch::new(),
            ext_code_objects: Batch::new(),
            ticks: Batch::new(),
            monitors: Batch::new(),
            stack_frames: Batch::new(),
        }
    }

    fn flush(&mut self, connection: &Connection, offset: Offset) -> rusqlite::Result<()> {
        self.strings.flush(connection, offset)?;
        self.apis.flush(connection, offset)?;
        self.kernel_apis.flush(connection, offset)?;
        self.copy_apis.flush(connection, offset)?;
        self.ops.flush(connection, offset)?;
        self.api_ops.flush(connection, offset)?;
        self.dispatches.flush(connection, offset)?;
        self.barriers.flush(connection, offset)?;
        self.input_signals.flush(connection, offset)?;
        self.code_objects.flush(connection, offset)?;
        self.ext_code_objects.flush(connection, offset)?;
        self.ticks.flush(connection, offset)?;
        self.monitors.flush(connection, offset)?;
        self.stack_frames.flush(connection, offset)
    }

    fn clear(&mut self) {
        self.strings.clear();
        self.apis.clear();
        self.kernel_apis.clear();
        self.copy_apis.clear();
        self.ops.clear();
        self.api_ops.clear();
        self.dispatches.clear();
        self.barriers.clear();
        self.input_signals.clear();
        self.code_objects.clear();
        self.ext_code_objects.clear();
        self.ticks.clear();
        self.monitors.clear();
        self.stack_frames.clear();
    }
}

impl OwnIds {
    const FIRST: OwnIds = OwnIds { api_op: 1, input_signal: 1, monitor: 1, stack_frame: 1 };
}

impl Added {
    fn map(self, from: Presence, to: Presence) -> Added {
        let change = |presence| if presence == from { to } else { presence };
        Added { code_objects: change(self.code_objects), ticks: change(self.ticks) }
    }
}

/// Brings a trace that somebody put into WAL mode back. Where that fails, somebody has it open and WAL works there.
fn keep_rollback_journal(connection: &Connection) {
    let _ = connection.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()));
}

/// Makes the file complete and takes a session, in one transaction.
fn take_session(connection: &Connection, path: &Path) -> Result<u32, Error> {
    let sqlite = |error| Error::sqlite(path, error);
    let transaction = immediate(connection, path)?;
    if !is_empty(&transaction).map_err(sqlite)? {
        require_v2(version_of(&transaction).map_err(|error| error.at(path))?, path)?;
    }
    complete(&transaction).map_err(sqlite)?;
    let session = claim(&transaction).map_err(sqlite)?;
    let session = session.ok_or_else(|| Error::new(ErrorKind::NoSessionLeft, path))?;
    transaction.commit().map_err(sqlite)?;
    Ok(session)
}
