//! `rpd remote`: the same as the command rpdRemote.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

/// Start and stop recording in running processes; the same as the command rpdRemote
///
/// For processes that were started with LD_PRELOAD=librpd_remote.so.
#[derive(Args)]
#[command(after_help = "\
Exit status: 0 done; 1 failed for at least one process; 2 wrong usage.

Example:
  rpd remote list
  rpd remote start --for 10s PID")]
pub(crate) struct Remote {
    #[command(flatten)]
    arguments: rpd_remote_command::RemoteArguments,
}

impl Remote {
    /// Does what rpdRemote does with these arguments.
    ///
    /// # Errors
    /// None: what failed has been said.
    pub(crate) fn run(self) -> Result<ExitCode> {
        Ok(rpd_remote_command::run(&self.arguments, "rpd remote"))
    }
}
