//! `rpd create`: an empty trace.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::args::value;

/// Create an empty trace file
#[derive(Args)]
#[command(after_help = "\
Recorders add to an existing trace: create one beforehand where several processes start at once.

Example:
  rpd create trace.rpd")]
pub(crate) struct Create {
    /// The file to create; an existing one is left as it is, and is an error unless it has no bytes
    #[arg(value_parser = value::output())]
    file: PathBuf,
}

impl Create {
    /// Creates `file` as a trace without sessions. A file of no bytes is filled.
    ///
    /// # Errors
    /// When there is such a file already (it is left as it is), or it cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        rpd_schema::create(&self.file)?;
        Ok(ExitCode::SUCCESS)
    }
}
