//! Each text once: rows that refer to another with the same text refer to the first one, and texts that nothing uses go.

use anyhow::Result;
use serde::Serialize;

use crate::ids::Ids;
use crate::layout::{Layout, quote, same};
use crate::pass::{Change, remove_unused};
use crate::trace::row_count;
use crate::twins;

/// Texts that are wanted whatever refers to them: local id 1 of each session is the empty text.
const KEPT: &str = "id & 0xffffffff = 1 AND string = ''";

/// What became of the texts.
#[derive(Debug, Serialize)]
pub(crate) struct Deduped {
    /// Texts that were there.
    pub(crate) before: u64,
    /// Texts that are there.
    pub(crate) after: u64,
    /// Of those that went, how many were there once more.
    pub(crate) equal: u64,
}

/// Leaves each text of `rocpd_string` once.
///
/// # Errors
/// When the file cannot be read or written.
pub(crate) fn dedupe(change: &Change<'_>) -> Result<Deduped> {
    let trace = change.trace;
    let before = row_count(trace, "rocpd_string")?;
    change.show("equal texts");
    twins::begin(trace)?;
    twins::gather(trace, &format!("SELECT string, id FROM rocpd_string WHERE NOT ({KEPT})"))?;
    let equal = twins::find(trace)?;
    let mut unused = Ids::of(trace, &format!("SELECT id FROM rocpd_string WHERE NOT ({KEPT})"), [])?;
    for table in &Layout::everything(trace)?.tables {
        let references = table.references.iter().filter(|reference| same(&reference.table, "rocpd_string"));
        for column in references.map(|reference| quote(&reference.column)) {
            change.show(&format!("texts of {}", table.name));
            let name = quote(&table.name);
            if equal > 0 {
                let first = format!("(SELECT first FROM temp.twin WHERE twin.id = {name}.{column})");
                trace
                    .execute(&format!("UPDATE {name} SET {column} = {first} WHERE is_twin({column})"), [])?;
            }
            unused.remove_all(&Ids::of(trace, &format!("SELECT {column} FROM {name}"), [])?);
        }
    }
    trace.execute_batch("DROP TABLE temp.twin")?;
    remove_unused(change, "rocpd_string", unused.into_inner())?;
    Ok(Deduped { before, after: row_count(trace, "rocpd_string")?, equal })
}
