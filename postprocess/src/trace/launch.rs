//! How kernels were launched, in SQL: `ext_dispatch` says it of some, the row of the call of the others.

use rusqlite::Connection;

use super::has_table;

/// Workgroups of a launch and work-items of a workgroup, by dimension.
pub(crate) const SIZES: [&str; 6] = ["gridX", "gridY", "gridZ", "workgroupX", "workgroupY", "workgroupZ"];

/// What launches are described by in `ext_dispatch` and `rocpd_kernelapi`: [`SIZES`], memory, and the code object. Schema 3 lacks the last one.
pub(crate) const LAUNCH_COLUMNS: [&str; 9] = [
    "gridX",
    "gridY",
    "gridZ",
    "workgroupX",
    "workgroupY",
    "workgroupZ",
    "groupSegmentSize",
    "privateSegmentSize",
    "codeObject_id",
];

/// What a query about operations (`rocpd_op O`) adds to know how they were launched.
pub(crate) struct LaunchJoin {
    by_call: bool,
}

impl LaunchJoin {
    /// None where the trace has no `ext_dispatch`: its recorder did not say how kernels of graphs were launched.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(crate) fn of(trace: &Connection) -> rusqlite::Result<Option<LaunchJoin>> {
        if !has_table(trace, "ext_dispatch")? {
            return Ok(None);
        }
        let by_call = has_table(trace, "rocpd_kernelapi")? && has_table(trace, "rocpd_api_ops")?;
        Ok(Some(LaunchJoin { by_call }))
    }

    /// Behind `FROM rocpd_op O`.
    pub(crate) fn join(&self) -> &'static str {
        match self.by_call {
            // Of several launches of an operation, which only a damaged trace has, the first one counts.
            true => {
                "LEFT JOIN ext_dispatch D ON D.op_id = O.id
                 LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops JOIN rocpd_kernelapi ON api_ptr_id = api_id
                     GROUP BY op_id) L ON L.op_id = O.id
                 LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = L.api_id"
            }
            false => "LEFT JOIN ext_dispatch D ON D.op_id = O.id",
        }
    }

    /// A column of numbers that both tables have; NULL where neither has a row. rocmProfileData's recorder has empty texts in some.
    pub(crate) fn column(&self, name: &str) -> String {
        match self.by_call {
            true => format!("coalesce(D.{name}, iif(typeof(K.{name}) = 'integer', K.{name}, NULL))"),
            false => format!("D.{name}"),
        }
    }

    /// Columns of these names, one after the other.
    pub(crate) fn columns(&self, names: &[&str]) -> String {
        let columns: Vec<String> = names.iter().map(|name| self.column(name)).collect();
        columns.join(", ")
    }
}
