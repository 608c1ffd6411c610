//! The mark of a pass in a file: whether the pass is there, and whether the file has grown since it was made.
//!
//! `NAME::Table` and `NAME::Generated` are the format's. `NAME::Source`, ours, holds for each table that was read
//! its number of rows and its largest id then, as `table rows largest`, joined by ` | `: ids alone would not tell, because
//! the sessions of a file grow side by side.

use rpd_schema::text::{shown, text_of};
use rusqlite::{Connection, OptionalExtension};

use super::definition::Definition;
use super::object::has_table;

/// How far a pass has been made in a file.
#[derive(Debug, PartialEq, Eq)]
pub enum PassState {
    /// Not at all.
    Absent,
    /// Begun by a tool that did not come to its end.
    Partial,
    /// Made.
    Applied(Freshness),
}

/// Whether a pass that is in a file covers the rows that are in it now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// The tables that it was made from are as they were.
    Current,
    /// They are not: rows were added or removed.
    Stale,
    /// It was made by a tool that did not write down what it was made from.
    Unknown,
}

impl Freshness {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Freshness::Current => "current",
            Freshness::Stale => "stale",
            Freshness::Unknown => "unknown",
        }
    }
}

impl PassState {
    /// How far this pass has been made.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn of(trace: &Connection, pass: &Definition) -> rusqlite::Result<PassState> {
        let is_generated = value(trace, pass, "Generated")?.is_some();
        let has_table = pass.tables.first().map_or(Ok(is_generated), |table| has_table(trace, table))?;
        if !is_generated || !has_table {
            let is_begun = is_generated || has_table || value(trace, pass, "Table")?.is_some();
            return Ok(if is_begun { PassState::Partial } else { PassState::Absent });
        }
        Ok(PassState::Applied(match value(trace, pass, "Source")? {
            None => Freshness::Unknown,
            Some(then) if then == source(trace, pass)? => Freshness::Current,
            Some(_) => Freshness::Stale,
        }))
    }
}

/// Writes down that a pass has been made of the rows that are there now.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn set(trace: &Connection, pass: &Definition) -> rusqlite::Result<()> {
    let source = source(trace, pass)?;
    let has_tables = !pass.tables.is_empty();
    let facts = [("Table", "True"), ("Generated", "True"), ("Source", source.as_str())];
    for (key, value) in facts.into_iter().filter(|(key, _)| has_tables || *key != "Table") {
        trace.execute(
            "INSERT INTO rocpd_metadata (tag, value) VALUES (?1, ?2)",
            [format!("{}::{key}", pass.tag).as_str(), value],
        )?;
    }
    Ok(())
}

/// Writes down that what a pass made covers the rows that are there now.
///
/// # Errors
/// As [`set`].
pub(crate) fn renew(trace: &Connection, pass: &Definition) -> rusqlite::Result<()> {
    let tag = format!("{}::Source", pass.tag);
    trace
        .execute("UPDATE rocpd_metadata SET value = ?2 WHERE tag = ?1", [tag, source(trace, pass)?])
        .map(|_| ())
}

/// Writes down that what a pass made, if it did, does not cover the rows that are there.
///
/// # Errors
/// As [`set`].
pub(crate) fn spoil(trace: &Connection, pass: &Definition) -> rusqlite::Result<()> {
    let tag = format!("{}::Source", pass.tag);
    trace.execute("UPDATE rocpd_metadata SET value = 'other rows' WHERE tag = ?1", [tag]).map(|_| ())
}

/// Removes what was written down of the rows that a pass was made of.
///
/// # Errors
/// As [`set`].
pub(crate) fn forget(trace: &Connection, pass: &Definition) -> rusqlite::Result<()> {
    trace.execute("DELETE FROM rocpd_metadata WHERE tag = ?1", [format!("{}::Source", pass.tag)]).map(|_| ())
}

/// Removes every tag of a pass.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn remove(trace: &Connection, pass: &Definition) -> rusqlite::Result<()> {
    let mut statement = trace.prepare("DELETE FROM rocpd_metadata WHERE tag = ?1")?;
    for key in ["Table", "Generated", "Source"] {
        statement.execute([format!("{}::{key}", pass.tag)])?;
    }
    Ok(())
}

/// Writes down that a pass which changes rows in their places has changed those that are there now.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn renew_mark(trace: &Connection, definition: &Definition) -> rusqlite::Result<()> {
    remove(trace, definition)?;
    set(trace, definition)
}

/// Marks a pass as made in a file whose rows it covers, or does not, as `freshness` says.
///
/// # Errors
/// When the file cannot be written.
pub(crate) fn set_as(
    made: &Connection,
    definition: &Definition,
    freshness: Freshness,
) -> rusqlite::Result<()> {
    set(made, definition)?;
    match freshness {
        Freshness::Current => Ok(()),
        Freshness::Stale => spoil(made, definition),
        Freshness::Unknown => forget(made, definition),
    }
}

fn value(trace: &Connection, pass: &Definition, key: &str) -> rusqlite::Result<Option<String>> {
    if !has_table(trace, "rocpd_metadata")? {
        return Ok(None);
    }
    trace
        .query_row(
            &format!("SELECT {} FROM rocpd_metadata WHERE tag = ?1 ORDER BY id DESC LIMIT 1", shown("value")),
            [format!("{}::{key}", pass.tag)],
            |row| Ok(text_of(row.get_ref(0)?).into_owned()),
        )
        .optional()
}

fn source(trace: &Connection, pass: &Definition) -> rusqlite::Result<String> {
    let mut parts = Vec::new();
    for table in pass.reads {
        if !has_table(trace, table)? {
            parts.push(format!("{table} absent"));
            continue;
        }
        // Apart, each is a shortcut of SQLite's; together they would be a look at every row.
        let rows: i64 = trace.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
        let largest = format!("SELECT ifnull(max(rowid), 0) FROM {table}");
        let largest: i64 = trace.query_row(&largest, [], |row| row.get(0))?;
        parts.push(format!("{table} {rows} {largest}"));
    }
    Ok(parts.join(" | "))
}
