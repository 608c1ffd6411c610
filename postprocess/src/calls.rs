//! The calls of a trace in order of time, each with what it asked for and the operations it caused.
//!
//! Links and ops come from indexes that live as long as the connection, so that memory does not grow with the trace; nothing is
//! written to it.

use anyhow::Result;
use rpd_schema::Version;
use rusqlite::{Connection, Row};

/// A call or a marker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// Its thread.
    pub(crate) tid: i64,
    /// Begin and end, ns.
    pub(crate) times: (i64, i64),
    /// The function, or `UserMarker`.
    pub(crate) name: String,
    /// Its arguments: those of the call, then those that a launch or copy has in a row of its own.
    pub(crate) arguments: String,
    /// What it caused, in order of time.
    pub(crate) operations: Vec<Operation>,
}

/// Something that a GPU did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// GPU and queue.
    pub(crate) place: (i64, i64),
    /// Begin and end, ns.
    pub(crate) times: (i64, i64),
    /// A kernel's name, otherwise the type.
    pub(crate) name: String,
}

/// Hands the calls that `condition` (SQL on the columns of rocpd_api as `A`) leaves to `each`.
///
/// # Errors
/// When the trace cannot be read.
pub(crate) fn each(
    trace: &Connection,
    version: Version,
    condition: &str,
    mut each: impl FnMut(Call) -> Result<()>,
) -> Result<()> {
    trace.execute_batch(
        "PRAGMA temp_store = FILE;
         CREATE TEMP TABLE link AS SELECT api_id, op_id FROM rocpd_api_ops;
         CREATE INDEX temp.link_of_call ON link (api_id);",
    )?;
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    let mut calls = trace.prepare(&format!(
        r#"SELECT A.id, A.tid, A.start, A."end", N.string, G.string,
             K.api_ptr_id, K.gridX || ',' || K.gridY || ',' || K.gridZ,
             K.workgroupX || ',' || K.workgroupY || ',' || K.workgroupZ, K.groupSegmentSize, K.stream, KN.string,
             C.api_ptr_id, C.dst, C.src, C.size, C.kind, C.stream
           FROM rocpd_api A
           LEFT JOIN rocpd_string N ON N.id = A.apiName_id
           LEFT JOIN {texts} G ON G.id = A.args_id
           LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = A.id
           LEFT JOIN rocpd_string KN ON KN.id = K.kernelName_id
           LEFT JOIN rocpd_copyapi C ON C.api_ptr_id = A.id
           WHERE typeof(A.start) = 'integer' AND typeof(A."end") = 'integer' AND {condition}
           ORDER BY A.start, A."end" DESC, A.id"#
    ))?;
    let mut operations = trace.prepare(
        r#"SELECT O.gpuId, O.queueId, O.start, O."end", coalesce(nullif(D.string, ''), T.string)
           FROM temp.link JOIN rocpd_op O ON O.id = op_id
           LEFT JOIN rocpd_string D ON D.id = O.description_id
           LEFT JOIN rocpd_string T ON T.id = O.opType_id
           WHERE api_id = ?1 ORDER BY O.start, O.id"#,
    )?;
    let mut calls = calls.query([])?;
    while let Some(row) = calls.next()? {
        let mut call = call(row)?;
        let caused = operations.query_map([row.get::<_, i64>(0)?], |row| {
            Ok(Operation {
                place: (number(row, 0)?, number(row, 1)?),
                times: (number(row, 2)?, number(row, 3)?),
                name: text(row, 4)?,
            })
        })?;
        call.operations = caused.collect::<rusqlite::Result<_>>()?;
        each(call)?;
    }
    Ok(())
}

fn call(row: &Row<'_>) -> rusqlite::Result<Call> {
    let mut arguments: Vec<String> = vec![text(row, 5)?];
    let mut add = |names: &[&str], from: usize| -> rusqlite::Result<()> {
        for (place, name) in names.iter().enumerate() {
            arguments.push(format!("{name}={}", text(row, from + place)?));
        }
        Ok(())
    };
    if number(row, 6)? != 0 {
        add(&["grid", "workgroup", "groupSegmentSize", "stream", "kernel"], 7)?;
    }
    if number(row, 12)? != 0 {
        add(&["dst", "src", "size", "kind", "stream"], 13)?;
    }
    arguments.retain(|argument| !argument.is_empty());
    Ok(Call {
        tid: number(row, 1)?,
        times: (number(row, 2)?, number(row, 3)?),
        name: text(row, 4)?,
        arguments: arguments.join(" | "),
        operations: Vec::new(),
    })
}

/// A number, 0 where there is something else.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<i64> {
    Ok(row.get_ref(column)?.as_i64().unwrap_or(0))
}

/// A text or a number as text, empty where there is neither.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    use rusqlite::types::ValueRef;
    Ok(match row.get_ref(column)? {
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        ValueRef::Integer(number) => number.to_string(),
        _ => String::new(),
    })
}
