//! `rpd check`: whether a trace is what it should be, and mending what can be mended.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use rpd_postprocess::check::{self, Repair, Severity, Verdict};
use rpd_postprocess::text;
use rpd_postprocess::text::counted;
use serde::Serialize;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};

/// What was asked for.
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Mend what can be mended.
    pub(crate) repair: bool,
    /// One JSON object instead of lines for people.
    pub(crate) json: bool,
}

/// What is written with `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    #[serde(flatten)]
    verdict: &'a Verdict,
    errors: u64,
    warnings: u64,
    notes: u64,
    repairs: &'a [Repair],
}

/// Writes what is wrong with a trace, after repairing it if that was asked for. Succeeds unless there are
/// errors left.
///
/// # Errors
/// When the file is no trace, cannot be read, or was to be repaired and cannot be.
pub(crate) fn run(request: &Request) -> Result<ExitCode> {
    let file = &request.file;
    let mut verdict = Verdict::of(file, &*notes())?;
    let mut repairs = Vec::new();
    let obstacle = if request.repair { check::obstacle(file, &verdict) } else { None };
    if request.repair && obstacle.is_none() {
        repairs = check::repair(file)?;
        if repairs.is_empty() {
            note(format_args!("{}: nothing to repair", shown(file)));
        } else {
            verdict = Verdict::of(file, &*notes())?;
        }
    }
    if request.json {
        let [errors, warnings, notes] =
            [Severity::Error, Severity::Warning, Severity::Note].map(|severity| verdict.count(severity));
        output::write_json(&Answer { verdict: &verdict, errors, warnings, notes, repairs: &repairs })?;
    } else {
        output::write(|out| write_text(&verdict, &repairs, out))?;
    }
    if let Some(obstacle) = obstacle {
        bail!("{} was not repaired: {obstacle}", shown(file));
    }
    Ok(if verdict.count(Severity::Error) == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn shown(file: &Path) -> String {
    text::escape(&file.to_string_lossy()).into_owned()
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
