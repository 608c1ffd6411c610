//! The duration log that `rpd record` asks the recorder for, and what may happen to a file that is already there.
//!
//! As with traces, lines of several runs are not mixed or thrown away unless that was asked for.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use rpd_postprocess::text;
use rpd_settings::file_name;

use super::destination::{Existing, absolute};

pub(crate) struct DurationLog {
    /// As the recorder is to have it.
    location: OsString,
    /// A file whose lines go.
    replaced: Option<PathBuf>,
}

impl DurationLog {
    /// Looks at what is there, and changes nothing. Of a name that is each process's own nobody knows which files that will be: they
    /// are added to.
    ///
    /// # Errors
    /// Where no log can be written, or one may not be.
    pub(crate) fn prepare(written: &Path, existing: Existing) -> Result<DurationLog> {
        if written == Path::new("console") {
            return Ok(DurationLog { location: written.into(), replaced: None });
        }
        let shown = text::escape_path(written);
        if written.as_os_str().is_empty() {
            bail!("the name of a file for the log is missing");
        }
        let location = absolute(written)?;
        if file_name::LETTERS.iter().any(|letter| file_name::has(written, *letter)) {
            return Ok(DurationLog { location, replaced: None });
        }
        let path = file_name::expand(written, |_| None);
        if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty())
            && !directory.is_dir()
        {
            let directory = directory.to_string_lossy();
            bail!("cannot log into {shown}: {} is no directory", text::escape(&directory));
        }
        let mut replaced = None;
        if let Ok(found) = fs::metadata(&path) {
            if found.is_dir() {
                bail!("cannot log into {shown}: it is a directory");
            }
            if rpd_schema::identify(&path).is_ok() {
                bail!("{shown} is a trace, which stays: name another file for the log");
            }
            if found.is_file() && found.len() > 0 {
                match existing {
                    Existing::Refuse => {
                        bail!("{shown} has lines already: --append adds to them, --force replaces them")
                    }
                    Existing::Append => {}
                    Existing::Replace | Existing::Take => replaced = Some(path),
                }
            }
        }
        Ok(DurationLog { location, replaced })
    }

    /// Throws older lines away that are to be replaced.
    ///
    /// # Errors
    /// Where that cannot be done.
    pub(crate) fn begin(&self) -> Result<()> {
        let Some(path) = &self.replaced else { return Ok(()) };
        let shown = path.to_string_lossy();
        File::create(path).map(drop).with_context(|| format!("cannot replace {}", text::escape(&shown)))
    }

    /// The value of LOGDUR_LOG_LOCATION.
    pub(crate) fn for_recorder(&self) -> OsString {
        self.location.clone()
    }
}
