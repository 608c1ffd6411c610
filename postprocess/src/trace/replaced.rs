//! Dispatches that ran another kernel than the program's, counted. Instrumented kernels are not among them.

use std::collections::BTreeMap;

use rusqlite::Connection;
use serde::Serialize;

use super::instrumented::is_instrumented;
use super::{Strings, has_table};
use crate::region::Selected;

/// The path of a candidate of which the file says nothing.
pub(crate) const NOT_IN_FILE: &str = "(a candidate that is not in the file)";

/// Dispatches that ran another kernel than the program's.
#[derive(Debug, Serialize)]
pub struct Replaced {
    /// How many.
    pub dispatches: u64,
    /// How many kernels of the program, by name.
    pub kernels: u64,
    /// How many candidates ran, by file and content.
    pub candidates: u64,
}

impl Replaced {
    /// Counts those of a part of a trace; none where there are none.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn of(trace: &Connection, selected: &Selected) -> rusqlite::Result<Option<Replaced>> {
        let kernels = by_kernel(trace, &|op| selected.has_op(op))?;
        if kernels.is_empty() {
            return Ok(None);
        }
        // One that is not in the file counts as one.
        let candidates = format!(
            "SELECT count(*) FROM (
                 SELECT DISTINCT C.path, C.sha256
                 FROM (SELECT DISTINCT candidate_id FROM ext_replacement WHERE NOT {} AND {}) R
                 LEFT JOIN ext_candidate C ON C.id = R.candidate_id)",
            is_instrumented(trace, "op_id")?,
            selected.op_condition(trace, "op_id")?
        );
        let candidates: i64 = trace.query_row(&candidates, [], |row| row.get(0))?;
        Ok(Some(Replaced {
            dispatches: kernels.values().sum(),
            kernels: kernels.len() as u64,
            candidates: candidates.unsigned_abs(),
        }))
    }
}

/// How many dispatches of each kernel of the program ran another one; of those operations for which `counts` holds.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn by_kernel(
    trace: &Connection,
    counts: &dyn Fn(i64) -> bool,
) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut found = BTreeMap::new();
    if !has_table(trace, "ext_replacement")? {
        return Ok(found);
    }
    let mut rows = trace.prepare(&format!(
        "SELECT DISTINCT O.id, O.description_id FROM ext_replacement R JOIN rocpd_op O ON O.id = R.op_id
         WHERE NOT {}",
        is_instrumented(trace, "O.id")?
    ))?;
    let mut rows = rows.query([])?;
    let mut strings = Strings::of(trace)?;
    let mut by_id: BTreeMap<i64, u64> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        if counts(row.get_ref(0)?.as_i64().unwrap_or(-1)) {
            *by_id.entry(row.get_ref(1)?.as_i64().unwrap_or(-1)).or_default() += 1;
        }
    }
    for (id, dispatches) in by_id {
        *found.entry(strings.get(id)?.unwrap_or_default()).or_default() += dispatches;
    }
    Ok(found)
}
