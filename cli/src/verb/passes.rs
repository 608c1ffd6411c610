//! `rpd passes`: which passes a trace has.

use std::path::Path;

use anyhow::Result;
use rpd_postprocess::pass::State;
use rpd_postprocess::passes::{self, Applied, subclass};
use serde::Serialize;

use crate::output;
use crate::output::progress::notes;
use crate::output::table::{Align, Table};

/// A pass in a file, as it is told.
#[derive(Serialize)]
struct Entry {
    pass: &'static str,
    state: &'static str,
    tables: Vec<String>,
    views: Vec<String>,
    #[serde(skip)]
    about: &'static str,
}

/// Writes how far each pass has been made in `file`.
///
/// # Errors
/// When the trace cannot be read or standard output cannot be written.
pub(crate) fn run(file: &Path, json: bool) -> Result<()> {
    let entries =
        passes::states(file, &*notes())?.into_iter().map(|Applied { definition, state, tables, views }| {
            Entry { pass: definition.name, state: word(&state), tables, views, about: definition.about }
        });
    let entries: Vec<Entry> = entries.collect();
    if json {
        return output::write_json(&entries);
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
    output::write(|out| table.write(out, 0, output::line_width()))
}

fn word(state: &State) -> &'static str {
    match state {
        State::Absent => "absent",
        State::Partial => "partial",
        State::Applied(freshness) => freshness.word(),
    }
}
