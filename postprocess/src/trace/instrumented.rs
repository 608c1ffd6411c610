//! Dispatches of instrumented kernels: those that `ext_instrumentation` names, and those that ran kernels which the program itself has loaded in
//! place of its own, of which a program that is killed leaves nothing else.

use rpd_schema::THE_PROGRAM;
use rusqlite::Connection;
use serde::Serialize;

use super::has_table;
use super::ids::Ids;
use crate::region::Selected;

/// The ids of their operations, as a query; none where the trace has no table that may name any.
fn ops(trace: &Connection) -> rusqlite::Result<Option<String>> {
    let mut queries = Vec::new();
    if has_table(trace, "ext_instrumentation")? {
        queries.push("SELECT op_id FROM ext_instrumentation WHERE typeof(op_id) = 'integer'".to_string());
    }
    if has_table(trace, "ext_replacement")? && has_table(trace, "ext_candidate")? {
        queries.push(format!(
            "SELECT R.op_id FROM ext_replacement R JOIN ext_candidate C ON C.id = R.candidate_id
             WHERE C.path = '{THE_PROGRAM}' AND typeof(R.op_id) = 'integer'"
        ));
    }
    Ok((!queries.is_empty()).then(|| queries.join(" UNION ")))
}

/// Dispatches of instrumented kernels.
#[derive(Debug, Serialize)]
pub struct Instrumented {
    /// How many.
    pub dispatches: u64,
    /// Of how many kernels of the program.
    pub kernels: u64,
}

impl Instrumented {
    /// Counts those of a part of a trace; none where there are none.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn of(trace: &Connection, selected: &Selected) -> rusqlite::Result<Option<Instrumented>> {
        let count = format!(
            "SELECT count(*), count(DISTINCT S.string) FROM rocpd_op O LEFT JOIN rocpd_string S ON S.id = O.description_id
             WHERE {} AND {}",
            is_instrumented(trace, "O.id")?,
            selected.op_condition(trace, "O.id")?
        );
        let number = |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let found = trace.query_row(&count, [], |row| {
            Ok(Instrumented { dispatches: number(row, 0)?, kernels: number(row, 1)? })
        })?;
        Ok((found.dispatches > 0).then_some(found))
    }
}

/// The condition, in SQL, that the operation whose id is `op` ran an instrumented kernel.
///
/// # Errors
/// When the trace cannot be read.
pub fn is_instrumented(trace: &Connection, op: &str) -> rusqlite::Result<String> {
    Ok(ops(trace)?.map_or("0".to_string(), |ops| format!("{op} IN ({ops})")))
}

/// The operations that ran instrumented kernels.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn instrumented(trace: &Connection) -> rusqlite::Result<Ids> {
    ops(trace)?.map_or(Ok(Ids::default()), |ops| Ids::of(trace, &ops, []))
}
