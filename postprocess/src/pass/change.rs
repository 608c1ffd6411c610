//! Changing a trace that exists: all of it or nothing, in one transaction.

use std::borrow::Cow;
use std::fs;
use std::path::Path;

use anyhow::{Context, Error, Result, anyhow, bail};
use rpd_schema::Version;
use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior, ffi};

use crate::check::writer::recorder;
use crate::notes::{Notes, SharedNotes, undone, watch};
use crate::{system, text};

/// A trace inside the transaction that changes it.
pub struct Change<'a> {
    /// The trace; everything done through it is one transaction.
    pub trace: &'a Connection,
    /// Schema 2 or 3.
    pub version: Version,
    notes: &'a dyn Notes,
}

impl Change<'_> {
    /// Says what is being worked on, for a terminal.
    pub fn show(&self, what: &str) {
        self.notes.show(what);
    }

    /// The table that arguments of calls are texts of.
    pub fn args_table(&self) -> &'static str {
        if self.version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" }
    }

    /// These statements of schema 2 as the file's own schema has them.
    pub fn of_its_schema(&self, statements: &'static str) -> Cow<'static, str> {
        match self.version {
            Version::V3 => Cow::Owned(rpd_sql::for_schema_3(statements)),
            _ => Cow::Borrowed(statements),
        }
    }

    /// Stops the work if a signal came. SQLite looks for itself while it works; this is for work outside of it.
    ///
    /// # Errors
    /// When one came.
    pub fn check(&self) -> Result<()> {
        if self.notes.signal().is_some() { Err(anyhow!("interrupted")) } else { Ok(()) }
    }
}

/// Lets `work` change `file`: all that it does is kept if it succeeds, and nothing if it fails, is interrupted
/// or killed. `what` says what is not the case then, for the message: "callstack was not made".
///
/// A file that is being recorded into is left alone: its recorder would have to wait and, in the end, to drop
/// records.
///
/// # Errors
/// What failed and what to do about it.
pub fn change<T>(
    file: &Path,
    what: &str,
    notes: &SharedNotes,
    work: impl FnOnce(&Change<'_>) -> Result<T>,
) -> Result<T> {
    let (mut trace, version) = rpd_schema::open_write(file)?;
    if version == Version::V1 {
        bail!("{}: a trace of schema 1, and only schema 2 and 3 can be worked on", text::escape_path(file));
    }
    let _held = notes.hold_signals().context("cannot install signal handlers")?;
    let done = watch(&mut trace, notes).map_err(Error::from).and_then(|()| {
        if fs::metadata(file)?.len() > system::file_size_limit() {
            // What was written below the limit could not be put back beyond it.
            bail!("it is larger than a file may get here (ulimit -f)");
        }
        let transaction = Transaction::new_unchecked(&trace, TransactionBehavior::Immediate)?;
        if let Some(pid) = recorder(&transaction)? {
            bail!(
                "process {pid} is recording into it; try again when that has ended, or on a copy made with: \
                 sqlite3 FILE '.backup COPY'"
            );
        }
        let result = work(&Change { trace: &transaction, version, notes: &**notes })?;
        transaction.commit()?;
        Ok(result)
    });
    // What is left of a change is undone here at the latest.
    drop(trace);
    let error = match done {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    Err(undone(
        explain(error, file),
        &**notes,
        format!("{what}, and {} is as it was", text::escape_path(file)),
    ))
}

/// SQLite's error of a statement that does not fit the tables, where it does not know at which place of the statement.
const GENERIC: ffi::Error = ffi::Error { code: ErrorCode::Unknown, extended_code: ffi::SQLITE_ERROR };

/// What a failure means, where it is one of SQLite's.
pub(crate) fn explain(error: Error, file: &Path) -> Error {
    let failure = match error.downcast::<rusqlite::Error>() {
        Ok(failure) => failure,
        Err(error) => return error,
    };
    match &failure {
        rusqlite::Error::SqliteFailure(code, _) if code.extended_code == ffi::SQLITE_IOERR_WRITE => anyhow!(
            "the system refuses to write on: a quota, a limit on the size of files (ulimit -f), or a fault of the disk"
        ),
        rusqlite::Error::SqliteFailure(code, _) if code.code == ErrorCode::DatabaseCorrupt => {
            anyhow!("the database is damaged; see what is wrong with: rpd check FILE")
        }
        rusqlite::Error::SqlInputError { msg, .. } | rusqlite::Error::SqliteFailure(GENERIC, Some(msg)) => {
            anyhow!("its tables are not as the format has them ({}); see: rpd check FILE", text::escape(msg))
        }
        rusqlite::Error::SqliteFailure(..) => rpd_schema::Error::of_sqlite(file, failure).into(),
        _ => failure.into(),
    }
}
