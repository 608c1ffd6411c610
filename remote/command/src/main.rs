//! The `rpdRemote` command.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    rpd_remote_command::run(&rpd_remote_command::CommandLine::parse().arguments, "rpdRemote")
}
