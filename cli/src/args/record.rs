//! The arguments of `rpd record`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use super::{hip_apis, value};
use crate::record::destination::Existing;
use crate::verb::record;

/// Run a command and record what it does on the GPU
///
/// The command keeps its standard streams, its signals and its exit status. One line on standard error
/// says at the end what was recorded, or why nothing was.
#[derive(Args)]
#[command(
    override_usage = "rpd record [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Exit status: the command's; 127 if it was not found, 126 if it cannot be executed; 1 if recording could
not be set up, in which case the command was not run.

Example:
  rpd record -o trace.rpd -- python3 train.py --epochs 1"
)]
pub(super) struct Record {
    /// The file to record into [default: what RPDT_FILENAME says, otherwise trace.rpd]
    ///
    /// %p in it is the process, %h the host, %r the rank: each process of the command records into a file of its own.
    #[arg(short, long, value_name = "FILE", value_parser = value::output())]
    output: Option<PathBuf>,
    /// Add to the recordings that FILE already holds
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace FILE if it already holds recordings (a file that is no trace is never touched). Given twice, also while
    /// a program records into it, which loses what it has recorded so far
    #[arg(long, action = clap::ArgAction::Count)]
    force: u8,
    /// Record nothing until the program calls rpdstart()
    #[arg(long)]
    no_start: bool,
    /// Begin recording that long after the start of the program: 10s, 1.5ms; seconds without a unit
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    delay: Option<Duration>,
    /// End recording after that long; the program goes on
    #[arg(long, value_name = "TIME", value_parser = value::time)]
    duration: Option<Duration>,
    /// End recording when FILE has reached that size: 512MiB, 1GB; MiB without a unit. The program goes on
    #[arg(long = "max-mb", visible_alias = "max-size", value_name = "SIZE", value_parser = value::size)]
    max_bytes: Option<u64>,
    /// Keep the call stack of every HIP call (table rocpd_stackframe)
    #[arg(long)]
    stackframes: bool,
    /// How calls of HIP are observed; the trace says which it was
    #[arg(long, value_name = "HOW", value_enum, default_value_t = HipDoor::Auto)]
    hip_door: HipDoor,
    /// What times kernels and copies: the runtime's queues, or HIP's own records of its commands
    #[arg(long, value_name = "TIMING", value_enum, default_value_t = Timing::Auto)]
    timing: Timing,
    /// Which functions of HIP are recorded: all, none, or changes of the default, such as -hipMalloc,+hipEventQuery
    #[arg(long, value_name = "LIST", allow_hyphen_values = true, value_parser = hip_apis::parse)]
    hip_apis: Option<String>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How calls of HIP are recorded.
#[derive(Clone, Copy, ValueEnum)]
enum HipDoor {
    /// Whichever costs the program less: symbols where the dynamic loader finds HIP 5.0 to 5.2, otherwise callbacks
    Auto,
    /// By HIP callbacks: every caller, however it found the function
    Callbacks,
    /// By symbol interposition: also where another profiler has the callbacks
    Symbols,
}

/// What times kernels and copies.
#[derive(Clone, Copy, ValueEnum)]
enum Timing {
    /// The queues, and HIP's records where the recorder is loaded late
    Auto,
    /// The runtime's queues
    Hsa,
    /// HIP's records
    Hip,
}

impl Record {
    pub(super) fn run(self) -> Result<ExitCode> {
        record::run(&self.into())
    }
}

impl From<Record> for record::Request {
    fn from(args: Record) -> record::Request {
        record::Request {
            output: args.output,
            existing: match (args.append, args.force) {
                (true, _) => Existing::Append,
                (false, 0) => Existing::Refuse,
                (false, 1) => Existing::Replace,
                (false, _) => Existing::Take,
            },
            start: !args.no_start,
            delay: args.delay,
            duration: args.duration,
            max_bytes: args.max_bytes,
            stack_frames: args.stackframes,
            hip_door: match args.hip_door {
                HipDoor::Auto => None,
                HipDoor::Callbacks => Some("callbacks"),
                HipDoor::Symbols => Some("symbols"),
            },
            timing: match args.timing {
                Timing::Auto => None,
                Timing::Hsa => Some("hsa"),
                Timing::Hip => Some("hip"),
            },
            hip_apis: args.hip_apis,
            command: args.command,
        }
    }
}
