//! Making a trace out of others: it appears whole, or not at all.
//!
//! It grows in a temporary file beside the place where it will stand, and gets its name when it is complete.

pub(crate) mod objects;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rusqlite::Connection;
use tempfile::NamedTempFile;

use crate::interruption::{Interruption, watch};
use crate::note::note;
use crate::pass::explain;
use crate::progress::Progress;
use crate::{system, text};

/// The name in statements of the trace that is attached.
pub(crate) const SOURCE: &str = "source";

/// Where the made trace will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place<'a> {
    /// Where nothing is yet.
    New(&'a Path),
    /// In place of the trace that is there.
    Of(&'a Path),
}

/// A trace that is being made.
pub(crate) struct Making<'a> {
    /// It, as the main database of a connection.
    pub(crate) made: &'a Connection,
    progress: &'a Progress,
}

impl Making<'_> {
    /// Says what is being worked on, for a terminal.
    pub(crate) fn show(&self, what: &str) {
        self.progress.show(what);
    }

    /// Lets `work` read the trace `file`, under the name [`SOURCE`].
    ///
    /// # Errors
    /// When it is no trace, or what `work` fails with.
    pub(crate) fn with<T>(&self, file: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
        rpd_schema::attach(self.made, file, SOURCE)?;
        let result = work()?;
        self.made.execute(&format!("DETACH {SOURCE}"), [])?;
        Ok(result)
    }
}

/// Lets `work` fill a new database at `place`, with the encoding of the trace `like`. If it fails or is interrupted nothing
/// is left of it.
///
/// # Errors
/// What failed and what to do about it.
pub(crate) fn derive<T>(
    place: Place<'_>,
    like: &Path,
    work: impl FnOnce(&Making<'_>) -> Result<T>,
) -> Result<T> {
    let path = target(place)?;
    let interruption = Interruption::note().context("cannot install signal handlers")?;
    let file = temporary(place, &path)?;
    let done = fill(file.path(), like, work).and_then(|result| {
        put(file, place, &path)?;
        Ok(result)
    });
    let error = match done {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let shown = |path: &Path| text::escape(&path.to_string_lossy()).into_owned();
    let outcome = match place {
        Place::New(path) => format!("{} was not made", shown(path)),
        Place::Of(path) => format!("{} is as it was", shown(path)),
    };
    if let Some(signal) = Interruption::signal() {
        note(format_args!("interrupted: {outcome}"));
        drop(interruption);
        system::die_by(signal);
    }
    Err(explain(error, &path).context(outcome))
}

/// The file that will be there: through symbolic links where it replaces one.
fn target(place: Place<'_>) -> Result<PathBuf> {
    match place {
        Place::New(path) if fs::symlink_metadata(path).is_ok() => {
            bail!(
                "{}: the file exists already; name another or remove it",
                text::escape(&path.to_string_lossy())
            )
        }
        Place::New(path) => Ok(std::path::absolute(path)?),
        Place::Of(path) => Ok(path.canonicalize()?),
    }
}

fn temporary(place: Place<'_>, path: &Path) -> Result<NamedTempFile> {
    let permissions = match place {
        // As any new file, within the umask.
        Place::New(_) => Permissions::from_mode(0o666),
        Place::Of(_) => fs::metadata(path)?.permissions(),
    };
    let directory = path.parent().context("a directory is no trace")?;
    tempfile::Builder::new()
        .prefix(".rpd-")
        .permissions(permissions)
        .tempfile_in(directory)
        .with_context(|| format!("cannot make a file in {}", text::escape(&directory.to_string_lossy())))
}

fn fill<T>(file: &Path, like: &Path, work: impl FnOnce(&Making<'_>) -> Result<T>) -> Result<T> {
    let mut made = rpd_schema::derive(file, &encoding(like)?)?;
    let progress = Arc::new(Progress::new());
    watch(&mut made, &progress)?;
    work(&Making { made: &made, progress: &progress })
}

fn encoding(trace: &Path) -> Result<String> {
    let (trace, _) = rpd_schema::open_read(trace)?;
    Ok(trace.query_row("PRAGMA encoding", [], |row| row.get(0))?)
}

fn put(file: NamedTempFile, place: Place<'_>, path: &Path) -> Result<()> {
    match place {
        Place::New(_) => file.persist_noclobber(path)?,
        Place::Of(_) => {
            // It will be all that there is.
            file.as_file().sync_all()?;
            file.persist(path)?
        }
    };
    Ok(())
}
