//! `rpd handler`: the process that has a handler of the user's own. `rpd probe` runs it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Args;

/// Give the messages of instrumented kernels to a library
///
/// `rpd probe -a LIBRARY` runs this.
#[derive(Args)]
#[command(
    hide = true,
    after_help = "\
Example:
  rpd handler socket ./my_handler.so"
)]
pub(crate) struct Handler {
    /// The socket to make
    socket: PathBuf,
    /// A library with the functions of rpd_handler.h
    library: PathBuf,
}

impl Handler {
    /// Serves until it is killed.
    ///
    /// # Errors
    /// Where the library is no handler, or the socket cannot be made.
    pub(crate) fn run(self) -> Result<ExitCode> {
        match rpd_handler_host::serve(&self.socket, &self.library) {
            Ok(never) => match never {},
            Err(why) => Err(anyhow!("{}: {why}", self.library.display())),
        }
    }
}
