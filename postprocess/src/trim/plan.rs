//! What trimming does with each table: which rows stay, and what is in them.
//!
//! The tables are judged by what their ids refer to, so that extensions and other writers' tables are trimmed as the
//! format's are. If nothing says which calls and ops the rows of a table
//! belong to, the table goes.

use super::window::Window;
use crate::trace::layout::{Layout, Reference, TableLayout, quote, same};

/// Tables of the format and of its extensions that are facts of the whole trace.
const WHOLE: [&str; 4] = ["rocpd_metadata", "rocpd_kernelcodeobject", "ext_codeobject", "ext_candidate"];

/// Tables of texts: they keep what the rows that stay refer to.
const TEXTS: [&str; 2] = ["rocpd_string", "rocpd_ustring"];

/// What becomes of a table.
#[derive(Debug)]
pub(crate) enum Fate {
    /// The rows for which this is true stay; a row is `t` in it.
    Rows(String),
    /// Runs of a sensor: they are cut to the time that is covered.
    Runs,
    /// What stays is known only when all else has been copied.
    Texts,
    /// It goes, and why.
    Dropped(String),
}

/// A table and its fate.
#[derive(Debug)]
pub(crate) struct PlannedTable<'a> {
    /// The table.
    pub(crate) table: &'a TableLayout,
    /// What becomes of it.
    pub(crate) fate: Fate,
}

/// The tables in the order in which they can be copied: what is referred to first, what depends on all that
/// stays last.
pub(crate) fn plan(layout: &Layout, window: Window) -> Vec<PlannedTable<'_>> {
    let mut planned: Vec<PlannedTable<'_>> = Vec::new();
    let mut waiting: Vec<&TableLayout> = layout.tables.iter().collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        waiting.retain(|table| {
            let fate = fate(table, window, &planned);
            let is_decided = fate.is_some();
            planned.extend(fate.map(|fate| PlannedTable { table, fate }));
            !is_decided
        });
        if waiting.len() == before {
            let reason = || Fate::Dropped("its rows refer to each other in a circle".to_string());
            planned.extend(waiting.drain(..).map(|table| PlannedTable { table, fate: reason() }));
        }
    }
    planned.sort_by_key(|planned| match planned.fate {
        Fate::Dropped(_) | Fate::Rows(_) => 0,
        Fate::Runs => 1,
        Fate::Texts => 2,
    });
    planned
}

/// What becomes of a table, if that of all that it refers to is known.
fn fate(table: &TableLayout, window: Window, planned: &[PlannedTable<'_>]) -> Option<Fate> {
    if TEXTS.iter().any(|texts| table.is(texts)) {
        return Some(Fate::Texts);
    }
    if WHOLE.iter().any(|whole| table.is(whole)) {
        return Some(Fate::Rows("1".to_string()));
    }
    if table.is("rocpd_api") {
        return Some(Fate::Rows(window.condition("t.start")));
    }
    if table.is("rocpd_op") {
        return Some(Fate::Rows("is_kept_op(t.id)".to_string()));
    }
    if table.is("rocpd_monitor") {
        return Some(Fate::Runs);
    }
    if table.is("ext_graph") {
        return Some(Fate::Rows("NOT is_cut_graph(t.id)".to_string()));
    }
    if table.references.is_empty() {
        return Some(Fate::Dropped("nothing tells which calls or operations its rows belong to".to_string()));
    }
    let mut conditions = Vec::new();
    for reference in
        table.references.iter().filter(|reference| !TEXTS.iter().any(|texts| same(texts, &reference.table)))
    {
        match condition(reference, planned)? {
            Ok(condition) => conditions.extend(condition),
            Err(gone) => return Some(Fate::Dropped(format!("it refers to {gone}, which goes"))),
        }
    }
    Some(Fate::Rows(if conditions.is_empty() { "1".to_string() } else { conditions.join(" AND ") }))
}

/// When a row with this reference stays: none where any does. An error is the table that goes; None is not known yet.
fn condition(reference: &Reference, planned: &[PlannedTable<'_>]) -> Option<Result<Option<String>, String>> {
    let column = quote(&reference.column);
    let target = planned.iter().find(|planned| planned.table.is(&reference.table))?;
    let is_kept = match &target.fate {
        Fate::Dropped(_) => return Some(Err(reference.table.clone())),
        Fate::Rows(all) if all == "1" => return Some(Ok(None)),
        Fate::Rows(_) if target.table.is("rocpd_api") => format!("is_kept_call(t.{column})"),
        Fate::Rows(_) if target.table.is("rocpd_op") => format!("is_kept_op(t.{column})"),
        _ => format!(
            // Of a table without a key too, SQLite reads this once.
            "t.{column} IN (SELECT x.{} FROM main.{} AS x)",
            quote(&reference.key),
            quote(&reference.table)
        ),
    };
    Some(Ok(Some(format!("(t.{column} IS NULL OR {is_kept})"))))
}
