//! `rpd subclass`: arguments of certain calls or ops as columns of a table of their own.

use std::path::PathBuf;

use anyhow::{Result, bail};
use rusqlite::Connection;

use crate::layout::{Layout, quote, same};
use crate::note::note;
use crate::pass::{Change, PASSES, change};
use crate::quantity::counted;
use crate::subclass::{Base, ColumnType, Made, Subclass, tag};
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
    let (made, unknown) = change(&request.file, "no subclass was made", |change| {
        Ok((make(change, request, &subclass)?, unknown_members(change.trace, &subclass)?))
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
            let is_found = |key: &str| columns.iter().any(|column| same(column, key));
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

/// A line about each member that no call, or no op, is named for.
fn unknown_members(trace: &Connection, subclass: &Subclass<'_>) -> Result<Vec<String>> {
    let (what, names) = match subclass.base {
        Base::Api => ("call", "SELECT apiName_id FROM rocpd_api"),
        Base::Op => ("op", "SELECT opType_id FROM rocpd_op"),
    };
    let mut known =
        trace.prepare(&format!("SELECT DISTINCT string FROM rocpd_string WHERE id IN ({names})"))?;
    let known =
        known.query_map([], |row| Ok(String::from_utf8_lossy(row.get_ref(0)?.as_bytes()?).into_owned()))?;
    let known: Vec<String> = known.collect::<rusqlite::Result<_>>()?;
    let unknown = subclass.members.iter().filter(|member| known.iter().all(|known| known != *member));
    let line = |member: &&str| {
        let tip = rpd_settings::tip(member, known.iter().map(String::as_str));
        format!("no {what} is named {}{}", text::escape(member), text::escape(&tip))
    };
    Ok(unknown.map(line).collect())
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
