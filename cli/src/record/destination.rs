//! The file that `rpd record` writes, and what may happen to one that is already there.
//!
//! Rules: recordings are not mixed or thrown away unless that was asked for, and a file that is not a
//! trace is not touched whatever was asked for. Ranks of one job are one recording.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_postprocess::check::liveness::{self, SessionState};
use rpd_postprocess::check::{RecordedBy, recorded_by};
use rpd_postprocess::{text, trace};
use rpd_schema::{ErrorKind, Version};
use rpd_settings::{file_name, rank, rotation};

use crate::output::note::note;
use crate::record::job;

/// What to do with a trace that already holds recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Leave it and fail.
    Refuse,
    /// Add sessions to it.
    Append,
    /// Delete it and begin a new one, unless somebody is recording into it or may be.
    Replace,
    /// Delete it and begin a new one, whoever is recording into it.
    Take,
}

impl Existing {
    /// What `--append`, and `--force` given so many times, ask for.
    pub(crate) fn of(append: bool, force: u8) -> Existing {
        match (append, force) {
            (true, _) => Existing::Append,
            (false, 0) => Existing::Refuse,
            (false, 1) => Existing::Replace,
            (false, _) => Existing::Take,
        }
    }
}

/// What is recorded into.
#[derive(Debug)]
pub(crate) enum Destination {
    /// One trace.
    File(Trace),
    /// A trace for each process: a name in which the recorder has to replace `%p`, or the `%r` of ranks that a launcher starts below
    /// the command. Absolute; the recorder adds to a trace that is there.
    PerProcess(OsString),
}

/// A trace that is ready to be recorded into.
#[derive(Debug)]
pub(crate) struct Trace {
    /// Absolute path.
    path: PathBuf,
    /// Whether it was not there before.
    created: bool,
    /// The first session number that the run can take: smaller ones are older.
    first_session: u32,
}

impl Destination {
    /// Makes ready what `written` names, in which letters stand for what [`file_name`] says. `is_rotated`: the recorder goes on in next
    /// files.
    ///
    /// # Errors
    /// Those of [`Trace::prepare`]; or when a name of its own for each process is to replace something, or has no directory.
    pub(crate) fn prepare(written: &Path, existing: Existing, is_rotated: bool) -> Result<Destination> {
        let is_unknown = |letter| {
            file_name::has(written, letter) && (letter == b'p' || file_name::value(letter).is_none())
        };
        let replaces = matches!(existing, Existing::Replace | Existing::Take);
        if !file_name::LETTERS.into_iter().any(is_unknown) {
            let path = file_name::expand(written, file_name::value);
            // What is to be replaced has to be known: it is the file of this place.
            if replaces || !file_name::has(written, b'r') || !rank::may_change_below() {
                if let Some(unknown) = file_name::unknown_letters(written) {
                    note(text::escape(&unknown));
                }
                return Trace::prepare(&path, existing, is_rotated).map(Destination::File);
            }
            // A launcher below may give ranks of its own. If it gives none, this is the file.
            Fate::of_all(&path, existing, is_rotated)?;
        }
        let name = written.display();
        if replaces {
            bail!(
                "{name} is a file for each process, and which ones is not known beforehand: --force cannot replace them"
            );
        }
        let directory = written.parent().filter(|directory| !directory.as_os_str().is_empty());
        if let Some(directory) = directory
            && !directory.as_os_str().as_bytes().contains(&b'%')
            && !directory.is_dir()
        {
            bail!("cannot record into {name}: {} is no directory", directory.display());
        }
        absolute(written).map(Destination::PerProcess)
    }

    /// The value of RPDT_FILENAME.
    pub(crate) fn for_recorder(&self) -> OsString {
        match self {
            Destination::File(trace) => OsString::from_vec(escaped(trace.path.as_os_str().as_bytes())),
            Destination::PerProcess(template) => template.clone(),
        }
    }

    /// The one trace, if it is one.
    pub(crate) fn trace(&self) -> Option<&Trace> {
        match self {
            Destination::File(trace) => Some(trace),
            Destination::PerProcess(_) => None,
        }
    }

    /// Removes the file again where the command never ran and the file was made for it.
    pub(crate) fn abandon(self) {
        if let Destination::File(trace) = self {
            trace.abandon();
        }
    }
}

/// A name with `%p` and the like in it, from the root of the file system on.
///
/// # Errors
/// When there is no working directory.
pub(crate) fn absolute(written: &Path) -> Result<OsString> {
    let mut template = Vec::new();
    if !written.is_absolute() {
        let here = std::env::current_dir().context("cannot find the working directory")?;
        template.extend(escaped(here.as_os_str().as_bytes()));
        template.push(b'/');
    }
    template.extend(written.as_os_str().as_bytes());
    Ok(OsString::from_vec(template))
}

/// Percent signs doubled, because the recorder expands `%p` and the like.
pub(crate) fn escaped(path: &[u8]) -> Vec<u8> {
    path.iter().flat_map(|byte| std::iter::repeat_n(*byte, if *byte == b'%' { 2 } else { 1 })).collect()
}

/// What becomes of the file of a name.
struct Fate {
    /// Absolute path.
    path: PathBuf,
    /// It is deleted.
    is_replaced: bool,
    /// There is none before.
    is_created: bool,
}

impl Fate {
    /// That of the file, and those of the later parts of a recording into it, where there may be some.
    ///
    /// # Errors
    /// Those of [`Fate::of`].
    fn of_all(path: &Path, existing: Existing, is_rotated: bool) -> Result<(Fate, Vec<Fate>)> {
        let first = Fate::of(path, existing)?;
        let parts = if is_rotated { rotation::later_parts(&first.path) } else { Vec::new() };
        let parts = parts.iter().map(|part| Fate::of(part, existing)).collect::<Result<_>>()?;
        Ok((first, parts))
    }

    /// By the rules above; nothing is changed yet.
    ///
    /// # Errors
    /// When the rules forbid to record into it: the message names the option that allows it, if one does.
    fn of(path: &Path, existing: Existing) -> Result<Fate> {
        let path = std::path::absolute(path).with_context(|| {
            let name = path.display();
            format!("{name}: the working directory is not there: name the trace by its whole path, with -o")
        })?;
        let name = path.display().to_string();
        // Not only looked at: what a killed writer had half written is rolled back before it counts.
        let (is_replaced, is_created) = match rpd_schema::open_read(&path).map(|(_, version)| version) {
            Err(error) if *error.kind() == ErrorKind::NotFound => (false, true),
            Err(error) if *error.kind() == ErrorKind::Empty => (false, false),
            Err(error) => return Err(error).with_context(|| format!("cannot record into {name}")),
            Ok(Version::V2) if existing == Existing::Append => (false, false),
            Ok(Version::V2) if !trace::has_data(&path)? && !has_begun(&path)? => (false, false),
            Ok(_) if existing == Existing::Replace => match recorded_by(&path) {
                None => (true, true),
                Some(RecordedBy::Process(process)) => bail!(
                    "{name} is being recorded into by {process}: -o FILE records into another file, \
                     --append adds to it, --force --force replaces it and loses what that process has recorded"
                ),
                Some(RecordedBy::Elsewhere(host)) => bail!(
                    "{name}: a process on {host} may be recording into it, unless it was killed: -o FILE records into another file, \
                     --append adds to it, --force --force replaces it and loses what that process has recorded"
                ),
            },
            Ok(_) if existing == Existing::Take => (true, true),
            Ok(Version::V2) if job::records_into(&path)? => (false, false),
            Ok(Version::V2) => bail!(
                "{name} already holds a recording: --append adds to it, --force replaces it, \
                 -o FILE records into another file (%p in it is the process)"
            ),
            Ok(_) => bail!(
                "{name} is a trace of another schema version, to which nothing can be added: \
                 --force replaces it, -o FILE records into another file"
            ),
        };
        Ok(Fate { path, is_replaced, is_created })
    }
}

/// Whether a process is recording into a trace, which may have no row yet.
fn has_begun(path: &Path) -> Result<bool> {
    let (trace, _) = rpd_schema::open_read(path)?;
    let sessions = rpd_schema::sessions(&trace).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(sessions.iter().any(|session| liveness::state(session) == SessionState::Running))
}

impl Trace {
    /// Makes `path` a trace of schema 2 that can be written, within the rules above.
    ///
    /// # Errors
    /// Those of [`Fate::of`], or the file cannot be created or written. An existing file is unchanged then.
    fn prepare(path: &Path, existing: Existing, is_rotated: bool) -> Result<Trace> {
        let (first, parts) = Fate::of_all(path, existing, is_rotated)?;
        let replaces = matches!(existing, Existing::Replace | Existing::Take);
        // The recorder would go on in a later part, also in one that has nothing in it.
        let parts = parts.iter().filter(|_| replaces);
        for Fate { path, .. } in parts.chain([&first].into_iter().filter(|first| first.is_replaced)) {
            remove(path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        let Fate { path, is_created, .. } = first;
        // Opens it as the recorder will, which would only find out when the command is running.
        rpd_schema::create_or_check(&path)?;
        let first_session = trace::session_count(&path)?;
        Ok(Trace { path, created: is_created, first_session })
    }

    /// Absolute path of the trace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The first session number that the run can take.
    pub(crate) fn first_session(&self) -> u32 {
        self.first_session
    }

    fn abandon(self) {
        // Another process may have begun to record into it in the meantime.
        let own = || -> Result<usize> {
            let (trace, _) = rpd_schema::open_read(&self.path)?;
            let sessions = rpd_schema::sessions(&trace)?;
            Ok(sessions.iter().filter(|session| session.pid() == Some(std::process::id())).count())
        };
        let all = || trace::session_count(&self.path).ok().map(|count| count as usize);
        if self.created && own().ok().is_some_and(|own| all() == Some(own)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Deletes a trace, through symbolic links, together with what SQLite may have left beside it: a journal
/// of the old file would be rolled back into the new one. Notes on what it lacks go with it.
fn remove(path: &Path) -> io::Result<()> {
    let file = path.canonicalize()?;
    let notes = rpd_schema::note_files(&file);
    for suffix in ["-journal", "-wal", "-shm"] {
        let mut beside = file.clone().into_os_string();
        beside.push(suffix);
        match fs::remove_file(beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(&file)?;
    rpd_schema::remove_notes(&file, &notes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_on_a_trace_are_replaced_with_it() {
        let directory = tempfile::tempdir().unwrap();
        let trace = directory.path().join("t.rpd");
        let facts = [("lost::write".to_owned(), "7".to_owned())];
        rpd_schema::create(&trace).unwrap();
        rpd_schema::leave_note(&trace, "one", None, &facts).unwrap();
        let (filled, _) = rpd_schema::open_write(&trace).unwrap();
        filled.execute("INSERT INTO rocpd_monitor (deviceType, deviceId, monitorType, start, end, value) VALUES ('gpu', 0, 'sclk', 1, 2, '')", []).unwrap();
        drop(filled);
        assert!(Trace::prepare(&trace, Existing::Refuse, false).is_err());
        assert_eq!(rpd_schema::note_files(&trace).len(), 1);
        Trace::prepare(&trace, Existing::Replace, false).unwrap();
        assert!(!directory.path().join("t.rpd-lost").exists());
        rpd_schema::leave_note(&trace, "one", None, &facts).unwrap();
    }
}
