//! `rpd disassembler`: the process that `rpd code` starts to have LLVM in it, which crashes on some bytes.

use std::io;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

/// Answer rpd code, which starts this
#[derive(Args)]
#[command(hide = true, after_help = "Example:\n  rpd disassembler: is for rpd code alone")]
pub(crate) struct Disassembler {}

impl Disassembler {
    /// Answers until standard input ends.
    ///
    /// # Errors
    /// When standard input or output is not that of `rpd code`.
    pub(crate) fn run(self) -> Result<ExitCode> {
        rpd_disassembly::serve()?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The command that runs it.
///
/// # Errors
/// When the system does not say which file this program is.
pub(crate) fn command() -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("disassembler");
    Ok(command)
}
