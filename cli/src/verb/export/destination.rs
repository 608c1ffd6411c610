//! Where an export of lines goes.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use rpd_postprocess::text;

use crate::output::UNWRITABLE;
use crate::output::file::OutputFile;
use crate::output::progress::notes;

/// See the module.
#[derive(Args)]
pub(super) struct OutputArgs {
    /// Write to this file [default: standard output, also for -]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
    /// Replace OUT if it exists; never a trace
    #[arg(long)]
    force: bool,
}

impl OutputArgs {
    /// Writes there what `write` writes: a file appears when it is complete.
    ///
    /// # Errors
    /// When the file is there already, or cannot be written; what `write` fails with.
    pub(super) fn write<T>(&self, write: impl FnOnce(&mut dyn Write) -> Result<T>) -> Result<T> {
        let Some(path) = self.output.as_deref().filter(|path| *path != Path::new("-")) else {
            let mut out = BufWriter::new(io::stdout().lock());
            let written = write(&mut out).map_err(|error| explained(error, UNWRITABLE.to_string()))?;
            out.flush().context(UNWRITABLE)?;
            return Ok(written);
        };
        let shown = text::escape(&path.to_string_lossy()).into_owned();
        if rpd_schema::identify(path).is_ok() {
            bail!("{shown} is a trace, which stays: name another file");
        }
        if fs::metadata(path).is_ok_and(|there| there.is_file()) && !self.force {
            bail!("{shown}: the file exists already; name another, or replace it with --force");
        }
        let cannot = || format!("cannot write {shown}");
        let mut file = OutputFile::at(path, &*notes()).with_context(cannot)?;
        let written = write(file.file()).map_err(|error| explained(error, cannot()))?;
        file.finish().with_context(cannot)?;
        Ok(written)
    }
}

/// Says so where it is the output that has failed.
fn explained(error: anyhow::Error, cannot: String) -> anyhow::Error {
    match error.is::<io::Error>() {
        true => error.context(cannot),
        false => error,
    }
}
