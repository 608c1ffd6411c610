//! Connections to a trace: flags, pragmas, waiting.
//!
//! A recorder's connection:
//! - *rollback journal*, no WAL: the WAL's index is a memory mapping shared by all processes, which faults the traced
//!   program when the file shrinks under it, and which network file systems do not have;
//! - *synchronous off*: what was committed is in the kernel's hands, so a killed process loses nothing of it; only a
//!   power loss can, and a trace is not worth an fsync on the application's machine every second;
//! - *foreign keys off*: rows come in the order in which things happen, and checking each reference would cost more
//!   than writing the row;
//! - *a modest page cache* and no memory mapping: the memory is the application's;
//! - *a busy time*: writers of one file take turns, and each waits that long for the others.
//!
//! A page is SQLite's default, 4096 bytes, as in every trace there is.
//!
//! Files are opened by SQLite only, never by the standard library: closing any other descriptor of a file drops all
//! locks that this process holds on it, also those of another thread's open transaction.

use crate::error::{Error, ErrorKind};
use crate::version::{Version, WalFiles, look_at_whole};
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for other processes' locks, unless told otherwise.
pub const BUSY_TIME: Duration = Duration::from_secs(5);

/// Room for the statements of all tables, so that none is prepared twice.
const STATEMENTS: usize = 64;

/// Opens a trace of any version for reading, waiting up to [`BUSY_TIME`] for writers.
///
/// A file whose writer was killed in mid-transaction is rolled back to its last commit first, if it may be written.
/// The connection cannot write.
///
/// # Errors
///
/// Says what the file is if it is no trace ([`ErrorKind`]), and leaves it alone.
pub fn open_read(path: &Path) -> Result<(Connection, Version), Error> {
    open_read_within(path, BUSY_TIME)
}

/// [`open_read`], waiting up to `busy` for each lock.
///
/// # Errors
///
/// As [`open_read`].
pub fn open_read_within(path: &Path, busy: Duration) -> Result<(Connection, Version), Error> {
    let log = WalFiles::before(path);
    let found = look_at_whole(path, busy)?;
    let of_a_log = if found.has_log && log.are_absent() { tidy_reader(path, busy) } else { None };
    let connection = match of_a_log {
        Some(connection) => connection,
        None => read_only(path, busy)?,
    };
    tune(&connection, path)?;
    let version = crate::version::version_of(&connection).map_err(|error| error.at(path))?;
    Ok((connection, version))
}

/// Opens a trace of any version to add to or change what is derived from its rows, waiting up to [`BUSY_TIME`] for other
/// writers. Creates nothing; the connection has no transaction yet.
///
/// Unlike a recorder's, its transactions wait for the disk: rows that are there already are overwritten, and this may be
/// the only copy. Triggers of the file do not run: nobody asked for what they do. What is sorted may be larger than memory, so
/// temporary files are used for it.
///
/// # Errors
///
/// Says what the file is if it is no trace, or why it cannot be written ([`ErrorKind`]), and leaves it alone.
pub fn open_write(path: &Path) -> Result<(Connection, Version), Error> {
    look_at_whole(path, BUSY_TIME)?;
    let connection = read_write(path, BUSY_TIME, false)?;
    connection
        .set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)
        .and_then(|_| connection.execute_batch("PRAGMA temp_store = FILE; PRAGMA synchronous = FULL"))
        .map_err(|error| Error::sqlite(path, error))?;
    let version = crate::version::version_of(&connection).map_err(|error| error.at(path))?;
    Ok((connection, version))
}

/// A connection to a database in WAL mode that removes the files which reading it makes beside it, when it is the last to close:
/// SQLite does so only for one that may write. This one may, but cannot. None where the file or its directory may not be
/// written: then the files stay.
fn tidy_reader(path: &Path, busy: Duration) -> Option<Connection> {
    let mut connection = read_write(path, busy, false).ok()?;
    let look =
        |connection: &Connection| connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()));
    look(&connection).ok()?;
    // Not PRAGMA query_only, which forbids temporary tables too.
    let refuse = |context: AuthContext<'_>| match (context.action, context.database_name) {
        (AuthAction::Insert { .. } | AuthAction::Update { .. } | AuthAction::Delete { .. }, Some("main")) => {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    };
    connection.authorizer(Some(refuse)).ok()?;
    Some(connection)
}

/// A connection that cannot write and creates nothing.
pub(crate) fn read_only(path: &Path, busy: Duration) -> Result<Connection, Error> {
    connect(&absolute(path)?, OpenFlags::SQLITE_OPEN_READ_ONLY, busy)
        .map_err(|error| Error::sqlite(path, error))
}

/// A connection that reads the file as it lies there, without locks, journals or recovery. Good for a glance at the
/// schema of a file that cannot be read properly, and for nothing else.
pub(crate) fn as_it_lies(path: &Path) -> Result<Connection, Error> {
    let uri = uri(path, "immutable=1")?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    // A writer that was killed in its commit may have counted pages that the file does not have. With a schema that may be written,
    // which on this connection it may not, SQLite counts for itself.
    connect(Path::new(&uri), flags, Duration::ZERO)
        .and_then(|connection| connection.execute_batch("PRAGMA writable_schema = ON").map(|()| connection))
        .map_err(|error| Error::sqlite(path, error))
}

/// A writer's connection. Creates the file if `create` says so.
pub(crate) fn read_write(path: &Path, busy: Duration, create: bool) -> Result<Connection, Error> {
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let connection = connect(&absolute(path)?, flags, busy).map_err(|error| Error::sqlite(path, error))?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // SQLite opens a file that it may not write for reading only, without a word.
    if connection.is_readonly("main").map_err(|error| Error::sqlite(path, error))? {
        return Err(Error::new(ErrorKind::ReadOnly, path));
    }
    tune(&connection, path)?;
    Ok(connection)
}

/// Rolls back what a killed writer left half done.
pub(crate) fn recover(path: &Path, busy: Duration) -> Result<(), Error> {
    let connection = read_write(path, busy, false).map_err(|error| {
        if *error.kind() == ErrorKind::Locked { error } else { error.with_kind(ErrorKind::NeedsRecovery) }
    })?;
    // The first read does it.
    connection
        .query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))
        .map_err(|error| Error::sqlite(path, error))
}

fn connect(path: &Path, flags: OpenFlags, busy: Duration) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(busy)?;
    // Neither reads the file: what it is must be found out by those who can say so.
    connection.execute_batch("PRAGMA foreign_keys = OFF; PRAGMA trusted_schema = OFF")?;
    Ok(connection)
}

/// The settings that need a database to be set on; see the module's documentation.
fn tune(connection: &Connection, path: &Path) -> Result<(), Error> {
    let settings = "PRAGMA synchronous = OFF; PRAGMA cache_size = -16384; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY";
    connection.execute_batch(settings).map_err(|error| Error::sqlite(path, error))
}

/// SQLite takes a name that begins with `file:` for a URI; an absolute one does not.
fn absolute(path: &Path) -> Result<PathBuf, Error> {
    std::path::absolute(path).map_err(|_| Error::new(ErrorKind::NoWorkingDirectory, path))
}

/// A path as a URI of SQLite's, with `parameters`.
pub(crate) fn uri(path: &Path, parameters: &str) -> Result<String, Error> {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file:");
    for &byte in absolute(path)?.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02x}"));
        }
    }
    uri.push('?');
    uri.push_str(parameters);
    Ok(uri)
}
