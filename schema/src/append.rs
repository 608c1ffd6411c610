//! The rows that an [`Appender`] takes: one method per table.

use crate::appender::Appender;
use crate::error::{Error, ErrorKind};
use crate::id::{ApiId, CodeObjectId, LOCAL_IDS, Offset, OpId, SavedCodeId, StringId};
use crate::intern::Interned;
use crate::known_tables::LateTables;
use crate::pending::PendingRow;
use crate::session::OwnIds;
use crate::table::{
    ApiOp, ApiRow, BarrierRow, Block, CandidateRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow,
    Finding, InputSignal, InstrumentationRow, KernelApiRow, LaunchAttributeRow, LibraryCallRow, MonitorRow,
    NumberedMonitor, NumberedValidation, OpRow, ReplacementRow, Row, SavedCodeRow, SavedKernel, StackFrame,
    StringRow, TickRow, ValidationRow,
};
use rpd_sql::insert::{self, Insert};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// A row is refused with [`ErrorKind::SessionFull`] when one of its ids does not fit (nothing is added then), with
/// [`ErrorKind::NoTransaction`], and where SQLite fails.
impl Appender {
    /// The id of the empty text, in every session and outside of transactions too.
    #[must_use]
    pub fn empty(&self) -> StringId {
        self.session.interner.empty()
    }

    /// The id of a text; a text that is not remembered gets a row. Any text will do: quotes, newlines and NUL are kept.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::SessionFull`], [`ErrorKind::NoTransaction`], those of SQLite.
    pub fn intern(&mut self, text: &str) -> Result<StringId, Error> {
        self.admit(0)?;
        let connection = &self.connection;
        let interned = self.session.interner.intern(text, |id| has_text(connection, id));
        match interned.map_err(|error| Error::sqlite(&self.path, error))? {
            None => Err(Error::new(ErrorKind::SessionFull, &self.path)),
            Some(Interned::Known(id)) => Ok(id),
            Some(Interned::New(id)) => {
                self.push(&StringRow { id, text })?;
                Ok(id)
            }
        }
    }

    /// Changes when others may have deleted texts from the file: ids of texts must be asked for again.
    #[must_use]
    pub fn doubts(&self) -> u32 {
        self.session.interner.doubts()
    }

    /// Adds an API call, marker or range.
    pub fn api(&mut self, row: &ApiRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Adds the launch arguments of a call.
    pub fn kernel_api(&mut self, row: &KernelApiRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Adds the copy arguments of a call.
    pub fn copy_api(&mut self, row: &CopyApiRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Adds an op.
    pub fn op(&mut self, row: &OpRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Says that a call caused an op.
    pub fn api_op(&mut self, api: ApiId, op: OpId) -> Result<(), Error> {
        self.push(&ApiOp { id: self.session.next.api_op, api, op })?;
        self.session.next.api_op += 1;
        Ok(())
    }

    /// Adds how a kernel op was launched.
    pub fn dispatch(&mut self, row: &DispatchRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Adds a barrier.
    pub fn barrier(&mut self, row: &BarrierRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Says that op `to` waited for op `from`.
    pub fn input_signal(&mut self, from: OpId, to: OpId) -> Result<(), Error> {
        self.push(&InputSignal { id: self.session.next.input_signal, from, to })?;
        self.session.next.input_signal += 1;
        Ok(())
    }

    /// Adds the registers of a kernel.
    pub fn code_object(&mut self, row: &CodeObjectRow) -> Result<(), Error> {
        self.push(row)
    }

    /// Adds what else the code object says; the first one adds the table.
    pub fn ext_code_object(&mut self, row: &ExtCodeObjectRow) -> Result<(), Error> {
        self.add(LateTables::KernelCodeObject, row.largest_id())?;
        self.push(row)
    }

    /// Adds the graph node and the cluster of a kernel; the first one adds the table.
    pub fn launch_attribute(&mut self, row: &LaunchAttributeRow) -> Result<(), Error> {
        self.add(LateTables::LaunchAttribute, row.largest_id())?;
        self.push(row)
    }

    /// Adds the raw ticks of an op; the first one adds the table.
    pub fn tick(&mut self, row: &TickRow) -> Result<(), Error> {
        self.add(LateTables::Tick, row.largest_id())?;
        self.push(row)
    }

    /// Adds a code object that was saved; the first one adds the tables.
    pub fn saved_code(&mut self, row: &SavedCodeRow<'_>) -> Result<(), Error> {
        self.add(LateTables::CodeObject, row.largest_id())?;
        self.push(row)
    }

    /// Says which saved code object a kernel came from.
    pub fn saved_kernel(&mut self, kernel: CodeObjectId, code: SavedCodeId) -> Result<(), Error> {
        let row = SavedKernel { kernel, code };
        self.add(LateTables::CodeObject, row.largest_id())?;
        self.push(&row)
    }

    /// Adds a file of the kernel cache; the first one adds the tables.
    pub fn candidate(&mut self, row: &CandidateRow<'_>) -> Result<(), Error> {
        self.add(LateTables::Replacement, row.largest_id())?;
        self.push(row)
    }

    /// Says that a dispatch ran another kernel than the application's.
    pub fn replacement(&mut self, row: &ReplacementRow) -> Result<(), Error> {
        self.add(LateTables::Replacement, row.largest_id())?;
        self.push(row)
    }

    /// Says that a call is one of a library; the first one adds the table.
    pub fn library_call(&mut self, row: &LibraryCallRow) -> Result<(), Error> {
        self.add(LateTables::LibraryCall, row.largest_id())?;
        self.push(row)
    }

    /// Says what a dispatch's two kernels left in a buffer; the first one adds the table.
    pub fn validation(&mut self, row: &ValidationRow<'_>) -> Result<(), Error> {
        self.add(LateTables::Validation, row.op.0)?;
        self.push(&NumberedValidation { id: self.session.next.validation, row })?;
        self.session.next.validation += 1;
        Ok(())
    }

    /// Says what an analyzer was given of a dispatch, and what it found; the first one adds the tables. Such rows are few: each is
    /// written at once.
    pub fn instrumentation(
        &mut self,
        row: &InstrumentationRow<'_>,
        findings: &[Finding],
    ) -> Result<(), Error> {
        let OwnIds { instrumentation: id, finding: first, .. } = self.session.next;
        let last = first + findings.len() as u64;
        self.add(LateTables::Instrumentation, last.max(id).max(row.op.map_or(0, |op| op.0)))?;
        self.ensure_open()?;
        let offset = self.session.offset();
        self.insert(&insert::EXT_INSTRUMENTATION, row.cells(offset, id))?;
        for (finding, own) in findings.iter().zip(first..) {
            if let Finding::BlockCount { block, .. } = finding {
                self.block(block, offset)?;
            }
            self.insert(finding.table(), finding.cells(offset, own, id))?;
        }
        (self.session.next.instrumentation, self.session.next.finding) = (id + 1, last);
        Ok(())
    }

    /// The row of a basic block, which earlier counts may have written.
    fn block(&self, block: &Block, offset: Offset) -> Result<(), Error> {
        self.admit(block.local_id())?;
        let known = self.connection.prepare_cached("SELECT 1 FROM ext_block WHERE id = ?1");
        let known = known.and_then(|mut known| known.exists([offset.local(block.local_id())]));
        match known.map_err(|error| self.error(error))? {
            true => Ok(()),
            false => self.insert(&insert::EXT_BLOCK, block.cells(offset)),
        }
    }

    fn insert(&self, table: &Insert, cells: Vec<Value>) -> Result<(), Error> {
        let inserted = self.connection.prepare_cached(&table.statement(1));
        let inserted = inserted.and_then(|mut statement| statement.execute(params_from_iter(cells)));
        inserted.map(|_| ()).map_err(|error| self.error(error))
    }

    /// Adds a part of a sensor's value.
    pub fn monitor(&mut self, row: &MonitorRow<'_>) -> Result<(), Error> {
        self.push(&NumberedMonitor { id: self.session.next.monitor, row })?;
        self.session.next.monitor += 1;
        Ok(())
    }

    /// Adds a frame of a call's host stack; depth 0 is the innermost.
    pub fn stack_frame(&mut self, api: ApiId, depth: u32, name: StringId) -> Result<(), Error> {
        self.push(&StackFrame { id: self.session.next.stack_frame, api, depth, name })?;
        self.session.next.stack_frame += 1;
        Ok(())
    }

    /// What every kind of row goes through on its way into its batch.
    fn push<R: PendingRow>(&mut self, row: &R) -> Result<(), Error> {
        self.admit(row.largest_id())?;
        if self.rows.push(row, self.session.offset()) { Ok(()) } else { self.flush() }
    }

    /// Makes sure that these tables are there, before a row with ids up to `largest_id`.
    fn add(&mut self, tables: LateTables, largest_id: u64) -> Result<(), Error> {
        self.admit(largest_id)?;
        self.tables.add(&self.connection, tables).map_err(|error| Error::sqlite(&self.path, error))
    }

    /// Refuses what is outside of a transaction or does not fit into the session.
    pub(crate) fn admit(&self, largest_id: u64) -> Result<(), Error> {
        if self.transaction.as_ref().is_none_or(|open| open.is_sealed) {
            return Err(Error::new(ErrorKind::NoTransaction, &self.path));
        }
        if largest_id >= LOCAL_IDS {
            return Err(Error::new(ErrorKind::SessionFull, &self.path));
        }
        Ok(())
    }
}

/// Whether the row of a text is in the file.
pub(crate) fn has_text(connection: &Connection, id: StringId) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM rocpd_string WHERE id = ?1")?.exists([id.0])
}
