//! A fresh file, also when many processes want it at once.
//!
//! The whole schema appears in one immediate transaction: until it is committed the file has 0 bytes, and whoever
//! comes second waits for the lock and finds a complete trace.

use crate::error::{Error, ErrorKind};
use crate::open::{BUSY_TIME, read_only, read_write};
use crate::place::check_name;
use crate::version::{Version, look, look_at_whole, version_of};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// Makes a fresh trace of schema 2. An existing file of 0 bytes is filled, also one that has none when what a killed writer left is rolled back.
///
/// # Errors
///
/// [`ErrorKind::AlreadyExists`] if there is anything else; it is left alone.
pub fn create(path: &Path) -> Result<(), Error> {
    check_name(path)?;
    match look_at_whole(path, Duration::ZERO) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Empty) => {}
        Err(error) if !path.exists() => return Err(error),
        _ => return Err(Error::new(ErrorKind::AlreadyExists, path)),
    }
    let connection = read_write(path, BUSY_TIME, true)?;
    let transaction = immediate(&connection, path)?;
    // Somebody may have been quicker since.
    if !is_empty(&transaction).map_err(|error| Error::sqlite(path, error))? {
        return Err(Error::new(ErrorKind::AlreadyExists, path));
    }
    complete(&transaction).and_then(|()| transaction.commit()).map_err(|error| Error::sqlite(path, error))
}

/// For writers: makes a fresh trace if there is none or a file of 0 bytes, else checks that it is one of schema 2.
/// Safe when many processes do it at once.
///
/// # Errors
///
/// Says what the file is if it is anything else, and leaves it alone.
pub fn create_or_check(path: &Path) -> Result<(), Error> {
    let connection = connect(path, BUSY_TIME)?;
    let transaction = immediate(&connection, path)?;
    if is_empty(&transaction).map_err(|error| Error::sqlite(path, error))? {
        complete(&transaction).map_err(|error| Error::sqlite(path, error))?;
    } else {
        require_v2(&transaction, version_of(&transaction).map_err(|error| error.at(path))?, path)?;
    }
    transaction.commit().map_err(|error| Error::sqlite(path, error))
}

/// Whether a writer could take `path`: a trace of schema 2, an empty file, or a place for a new one. Changes nothing, waits up to
/// `busy` for each lock; a file that others have locked for longer counts as one that can be taken, as does one whose writer died before it
/// was a trace.
///
/// # Errors
///
/// Says what is there, or why nothing can be.
pub fn check_place(path: &Path, busy: Duration) -> Result<(), Error> {
    check_name(path)?;
    let checked = look(path, busy).and_then(|found| match found.version {
        Version::V2 => Ok(()),
        version => require_v2(&read_only(path, busy)?, version, path),
    });
    match checked {
        Err(error)
            if !matches!(
                error.kind(),
                ErrorKind::NotFound
                    | ErrorKind::Empty
                    | ErrorKind::Unfinished
                    | ErrorKind::Locked
                    | ErrorKind::NeedsRecovery
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// A writer's connection to a trace of schema 2, or to a file that is still empty. Nothing else is ever opened for
/// writing. What is in the file must be checked again inside a transaction: others may be creating it.
pub(crate) fn connect(path: &Path, busy: Duration) -> Result<Connection, Error> {
    match look_at_whole(path, busy) {
        Ok(found) if found.version != Version::V2 => {
            require_v2(&read_only(path, busy)?, found.version, path)?;
        }
        Ok(_) => {}
        // A name without room for that of the journal makes a file that nothing can be written into.
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Empty) => check_name(path)?,
        Err(error) => return Err(error),
    }
    read_write(path, busy, true)
}

/// Begins a transaction that other writers wait for.
pub(crate) fn immediate<'connection>(
    connection: &'connection Connection,
    path: &Path,
) -> Result<Transaction<'connection>, Error> {
    Transaction::new_unchecked(connection, TransactionBehavior::Immediate)
        .map_err(|error| Error::sqlite(path, error))
}

/// Whether nothing has been created in the database yet.
pub(crate) fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM sqlite_master)", [], |row| row.get(0))
}

/// Adds every table, index, view and metadata row that a fresh file has and this one lacks, and replaces views of older recorders that
/// would not show what is written now.
pub(crate) fn complete(connection: &Connection) -> rusqlite::Result<()> {
    let older = drop_older_views(connection)?;
    rpd_sql::FRESH.iter().try_for_each(|text| connection.execute_batch(text))?;
    if older.iter().any(|view| view == "instrumentationCost") {
        connection.execute_batch(rpd_sql::ext::INSTRUMENTATION)?;
    }
    Ok(())
}

/// When `ext_dispatch` had every kernel, these views read it alone.
fn drop_older_views(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut older = connection.prepare(
        "SELECT name FROM sqlite_master WHERE type = 'view' AND name IN ('dispatch', 'instrumentationCost')
             AND sql LIKE '%O.\"gpuId\" AS \"gpuId\"%D.\"workgroupZ\" AS \"workgroupZ\"%FROM \"ext_dispatch\" D%'",
    )?;
    let older: Vec<String> = older.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    for view in &older {
        connection.execute_batch(&format!("DROP VIEW \"{view}\""))?;
    }
    Ok(older)
}

/// Only schema 2 can be written. Without a version a file counts as one of schema 1; a fresh one may be one of
/// schema 2 whose creator has not come to its end, where it writes the version.
pub(crate) fn require_v2(connection: &Connection, version: Version, path: &Path) -> Result<(), Error> {
    match version {
        Version::V2 => Ok(()),
        Version::V1 if is_fresh(connection) => Err(Error::new(ErrorKind::Unfinished, path)),
        other => Err(Error::new(ErrorKind::NotWritable(other), path)),
    }
}

fn is_fresh(connection: &Connection) -> bool {
    // rocpd_kernelop is a table of schema 1 alone.
    let query = "SELECT NOT EXISTS (SELECT 1 FROM rocpd_string) AND NOT EXISTS (SELECT 1 FROM rocpd_api) \
         AND NOT EXISTS (SELECT 1 FROM rocpd_op) \
         AND NOT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'rocpd_kernelop')";
    connection.query_row(query, [], |row| row.get(0)).unwrap_or(false)
}
