//! `rpd subclass`: arguments of certain calls or ops as columns of a table of their own.

use std::path::PathBuf;

use anyhow::Result;
use rpd_postprocess::pass::change;
use rpd_postprocess::passes::subclass::{Base, ColumnType, Made, Subclass, unknown_members};
use rpd_postprocess::text::counted;
use rpd_postprocess::{passes, text};

use crate::output::note::note;
use crate::output::progress::notes;

/// What is asked for.
pub(crate) struct Request {
    /// The trace.
    pub(crate) file: PathBuf,
    /// Whether it is a subclass of calls or of ops.
    pub(crate) base: Base,
    /// Its name.
    pub(crate) name: String,
    /// The names of the calls, or the types of the ops, in it.
    pub(crate) members: Vec<String>,
    /// Types of columns, by their keys.
    pub(crate) types: Vec<(String, ColumnType)>,
    /// Whether one of that name is made anew.
    pub(crate) redo: bool,
}

/// Makes the subclass in one transaction, and says what it has.
///
/// # Errors
/// When the file is no trace or cannot be written, or something else has the names; it is as it was then.
pub(crate) fn run(request: &Request) -> Result<()> {
    let members: Vec<&str> = request.members.iter().map(String::as_str).collect();
    let subclass = Subclass {
        base: request.base,
        name: &request.name,
        members: &members,
        columns: &[],
        types: &request.types,
        among: None,
    };
    let file = text::escape(&request.file.to_string_lossy()).into_owned();
    let (made, unknown) = change(&request.file, "no subclass was made", &notes(), |change| {
        Ok((passes::subclass(change, &subclass, request.redo)?, unknown_members(change.trace, &subclass)?))
    })?;
    for line in unknown {
        note(format_args!("{file}: {line}"));
    }
    match made {
        Some(Made { rows: 0, .. }) => {
            note(format_args!("{file}: {} has no rows: nothing is called that", subclass.table()));
        }
        Some(Made { rows, columns, no_numbers }) => {
            note(format_args!(
                "{file}: {} has {} and {}: {}",
                subclass.table(),
                counted(rows, "row", "rows"),
                counted(columns.len() as u64, "argument", "arguments"),
                text::escape(&columns.join(", "))
            ));
            let is_found = |key: &str| columns.iter().any(|column| column.eq_ignore_ascii_case(key));
            for (key, _) in request.types.iter().filter(|(key, _)| !is_found(key)) {
                note(format_args!("{file}: nothing has an argument {}", text::escape(key)));
            }
            if no_numbers > 0 {
                note(format_args!(
                    "{file}: {} in columns of numbers and NULL there",
                    counted(no_numbers, "argument is no number", "arguments are no numbers")
                ));
            }
        }
        None => note(format_args!("{file}: {} is there already; --redo makes it anew", subclass.table())),
    }
    Ok(())
}
