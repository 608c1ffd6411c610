//! A new trace, from the directory in which it grows to its name.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use rpd_schema::{Appender, Version};
use rusqlite::Connection;
use tempfile::{PathPersistError, TempPath};

use super::growing::Growing;
use crate::check::writer::recorder;
use crate::notes::{SharedNotes, undone, watch};
use crate::pass::change::explain;
use crate::text;
use crate::trace::layout::Layout;
use crate::trace::row_count;

/// The name in statements of the trace that is attached.
pub(crate) const SOURCE: &str = "source";

/// Where the made trace will stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TracePlace<'a> {
    /// Where nothing is yet.
    New(&'a Path),
    /// In place of the trace that is there.
    Of(&'a Path),
}

/// A trace that is being made.
pub(crate) struct NewTrace<'a> {
    /// It, as the main database of a connection.
    pub(crate) made: &'a Connection,
    notes: &'a SharedNotes,
    growing: &'a Growing,
}

/// A trace that is read while another is made of it.
pub(crate) struct SourceTrace {
    /// Where it can be read.
    pub(crate) path: PathBuf,
    /// It, for reading only; signals stop what it does.
    pub(crate) trace: Connection,
    /// Its schema.
    pub(crate) version: Version,
}

impl SourceTrace {
    /// The trace `file`, read where it is.
    ///
    /// # Errors
    /// When it is no trace or cannot be read.
    pub(crate) fn open(file: &Path) -> Result<SourceTrace> {
        let (trace, version) = rpd_schema::open_read(file)?;
        Ok(SourceTrace { path: file.to_path_buf(), trace, version })
    }
}

impl NewTrace<'_> {
    /// Says what is being worked on, for a terminal.
    pub(crate) fn show(&self, what: &str) {
        self.notes.show(what);
    }

    /// Opens the trace `file`. One that is being recorded is copied first: its recorder waits while it is read, which
    /// takes much longer than the copy.
    ///
    /// # Errors
    /// When it is no trace, cannot be read, or not be copied.
    pub(crate) fn open(&self, file: &Path) -> Result<SourceTrace> {
        let mut source = SourceTrace::open(file)?;
        // Readers of a write-ahead log keep nobody waiting.
        if recorder(&source.trace)?.is_some() && !has_log(&source.trace)? {
            self.show("a copy of what has been recorded");
            source.path = self.copy(&source)?;
            source.trace = rpd_schema::open_read(&source.path)?.0;
        }
        watch(&mut source.trace, self.notes)?;
        Ok(source)
    }

    fn copy(&self, source: &SourceTrace) -> Result<PathBuf> {
        let copy = self.growing.file("recorded.rpd", 0o600)?;
        let reading = source.trace.unchecked_transaction()?;
        // With this the transaction has begun, and nobody writes.
        reading.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()))?;
        fs::copy(&source.path, &copy).context("cannot copy what has been recorded")?;
        Ok(copy)
    }

    /// Lets `work` read the trace `file`, under the name [`SOURCE`].
    ///
    /// # Errors
    /// When it is no trace, or what `work` fails with.
    pub(crate) fn with<T>(&self, file: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
        // Who closes a write-ahead log last removes it, if that one may write, as this reader may.
        let _reader = rpd_schema::open_read(file)?;
        rpd_schema::attach(self.made, file, SOURCE)?;
        let result = work()?;
        self.made.execute(&format!("DETACH {SOURCE}"), [])?;
        Ok(result)
    }
}

/// What a trace that was made has to have.
#[derive(Debug)]
pub(crate) struct Announced {
    /// Its schema.
    pub(crate) version: Version,
    /// How many rows its tables have, by the rows that they were made from.
    pub(crate) rows: BTreeMap<String, u64>,
}

impl Announced {
    /// Checks that the trace `file` can be read and has what was announced.
    ///
    /// # Errors
    /// What it lacks.
    fn check(&self, file: &Path) -> Result<()> {
        let (trace, version) = rpd_schema::open_read(file)?;
        if version != self.version {
            bail!("what came out is of schema {version}, not {}", self.version);
        }
        let layout = Layout::declared(&trace)?;
        for (table, announced) in &self.rows {
            let shown = text::escape(table);
            if layout.table(table).is_none() {
                bail!("what came out has no table {shown}");
            }
            let found = row_count(&trace, table)?;
            if found != *announced {
                bail!("what came out has {found} rows in {shown} where {announced} belong");
            }
        }
        Ok(())
    }
}

/// Lets `work` fill a new database at `place`, with the encoding of the trace `like`. It gets its place if it has what `work`
/// announces. If something fails or interrupts nothing is left of it.
///
/// # Errors
/// What failed and what to do about it.
pub(crate) fn derive<T>(
    place: TracePlace<'_>,
    like: &Path,
    notes: &SharedNotes,
    work: impl FnOnce(&NewTrace<'_>) -> Result<(T, Announced)>,
) -> Result<T> {
    make(place, || encoding(like), notes, work)
}

/// [`derive()`] with this encoding.
///
/// # Errors
/// As [`derive()`].
pub(crate) fn make<T>(
    place: TracePlace<'_>,
    encoding: impl FnOnce() -> Result<String>,
    notes: &SharedNotes,
    work: impl FnOnce(&NewTrace<'_>) -> Result<(T, Announced)>,
) -> Result<T> {
    put_into(place, notes, |growing, file| {
        let mut made = rpd_schema::derive(file, &encoding()?)?;
        watch(&mut made, notes)?;
        let (result, announced) = work(&NewTrace { made: &made, notes, growing })?;
        notes.show("checking what was made");
        made.close().map_err(|(_, error)| error)?;
        Ok((result, announced))
    })
}

/// Lets `work` append to a new trace at `place`, in one transaction of one session; else as [`derive()`].
///
/// # Errors
/// As [`derive()`].
pub(crate) fn append<T>(
    place: TracePlace<'_>,
    notes: &SharedNotes,
    work: impl FnOnce(&mut Appender) -> Result<(T, Announced)>,
) -> Result<T> {
    put_into(place, notes, |_, file| {
        let mut made = Appender::open(file)?;
        made.begin()?;
        let done = work(&mut made)?;
        made.commit()?;
        Ok(done)
    })
}

/// Lets `fill` make a trace of an empty file, which then gets its place.
fn put_into<T>(
    place: TracePlace<'_>,
    notes: &SharedNotes,
    fill: impl FnOnce(&Growing, &Path) -> Result<(T, Announced)>,
) -> Result<T> {
    let path = target(place)?;
    let _held = notes.hold_signals().context("cannot install signal handlers")?;
    let directory = path.parent().context("a directory is no trace")?;
    let growing = Growing::within(directory)
        .with_context(|| format!("cannot make a file in {}", text::escape_path(directory)))?;
    let done = grown(&growing, fill).and_then(|(file, result)| {
        put(file, place, &path)?;
        Ok(result)
    });
    drop(growing);
    let error = match done {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    // Somebody else has made it meanwhile.
    if let TracePlace::New(path) = place
        && let Some(failed) = error.downcast_ref::<PathPersistError>()
        && failed.error.kind() == io::ErrorKind::AlreadyExists
    {
        return Err(there_already(path));
    }
    let outcome = match place {
        TracePlace::New(path) => format!("{} was not made", text::escape_path(path)),
        TracePlace::Of(path) => format!("{} is as it was", text::escape_path(path)),
    };
    Err(undone(explain(error, &path), &**notes, outcome))
}

/// The file in which the trace grew, and what `fill` says of it.
fn grown<T>(
    growing: &Growing,
    fill: impl FnOnce(&Growing, &Path) -> Result<(T, Announced)>,
) -> Result<(TempPath, T)> {
    let file = growing.file("made.rpd", 0o666)?;
    let filled = fill(growing, &file).map_err(|error| match error.downcast::<rpd_schema::Error>() {
        // Nobody knows the place where it grew.
        Ok(error) if error.path() == file => anyhow!(error.kind().to_string()),
        Ok(error) => error.into(),
        Err(error) => error,
    });
    let (result, announced) = filled?;
    announced.check(&file).context("an error of rpd, or of the disk")?;
    Ok((TempPath::try_from_path(file)?, result))
}

/// The file that will be there: through symbolic links where it replaces one.
///
/// # Errors
/// When it cannot be there.
pub(crate) fn target(place: TracePlace<'_>) -> Result<PathBuf> {
    match place {
        TracePlace::New(path) if fs::symlink_metadata(path).is_ok() => Err(there_already(path)),
        TracePlace::New(path) if let Some(left) = left_beside(path) => bail!(
            "{} is of a trace that is gone, and would be taken for a part of the new one: remove it or name another trace",
            text::escape_path(left)
        ),
        TracePlace::New(path) => Ok(std::path::absolute(path)?),
        TracePlace::Of(path) => Ok(path.canonicalize()?),
    }
}

/// A journal that somebody's trace of this name left, from which SQLite would roll back the new one.
fn left_beside(path: &Path) -> Option<PathBuf> {
    let beside = ["-journal", "-wal", "-shm"].map(|ending| {
        let mut name = path.as_os_str().to_os_string();
        name.push(ending);
        PathBuf::from(name)
    });
    beside.into_iter().find(|file| fs::symlink_metadata(file).is_ok())
}

fn there_already(path: &Path) -> Error {
    anyhow!("{}: the file exists already; name another or remove it", text::escape_path(path))
}

fn encoding(trace: &Path) -> Result<String> {
    let (trace, _) = rpd_schema::open_read(trace)?;
    Ok(trace.query_row("PRAGMA encoding", [], |row| row.get(0))?)
}

/// Whether the trace has a write-ahead log.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn has_log(trace: &Connection) -> rusqlite::Result<bool> {
    trace.query_row("PRAGMA journal_mode", [], |row| Ok(row.get::<_, String>(0)? == "wal"))
}

fn put(file: TempPath, place: TracePlace<'_>, path: &Path) -> Result<()> {
    match place {
        TracePlace::New(_) => file.persist_noclobber(path)?,
        TracePlace::Of(_) => {
            fs::set_permissions(&file, fs::metadata(path)?.permissions())?;
            // It will be all that there is.
            File::open(&file)?.sync_all()?;
            file.persist(path)?
        }
    };
    Ok(())
}
