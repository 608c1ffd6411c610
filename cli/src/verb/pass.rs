//! The verbs of the passes: one for each in their list that is made without more than options.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, Subcommand};
use rpd_postprocess::pass::{self, ApplyOutcome, Definition, Freshness, Making, Pass, PassReport};
use rpd_postprocess::passes::PASSES;
use rpd_postprocess::text;
use serde::Serialize;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// A pass that the command line says to make.
pub(crate) struct PassVerb {
    pass: Box<dyn Pass>,
    target: Target,
}

/// What every verb that makes a pass is given.
#[derive(Args)]
struct Target {
    /// The trace; it is changed in one transaction
    file: PathBuf,
    /// Make the result again where the trace has it already
    #[arg(long)]
    redo: bool,
    /// Write what was made and found as one JSON object
    #[arg(long)]
    json: bool,
}

/// What is written with `--json`.
#[derive(Serialize)]
struct PassObject<'a> {
    pass: &'static str,
    /// `made` by this command, or how one stands that was there: `current`, `stale`, `unknown`.
    state: &'static str,
    #[serde(flatten)]
    report: &'a PassReport,
}

/// To whoever names a part of the trace.
pub(super) const WHY_NO_PART: &str = "passes are of all of a trace; rpd trim makes a trace of a part";

/// The same, of the verb of a pass.
pub(super) fn why_no_part(verb: &str) -> Option<&'static str> {
    PASSES.iter().any(|definition| definition.name == verb).then_some(WHY_NO_PART)
}

fn verbs() -> impl Iterator<Item = (&'static Definition, &'static Making)> {
    PASSES.iter().filter_map(|definition| Some((*definition, definition.making.as_ref()?)))
}

impl Subcommand for PassVerb {
    fn augment_subcommands(command: Command) -> Command {
        verbs().fold(command, |command, (definition, making)| {
            let verb = Target::augment_args(Command::new(definition.name));
            let options = making
                .options
                .iter()
                .map(|(name, about)| Arg::new(*name).long(*name).help(*about).action(ArgAction::SetTrue));
            command.subcommand(verb.about(definition.about).after_help(making.help).args(options))
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        PassVerb::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        verbs().any(|(definition, _)| definition.name == name)
    }
}

impl FromArgMatches for PassVerb {
    fn from_arg_matches(matches: &ArgMatches) -> Result<PassVerb, clap::Error> {
        let verb = matches.subcommand().and_then(|(name, matches)| {
            Some((verbs().find(|(definition, _)| definition.name == name)?.1, matches))
        });
        let (making, matches) = verb.ok_or_else(|| clap::Error::new(ErrorKind::InvalidSubcommand))?;
        let given = making.options.iter().map(|(name, _)| *name).filter(|name| matches.get_flag(name));
        let pass = (making.pass)(&given.collect::<Vec<_>>());
        Ok(PassVerb { pass, target: Target::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = PassVerb::from_arg_matches(matches)?;
        Ok(())
    }
}

impl PassVerb {
    /// Makes the pass, and says what it made or that it was there.
    ///
    /// # Errors
    /// When it cannot be made; the file is as it was then.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let PassVerb { pass, target } = self;
        let name = pass.definition().name;
        let file = text::escape_path(&target.file);
        let outcome = pass::apply(&target.file, &*pass, target.redo, &notes())?;
        let empty = PassReport::default();
        let (report, freshness) = match &outcome {
            ApplyOutcome::Made(report) => (report, None),
            ApplyOutcome::AlreadyThere(freshness) => (&empty, Some(*freshness)),
        };
        if target.json {
            let state = freshness.map_or("made", Freshness::word);
            output::write_json(&PassObject { pass: name, state, report })?;
            return Ok(ExitCode::SUCCESS);
        }
        match freshness {
            None => {
                let rows: Vec<String> =
                    report.rows.iter().map(|(table, rows)| format!("{rows} rows in {table}")).collect();
                note(format_args!("{file}: {name}: {}", rows.join(", ")));
                for remark in &report.remarks {
                    note(format_args!("{file}: {name}: {} {}: {}", remark.count, remark.kind, remark.text));
                }
                if let Some(advice) = report.advice {
                    note(format_args!("{file}: {name}: {advice}"));
                }
            }
            Some(Freshness::Stale) => note(format_args!(
                "{file}: {name} was made before rows were added or removed: it is stale; make it anew with: rpd {name} --redo FILE"
            )),
            Some(Freshness::Current) => note(format_args!(
                "{file}: {name} is there already and covers every row; make it anew with: rpd {name} --redo FILE"
            )),
            Some(Freshness::Unknown) => note(format_args!(
                "{file}: {name} was made by another tool already; make it anew with: rpd {name} --redo FILE"
            )),
        }
        Ok(ExitCode::SUCCESS)
    }
}
