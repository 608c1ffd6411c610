//! The verbs that make a pass: `rpd callstack` and its like.

use std::path::PathBuf;

use anyhow::Result;
use rpd_postprocess::pass::{self, Freshness, Outcome, Pass, Report};
use rpd_postprocess::text;
use serde::Serialize;

use crate::output;
use crate::output::note::note;
use crate::output::progress::notes;

/// What was asked for.
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Make it anew if it is there.
    pub(crate) redo: bool,
    /// One JSON object instead of lines for people.
    pub(crate) json: bool,
}

/// What is written with `--json`.
#[derive(Serialize)]
struct Answer<'a> {
    pass: &'static str,
    /// `made` by this command, or how one stands that was there: `current`, `stale`, `unknown`.
    state: &'static str,
    #[serde(flatten)]
    report: &'a Report,
}

/// Makes `pass`, and says what it made or that it was there.
///
/// # Errors
/// When it cannot be made; the file is as it was then.
pub(crate) fn run(pass: &dyn Pass, request: &Request) -> Result<()> {
    let name = pass.definition().name;
    let file = text::escape(&request.file.to_string_lossy()).into_owned();
    let outcome = pass::apply(&request.file, pass, request.redo, &notes())?;
    let empty = Report::default();
    let (report, freshness) = match &outcome {
        Outcome::Made(report) => (report, None),
        Outcome::AlreadyThere(freshness) => (&empty, Some(*freshness)),
    };
    if request.json {
        let state = freshness.map_or("made", Freshness::word);
        return output::write_json(&Answer { pass: name, state, report });
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
    Ok(())
}
