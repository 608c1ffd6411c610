//! The `rpdRemote` command.

use std::process::ExitCode;

use clap::Parser;

/// Start and stop recording in running processes
///
/// For processes that were started with LD_PRELOAD=librpd_remote.so.
#[derive(Parser)]
#[command(
    name = "rpdRemote",
    version,
    max_term_width = 100,
    after_help = "\
Exit status: 0 done; 1 failed for at least one process; 2 wrong usage.

Example:
  LD_PRELOAD=librpd_remote.so python3 serve.py &
  rpdRemote list
  rpdRemote start --for 10s PID"
)]
struct CommandLine {
    #[command(flatten)]
    arguments: rpd_remote_command::RemoteArguments,
}

fn main() -> ExitCode {
    rpd_remote_command::run(&CommandLine::parse().arguments, "rpdRemote")
}
