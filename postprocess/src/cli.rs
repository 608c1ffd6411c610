//! The command line, and the one list of verbs. Those that make passes have their arguments in `cli/pass.rs`.
//!
//! Each verb has a clap struct here and a plain request in its own module: nothing below this file knows
//! clap. A new verb is a variant of [`Verb`], its struct, and its line in [`run`].

mod pass;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::destination::Existing;
use crate::merge::Options;
use crate::moment::{Moment, duration_ns};
use crate::subclass::Base;
use crate::verb::{check, create, info, merge, record, subclass, top, trim};

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
    Check(Check),
    Subclass(Subclass),
    Trim(Trim),
    Merge(Merge),
    Callstack(pass::Callstack),
    Graph(pass::Graph),
    Autograd(pass::Autograd),
    Passes(pass::Passes),
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
/// Operations are grouped by name, or by type where they have none (copies).
#[derive(Args)]
#[command(after_help = "\
Names are written with control characters escaped; --json has them exactly.

Example:
  rpd top -n 10 trace.rpd
  rpd top --csv trace.rpd > top.csv")]
struct Top {
    /// The trace
    file: PathBuf,
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

/// Make the arguments of certain calls or ops columns of a table: rocpd_NAMEapi or rocpd_NAMEop
///
/// The table has one text column per argument key found; a view NAMEapi or NAMEop shows them behind the
/// columns of api or op.
#[derive(Args)]
#[command(after_help = "\
Arguments are `key = value` pairs joined by `|`: of a call in its args, of an op in its description.

Example:
  rpd subclass --base api --name malloc --apis hipMalloc,hipFree trace.rpd
  sqlite3 trace.rpd 'select start, apiName, ptr, size from mallocapi'")]
struct Subclass {
    /// The trace
    file: PathBuf,
    /// What the subclass is of
    #[arg(long)]
    base: BaseName,
    /// Its name: letters, digits and underscores
    #[arg(long, value_parser = subclass_name)]
    name: String,
    /// Names of the calls, or types of the ops, that belong to it
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    apis: Vec<String>,
    /// Make one of that name anew
    #[arg(long)]
    redo: bool,
}

/// Make a stretch of a trace a trace of its own
///
/// What stays: calls and markers that start in the window, the operations they caused, and whatever hangs off
/// those; sensors are cut to that time.
#[derive(Args)]
#[command(after_help = "\
Times of --start and --end:
  1500, 20us, 1.5ms, 2s     on the trace's clock, in ns without a unit
  +2s, -500ms               from the first call's start, before the last call's end
  25%                       of the time between the two
  marker:NAME, marker:NAME:2
                            where the markers with this text begin (--start) or end (--end); the second of them
  kernel:REGEX              where the first operation of such a name was launched, or the last one ended

FILE is never half changed: the result appears when it is complete.

Example:
  rpd trim trace.rpd -o middle.rpd --start 25% --end 75%
  rpd trim trace.rpd -o step.rpd --start 'marker:step 3' --end 'marker:step 5'
  rpd trim trace.rpd --dry-run --start +2s --end kernel:^gemm")]
struct Trim {
    /// The trace
    file: PathBuf,
    /// The new trace
    #[arg(short, long, value_name = "OUT", required_unless_present_any = ["in_place", "dry_run"])]
    output: Option<PathBuf>,
    /// Put the result into FILE's place; what is cut off is gone
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// Where the window begins [default: at the first call]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Where it ends [default: after the last call]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    end: Option<Moment>,
    /// Write nothing, say what would remain
    #[arg(long, conflicts_with_all = ["output", "in_place"])]
    dry_run: bool,
    /// Write one JSON object about it; times in nanoseconds
    #[arg(long)]
    json: bool,
}

/// Put traces of several ranks and hosts into one
///
/// Sessions are renumbered, texts written once. Process and GPU numbers of a second host get strides (views
/// napi and nop take them apart); times are moved to the first trace's host by what the sessions say of
/// their clocks.
#[derive(Args)]
#[command(after_help = "\
Sessions of one boot of a host share its clock, and are not moved. Traces that do not say where they
were recorded, as those of other recorders, need one of --same-host, --align and --offset.

Example:
  rpd merge -o all.rpd rank0.rpd rank1.rpd
  rpd merge -o all.rpd --align 'marker:step 0' node1.rpd node2.rpd
  rpd merge -o all.rpd --offset node2.rpd=-1.5ms node1.rpd node2.rpd
  sqlite3 all.rpd 'select node, count(*) from nop group by 1'")]
struct Merge {
    /// The traces
    #[arg(required = true, num_args = 2.., value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The new trace
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// All were recorded on one host
    #[arg(long)]
    same_host: bool,
    /// Let the first marker of that text begin at one time everywhere
    #[arg(long, value_name = "marker:NAME", value_parser = marker_name)]
    align: Option<String>,
    /// Add that to the times of FILE, which are not aligned then; ns without a unit
    #[arg(long = "offset", value_name = "FILE=TIME", value_parser = file_and_shift)]
    offsets: Vec<(PathBuf, i64)>,
    /// Write one JSON object about it
    #[arg(long)]
    json: bool,
}

/// [`Base`] on the command line.
#[derive(Clone, Copy, clap::ValueEnum)]
enum BaseName {
    /// Calls, by name
    Api,
    /// Ops, by type
    Op,
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
        Verb::Check(args) => {
            check::run(&check::Request { file: args.file, repair: args.repair, json: args.json })
        }
        Verb::Subclass(args) => subclass::run(&args.into()).map(done),
        Verb::Trim(args) => trim::run(&args.into()).map(done),
        Verb::Merge(args) => merge::run(&args.into()).map(done),
        Verb::Callstack(args) => args.run().map(done),
        Verb::Graph(args) => args.run().map(done),
        Verb::Autograd(args) => args.run().map(done),
        Verb::Passes(args) => args.run().map(done),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..1e9).contains(seconds));
    seconds.ok_or_else(|| "not a number of seconds".to_string())
}

fn marker_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix("marker:").filter(|name| !name.is_empty());
    name.map(str::to_string).ok_or_else(|| "not marker:NAME".to_string())
}

fn file_and_shift(text: &str) -> Result<(PathBuf, i64), String> {
    let (file, shift) = text.rsplit_once('=').ok_or_else(|| "not FILE=TIME".to_string())?;
    let (sign, duration) = match shift.strip_prefix('-') {
        Some(duration) => (-1, duration),
        None => (1, shift.strip_prefix('+').unwrap_or(shift)),
    };
    let ns =
        duration_ns(duration).ok_or_else(|| format!("{shift} is no time: write 1500 (ns), -1.5ms, 2s"))?;
    Ok((PathBuf::from(file), sign * ns))
}

fn subclass_name(text: &str) -> Result<String, String> {
    let is_name = crate::subclass::is_name(text);
    if is_name {
        Ok(text.to_string())
    } else {
        Err("not 1 to 64 letters, digits and underscores".to_string())
    }
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
            rows: if matches!(form, top::Form::Table { .. }) { rows.or(Some(SCREENFUL)) } else { rows },
            form,
        }
    }
}

impl From<Trim> for trim::Request {
    fn from(args: Trim) -> trim::Request {
        let destination = match args.output {
            Some(out) => trim::Destination::New(out),
            None if args.in_place => trim::Destination::InPlace,
            None => trim::Destination::DryRun,
        };
        let Trim { file, start, end, json, .. } = args;
        trim::Request { file, destination, start, end, json }
    }
}

impl From<Merge> for merge::Request {
    fn from(args: Merge) -> merge::Request {
        let Merge { files, output, same_host, align, offsets, json } = args;
        let options = Options { is_same_host: same_host, align, offsets };
        merge::Request { output, files, options, json }
    }
}

impl From<Subclass> for subclass::Request {
    fn from(args: Subclass) -> subclass::Request {
        let base = match args.base {
            BaseName::Api => Base::Api,
            BaseName::Op => Base::Op,
        };
        let Subclass { file, name, apis: members, redo, .. } = args;
        subclass::Request { file, base, name, members, redo }
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
            let verb = cli.find_subcommand(pass.definition().name);
            let about = verb.and_then(|verb| verb.get_about()).map(ToString::to_string);
            assert_eq!(about.as_deref(), Some(pass.definition().about));
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
