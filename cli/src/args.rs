//! The command line, and the one list of verbs. Those with many arguments, or that are of a kind, have them in `cli/`.
//!
//! Each verb has a clap struct here and a plain request in its own module: nothing below this file knows
//! clap. A new verb is a variant of [`Verb`], its struct, and its line in [`run`].

mod derive;
mod hip_apis;
mod misunderstood;
mod pass;
mod record;
mod remote;
mod text;
mod value;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use rpd_postprocess::moment::Stretch;
use rpd_postprocess::report::ranking::By;

use crate::output::note::note;
use crate::verb::{api, check, create, info, top};

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
    Record(record::Record),
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

/// Create an empty trace file
#[derive(Args)]
#[command(after_help = "\
Recorders add to an existing trace: create one beforehand where several processes start at once.

Example:
  rpd create trace.rpd")]
struct Create {
    /// The file to create; an existing one is left as it is, and is an error unless it has no bytes
    #[arg(value_parser = value::output())]
    file: PathBuf,
}

/// Show what a trace contains: sessions, GPUs, operations, time span, lost records
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
Columns:
  calls    how many
  total    sum of their durations; of one inside another of its name: once
  self     of calls and markers: without those inside them on their thread
  average, min, max
           of the durations; a narrow terminal shows as many as have room
  %        share of all time (of all self time): adds up to 100
  name     cut in the middle to the width of the terminal, or COLUMNS, but
           never so that two become equal; whole in a pipe

Control characters of names are escaped; --json has them exactly.

Example:
  rpd top -n 10 trace.rpd
  rpd top --by api trace.rpd
  rpd top --csv trace.rpd > top.csv")]
struct Top {
    /// The trace
    file: PathBuf,
    /// Only kernels or copies; or the calls of the program, or its markers, instead of what the GPU did
    #[arg(long, value_name = "WHAT", value_enum)]
    by: Option<What>,
    /// Show the first N rows only [default: 20 as a table, all with --json and --csv]
    #[arg(short = 'n', value_name = "N")]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array; times in nanoseconds
    #[arg(long, conflicts_with_all = ["csv", "wide"])]
    json: bool,
    /// Write comma-separated values with a header line; times in nanoseconds
    #[arg(long, conflicts_with = "wide")]
    csv: bool,
    /// Do not shorten names to the width of the terminal (in a pipe they are not)
    #[arg(long)]
    wide: bool,
}

/// [`By`] on the command line.
#[derive(Clone, Copy, ValueEnum)]
enum What {
    /// Kernels, by name
    Kernel,
    /// Calls, by function
    Api,
    /// Copies, by direction
    Copy,
    /// Markers, by text
    Marker,
}

impl From<What> for By {
    fn from(what: What) -> By {
        match what {
            What::Kernel => By::Kernel,
            What::Api => By::Api,
            What::Copy => By::Copy,
            What::Marker => By::Marker,
        }
    }
}

/// Show the calls of a program in order, each with its arguments and the operations it caused
///
/// One line per call or marker, as strace has it: thread, time since the first call, function and arguments, duration; below it a
/// line per operation.
#[derive(Args)]
#[command(after_help = "\
--csv: a call that caused several operations has a line for each, one that caused none has a line without.

RANGE is the text of a marker (what began between its beginning and its end), or FROM..TO with the times that
rpd trim knows: 25%..75%, +2s.., marker:a..marker:b

Example:
  rpd api trace.rpd | less
  rpd api -n 20 --grep 'Memcpy|Malloc' trace.rpd
  rpd api --json trace.rpd | jq '.[] | select(.duration_ns > 1000000)'
  rpd api --thread 4711 --in 'step 3' trace.rpd")]
struct Api {
    /// The trace
    file: PathBuf,
    /// Calls of this process only
    #[arg(long, value_name = "PID")]
    pid: Option<i64>,
    /// Calls of this thread only
    #[arg(long, value_name = "TID")]
    thread: Option<i64>,
    /// Calls that begin in this range of time only
    #[arg(long = "in", value_name = "RANGE", allow_hyphen_values = true)]
    within: Option<Stretch>,
    /// Calls only whose function or arguments match this regular expression
    #[arg(long, value_name = "REGEX")]
    grep: Option<regex::Regex>,
    /// The first N calls only
    #[arg(short = 'n', value_name = "N")]
    rows: Option<NonZeroUsize>,
    /// Write a JSON array, one call per line; times in nanoseconds
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write comma-separated values with a header line, one line per call and operation; times in nanoseconds
    #[arg(long)]
    csv: bool,
}

/// Say what is wrong with a trace: damage, ids that lead nowhere, impossible times, unfinished sessions
///
/// An error means that an answer from the file may be wrong. A warning means that the file is sound but not
/// whole: a killed process, lost records. A note is a habit of a real recorder.
#[derive(Args)]
#[command(after_help = "\
--repair changes FILE in one transaction and keeps a note of it in rocpd_metadata (repaired::...): rows
with impossible times or without their call or op are removed, texts that are not there become the empty
text, missing tables, views and indexes are added. Nothing is invented. It does nothing while another process
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

/// Rows of a table for people when nothing else is asked for.
const SCREENFUL: usize = 20;

/// Parses the command line, ending the process with status 2 when it is wrong, and does what it says.
///
/// # Errors
/// What went wrong, for one line on standard error; the exit status is 1 then.
pub(crate) fn run() -> Result<ExitCode> {
    let done = |()| ExitCode::SUCCESS;
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        let Some(meant) = misunderstood::explained(&error, &Cli::command()) else { error.exit() };
        note(meant);
        std::process::exit(error.exit_code())
    });
    match cli.verb {
        Verb::Record(args) => args.run(),
        Verb::Create(args) => create::run(&args.file).map(done),
        Verb::Info(args) => info::run(&args.file, args.json).map(done),
        Verb::Top(args) => top::run(&args.into()).map(done),
        Verb::Api(args) => api::run(&args.into()).map(done),
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

impl From<Api> for api::Request {
    fn from(Api { file, pid, thread, within, grep, rows, json, csv }: Api) -> api::Request {
        let form = match (json, csv) {
            (true, _) => api::Form::Json,
            (false, true) => api::Form::Csv,
            (false, false) => api::Form::Lines,
        };
        api::Request { file, pid, thread, within, grep, rows: rows.map(NonZeroUsize::get), form }
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
            by: args.by.map_or(By::Operation, By::from),
            rows: if matches!(form, top::Form::Table { .. }) { rows.or(Some(SCREENFUL)) } else { rows },
            form,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::destination::Existing;
    use crate::verb::record::Request;

    fn record(arguments: &[&str]) -> Request {
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
        for pass in rpd_postprocess::passes::PASSES {
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
            assert_eq!(request.output, Some(PathBuf::from("x.rpd")));
            assert_eq!(request.command, ["prog", "-o", "--force"]);
            assert_eq!(request.existing, Existing::Refuse);
        }
        assert_eq!(record(&["--", "a", "--", "b"]).command, ["a", "--", "b"]);
    }

    #[test]
    fn times_and_sizes_have_units() {
        let request = record(&["--delay", "250ms", "--duration", "10", "--max-size", "1GB", "x"]);
        let ms = std::time::Duration::from_millis;
        assert_eq!((request.delay, request.duration), (Some(ms(250)), Some(ms(10_000))));
        assert_eq!(request.max_bytes, Some(1_000_000_000));
        assert_eq!(record(&["--max-mb", "3", "x"]).max_bytes, Some(3 << 20));
    }

    #[test]
    fn options_that_contradict_are_refused() {
        for arguments in [
            &["rpd", "record", "--append", "--force", "--", "x"][..],
            &["rpd", "record"],
            &["rpd", "record", "--outptu", "a.rpd", "--", "x"],
            &["rpd", "record", "-o", "-", "--", "x"],
            &["rpd", "record", "--max-mb", "0", "--", "x"],
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
