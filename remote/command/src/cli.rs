//! The command line.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand};
use rpd_settings::file_name;
use rpd_settings::quantity::{self, SECOND};

/// Start and stop recording in running processes
///
/// For processes that were started with LD_PRELOAD=librpd_remote.so.
#[derive(Parser, Debug)]
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
pub struct CommandLine {
    /// What is to be done, and where.
    #[command(flatten)]
    pub arguments: RemoteArguments,
}

/// The definition of rpdRemote's command line.
pub fn command() -> clap::Command {
    CommandLine::command()
}

/// What is to be done, and where.
#[derive(Args, Debug)]
pub struct RemoteArguments {
    #[command(subcommand)]
    pub(crate) verb: RemoteVerb,
}

#[derive(Subcommand, Debug)]
pub(crate) enum RemoteVerb {
    /// Begin recording
    ///
    /// The trace is the one that the process's RPDT_FILENAME names, trace.rpd in its working directory without
    /// that. It is made when missing, and appended to when it is a trace.
    #[command(after_help = "\
Example:
  rpdRemote start 4711
  rpdRemote start --for 10s -o /tmp/%p.rpd --all")]
    Start(Start),
    /// End recording; everything recorded is in the file then
    #[command(after_help = "\
Example:
  rpdRemote stop 4711
  rpdRemote stop --drain 30s 4711
  sqlite3 trace.rpd 'select * from top limit 10'")]
    Stop(Stop),
    /// Put everything recorded so far into the file; recording goes on
    #[command(after_help = "\
Example:
  rpdRemote flush 4711")]
    Flush(Acting),
    /// Show the state of processes
    #[command(after_help = "\
Example:
  rpdRemote status 4711
  rpdRemote status --all --json | jq '.[].events'")]
    Status(Looking),
    /// List this user's processes that can be controlled
    #[command(after_help = "\
Example:
  rpdRemote list")]
    List(List),
}

#[derive(Args, Debug)]
pub(crate) struct Start {
    /// End recording after that long: 10s, 1.5ms, 250us, 2m, 1h; seconds without a unit
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// The file to record into, where nothing was recorded yet; %p in it is the process id
    #[arg(short, long, value_name = "FILE", value_parser = output())]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) acting: Acting,
}

#[derive(Args, Debug)]
pub(crate) struct Stop {
    /// Wait up to that long for GPU work that was launched before, then say what has not completed; that is recorded when it completes
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration_or_none)]
    pub(crate) drain: Duration,
    #[command(flatten)]
    pub(crate) acting: Acting,
}

#[derive(Args, Debug)]
pub(crate) struct Acting {
    #[command(flatten)]
    pub(crate) processes: ProcessArguments,
    /// Return when recording has begun, or when the data is in the file [default on a terminal]
    ///
    /// A start waits for a process that does not use a GPU yet until it does.
    #[arg(long)]
    wait: bool,
    /// Return as soon as it is asked for [default elsewhere]
    #[arg(long, conflicts_with = "wait")]
    no_wait: bool,
    /// Write a JSON array with one object per process
    #[arg(long)]
    pub(crate) json: bool,
}

impl Acting {
    pub(crate) fn waits(&self) -> bool {
        self.wait || (!self.no_wait && io::stdout().is_terminal())
    }
}

#[derive(Args, Debug)]
pub(crate) struct Looking {
    #[command(flatten)]
    pub(crate) processes: ProcessArguments,
    /// Write a JSON array with one object per process
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// Write a JSON array with one object per process
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
#[group(skip)]
pub(crate) struct ProcessArguments {
    /// Process ids
    #[arg(value_name = "PID", required_unless_present = "all", value_parser = process_id)]
    pub(crate) pids: Vec<u32>,
    /// All of this user's processes that can be controlled
    #[arg(long, conflicts_with_all = ["pids", "tree"])]
    pub(crate) all: bool,
    /// The processes and all their children: jobs of torchrun, mpirun
    #[arg(long)]
    pub(crate) tree: bool,
}

fn process_id(text: &str) -> Result<u32, String> {
    let number = text.parse().ok().filter(|pid| (1..=i32::MAX.unsigned_abs()).contains(pid));
    number.ok_or_else(|| "not a process id; rpdRemote list shows those that can be controlled".to_string())
}

/// A time, or 0.
fn duration_or_none(text: &str) -> Result<Duration, String> {
    if text == "0" { Ok(Duration::ZERO) } else { duration(text) }
}

fn duration(text: &str) -> Result<Duration, String> {
    let ns = quantity::time_ns(text, SECOND).ok_or_else(|| format!("not {}", quantity::TIMES))?;
    let time = Some(Duration::from_nanos(ns.unsigned_abs()));
    time.filter(|time| !time.is_zero() && time.as_secs() < 1 << 32)
        .ok_or_else(|| "must be more than nothing and less than 136 years".to_string())
}

fn output() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| file_name::of_output(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Result<RemoteArguments, clap::Error> {
        CommandLine::try_parse_from(["rpdRemote"].iter().chain(arguments)).map(|cli| cli.arguments)
    }

    #[test]
    fn the_definition_is_sound() {
        command().debug_assert();
        for verb in command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("rpdRemote {}", verb.get_name())), "{}", verb.get_name());
        }
    }

    #[test]
    fn times() {
        for (text, ms) in [("10s", 10_000), ("500ms", 500), ("2m", 120_000), ("1h", 3_600_000), ("0.25", 250)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(duration("250us"), Ok(Duration::from_micros(250)));
        for text in ["", "s", "0", "-1s", "1e99", "10 s", "3d", "nan", "inf"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn wrong_usage() {
        let wrong: [&[&str]; 10] = [
            &["start", "5", "-o", "-"],
            &[],
            &["start"],
            &["stop", "x"],
            &["stop", "0"],
            &["stop", "--all", "5"],
            &["start", "--all", "--tree"],
            &["start", "5", "--for", "soon"],
            &["stop", "5", "--wait", "--no-wait"],
            &["begin", "5"],
        ];
        for arguments in wrong {
            assert_eq!(parse(arguments).err().map(|error| error.exit_code()), Some(2), "{arguments:?}");
        }
        for pid in ["x", "0", "4294967295", "1.5"] {
            let line = parse(&["start", pid]).unwrap_err().to_string();
            assert!(line.contains("not a process id; rpdRemote list shows"), "{line}");
        }
        assert!(
            parse(&["start", "5", "6", "--tree", "--for", "10s", "-o", "x.rpd", "--wait", "--json"]).is_ok()
        );
    }
}
