//! The file that `rpd record` writes, and what may happen to one that is already there.
//!
//! Rules: recordings are not mixed or thrown away unless that was asked for, and a file that is not a
//! trace is not touched whatever was asked for.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_schema::{ErrorKind, Version};

use crate::trace;

/// What to do with a trace that already holds recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Leave it and fail.
    Refuse,
    /// Add sessions to it.
    Append,
    /// Delete it and begin a new one.
    Replace,
}

/// A trace that is ready to be recorded into.
#[derive(Debug)]
pub(crate) struct Destination {
    /// Absolute path.
    path: PathBuf,
    /// Whether it was not there before.
    created: bool,
    /// The first session number that the run can take: smaller ones are older.
    first_session: u32,
}

impl Destination {
    /// Makes `path` a trace of schema 2 that can be written, within the rules above.
    ///
    /// # Errors
    /// When the rules forbid it (the message names the option that allows it, if one does), or the file
    /// cannot be created or written. An existing file is unchanged then.
    pub(crate) fn prepare(path: &Path, existing: Existing) -> Result<Destination> {
        let path = std::path::absolute(path)
            .with_context(|| format!("cannot make {} an absolute path", path.display()))?;
        let name = path.display().to_string();
        let (replace, created) = match rpd_schema::identify(&path) {
            Err(error) if *error.kind() == ErrorKind::NotFound => (false, true),
            Err(error) if *error.kind() == ErrorKind::Empty => (false, false),
            Err(error) => return Err(error).with_context(|| format!("cannot record into {name}")),
            Ok(Version::V2) if existing == Existing::Append || !trace::has_data(&path)? => (false, false),
            Ok(_) if existing == Existing::Replace => (true, true),
            Ok(Version::V2) => bail!(
                "{name} already holds a recording: --append adds to it, --force replaces it, \
                 -o FILE records into another file"
            ),
            Ok(_) => bail!(
                "{name} is a trace of another schema version, to which nothing can be added: \
                 --force replaces it, -o FILE records into another file"
            ),
        };
        if replace {
            remove(&path).with_context(|| format!("cannot replace {name}"))?;
        }
        // Opens it as the recorder will, which would only find out when the command is running.
        rpd_schema::create_or_check(&path)?;
        let first_session = trace::session_count(&path)?;
        Ok(Destination { path, created, first_session })
    }

    /// Absolute path of the trace.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The first session number that the run can take.
    pub(crate) fn first_session(&self) -> u32 {
        self.first_session
    }

    /// The value of RPDT_FILENAME: percent signs doubled, because the recorder expands `%p` and the like.
    pub(crate) fn for_recorder(&self) -> OsString {
        let mut value = Vec::new();
        for byte in self.path.as_os_str().as_bytes() {
            value.extend(std::iter::repeat_n(*byte, if *byte == b'%' { 2 } else { 1 }));
        }
        OsString::from_vec(value)
    }

    /// Removes the file again where the command never ran and the file was made for it.
    pub(crate) fn abandon(self) {
        // Another process may have begun to record into it in the meantime.
        if self.created && trace::session_count(&self.path).is_ok_and(|count| count == 0) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Deletes a trace, through symbolic links, together with what SQLite may have left beside it: a journal
/// of the old file would be rolled back into the new one.
fn remove(path: &Path) -> io::Result<()> {
    let file = path.canonicalize()?;
    for suffix in ["-journal", "-wal", "-shm"] {
        let mut beside = file.clone().into_os_string();
        beside.push(suffix);
        match fs::remove_file(beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    fs::remove_file(file)
}
