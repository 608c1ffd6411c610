//! A part of a trace for queries. A temporary view hides each table and view of the file under the same name, and has only what is in the
//! part.
//!
//! Tables have the rows that are calls and operations of the part or refer to such. What refers to neither stays whole: texts, metadata,
//! sensors.

use std::sync::Arc;

use anyhow::Result;
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use crate::region::Selected;
use crate::trace::layout::{Layout, TableLayout, quote};

/// The function by which a statement asks whether a call is in the part of the trace that it is about.
pub(super) const HAS_CALL: &str = "in_region_call";
/// The same of an operation.
pub(super) const HAS_OP: &str = "in_region_op";

/// Lets statements ask what is in a part of the trace.
///
/// # Errors
/// When SQLite has no memory for it.
pub(super) fn add_functions(trace: &Connection, selected: Selected) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    let selected = Arc::new(selected);
    let of_calls = Arc::clone(&selected);
    trace.create_scalar_function(
        HAS_CALL,
        1,
        flags,
        move |context| Ok(of_calls.has_call(context.get(0)?)),
    )?;
    trace.create_scalar_function(HAS_OP, 1, flags, move |context| Ok(selected.has_op(context.get(0)?)))
}

/// Makes the views; [`add_functions`] comes before it.
///
/// # Errors
/// When the file's schema cannot be read, or a view of it is none that SQLite could make.
pub(super) fn add_views(trace: &Connection) -> Result<()> {
    for table in Layout::everything(trace)?.tables {
        if let Some(condition) = condition(&table) {
            let name = quote(&table.name);
            trace.execute_batch(&format!(
                "CREATE TEMP VIEW {name} AS SELECT * FROM main.{name} WHERE {condition}"
            ))?;
        }
    }
    // A view of the file finds the file's tables; the same statement in a temporary one finds what is in front of them.
    let mut views = trace.prepare("SELECT sql FROM main.sqlite_master WHERE type = 'view' ORDER BY rowid")?;
    let views = views.query_map([], |row| row.get::<_, String>(0))?;
    for view in views.collect::<rusqlite::Result<Vec<String>>>()? {
        if let Some(view) = view.strip_prefix("CREATE VIEW ") {
            // A file may have more behind the statement, which SQLite never ran: `execute` takes one and refuses two.
            trace.execute(&format!("CREATE TEMP VIEW {view}"), [])?;
        }
    }
    Ok(())
}

/// Which rows of a table are in the part; none where all are.
fn condition(table: &TableLayout) -> Option<String> {
    let is_in = |column: &str, target: &str| {
        let function = match target.to_ascii_lowercase().as_str() {
            "rocpd_api" => HAS_CALL,
            "rocpd_op" => HAS_OP,
            _ => return None,
        };
        let column = quote(column);
        Some(format!("typeof({column}) = 'integer' AND {function}({column})"))
    };
    let own = table.key.as_deref().and_then(|key| is_in(key, &table.name));
    let others = table.references.iter().filter_map(|reference| is_in(&reference.column, &reference.table));
    let all: Vec<String> = own.into_iter().chain(others).collect();
    (!all.is_empty()).then(|| all.join(" AND "))
}
