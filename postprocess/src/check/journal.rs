//! Journals beside the file: what a writer needs, and what a dead one leaves.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, ffi};

use super::finding::{CheckFinding, Example};
use super::kind::FindingKind;

/// Names of the journals beside a file.
pub(crate) fn beside(file: &Path) -> Vec<String> {
    // SQLite keeps them beside the real file, wherever links lead.
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_path_buf());
    let journal = |suffix| {
        let mut journal = OsString::from(&file);
        journal.push(suffix);
        let is_there = fs::metadata(&journal).is_ok_and(|metadata| metadata.is_file());
        is_there.then(|| Path::new(&journal).file_name().unwrap_or_default().to_string_lossy().into_owned())
    };
    ["-journal", "-wal"].into_iter().filter_map(journal).collect()
}

/// Whether the writer of a file with a journal died in mid-transaction, so that whoever opens the file next
/// rolls it back.
///
/// Nothing is changed: a connection that may not write says that it would have to.
pub(crate) fn awaits_rollback(file: &Path) -> bool {
    // SQLite takes a relative name that begins with `file:` for a URI.
    let Ok(file) = std::path::absolute(file) else { return false };
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let Ok(connection) = Connection::open_with_flags(file, flags) else { return false };
    let look = connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()));
    let code = look.err().and_then(|error| error.sqlite_error().map(|error| error.extended_code));
    matches!(code, Some(ffi::SQLITE_READONLY_ROLLBACK | ffi::SQLITE_READONLY_RECOVERY))
}

/// What opening a file did to the journals that were `before` beside it.
pub(crate) fn findings(file: &Path, before: &[String], rolled_back: bool) -> Vec<CheckFinding> {
    let rolled_back = rolled_back.then(|| CheckFinding::new(FindingKind::JournalRolledBack, "file", 1));
    // One that came only now is a writer's at work, or this connection's own.
    let left = beside(file).into_iter().filter(|name| before.contains(name));
    let left = left.map(|name| {
        CheckFinding::new(FindingKind::LeftoverJournal, "file", 1).examples([Example::Text(name)])
    });
    rolled_back.into_iter().chain(left).collect()
}
