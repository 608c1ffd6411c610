//! Each text once: rows that refer to another with the same text refer to the first one, and texts that nothing uses go.
//!
//! Other tools' tables may refer to texts and not say so. Their rows are left alone, and so are the texts whose ids are in
//! a column that is named as if it did: at worst a text stays that nothing uses.

use anyhow::Result;
use rusqlite::Connection;
use serde::Serialize;

use crate::pass::mark::renew_mark;
use crate::pass::texts::remove_unused;
use crate::pass::{Change, Definition};
use crate::rewrite::duplicate_texts;
use crate::trace::ids::Ids;
use crate::trace::layout::{Layout, quote, same};
use crate::trace::row_count;

/// As `rpd strings` makes it.
pub static DEFINITION: Definition = Definition {
    name: "strings",
    about: "Remove texts that are in a trace more than once, or that nothing uses",
    tag: "Strings",
    reads: &["rocpd_string"],
    tables: &[],
    views: &[],
    changes: None,
    making: None,
};

/// Texts that are wanted whatever refers to them: local id 1 of each session is the empty text.
const EMPTY_TEXTS: &str = "id & 0xffffffff = 1 AND string = ''";

/// What became of the texts.
#[derive(Debug, Serialize)]
pub struct Deduped {
    /// Texts that were there.
    pub before: u64,
    /// Texts that are there.
    pub after: u64,
    /// How many were there once more.
    pub equal: u64,
    /// Columns that may refer to texts without saying so, and kept some that would have gone.
    pub undeclared: Vec<Undeclared>,
}

/// A column that declares no reference and has ids of texts that nothing else uses.
#[derive(Debug, Serialize)]
pub struct Undeclared {
    /// Its table.
    pub table: String,
    /// It.
    pub column: String,
    /// Texts that stay because of it.
    pub texts: u64,
}

/// Leaves each text of `rocpd_string` once.
///
/// # Errors
/// When the file cannot be read or written.
pub fn dedupe(change: &Change<'_>) -> Result<Deduped> {
    let trace = change.trace;
    let before = row_count(trace, "rocpd_string")?;
    change.show("equal texts");
    duplicate_texts::begin(trace)?;
    duplicate_texts::gather(
        trace,
        &format!("SELECT string, id FROM rocpd_string WHERE NOT ({EMPTY_TEXTS})"),
    )?;
    let equal = duplicate_texts::find(trace)?;
    let mut unused = Ids::of(trace, &format!("SELECT id FROM rocpd_string WHERE NOT ({EMPTY_TEXTS})"), [])?;
    let layout = Layout::declared(trace)?;
    for table in &layout.tables {
        let references = table.references.iter().filter(|reference| same(&reference.table, "rocpd_string"));
        for column in references.map(|reference| quote(&reference.column)) {
            change.show(&format!("texts of {}", table.name));
            let name = quote(&table.name);
            if equal > 0 {
                let first =
                    format!("(SELECT first FROM temp.duplicate WHERE duplicate.id = {name}.{column})");
                trace.execute(
                    &format!("UPDATE {name} SET {column} = {first} WHERE is_duplicate({column})"),
                    [],
                )?;
            }
            unused.remove_all(&Ids::of(trace, &format!("SELECT {column} FROM {name}"), [])?);
        }
    }
    trace.execute_batch("DROP TABLE temp.duplicate")?;
    let undeclared = keep_undeclared(trace, &layout, &mut unused)?;
    remove_unused(change, "rocpd_string", unused.into_inner())?;
    renew_mark(trace, &DEFINITION)?;
    Ok(Deduped { before, after: row_count(trace, "rocpd_string")?, equal, undeclared })
}

/// Takes out of `unused` what is in columns that may refer to texts without saying so, and says which those are.
fn keep_undeclared(trace: &Connection, layout: &Layout, unused: &mut Ids) -> Result<Vec<Undeclared>> {
    let mut undeclared = Vec::new();
    for table in &layout.tables {
        for column in table.undeclared_texts() {
            let before = unused.len();
            let ids = format!("SELECT {} FROM {}", quote(column), quote(&table.name));
            unused.remove_all(&Ids::of(trace, &ids, [])?);
            if unused.len() < before {
                let (table, column) = (table.name.clone(), column.to_string());
                undeclared.push(Undeclared { table, column, texts: before - unused.len() });
            }
        }
    }
    Ok(undeclared)
}
