//! The rows that an [`Appender`] takes: one method per table.

use crate::appender::{Appender, LateTables, OwnIds};
use crate::error::{Error, ErrorKind};
use crate::id::{ApiId, CodeObjectId, LOCAL_IDS, Offset, OpId, SavedCodeId, StringId};
use crate::intern::Interned;
use crate::table::{
    ApiOp, ApiRow, BarrierRow, Block, CandidateRow, CodeObjectRow, CopyApiRow, DispatchRow, ExtCodeObjectRow,
    Finding, InputSignal, InstrumentationRow, KernelApiRow, LaunchAttributeRow, LibraryCallRow, MonitorRow,
    NumberedMonitor, NumberedValidation, OpRow, ReplacementRow, Row, SavedCodeRow, SavedKernel, StackFrame,
    StringRow, TickRow, ValidationRow,
};
use rpd_sql::insert::{self, Insert};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};

/// What every kind of row goes through on its way into its batch.
macro_rules! push {
    ($self:ident, $batch:ident, $row:expr) => {{
        let row = $row;
        $self.admit(row.largest_id())?;
        $self.waiting += $self.rows.$batch.push(&row, Offset::of_session($self.session));
        // Who commits when it is full has them written in the best way.
        if $self.waiting < 2 * $self.most_waiting { Ok(()) } else { $self.flush() }
    }};
}

impl Appender {
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
        let connection = &self.connection;
        let interned = self.interner.intern(text, |id| has_text(connection, id));
        match interned.map_err(|error| Error::sqlite(&self.path, error))? {
            None => Err(Error::new(ErrorKind::SessionFull, &self.path)),
            Some(Interned::Known(id)) => Ok(id),
            Some(Interned::New(id)) => {
                push!(self, strings, StringRow { id, text })?;
                Ok(id)
            }
        }
    }

    /// Changes when others may have deleted texts from the file: ids of texts must be asked for again.
    #[must_use]
    pub fn doubts(&self) -> u32 {
        self.interner.doubts()
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
        self.add(LateTables::KernelCodeObject, row.largest_id())?;
        push!(self, ext_code_objects, *row)
    }

    /// Adds the graph node and the cluster of a kernel; the first one adds the table.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn launch_attribute(&mut self, row: &LaunchAttributeRow) -> Result<(), Error> {
        self.add(LateTables::LaunchAttribute, row.largest_id())?;
        push!(self, launch_attributes, *row)
    }

    /// Adds the raw ticks of an op; the first one adds the table.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn tick(&mut self, row: &TickRow) -> Result<(), Error> {
        self.add(LateTables::Tick, row.largest_id())?;
        push!(self, ticks, *row)
    }

    /// Adds a code object that was saved; the first one adds the tables.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn saved_code(&mut self, row: &SavedCodeRow<'_>) -> Result<(), Error> {
        self.add(LateTables::CodeObject, row.largest_id())?;
        push!(self, saved_codes, *row)
    }

    /// Says which saved code object a kernel came from.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn saved_kernel(&mut self, kernel: CodeObjectId, code: SavedCodeId) -> Result<(), Error> {
        let row = SavedKernel { kernel, code };
        self.add(LateTables::CodeObject, row.largest_id())?;
        push!(self, saved_kernels, row)
    }

    /// Adds a file of the kernel cache; the first one adds the tables.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn candidate(&mut self, row: &CandidateRow<'_>) -> Result<(), Error> {
        self.add(LateTables::Replacement, row.largest_id())?;
        push!(self, candidates, *row)
    }

    /// Says that a dispatch ran another kernel than the application's.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn replacement(&mut self, row: &ReplacementRow) -> Result<(), Error> {
        self.add(LateTables::Replacement, row.largest_id())?;
        push!(self, replacements, *row)
    }

    /// Says that a call is one of a library; the first one adds the table.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn library_call(&mut self, row: &LibraryCallRow) -> Result<(), Error> {
        self.add(LateTables::LibraryCall, row.largest_id())?;
        push!(self, library_calls, *row)
    }

    /// Says what a dispatch's two kernels left in a buffer; the first one adds the table.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn validation(&mut self, row: &ValidationRow<'_>) -> Result<(), Error> {
        self.add(LateTables::Validation, row.op.0)?;
        push!(self, validations, NumberedValidation { id: self.next.validation, row })?;
        self.next.validation += 1;
        Ok(())
    }

    /// Says what an analyzer was given of a dispatch, and what it found; the first one adds the tables. Such rows are few: each is
    /// written at once.
    ///
    /// # Errors
    ///
    /// As [`Appender::api`], and those of SQLite.
    pub fn instrumentation(
        &mut self,
        row: &InstrumentationRow<'_>,
        findings: &[Finding],
    ) -> Result<(), Error> {
        let OwnIds { instrumentation: id, finding: first, .. } = self.next;
        let last = first + findings.len() as u64;
        self.add(LateTables::Instrumentation, last.max(id).max(row.op.map_or(0, |op| op.0)))?;
        self.ensure_open()?;
        let offset = Offset::of_session(self.session);
        self.insert(&insert::EXT_INSTRUMENTATION, row.cells(offset, id))?;
        for (finding, own) in findings.iter().zip(first..) {
            if let Finding::BlockCount { block, .. } = finding {
                self.block(block, offset)?;
            }
            self.insert(finding.table(), finding.cells(offset, own, id))?;
        }
        (self.next.instrumentation, self.next.finding) = (id + 1, last);
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
    ///
    /// # Errors
    ///
    /// As [`Appender::api`].
    pub fn monitor(&mut self, row: &MonitorRow<'_>) -> Result<(), Error> {
        push!(self, monitors, NumberedMonitor { id: self.next.monitor, row })?;
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

    /// Refuses what is outside of a transaction or does not fit into the session.
    pub(crate) fn admit(&self, largest_id: u64) -> Result<(), Error> {
        if !self.open {
            return Err(Error::new(ErrorKind::NoTransaction, &self.path));
        }
        self.ensure_unsealed()?;
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
