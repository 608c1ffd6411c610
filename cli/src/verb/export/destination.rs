//! The destination of an export: standard output, or a file that appears when it is complete.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use rpd_postprocess::notes::Notes;
use rpd_postprocess::text;

use crate::output::file::OutputFile;

/// See the module.
#[derive(Args)]
pub(super) struct OutputArgs {
    /// Write to this file, compressed if its name ends in .gz [default: standard output, also for -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it exists; never a trace
    #[arg(long)]
    force: bool,
}

impl OutputArgs {
    /// The file, if it is not standard output.
    pub(super) fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }

    /// Keeps formats that have a compression of their own from being compressed again.
    ///
    /// # Errors
    /// When the file's name asks for it.
    pub(super) fn refuse_gzip(&self) -> Result<()> {
        match self.path().filter(|path| is_packed(path)) {
            Some(path) => bail!(
                "{}: this format is not compressed by gzip; name a file that does not end in .gz",
                text::escape_path(path)
            ),
            None => Ok(()),
        }
    }

    /// Writes there what `write` writes.
    ///
    /// # Errors
    /// When the file is there already, or cannot be written; what `write` fails with.
    pub(super) fn write<T>(
        &self,
        notes: &dyn Notes,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T>,
    ) -> Result<T> {
        let Some(path) = self.path() else {
            let mut out = io::stdout();
            let flushed = write(&mut out).and_then(|written| {
                out.flush()?;
                Ok(written)
            });
            return explained(flushed, "standard output");
        };
        let shown = text::escape_path(path);
        if rpd_schema::identify(path).is_ok() {
            bail!("{shown} is a trace, which stays: name another file");
        }
        if fs::metadata(path).is_ok_and(|there| there.is_file()) && !self.force {
            bail!("{shown}: the file exists already; name another, or replace it with --force");
        }
        let cannot = || format!("cannot write {shown}");
        let mut file = OutputFile::at(path, notes).with_context(cannot)?;
        let written = if is_packed(path) {
            let mut packed = GzEncoder::new(file.file(), Compression::fast());
            let written = explained(write(&mut packed), &shown)?;
            packed.finish().with_context(cannot)?;
            written
        } else {
            explained(write(file.file()), &shown)?
        };
        file.finish().with_context(cannot)?;
        Ok(written)
    }
}

fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "gz")
}

/// Says so where it is the output that has failed.
fn explained<T>(written: Result<T>, output: &str) -> Result<T> {
    written.map_err(|error| match error.is::<io::Error>() {
        true => error.context(format!("cannot write to {output}")),
        false => error,
    })
}
