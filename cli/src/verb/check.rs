//! `rpd check`: whether a trace is what it should be, and mending what can be mended.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use rpd_postprocess::check::{self, Repair, Severity, Verdict};
use rpd_postprocess::text::{self, counted};
use serde::Serialize;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};

/// To whoever names a part of the trace.
pub(crate) const WHY_NO_PART: &str = "all of a trace is checked; rpd trim makes a trace of a part";

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
pub(crate) struct Check {
    /// The trace
    file: PathBuf,
    /// Mend what can be mended, then check again
    #[arg(long)]
    repair: bool,
    /// Write one JSON object
    #[arg(long)]
    json: bool,
}

/// What is written with `--json`.
#[derive(Serialize)]
struct CheckObject<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    errors: u64,
    warnings: u64,
    notes: u64,
    repairs: &'a [Repair],
}

impl Check {
    /// Writes what is wrong with a trace, after repairing it if that was asked for. Succeeds unless there are
    /// errors left.
    ///
    /// # Errors
    /// When the file is no trace, cannot be read, or was to be repaired and cannot be.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let file = &self.file;
        let mut verdict = Verdict::of(file, &*notes())?;
        let mut repairs = Vec::new();
        let obstacle = if self.repair { check::obstacle(file, &verdict) } else { None };
        if self.repair && obstacle.is_none() {
            repairs = check::repair(file)?;
            if repairs.is_empty() {
                note(format_args!("{}: nothing to repair", text::escape_path(file)));
            } else {
                verdict = Verdict::of(file, &*notes())?;
            }
        }
        if self.json {
            let [errors, warnings, notes] =
                [Severity::Error, Severity::Warning, Severity::Note].map(|severity| verdict.count(severity));
            output::write_json(&CheckObject {
                verdict: &verdict,
                errors,
                warnings,
                notes,
                repairs: &repairs,
            })?;
        } else {
            output::write(|out| write_text(&verdict, &repairs, out))?;
        }
        if let Some(obstacle) = obstacle {
            bail!("{} was not repaired: {obstacle}", text::escape_path(file));
        }
        Ok(if verdict.count(Severity::Error) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn write_text(verdict: &Verdict, repairs: &[Repair], out: &mut impl Write) -> io::Result<()> {
    let room = output::line_width();
    let mut done = Table::new(&[
        ("repaired", Align::Left),
        ("rows", Align::Right),
        ("place", Align::Left),
        ("what was done", Align::Left),
    ])
    .folding(2);
    for repair in repairs {
        done.row(vec![
            repair.kind.into(),
            repair.rows.to_string(),
            repair.place.clone(),
            repair.done.clone(),
        ]);
    }
    if !done.is_empty() {
        done.write(out, 0, room)?;
        writeln!(out)?;
    }
    let mut table = Table::new(&[
        ("severity", Align::Left),
        ("kind", Align::Left),
        ("count", Align::Right),
        ("place", Align::Left),
        ("what it means; what to do", Align::Left),
    ])
    .folding(2);
    for finding in &verdict.findings {
        table.row(vec![
            finding.kind.severity().name().into(),
            finding.kind.name().into(),
            finding.count.to_string(),
            finding.place.clone(),
            finding.explanation(),
        ]);
    }
    if !table.is_empty() {
        table.write(out, 0, room)?;
    }
    let number = |severity, one, many| counted(verdict.count(severity), one, many);
    writeln!(
        out,
        "{}: schema {}, {}, {}, {}",
        text::escape(&verdict.file),
        verdict.schema,
        number(Severity::Error, "error", "errors"),
        number(Severity::Warning, "warning", "warnings"),
        number(Severity::Note, "note", "notes")
    )
}
