//! Which operations are barriers: those of `rocpd_barrierop`, and those whose type says so. A GPU that waits does no work.

use rusqlite::Connection;

use super::has_table;
use super::ids::Ids;

/// The type (`opType`) of barriers.
pub(crate) const BARRIER: &str = "Barrier";

/// The operations that are barriers.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn barriers(trace: &Connection) -> rusqlite::Result<Ids> {
    let mut barriers = Ids::default();
    if has_table(trace, "rocpd_barrierop")? {
        barriers.gather(trace, "SELECT op_ptr_id FROM rocpd_barrierop", [])?;
    }
    if has_table(trace, "rocpd_string")? && has_table(trace, "rocpd_op")? {
        let types = Ids::of(trace, "SELECT id FROM rocpd_string WHERE string = ?1", [BARRIER])?;
        // Few traces have the type, and then all operations are read.
        if !types.is_empty() {
            let query =
                "SELECT id FROM rocpd_op WHERE opType_id IN (SELECT id FROM rocpd_string WHERE string = ?1)";
            barriers.gather(trace, query, [BARRIER])?;
        }
    }
    Ok(barriers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_or_the_type_makes_a_barrier() {
        let trace = Connection::open_in_memory().unwrap();
        trace
            .execute_batch(
                "CREATE TABLE rocpd_string (id integer primary key, string text);
                 INSERT INTO rocpd_string VALUES (1, 'Task'), (2, 'Barrier'), (3, 'Barrier');
                 CREATE TABLE rocpd_op (id integer primary key, opType_id integer);
                 INSERT INTO rocpd_op VALUES (1, 1), (2, 2), (3, 3), (4, 1);
                 CREATE TABLE rocpd_barrierop (op_ptr_id integer primary key);
                 INSERT INTO rocpd_barrierop VALUES (2), (4);",
            )
            .unwrap();
        let are_barriers = |trace: &Connection| [1, 2, 3, 4].map(|op| barriers(trace).unwrap().has(op));
        assert_eq!(are_barriers(&trace), [false, true, true, true]);
        trace.execute_batch("DROP TABLE rocpd_barrierop").unwrap();
        assert_eq!(are_barriers(&trace), [false, true, true, false]);
    }
}
