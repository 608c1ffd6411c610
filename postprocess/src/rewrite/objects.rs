//! Tables, indexes and views of a source, made again in the new file by the statements that made them there.

use anyhow::Result;
use rusqlite::Connection;

use super::derive::NewTrace;
use crate::trace::is_damage;
use crate::trace::layout::quote;

/// Makes the table `name` of `source`, without its rows.
///
/// # Errors
/// When the source cannot be read or the new file not be written.
pub(crate) fn table(made: &Connection, source: &str, name: &str) -> rusqlite::Result<()> {
    let statement: String = made.query_row(
        &format!("SELECT sql FROM {source}.sqlite_master WHERE type = 'table' AND name = ?1"),
        [name],
        |row| row.get(0),
    )?;
    made.execute(&statement, []).map(|_| ())
}

/// What `source` has that no new file gets: triggers, and virtual tables, which have no rows of their own.
///
/// # Errors
/// When the source cannot be read.
pub(crate) fn left_out(made: &Connection, source: &str) -> rusqlite::Result<Vec<String>> {
    let query = format!(
        "SELECT type, name FROM {source}.sqlite_master
         WHERE type = 'trigger' OR (type = 'table' AND ifnull(rootpage, 0) = 0)"
    );
    let found = texts(made, &query)?;
    Ok(found.into_iter().map(|(kind, name)| format!("{kind} {name}: is not copied")).collect())
}

/// Makes the indexes of `source` whose tables are there and which are not.
///
/// # Errors
/// When the source cannot be read or the new file not be written.
pub(crate) fn indexes(making: &NewTrace<'_>, source: &str) -> Result<()> {
    let query = format!(
        "SELECT name, sql FROM {source}.sqlite_master AS i WHERE type = 'index' AND sql IS NOT NULL
             AND EXISTS (SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND lower(name) = lower(i.tbl_name))
             AND NOT EXISTS (SELECT 1 FROM main.sqlite_master WHERE lower(name) = lower(i.name))
         ORDER BY rowid"
    );
    for (name, sql) in texts(making.made, &query)? {
        making.show(&format!("index {name}"));
        making.made.execute(&sql, [])?;
    }
    Ok(())
}

/// Makes the views of `source` that are not there, and says which could be read there and cannot here: they have been
/// left out.
///
/// # Errors
/// When the source cannot be read or the new file not be written.
pub(crate) fn views(made: &Connection, source: &str, original: &Connection) -> Result<Vec<String>> {
    let query = format!(
        "SELECT name, sql FROM {source}.sqlite_master AS v WHERE type = 'view' AND sql IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM main.sqlite_master WHERE lower(name) = lower(v.name))
         ORDER BY rowid"
    );
    let views = texts(made, &query)?;
    for (_, sql) in &views {
        made.execute(sql, [])?;
    }
    // Only now: a view may read one that was made after it.
    let mut lost = Vec::new();
    for (name, _) in views {
        if !is_readable(made, &format!("main.{}", quote(&name)))? && is_readable(original, &quote(&name))? {
            made.execute(&format!("DROP VIEW main.{}", quote(&name)), [])?;
            lost.push(name);
        }
    }
    Ok(lost)
}

fn is_readable(trace: &Connection, view: &str) -> rusqlite::Result<bool> {
    match trace.prepare(&format!("SELECT * FROM {view}")) {
        Err(error) if is_damage(&error) => Ok(false),
        prepared => prepared.map(|_| true),
    }
}

fn texts(made: &Connection, query: &str) -> rusqlite::Result<Vec<(String, String)>> {
    let mut query = made.prepare(query)?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}
