//! The call stacks of calls that the window cuts: they get back the time of what they called and what goes.
//!
//! A row of `ext_callstack` says how much of its own time a call has: its duration less that of the calls directly
//! below it. A call that goes on behind the window loses some of those, so that their time is its own now. Only calls that are
//! open at the window's end can be meant, a handful in each thread.

use std::collections::HashMap;

use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::Value;

/// Makes known to SQL, as `own_time(call, own time before)`, what the calls of `source` have for themselves when only
/// those stay for which `is_kept_call` is true.
///
/// # Errors
/// When the source cannot be read.
pub(crate) fn name_own_time(made: &Connection, source: &str, window_end: i64) -> rusqlite::Result<()> {
    let mut cut: HashMap<i64, CutCall> = HashMap::new();
    if window_end < i64::MAX {
        let mut open = made.prepare(&format!(
            "SELECT id, \"end\" - start FROM {source}.rocpd_api
             WHERE start <= ?1 AND typeof(\"end\") = 'integer' AND \"end\" > ?1 AND is_kept_call(id)"
        ))?;
        let mut open = open.query([window_end])?;
        while let Some(row) = open.next()? {
            if let Ok(duration) = row.get(1) {
                cut.insert(row.get(0)?, CutCall { duration, regained: 0 });
            }
        }
    }
    if !cut.is_empty() {
        let mut gone = made.prepare(&format!(
            "SELECT S.parent_id, C.\"end\" - C.start FROM {source}.ext_callstack S
                 JOIN {source}.rocpd_api C ON C.id = S.child_id
             WHERE S.depth = 1 AND NOT is_kept_call(S.child_id)"
        ))?;
        let mut gone = gone.query([])?;
        while let Some(row) = gone.next()? {
            if let (Ok(parent), Ok(duration)) = (row.get::<_, i64>(0), row.get::<_, i64>(1))
                && let Some(cut) = cut.get_mut(&parent)
            {
                cut.regained = cut.regained.saturating_add(duration);
            }
        }
    }
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    made.create_scalar_function("own_time", 2, flags, move |call| {
        let (id, before) = (call.get_raw(0).as_i64(), call.get::<Value>(1)?);
        Ok(match (id.ok().and_then(|id| cut.get(&id)), before) {
            (Some(cut), Value::Integer(before)) => Value::Integer(cut.own_time(before)),
            (_, before) => before,
        })
    })
}

/// A call that goes on behind the window; ns.
struct CutCall {
    duration: i64,
    /// What its removed children took.
    regained: i64,
}

impl CutCall {
    /// Never more than it took: the original's outermost calls have had all of it from the beginning.
    fn own_time(&self, before: i64) -> i64 {
        before.saturating_add(self.regained).min(self.duration.max(before))
    }
}
