//! The common part of the verbs that make a pass.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::{self, ApplyOutcome, Freshness, Pass, PassReport};
use rpd_postprocess::text;
use serde::Serialize;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// What every verb that makes a pass is given.
#[derive(Args)]
pub(crate) struct Making {
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

impl Making {
    /// Makes `pass`, and says what it made or that it was there.
    ///
    /// # Errors
    /// When it cannot be made; the file is as it was then.
    pub(crate) fn run(self, pass: &dyn Pass) -> Result<ExitCode> {
        let name = pass.definition().name;
        let file = text::escape(&self.file.to_string_lossy()).into_owned();
        let outcome = pass::apply(&self.file, pass, self.redo, &notes())?;
        let empty = PassReport::default();
        let (report, freshness) = match &outcome {
            ApplyOutcome::Made(report) => (report, None),
            ApplyOutcome::AlreadyThere(freshness) => (&empty, Some(*freshness)),
        };
        if self.json {
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
