//! The kind and version of a file, found without changing it.

use crate::error::{Error, ErrorKind};
use crate::open::{BUSY_TIME, as_it_lies, read_only, read_write, recover};
use rusqlite::{Connection, OptionalExtension};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Schema version of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// Arguments hang off ops (`rocpd_kernelop`, `rocpd_copyop`); no `schema_version` row, or `1`.
    V1,
    /// The version this project writes.
    V2,
    /// rocmProfileData since February 2026: categories, domains, `rocpd_ustring`, `rocpd_counter`.
    V3,
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Version::V1 => "1",
            Version::V2 => "2",
            Version::V3 => "3",
        })
    }
}

/// Says which schema version a trace has. Writes nothing, creates nothing, waits up to [`BUSY_TIME`] for a writer.
///
/// # Errors
///
/// Says what the file is if it is no trace: see [`ErrorKind`].
pub fn identify(path: &Path) -> Result<Version, Error> {
    identify_within(path, BUSY_TIME)
}

/// [`identify`], waiting up to `busy` for each lock.
///
/// # Errors
///
/// As [`identify`].
pub fn identify_within(path: &Path, busy: Duration) -> Result<Version, Error> {
    look(path, busy).map(|found| found.version)
}

/// What a look at a file found.
pub(crate) struct Found {
    pub(crate) version: Version,
    /// Its writer died in mid-transaction: it must be rolled back before it is read.
    pub(crate) interrupted: bool,
    /// It has a write-ahead log.
    pub(crate) has_log: bool,
}

/// The smallest page, and so the smallest database, that SQLite has, bytes.
const SMALLEST_PAGE: u64 = 512;

/// Looks at a file, which is rolled back first where its writer died in mid-transaction and it may be a trace.
pub(crate) fn look_at_whole(path: &Path, busy: Duration) -> Result<Found, Error> {
    match look(path, busy) {
        Ok(found) if !found.interrupted => Ok(found),
        Err(error) if *error.kind() != ErrorKind::NeedsRecovery => Err(error),
        _ => {
            recover(path, busy)?;
            look(path, busy)
        }
    }
}

/// Looks at a file without changing it. A writer that died may have left so little of a trace, or so much in the wrong place, that only the
/// file that is rolled back says what it is: [`ErrorKind::NeedsRecovery`].
pub(crate) fn look(path: &Path, busy: Duration) -> Result<Found, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| Error::io(path, error))?;
    if !metadata.is_file() {
        // Opening a pipe would wait for its other end.
        return Err(Error::new(ErrorKind::NotAFile, path));
    }
    if metadata.len() == 0 {
        return Err(Error::new(ErrorKind::Empty, path));
    }
    if metadata.len() < SMALLEST_PAGE {
        // SQLite takes so little for an empty database.
        return Err(Error::new(ErrorKind::NotSqlite, path));
    }
    let wal = WalFiles::before(path);
    let found = look_into(path, busy);
    wal.tidy(path, busy);
    found
}

fn look_into(path: &Path, busy: Duration) -> Result<Found, Error> {
    let connection = read_only(path, busy)?;
    let error = match whole_version_of(&connection, path) {
        Ok((version, has_log)) => return Ok(Found { version, interrupted: false, has_log }),
        Err(error) => error.at(path),
    };
    if *error.kind() != ErrorKind::NeedsRecovery {
        return Err(error);
    }
    let Ok(connection) = as_it_lies(path) else { return Err(error) };
    match version_of(&connection) {
        Ok(version) => Ok(Found { version, interrupted: true, has_log: false }),
        Err(Unknown::Kind(kind)) if is_of_others(&connection, &kind) => Err(Error::new(kind, path)),
        Err(_) => Err(error),
    }
}

/// Whether a database of this kind as it lies there is certainly no trace that somebody was making.
fn is_of_others(connection: &Connection, kind: &ErrorKind) -> bool {
    let others =
        "SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE type = 'table' AND lower(name) NOT GLOB 'rocpd_*'
         AND lower(name) NOT GLOB 'ext_*' AND lower(name) NOT GLOB 'sqlite_*')";
    match kind {
        ErrorKind::OtherSqlite => connection.query_row(others, [], |row| row.get(0)).unwrap_or(false),
        kind => matches!(kind, ErrorKind::Rocprofv3 | ErrorKind::UnsupportedVersion(_)),
    }
}

/// Why a database has no version that we know.
pub(crate) enum Unknown {
    Kind(ErrorKind),
    Sqlite(rusqlite::Error),
}

impl Unknown {
    /// The error on this file.
    pub(crate) fn at(self, path: &Path) -> Error {
        match self {
            Unknown::Kind(kind) => Error::new(kind, path),
            Unknown::Sqlite(error) => Error::sqlite(path, error),
        }
    }
}

impl From<rusqlite::Error> for Unknown {
    fn from(error: rusqlite::Error) -> Unknown {
        Unknown::Sqlite(error)
    }
}

/// The schema version of an open database.
pub(crate) fn version_of(connection: &Connection) -> Result<Version, Unknown> {
    // Counted in SQL: names of a foreign database may be any bytes.
    let (core, uuid_tables, others, tables, (facts, arguments)) = connection.query_row(
        "SELECT
            count(*) FILTER (WHERE lower(name) IN ('rocpd_api', 'rocpd_op', 'rocpd_string')),
            count(*) FILTER (WHERE lower(name) GLOB 'rocpd_info_*' OR lower(name) GLOB 'rocpd_region_*'
                OR lower(name) GLOB 'rocpd_kernel_dispatch_*'),
            count(*) FILTER (WHERE lower(name) NOT GLOB 'rocpd_*' AND lower(name) NOT GLOB 'sqlite_*'),
            count(*),
            count(*) FILTER (WHERE lower(name) = 'rocpd_metadata'),
            count(*) FILTER (WHERE lower(name) = 'rocpd_ustring')
         FROM sqlite_master WHERE type = 'table'",
        [],
        |row| {
            Ok((
                row.get::<_, i64>(0)?,
                row.get::<_, i64>(1)?,
                row.get::<_, i64>(2)?,
                row.get::<_, i64>(3)?,
                (row.get::<_, i64>(4)?, row.get::<_, i64>(5)?),
            ))
        },
    )?;
    if core < 3 {
        let kind = if uuid_tables > 0 {
            ErrorKind::Rocprofv3
        } else if others == 0 && tables > 0 {
            ErrorKind::Unfinished
        } else {
            ErrorKind::OtherSqlite
        };
        return Err(Unknown::Kind(kind));
    }
    if facts == 0 {
        return Ok(Version::V1);
    }
    // The columns that would say it have other names: the tables tell it.
    if !has_facts(connection)? {
        return Ok(if arguments > 0 { Version::V3 } else { Version::V2 });
    }
    let version = connection
        .query_row(
            "SELECT CAST(value AS text) FROM rocpd_metadata WHERE tag = 'schema_version' ORDER BY id DESC LIMIT 1",
            [],
            |row| Ok(row.get_ref(0)?.as_bytes_or_null()?.map(|text| String::from_utf8_lossy(text).into_owned())),
        )
        .optional()?
        .flatten();
    match version.as_deref().map(str::trim) {
        None | Some("1") => Ok(Version::V1),
        Some("2") => Ok(Version::V2),
        Some("3") => Ok(Version::V3),
        Some(other) => Err(Unknown::Kind(ErrorKind::UnsupportedVersion(other.to_owned()))),
    }
}

/// Whether facts can be read: without the table, or with other names for its columns, a file states none.
pub(crate) fn has_facts(connection: &Connection) -> rusqlite::Result<bool> {
    let columns =
        "SELECT count(*) FROM pragma_table_info('rocpd_metadata') WHERE lower(name) IN ('tag', 'value')";
    connection.query_row(columns, [], |row| Ok(row.get::<_, i64>(0)? == 2))
}

/// The version of a database whose every page is there, and whether it has a write-ahead log.
fn whole_version_of(connection: &Connection, path: &Path) -> Result<(Version, bool), Unknown> {
    // One transaction: no writer changes the file between the reading and the measuring.
    connection.execute_batch("BEGIN")?;
    // Of all that can be corrupt, only a header that counts more pages than the file has keeps SQLite from reading a
    // number out of the header itself.
    if let Err(error) = connection.query_row("PRAGMA user_version", [], |_| Ok(())) {
        let corrupt = error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseCorrupt);
        return Err(if corrupt { Unknown::Kind(ErrorKind::Truncated) } else { error.into() });
    }
    let journal = connection.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0))?;
    // SQLite misses less than a page without a word. In WAL mode the last pages may be in the log only.
    let has_log = journal == "wal";
    if !has_log && is_shorter_than_counted(connection, path)? {
        return Err(Unknown::Kind(ErrorKind::Truncated));
    }
    let version = version_of(connection)?;
    connection.execute_batch("COMMIT")?;
    Ok((version, has_log))
}

/// Whether the file has fewer bytes than SQLite counts pages.
fn is_shorter_than_counted(connection: &Connection, path: &Path) -> rusqlite::Result<bool> {
    let pages = connection.query_row("PRAGMA page_count", [], |row| row.get::<_, i64>(0))?;
    let size = connection.query_row("PRAGMA page_size", [], |row| row.get::<_, i64>(0))?;
    let counted = pages.unsigned_abs().saturating_mul(size.unsigned_abs());
    Ok(std::fs::metadata(path).is_ok_and(|metadata| metadata.len() < counted))
}

/// The files that SQLite keeps beside a database in WAL mode. Reading such a database creates them, and a reader that
/// cannot write cannot remove them.
pub(crate) struct WalFiles {
    wal: PathBuf,
    absent: bool,
}

impl WalFiles {
    /// What there is of them beside `path`.
    pub(crate) fn before(path: &Path) -> WalFiles {
        let mut wal = OsString::from(path);
        wal.push("-wal");
        let wal = PathBuf::from(wal);
        WalFiles { absent: !wal.exists(), wal }
    }

    /// Whether there were none.
    pub(crate) fn are_absent(&self) -> bool {
        self.absent
    }

    /// Removes what the look created, by the only safe way: SQLite does it, under its locks, when the last connection
    /// that may write closes. Where that fails the files stay: they are harmless.
    fn tidy(&self, path: &Path, busy: Duration) {
        if self.absent
            && self.wal.exists()
            && let Ok(connection) = read_write(path, busy, false)
        {
            let _ = connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()));
        }
    }
}
