//! Tables and views of a file: those that a pass needs, and those that it owns.

use anyhow::{Result, bail};
use rusqlite::{Connection, OptionalExtension};

use super::definition::Definition;

/// Fails where one of these tables is missing.
///
/// # Errors
/// Names the table and what adds it.
pub(crate) fn require(trace: &Connection, tables: &[&str]) -> Result<()> {
    for table in tables {
        if !has_table(trace, table)? {
            bail!("it has no table {table}; what a trace lacks is added by: rpd check --repair FILE");
        }
    }
    Ok(())
}

/// Whether the file has that table.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn has_table(trace: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(kind(trace, name)?.as_deref() == Some("table"))
}

/// Whether the file has that view.
///
/// # Errors
/// When the file cannot be read.
pub(crate) fn has_view(trace: &Connection, name: &str) -> rusqlite::Result<bool> {
    Ok(kind(trace, name)?.as_deref() == Some("view"))
}

/// Removes the tables and views of a pass, as far as they are there.
///
/// # Errors
/// When one of its names is something else in this file, or the file cannot be written.
pub(crate) fn remove(trace: &Connection, pass: &Definition) -> Result<()> {
    let views = pass.views.iter().map(|name| (*name, "view"));
    for (name, wanted) in views.chain(pass.tables.iter().map(|name| (*name, "table"))) {
        match kind(trace, name)? {
            None => {}
            Some(kind) if kind == wanted => trace.execute_batch(&format!("DROP {wanted} \"{name}\""))?,
            Some(kind) => bail!("its {kind} {name} stands where a {wanted} of that name has to be made"),
        }
    }
    Ok(())
}

/// `table`, `view` or `index`.
fn kind(trace: &Connection, name: &str) -> rusqlite::Result<Option<String>> {
    trace
        .query_row("SELECT type FROM sqlite_master WHERE name = ?1 COLLATE NOCASE", [name], |row| row.get(0))
        .optional()
}
