//! The calls and ops that stay in the trimmed trace. All else follows from them.

use std::sync::Arc;

use anyhow::Result;
use rusqlite::Connection;

use super::window::Window;
use crate::region::IS_KNOWN;
use crate::trace::ids::Ids;

/// The calls and ops that stay.
#[derive(Debug)]
pub(crate) struct Selection {
    /// Calls that start in the window.
    pub(crate) calls: Arc<Ids>,
    /// Ops that one of these calls caused, and ops that no call of the file caused and that start in the window.
    pub(crate) ops: Arc<Ids>,
    /// How many rows these calls and ops are: other recorders may have used an id twice, or a text for one.
    pub(crate) rows: SelectedRows,
}

/// Rows of calls and ops.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SelectedRows {
    pub(crate) calls: u64,
    pub(crate) ops: u64,
}

impl Selection {
    /// Chooses them: two scans of the calls, one of the links, one of the ops. `trace` is where tables without a
    /// schema in front are looked up.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn of(trace: &Connection, window: Window) -> Result<Selection> {
        let in_window = window.condition("start");
        let calls = Ids::of(trace, &format!("SELECT id FROM rocpd_api WHERE {in_window}"), [])?;
        let known = Ids::of(trace, &format!("SELECT id FROM rocpd_api WHERE {IS_KNOWN}"), [])?;
        let mut caused = Ids::default();
        let mut linked = Ids::default();
        let mut links = trace.prepare("SELECT op_id, api_id FROM rocpd_api_ops")?;
        let mut links = links.query([])?;
        while let Some(row) = links.next()? {
            let (Ok(op), Ok(call)) = (row.get_ref(0)?.as_i64(), row.get_ref(1)?.as_i64()) else { continue };
            if known.has(call) {
                linked.add(op);
            }
            if calls.has(call) {
                caused.add(op);
            }
        }
        Arc::new(linked).name(trace, "is_linked")?;
        Arc::new(caused).name(trace, "is_caused")?;
        // A link may lead nowhere: only ops that are there stay.
        let staying =
            format!("SELECT id FROM rocpd_op WHERE is_caused(id) OR ({in_window} AND NOT is_linked(id))");
        let ops = Arc::new(Ids::of(trace, &staying, [])?);
        ops.name(trace, "is_staying")?;
        let count = |query: &str| -> rusqlite::Result<u64> {
            trace.query_row(query, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        let rows = SelectedRows {
            calls: count(&format!("SELECT count(*) FROM rocpd_api WHERE {in_window}"))?,
            ops: count("SELECT count(*) FROM rocpd_op WHERE is_staying(id)")?,
        };
        Ok(Selection { calls: Arc::new(calls), ops, rows })
    }

    /// Makes them known to SQL as `is_kept_call(id)` and `is_kept_op(id)`.
    ///
    /// # Errors
    /// Those of SQLite, none of which has to do with the file.
    pub(crate) fn name(&self, trace: &Connection) -> rusqlite::Result<()> {
        self.calls.name(trace, "is_kept_call")?;
        self.ops.name(trace, "is_kept_op")
    }
}
