//! The command line, and the one list of verbs.
//!
//! Each verb is a module here: its arguments, and what it does, readable from top to bottom. A new verb is a file and a line in the list; the line of one that
//! reads a trace and takes no part of it says why.
//! The struct of its arguments has the verb's name, also where a library has something else of that name. Verbs that make a pass come from the
//! list of passes.

mod api;
mod blocks;
mod categories;
mod check;
mod code;
mod copies;
mod create;
#[cfg(feature = "parquet")]
mod dataset;
mod deserialize;
mod diff;
mod disassembler;
mod doctor;
mod durations;
mod energy;
mod export;
mod gaps;
mod handler;
mod import;
mod info;
mod kernel;
mod libraries;
mod manual;
mod markers;
mod memory;
mod merge;
mod monitor;
mod overlap;
mod pass;
mod passes;
mod probe;
mod queues;
mod record;
mod remote;
mod replacements;
mod run;
mod sql;
mod strings;
mod subclass;
mod table;
mod top;
mod trim;
mod variability;
mod version;
#[cfg(feature = "view")]
mod view;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Command, CommandFactory, Parser, Subcommand};

use crate::args::{help, misunderstood};
use crate::output;
use crate::output::note::note;

/// Record what a program does on the GPU, and ask questions about it.
///
/// A recording is one SQLite file, trace.rpd by default.
#[derive(Parser)]
#[command(
    name = "rpd",
    version,
    long_version = version::long(),
    max_term_width = help::WIDTH,
    after_help = "\
Example:
  rpd record -- ./my_program --its-own options
  rpd top trace.rpd"
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// Makes of the list the enum that clap reads, and its dispatch.
macro_rules! verbs {
    ($($(#[cfg($when:meta)])? $(#[command($how:ident)])? $name:ident($arguments:ty) $(takes no part: $why:expr)?,)*) => {
        #[derive(Subcommand)]
        enum Verb {
            $($(#[cfg($when)])? $(#[command($how)])? $name($arguments)),*
        }

        impl Verb {
            fn run(self) -> Result<ExitCode> {
                match self {
                    $($(#[cfg($when)])? Verb::$name(arguments) => arguments.run()),*
                }
            }
        }

        /// Why the verb of that name, which reads a trace, takes no part of it, or only some options that name one.
        fn why_no_part(verb: &str) -> Option<&'static str> {
            $($(#[cfg($when)])? {
                let why: &[&'static str] = &[$($why)?];
                if stringify!($name).eq_ignore_ascii_case(verb) {
                    return why.first().copied();
                }
            })*
            export::why_no_part(verb).or_else(|| pass::why_no_part(verb))
        }
    };
}

// In the order of `rpd --help`.
verbs! {
    Record(record::Record),
    Probe(probe::Probe),
    Run(run::Run),
    Monitor(monitor::Monitor),
    Create(create::Create),
    Info(info::Info),
    Top(top::Top),
    Api(api::Api),
    #[cfg(feature = "view")]
    View(view::View) takes no part: view::WHY_NO_PART,
    Gaps(gaps::Gaps),
    Overlap(overlap::Overlap),
    Categories(categories::Categories),
    Kernel(kernel::Kernel),
    Copies(copies::Copies),
    Libraries(libraries::Libraries),
    Queues(queues::Queues),
    Markers(markers::Markers),
    Table(table::Table),
    Variability(variability::Variability),
    Memory(memory::Memory),
    Diff(diff::Diff),
    Sql(sql::Sql),
    Replacements(replacements::Replacements),
    Durations(durations::Durations),
    Energy(energy::Energy),
    Export(export::Export),
    #[cfg(feature = "parquet")]
    Dataset(dataset::Dataset) takes no part: dataset::WHY_NO_PART,
    Import(import::Import),
    Check(check::Check) takes no part: check::WHY_NO_PART,
    Code(code::Code),
    Blocks(blocks::Blocks),
    Trim(trim::Trim) takes no part: trim::WHY_NO_PART,
    Merge(merge::Merge) takes no part: merge::WHY_NO_PART,
    Subclass(subclass::Subclass) takes no part: pass::WHY_NO_PART,
    Deserialize(deserialize::Deserialize) takes no part: pass::WHY_NO_PART,
    Strings(strings::Strings) takes no part: pass::WHY_NO_PART,
    #[command(flatten)]
    Pass(pass::PassVerb),
    Passes(passes::Passes) takes no part: pass::WHY_NO_PART,
    Remote(remote::Remote),
    Doctor(doctor::Doctor),
    Disassembler(disassembler::Disassembler),
    Handler(handler::Handler),
    Manual(manual::Manual),
}

/// The definition of the command line.
fn command() -> Command {
    Cli::command()
}

/// Parses the command line, ending the process with status 2 when it is wrong, and does what it says.
///
/// # Errors
/// What went wrong, for one line on standard error; the exit status is 1 then.
pub(crate) fn run() -> Result<ExitCode> {
    let cli = Cli::try_parse().unwrap_or_else(|error| {
        if error.kind() == ErrorKind::DisplayHelp {
            let width = output::line_width().map_or(help::WIDTH, |width| width.min(help::WIDTH));
            help::fitted(command(), width).get_matches();
        }
        let Some(meant) = misunderstood::explained(&error, &command(), why_no_part) else { error.exit() };
        note(meant);
        std::process::exit(error.exit_code())
    });
    cli.verb.run()
}

/// Does what a command line says that rpd has made itself: the verb and its arguments.
///
/// # Errors
/// What went wrong, or that there is no such command line.
pub(crate) fn run_line(arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode> {
    Cli::try_parse_from([OsString::from("rpd")].into_iter().chain(arguments))?.verb.run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
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

    /// All commands by the words that name them.
    fn commands(command: &Command, words: &[String], found: &mut Vec<(Vec<String>, Command)>) {
        for below in command.get_subcommands() {
            let words = [words, &[below.get_name().to_string()]].concat();
            commands(below, &words, found);
            found.push((words, below.clone()));
        }
    }

    #[test]
    fn every_verb_has_an_example() {
        let mut all = Vec::new();
        commands(&command(), &[], &mut all);
        // Those below `rpd remote` are the verbs of rpdRemote.
        for (words, command) in all.iter().filter(|(words, _)| words[0] != "remote" || words.len() == 1) {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains(&format!("rpd {}", words.join(" "))), "{words:?}");
        }
    }

    #[test]
    fn help_fits_the_terminal_and_says_the_same() {
        let of = |mut command: Command| {
            command.build();
            let mut all = Vec::new();
            commands(&command, &[], &mut all);
            all.into_iter().map(|(words, command)| {
                (words.join(" "), command.get_after_help().map(ToString::to_string).unwrap_or_default())
            })
        };
        for width in [60, 80, help::WIDTH] {
            for ((verb, plain), (_, fitted)) in of(command()).zip(of(help::fitted(command(), width))) {
                assert!(plain.split_whitespace().eq(fitted.split_whitespace()), "{verb}: {fitted}");
                // Examples are not broken; the largest width has room for them.
                let whole = if width == help::WIDTH { None } else { fitted.rfind("Example") };
                let text = &fitted[..whole.unwrap_or(fitted.len())];
                for line in text.lines().filter(|line| line.split_whitespace().count() > 3) {
                    assert!(line.chars().count() <= width, "rpd {verb}, {width} columns: {line}");
                }
            }
        }
    }

    /// Whether the value of an option is refused, whatever else the command line lacks.
    fn is_refused(words: &[String], option: &str, value: &str) -> bool {
        let argument = format!("--{option}={value}");
        let line = ["rpd"].into_iter().chain(words.iter().map(String::as_str)).chain([argument.as_str()]);
        Cli::try_parse_from(line).is_err_and(|error| error.kind() == ErrorKind::ValueValidation)
    }

    #[test]
    fn times_and_sizes_are_written_one_way() {
        let mut all = Vec::new();
        commands(&Cli::command(), &[], &mut all);
        let (mut times, mut sizes) = (0, 0);
        for (words, command) in &all {
            for option in command.get_arguments().filter_map(|option| Some((option.get_long()?, option))) {
                let (name, option) = option;
                if !option.get_action().takes_values() {
                    continue;
                }
                let of = |value: &str| option.get_value_names().is_some_and(|names| names[0] == value);
                let takes = |value: &str| !is_refused(words, name, value);
                let place = format!("rpd {} --{name}", words.join(" "));
                // `--time cpu` chooses one of two times.
                if of("TIME") && option.get_possible_values().is_empty() {
                    times += 1;
                    for time in ["10s", "1.5ms", "250us", "2m", "1h"] {
                        assert!(takes(time), "{place} {time}");
                    }
                    assert!(["10parsecs", "ms", "1.5.2s", "5MB"].iter().all(|time| !takes(time)), "{place}");
                }
                if of("SIZE") || name == "dynamic-lds" {
                    sizes += 1;
                    for size in ["20MB", "1MiB", "4096B", "1.5M", "512KiB"] {
                        assert!(takes(size), "{place} {size}");
                    }
                    assert!(["10parsecs", "MB", "1.5.2MB", "5ms"].iter().all(|size| !takes(size)), "{place}");
                }
                // What a name promises is what its value is.
                let is_named =
                    |words: &[&str]| words.iter().any(|word| name.split('-').any(|part| part == *word));
                let is_time = is_named(&[
                    "start", "end", "timeout", "idle", "delay", "duration", "every", "period", "for", "wait",
                ]);
                assert!(!is_time || of("TIME"), "{place} is a time");
                assert!(!is_named(&["mb", "size", "bytes", "kb"]) || of("SIZE"), "{place} is a size");
            }
        }
        assert!(times > 50 && sizes > 2, "{times} times, {sizes} sizes");
    }

    #[test]
    fn wrong_numbers_are_explained() {
        for (arguments, expected) in [
            (&["rpd", "view", "x.rpd", "--port", "80x"][..], "--port <N>: 80x: must be a whole number"),
            (&["rpd", "record", "--duration", "-1", "x"], "--duration <TIME>: -1: not a time such as"),
            (&["rpd", "record", "--delay", "-1", "x"], "--delay <TIME>: -1: not a time such as"),
            (&["rpd", "record", "--max-mb", "-1", "x"], "--max-mb <SIZE>: -1: not a size such as"),
        ] {
            let error = Cli::try_parse_from(arguments).err().unwrap();
            let line = misunderstood::explained(&error, &Cli::command(), why_no_part).unwrap_or_default();
            assert!(line.starts_with(expected), "{arguments:?}: {line}");
        }
    }
}
