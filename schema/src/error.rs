//! Errors of a trace file, and what to do about them.

use crate::place;
use rusqlite::ErrorCode;
use rusqlite::ffi;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Something that failed on one file. One line that says what, why and what to do.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    path: PathBuf,
    source: Option<Underlying>,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such file, or no such directory to put it in.
    #[error("no such file or directory; check the path")]
    NotFound,
    /// A symbolic link to a place in a directory that there is not.
    #[error("a symbolic link to {0}, whose directory is not there; make that directory or name another file")]
    LeadsNowhere(String),
    /// No room for the name of the journal that SQLite puts beside the file.
    #[error(
        "the name is too long: SQLite needs one with -journal behind it, so a name may have 247 bytes and a path 504; \
         use a shorter one"
    )]
    NameTooLong,
    /// A relative name in a process whose working directory was deleted.
    #[error(
        "the working directory is gone, so a relative name leads nowhere; name a file by its absolute path"
    )]
    NoWorkingDirectory,
    /// The user may not read it (or, for a writer, not write it or its directory).
    #[error("permission denied; check who may read and write the file and its directory")]
    PermissionDenied,
    /// The process, or the system, has no descriptor left.
    #[error("too many open files; close some, or raise the limit (ulimit -n)")]
    TooManyOpenFiles,
    /// A directory, a pipe, a device.
    #[error("not a regular file; name a file")]
    NotAFile,
    /// There is a file where a new one was asked for.
    #[error("the file exists already; name another or remove it")]
    AlreadyExists,
    /// Not an SQLite database at all.
    #[error("not an SQLite database, so not an .rpd trace; left as it is, name another file")]
    NotSqlite,
    /// No bytes at all.
    #[error("the file is empty; record into it or make it a trace with: rpd create FILE")]
    Empty,
    /// Shorter than its own header says.
    #[error(
        "the file is shorter than its header says: it was cut off in a copy or by a full disk; copy it again"
    )]
    Truncated,
    /// An SQLite database that contradicts itself.
    #[error("the database is damaged; save what can be saved with: sqlite3 FILE .recover")]
    Corrupt,
    /// A writer died in the middle of a transaction, and what it left cannot be cleaned up with the rights at hand.
    #[error(
        "its writer died in mid-transaction and the file must be rolled back first; open it once where it can be \
         written, with its -journal or -wal file beside it"
    )]
    NeedsRecovery,
    /// Another process holds the file, for longer than this one was told to wait.
    #[error("another process has it locked; wait for that to finish and try again")]
    Locked,
    /// The file system refuses every lock.
    #[error("its file system has no locks, and others may be writing; name a file on another file system")]
    NoLocks,
    /// An SQLite database, but no trace.
    #[error(
        "an SQLite database, but not an .rpd trace (it has no rocpd_api, rocpd_op and rocpd_string); left as it is, name another file"
    )]
    OtherSqlite,
    /// Some of a trace's tables and no others.
    #[error(
        "a trace that lacks tables: somebody is creating it, or was stopped in doing so; wait, or remove the file if nobody is"
    )]
    Unfinished,
    /// A database of ROCm 7's rocprofv3.
    #[error(
        "a rocprofv3 database (rocpd_* tables with a UUID suffix), another format with a similar name; read it with ROCm's \
         own rocpd tools"
    )]
    Rocprofv3,
    /// A trace of a schema version that nobody here knows.
    #[error("its schema version is {0:?}, and only 1, 2 and 3 are known; use a newer rpd")]
    UnsupportedVersion(String),
    /// A trace, but one of schema 1 or 3, where only 2 can be written.
    #[error("a trace of schema {0}, and only schema 2 can be recorded into; name another file")]
    NotWritable(crate::Version),
    /// A trace of which the writer was to add to its own run's alone.
    #[error("it holds what another run has recorded; rpd record --append adds to it, or name another file")]
    OtherRun,
    /// The file, or the file system it is on, is read-only.
    #[error("the file or its file system is read-only; name another file or change its permissions")]
    ReadOnly,
    /// No space left for the file or its journal.
    #[error("no space left on the disk, in a quota or below a limit of file sizes; make some and try again")]
    DiskFull,
    /// The file was moved, replaced or deleted under its writer.
    #[error("the file was moved, replaced or deleted while it was open; open it again")]
    Moved,
    /// A local id does not fit into this session; see [`crate::Appender::next_session`].
    #[error("this session has no ids left; commit and take another session")]
    SessionFull,
    /// All 2^31 session numbers are taken.
    #[error("the file has no session numbers left; record into another file")]
    NoSessionLeft,
    /// A row or a text was added outside of a transaction.
    #[error("rows can be added only between begin and commit")]
    NoTransaction,
    /// The operation must not be used between begin and commit.
    #[error("a transaction is open; commit it or roll it back first")]
    InTransaction,
    /// Anything else; the error says it in SQLite's or the system's words.
    #[error("unexpected failure")]
    Sqlite,
}

#[derive(Debug)]
enum Underlying {
    Sqlite(rusqlite::Error),
    Io(io::Error),
}

impl Error {
    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The file it went wrong on.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What a failure of SQLite on this file means.
    #[must_use]
    pub fn of_sqlite(path: &Path, source: rusqlite::Error) -> Error {
        Error::sqlite(path, source)
    }

    /// An error of that kind on this file.
    #[must_use]
    pub fn new(kind: ErrorKind, path: &Path) -> Error {
        Error { kind, path: path.to_path_buf(), source: None }
    }

    pub(crate) fn io(path: &Path, source: io::Error) -> Error {
        let kind = match source.kind() {
            _ if place::is_out_of_descriptors(&source) => ErrorKind::TooManyOpenFiles,
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ErrorKind::NotFound,
            io::ErrorKind::InvalidFilename => ErrorKind::NameTooLong,
            io::ErrorKind::PermissionDenied => ErrorKind::PermissionDenied,
            io::ErrorKind::ReadOnlyFilesystem => ErrorKind::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::DiskFull,
            _ => ErrorKind::Sqlite,
        };
        Error { kind, path: path.to_path_buf(), source: Some(Underlying::Io(source)) }
    }

    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Error {
        Error {
            kind: kind_of(path, &source),
            path: path.to_path_buf(),
            source: Some(Underlying::Sqlite(source)),
        }
    }

    /// The same failure, known better.
    pub(crate) fn with_kind(self, kind: ErrorKind) -> Error {
        Error { kind, ..self }
    }
}

fn kind_of(path: &Path, source: &rusqlite::Error) -> ErrorKind {
    let rusqlite::Error::SqliteFailure(failure, _) = source else {
        return ErrorKind::Sqlite;
    };
    match (failure.extended_code, failure.code) {
        (ffi::SQLITE_READONLY_DBMOVED, _) => ErrorKind::Moved,
        (
            ffi::SQLITE_READONLY_ROLLBACK | ffi::SQLITE_READONLY_RECOVERY | ffi::SQLITE_READONLY_CANTINIT,
            _,
        ) => ErrorKind::NeedsRecovery,
        // The file may be written, its directory may not: there is no place for the journal.
        (ffi::SQLITE_READONLY_DIRECTORY, _) => ErrorKind::PermissionDenied,
        (ffi::SQLITE_IOERR_LOCK | ffi::SQLITE_IOERR_RDLOCK | ffi::SQLITE_IOERR_CHECKRESERVEDLOCK, _) => {
            ErrorKind::NoLocks
        }
        (_, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => ErrorKind::Locked,
        (_, ErrorCode::ReadOnly) => ErrorKind::ReadOnly,
        (_, ErrorCode::DiskFull) => ErrorKind::DiskFull,
        (_, ErrorCode::DatabaseCorrupt) => ErrorKind::Corrupt,
        (_, ErrorCode::NotADatabase) => ErrorKind::NotSqlite,
        (_, ErrorCode::PermissionDenied) => ErrorKind::PermissionDenied,
        // SQLite does not say why: there can be no such file, or somebody may not.
        (_, ErrorCode::CannotOpen) => place::why_not_opened(path),
        _ => ErrorKind::Sqlite,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A path is any bytes: control characters would break the promise of one line.
        for character in self.path.to_string_lossy().chars() {
            if character.is_control() {
                write!(formatter, "{}", character.escape_default())?;
            } else {
                write!(formatter, "{character}")?;
            }
        }
        match (&self.kind, &self.source) {
            // Not the whole statement that SQLite's words are about.
            (ErrorKind::Sqlite, Some(Underlying::Sqlite(rusqlite::Error::SqlInputError { msg, .. }))) => {
                write!(formatter, ": {msg}")
            }
            (ErrorKind::Sqlite, Some(Underlying::Sqlite(source))) => write!(formatter, ": {source}"),
            (ErrorKind::Sqlite, Some(Underlying::Io(source))) => write!(formatter, ": {source}"),
            (kind, _) => write!(formatter, ": {kind}"),
        }
    }
}

// The line says what went wrong and what to do; SQLite's own words behind it would only repeat half of that.
impl std::error::Error for Error {}
