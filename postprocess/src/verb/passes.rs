//! `rpd passes`: which passes a trace has.

use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::output;
use crate::pass::{self, State};
use crate::table::{Align, Table};

/// A pass in a file, as it is told.
#[derive(Serialize)]
struct Entry {
    pass: &'static str,
    state: &'static str,
    tables: &'static [&'static str],
    views: &'static [&'static str],
    #[serde(skip)]
    about: &'static str,
}

/// Writes how far each pass has been made in `file`.
///
/// # Errors
/// When the trace cannot be read or standard output cannot be written.
pub(crate) fn run(file: &Path, json: bool) -> Result<()> {
    let entries = pass::states(file)?.into_iter().map(|(definition, state)| Entry {
        pass: definition.name,
        state: word(&state),
        tables: definition.tables,
        views: definition.views,
        about: definition.about,
    });
    let entries: Vec<Entry> = entries.collect();
    if json {
        return output::write_json(&entries);
    }
    let mut table =
        Table::new(&[("pass", Align::Left), ("state", Align::Left), ("what it does", Align::Left)]);
    for entry in entries {
        table.row(vec![entry.pass.into(), entry.state.into(), entry.about.into()]);
    }
    output::write(|out| table.write(out, 0, None))
}

fn word(state: &State) -> &'static str {
    match state {
        State::Absent => "absent",
        State::Partial => "partial",
        State::Applied(freshness) => freshness.word(),
    }
}
