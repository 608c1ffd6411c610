//! Making a database out of traces: a new file that nobody else knows of yet, and the traces attached to read from.
//!
//! The new file has no journal and is not flushed while it is written: until it is complete it is of no use, and whoever
//! makes it removes it when that fails.

use crate::error::Error;
use crate::open::{BUSY_TIME, uri};
use crate::version::{Version, look_at_whole};
use rusqlite::{Connection, OpenFlags};
use std::path::Path;

/// Opens the empty file `path` as the database to be made, with `encoding` (`PRAGMA encoding`) for its texts: SQLite
/// attaches only databases that have the same.
///
/// # Errors
///
/// When it cannot be opened or written.
pub fn derive(path: &Path, encoding: &str) -> Result<Connection, Error> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let settings = "PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF; PRAGMA journal_mode = OFF;
        PRAGMA synchronous = OFF; PRAGMA main.locking_mode = EXCLUSIVE; PRAGMA cache_size = -4096;
        PRAGMA temp_store = FILE; PRAGMA threads = 2";
    let uri = uri(path, "mode=rw")?;
    let open = || {
        let connection = Connection::open_with_flags(uri, flags)?;
        connection.busy_timeout(BUSY_TIME)?;
        connection.pragma_update(None, "encoding", encoding)?;
        connection.execute_batch(settings)?;
        Ok(connection)
    };
    open().map_err(|error| Error::sqlite(path, error))
}

/// Attaches the trace `path`, of any version, under the name `name` to a database that is being made. It cannot be
/// written through that.
///
/// # Errors
///
/// Says what the file is if it is no trace ([`crate::ErrorKind`]), and leaves it alone.
pub fn attach(connection: &Connection, path: &Path, name: &str) -> Result<Version, Error> {
    let found = look_at_whole(path, BUSY_TIME)?;
    let uri = uri(path, "mode=ro")?;
    let attach = || {
        connection.execute("ATTACH ?1 AS ?2", [uri.as_str(), name])?;
        connection.pragma_update(Some(name), "cache_size", -4096)
    };
    attach().map_err(|error| Error::sqlite(path, error))?;
    Ok(found.version)
}
