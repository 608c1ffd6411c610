//! `rpd passes`: which passes a trace has.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use rpd_postprocess::pass::PassState;
use rpd_postprocess::passes::{self, Applied, subclass};
use serde::Serialize;

use crate::output;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};

/// Show which passes a trace has, and whether rows were added since
#[derive(Args)]
#[command(after_help = "\
States: absent; current; stale: rows were added or removed since, make it anew with --redo (deserialize and
strings: run it again); unknown: made by another tool; partial: begun by a tool that did not come to its end.

Example:
  rpd passes trace.rpd")]
pub(crate) struct Passes {
    /// The trace
    file: PathBuf,
    /// Write a JSON array
    #[arg(long)]
    json: bool,
}

/// A pass in a file, as it is printed.
#[derive(Serialize)]
struct PassEntry {
    pass: &'static str,
    state: &'static str,
    tables: Vec<String>,
    views: Vec<String>,
    #[serde(skip)]
    about: &'static str,
}

impl Passes {
    /// Writes how far each pass has been made in `file`.
    ///
    /// # Errors
    /// When the trace cannot be read or standard output cannot be written.
    pub(crate) fn run(self) -> Result<ExitCode> {
        let entries = passes::states(&self.file, &*notes())?.into_iter().map(
            |Applied { definition, state, tables, views }| PassEntry {
                pass: definition.name,
                state: word(&state),
                tables,
                views,
                about: definition.about,
            },
        );
        let entries: Vec<PassEntry> = entries.collect();
        if self.json {
            output::write_json(&entries)?;
            return Ok(ExitCode::SUCCESS);
        }
        let mut table =
            Table::new(&[("pass", Align::Left), ("state", Align::Left), ("what it does", Align::Left)])
                .folding(1);
        for entry in entries {
            let about = match (&entry.tables[..], &entry.views[..]) {
                ([table], [view]) if entry.pass == subclass::DEFINITION.name => {
                    format!("Table {table}, view {view}")
                }
                _ => entry.about.to_string(),
            };
            table.row(vec![entry.pass.into(), entry.state.into(), about]);
        }
        output::write(|out| table.write(out, 0, output::line_width()))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn word(state: &PassState) -> &'static str {
    match state {
        PassState::Absent => "absent",
        PassState::Partial => "partial",
        PassState::Applied(freshness) => freshness.word(),
    }
}
