//! The command line, and the one list of verbs. Those that make passes have their arguments in `cli/pass.rs`.
//!
//! Each verb has a clap struct here and a plain request in its own module: nothing below this file knows
//! clap. A new verb is a variant of [`Verb`], its struct, and its line in [`run`].

mod derive;
mod pass;
mod remote;
mod text;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::destination::Existing;
use crate::moment::Stretch;
use crate::ranking::By;
use crate::verb::{api, check, create, info, record, top};

/// Record what a program does on the GPU, and ask questions about it.
///
/// A recording is one SQLite file, trace.rpd by default.
#[derive(Parser)]
#[command(
    name = "rpd",
    version,
    max_term_width = 100,
    after_help = "\
Example:
  rpd record -- ./my_program --its-own options
  rpd top trace.rpd"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Record(Record),
    Create(Create),
    Info(Info),
    Top(Top),
    Api(Api),
    Check(Check),
    Trim(derive::Trim),
    Merge(derive::Merge),
    Subclass(text::Subclass),
    Deserialize(text::Deserialize),
    Strings(text::Strings),
    Callstack(pass::Callstack),
    Graph(pass::Graph),
    Autograd(pass::Autograd),
    Passes(pass::Passes),
    Remote(remote::Remote),
}

/// Run a command and record what it does on the GPU
///
/// The command keeps its standard streams, its signals and its exit status. One line on standard error
/// says at the end what was recorded, or why nothing was.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    override_usage = "rpd record [OPTIONS] [--] COMMAND [ARGUMENT]...",
    after_help = "\
Exit status: the command's; 127 if it was not found, 126 if it cannot be executed; 1 if recording could
not be set up, in which case the command was not run.

Example:
  rpd record -o trace.rpd -- python3 train.py --epochs 1"
)]
struct Record {
    /// The file to record into
    #[arg(short, long, value_name = "FILE", default_value = "trace.rpd")]
    output: PathBuf,
    /// Add to the recordings that FILE already holds
    #[arg(long, conflicts_with = "force")]
    append: bool,
    /// Replace FILE if it already holds recordings (a file that is no trace is never touched)
    #[arg(long)]
    force: bool,
    /// Record nothing until the program calls rpdstart()
    #[arg(long)]
    no_start: bool,
    /// Begin recording that long after the start of the program
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    delay: Option<f64>,
    /// End recording after that long; the program goes on
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    duration: Option<f64>,
    /// End recording when FILE has reached that size; the program goes on
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    max_mb: Option<u64>,
    /// Keep the call stack of every HIP call (table rocpd_stackframe)
    #[arg(long)]
    stackframes: bool,
    /// How the recorder hears of calls of HIP; the trace says which way it was
    #[arg(long, value_name = "DOOR", value_enum, default_value_t = HipDoor::Auto)]
    hip_door: HipDoor,
    /// What times kernels and copies: the runtime's queues, or HIP's own records of its commands
    #[arg(long, value_name = "TIMING", value_enum, default_value_t = Timing::Auto)]
    timing: Timing,
    /// Which functions of HIP are recorded: all, none, or changes of the default, such as -hipMalloc,+hipEventQuery
    #[arg(long, value_name = "LIST", allow_hyphen_values = true)]
    hip_apis: Option<String>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Create an empty trace file
#[derive(Args)]
#[command(after_help = "\
Recorders add to an existing trace: create one beforehand where several processes start at once.

Example:
  rpd create trace.rpd")]
struct Create {
    /// The file to create; an existing one is left as it is, and is an error unless it has no bytes
    file: PathBuf,
}

/// Show what a trace holds: sessions, GPUs, operations, time span, lost records
#[derive(Args)]
#[command(after_help = "\
Example:
  rpd info trace.rpd
  rpd info trace.rpd --json | jq .operations")]
struct Info {
    /// The trace
    file: PathBuf,
    /// Write one JSON object; times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// Show where GPU time goes: kernels and copies by total time
///
/// Operations are grouped by name, or by type where they have none (copies); calls by function, markers by text.
#[derive(Args)]
#[command(after_help = "\
Names are written with control characters escaped; --json has them exactly. Times of calls and markers include
those of the calls and markers inside them.

Example:
  rpd top -n 10 trace.rpd
  rpd top --by api trace.rpd
  rpd top --csv trace.rpd > top.csv")]
struct Top {
    /// The trace
    file: PathBuf,
    /// Only kernels or copies; or the calls of the program, or its markers, instead of what the GPU did
    #[arg(long, value_name = "WHAT", value_enum)]
    by: Option<By>,
    /// Show the first N rows only [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N")]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array; times in nanoseconds
    #[arg(long, conflicts_with_all = ["csv", "wide"])]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long, conflicts_with = "wide")]
    csv: bool,
    /// Do not shorten names to the width of the terminal
    #[arg(long)]
    wide: bool,
}

/// Show the calls of a program in order, each with its arguments and the operations it caused
///
/// One line per call or marker, as strace has it: thread, time since the first call, function and arguments, duration; below it a
/// line per operation.
#[derive(Args)]
#[command(after_help = "\
RANGE is the text of a marker (what began between its beginning and its end), or FROM..TO with the times that
rpd trim knows: 25%..75%, +2s.., marker:a..marker:b

Example:
  rpd api trace.rpd | less
  rpd api --grep 'Memcpy|Malloc' trace.rpd
  rpd api --thread 4711 --in 'step 3' trace.rpd")]
struct Api {
    /// The trace
    file: PathBuf,
    /// Calls of this thread only
    #[arg(long, value_name = "TID")]
    thread: Option<i64>,
    /// Calls that begin in this stretch of time only
    #[arg(long = "in", value_name = "RANGE", allow_hyphen_values = true)]
    within: Option<Stretch>,
    /// Calls only whose function or arguments match this regular expression
    #[arg(long, value_name = "REGEX")]
    grep: Option<regex::Regex>,
}

/// Say what is wrong with a trace: damage, ids that lead nowhere, impossible times, unfinished sessions
///
/// Errors are what cannot be: an answer from the file may be wrong. Warnings are files that are sound but
/// not whole: a killed process, lost records. Notes are habits of real recorders.
#[derive(Args)]
#[command(after_help = "\
--repair changes FILE in one transaction and keeps a note of it in rocpd_metadata (repaired::...): rows
with impossible times or without their call or op are removed, texts that are not there become the empty
text, what is missing of the format is added. Nothing is invented. It does nothing while another process
writes.

Exit status: 0 no errors (there may be warnings and notes); 1 errors, or FILE cannot be read or repaired;
2 wrong usage.

Example:
  rpd check trace.rpd
  rpd check --json trace.rpd | jq '.findings[] | select(.severity == \"error\")'
  cp trace.rpd copy.rpd && rpd check --repair copy.rpd")]
struct Check {
    /// The trace
    file: PathBuf,
    /// Mend what can be mended, then check again
    #[arg(long)]
    repair: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// How calls of HIP are recorded.
#[derive(Clone, Copy, clap::ValueEnum)]
enum HipDoor {
    /// Whichever costs the program less: names where the dynamic loader finds HIP 5.0 to 5.2, otherwise callbacks
    Auto,
    /// By HIP's own callbacks: every caller, however it found the function
    Callbacks,
    /// By the names of HIP's functions: also where another profiler has the callbacks
    Symbols,
}

/// What times kernels and copies.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Timing {
    /// The queues, and HIP's records where the recorder is loaded late
    Auto,
    /// The runtime's queues
    Hsa,
    /// HIP's records
    Hip,
}

/// Rows of a table for people when nothing else is asked for.
const SCREENFUL: usize = 20;

/// Parses the command line, ending the process with status 2 when it is wrong, and does what it says.
///
/// # Errors
/// What went wrong, for one line on standard error; the exit status is 1 then.
pub(crate) fn run() -> Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    match Cli::parse().verb {
        Verb::Record(args) => record::run(&args.into()),
        Verb::Create(args) => create::run(&args.file).map(done),
        Verb::Info(args) => info::run(&args.file, args.json).map(done),
        Verb::Top(args) => top::run(&args.into()).map(done),
        Verb::Api(Api { file, thread, within, grep }) => {
            api::run(&api::Request { file, thread, within, grep }).map(done)
        }
        Verb::Check(args) => {
            check::run(&check::Request { file: args.file, repair: args.repair, json: args.json })
        }
        Verb::Trim(args) => args.run().map(done),
        Verb::Merge(args) => args.run().map(done),
        Verb::Subclass(args) => args.run().map(done),
        Verb::Deserialize(args) => args.run().map(done),
        Verb::Strings(args) => args.run().map(done),
        Verb::Callstack(args) => args.run().map(done),
        Verb::Graph(args) => args.run().map(done),
        Verb::Autograd(args) => args.run().map(done),
        Verb::Passes(args) => args.run().map(done),
        Verb::Remote(args) => Ok(args.run()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..1e9).contains(seconds));
    seconds.ok_or_else(|| "not a number of seconds".to_string())
}

impl From<Record> for record::Request {
    fn from(args: Record) -> record::Request {
        record::Request {
            output: args.output,
            existing: match (args.append, args.force) {
                (true, _) => Existing::Append,
                (false, true) => Existing::Replace,
                (false, false) => Existing::Refuse,
            },
            start: !args.no_start,
            delay: args.delay,
            duration: args.duration,
            max_mb: args.max_mb,
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

impl From<Top> for top::Request {
    fn from(args: Top) -> top::Request {
        let form = match (args.json, args.csv) {
            (true, _) => top::Form::Json,
            (false, true) => top::Form::Csv,
            (false, false) => top::Form::Table { wide: args.wide },
        };
        let rows = args.rows.map(NonZeroUsize::get);
        top::Request {
            file: args.file,
            by: args.by.unwrap_or(By::Operation),
            rows: if matches!(form, top::Form::Table { .. }) { rows.or(Some(SCREENFUL)) } else { rows },
            form,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn record(arguments: &[&str]) -> record::Request {
        match Cli::try_parse_from(["rpd", "record"].iter().chain(arguments)).map(|cli| cli.verb) {
            Ok(Verb::Record(args)) => args.into(),
            Ok(_) => panic!("not record"),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_verb_has_an_example() {
        for verb in Cli::command().get_subcommands() {
            let help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("rpd {}", verb.get_name())), "{}", verb.get_name());
        }
    }

    #[test]
    fn every_pass_is_a_verb_that_says_what_it_does() {
        let cli = Cli::command();
        for pass in crate::pass::PASSES {
            let verb = cli.find_subcommand(pass.name);
            let about = verb.and_then(|verb| verb.get_about()).map(ToString::to_string);
            assert_eq!(about.as_deref(), Some(pass.about));
        }
    }

    #[test]
    fn the_commands_options_are_its_own() {
        for arguments in
            [&["-o", "x.rpd", "--", "prog", "-o", "--force"][..], &["-o", "x.rpd", "prog", "-o", "--force"]]
        {
            let request = record(arguments);
            assert_eq!(request.output, PathBuf::from("x.rpd"));
            assert_eq!(request.command, ["prog", "-o", "--force"]);
            assert_eq!(request.existing, Existing::Refuse);
        }
        assert_eq!(record(&["--", "a", "--", "b"]).command, ["a", "--", "b"]);
    }

    #[test]
    fn options_that_contradict_are_refused() {
        for arguments in [
            &["rpd", "record", "--append", "--force", "--", "x"][..],
            &["rpd", "record"],
            &["rpd", "top", "--json", "--csv", "x"],
            &["rpd", "top", "-n", "0", "x"],
            &["rpd", "top"],
            &["rpd", "topp", "x"],
        ] {
            let error = Cli::try_parse_from(arguments).err().map(|error| error.exit_code());
            assert_eq!(error, Some(2), "{arguments:?}");
        }
    }
}
