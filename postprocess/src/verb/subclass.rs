//! `rpd subclass`: arguments of certain calls or ops as columns of a table of their own.

use std::path::PathBuf;

use anyhow::{Result, bail};
use rusqlite::Connection;

use crate::layout::{Layout, quote, same};
use crate::note::note;
use crate::pass::{Change, PASSES, change};
use crate::quantity::counted;
use crate::subclass::{Base, Made, Subclass, tag};
use crate::text;

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
    /// Whether one of that name is made anew.
    pub(crate) redo: bool,
}

/// Makes the subclass in one transaction, and says what it has.
///
/// # Errors
/// When the file is no trace or cannot be written, or something else has the names; it is as it was then.
pub(crate) fn run(request: &Request) -> Result<()> {
    let members: Vec<&str> = request.members.iter().map(String::as_str).collect();
    let subclass =
        Subclass { base: request.base, name: &request.name, members: &members, columns: &[], among: None };
    let file = text::escape(&request.file.to_string_lossy()).into_owned();
    match change(&request.file, "no subclass was made", |change| make(change, request, &subclass))? {
        Some(Made { rows: 0, .. }) => {
            note(format_args!("{file}: {} has no rows: nothing is called that", subclass.table()));
        }
        Some(Made { rows, columns }) => note(format_args!(
            "{file}: {} has {} and {}: {}",
            subclass.table(),
            counted(rows, "row", "rows"),
            counted(columns.len() as u64, "argument", "arguments"),
            text::escape(&columns.join(", "))
        )),
        None => note(format_args!("{file}: {} is there already; --redo makes it anew", subclass.table())),
    }
    Ok(())
}

/// Makes it; none if it is there.
fn make(change: &Change<'_>, request: &Request, subclass: &Subclass<'_>) -> Result<Option<Made>> {
    let trace = change.trace;
    let tag = tag(&subclass.table());
    if is_there(trace, subclass, &tag)? {
        if !request.redo {
            return Ok(None);
        }
        let (table, view) = (quote(&subclass.table()), quote(&subclass.view()));
        trace.execute_batch(&format!("DROP VIEW IF EXISTS {view}; DROP TABLE IF EXISTS {table}"))?;
        trace.execute("DELETE FROM rocpd_metadata WHERE tag = ?1", [&tag])?;
    }
    let made = subclass.make(trace, change.version)?;
    trace.execute(
        "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)",
        [&tag, &request.members.join(",")],
    )?;
    Ok(Some(made))
}

/// Whether the file has this subclass.
fn is_there(trace: &Connection, subclass: &Subclass<'_>, tag: &str) -> Result<bool> {
    let (table, view) = (subclass.table(), subclass.view());
    let is_ours = "SELECT EXISTS (SELECT 1 FROM rocpd_metadata WHERE tag = ?1)";
    if trace.query_row(is_ours, [tag], |row| row.get(0))? {
        return Ok(true);
    }
    if let Some(pass) = PASSES
        .iter()
        .find(|pass| pass.tables.iter().chain(pass.views).any(|name| same(name, &table) || same(name, &view)))
    {
        bail!("{table} is a table of rpd {}: choose another name", pass.name);
    }
    let layout = Layout::of(trace)?;
    match [table, view].into_iter().find(|name| layout.has(name)) {
        Some(taken) => bail!("{taken} is something else in this file: choose another name"),
        None => Ok(false),
    }
}
