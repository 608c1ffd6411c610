//! The calls of a trace in order of time, each with what it asked for and the operations it caused.
//!
//! Times and ids alone are sorted; each row is read when it is its turn, so that the first one comes soon. Links and ops come from
//! indexes that live as long as the connection, so that memory does not grow with the trace; nothing is written to it.

use std::collections::HashSet;
use std::ops::ControlFlow;

use anyhow::Result;
use rpd_schema::text::{is_cut, shown, text_of};
use rpd_schema::{Processes, Version};
use rusqlite::{Connection, Row};

use super::process_label::ProcessLabels;
use crate::pass::sorted::{Sorted, Sorter};
use crate::region::Selected;

/// Calls and operations that are read in one transaction; one call has all of its operations.
const AT_ONCE: usize = 256;

/// A call or a marker.
#[derive(Debug, PartialEq, Eq)]
pub struct ReportedCall {
    /// The first session of its process: ids alone may be equal.
    pub session: i64,
    /// Its process.
    pub pid: i64,
    /// Its thread.
    pub tid: i64,
    /// Begin and end, ns.
    pub times: (i64, i64),
    /// The function, or `UserMarker`.
    pub name: String,
    /// Its arguments: those of the call, then those that a launch or copy has in a row of its own.
    pub arguments: String,
    /// What it caused, in order of time.
    pub operations: Vec<ReportedOperation>,
}

/// Something that a GPU did.
#[derive(Debug, PartialEq, Eq)]
pub struct ReportedOperation {
    /// GPU and queue.
    pub place: (i64, i64),
    /// Begin and end, ns.
    pub times: (i64, i64),
    /// A kernel's name, otherwise the type.
    pub name: String,
}

/// Hands the calls of a part of a trace, with the operations of it that they caused, and what its processes are called, to `each`, until that
/// breaks off.
///
/// # Errors
/// When the trace cannot be read.
pub fn each(
    trace: &Connection,
    version: Version,
    selected: &Selected,
    mut each: impl FnMut(ReportedCall, &ProcessLabels) -> Result<ControlFlow<()>>,
) -> Result<()> {
    trace.execute_batch(
        "PRAGMA temp_store = FILE;
         CREATE TEMP TABLE link AS SELECT api_id, op_id FROM rocpd_api_ops;
         CREATE INDEX temp.link_of_call ON link (api_id);",
    )?;
    let processes = Processes::of(trace)?;
    let (mut order, labels) = in_order(trace, &processes, selected)?;
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    cut_long_texts(trace, "rocpd_string")?;
    if texts != "rocpd_string" {
        cut_long_texts(trace, texts)?;
    }
    let string = |alias| text_in("rocpd_string", alias);
    let mut calls = trace.prepare(&format!(
        r#"SELECT A.id, A.tid, A.start, A."end", {name}, {arguments},
             K.api_ptr_id, K.gridX || ',' || K.gridY || ',' || K.gridZ,
             K.workgroupX || ',' || K.workgroupY || ',' || K.workgroupZ, K.groupSegmentSize, {launch_stream}, {kernel},
             C.api_ptr_id, {dst}, {src}, C.size, C.kind, {copy_stream}, A.pid
           FROM rocpd_api A
           LEFT JOIN rocpd_string N ON N.id = A.apiName_id
           LEFT JOIN {texts} G ON G.id = A.args_id
           LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = A.id
           LEFT JOIN rocpd_string KN ON KN.id = K.kernelName_id
           LEFT JOIN rocpd_copyapi C ON C.api_ptr_id = A.id
           WHERE A.id = ?1"#,
        name = string("N"),
        arguments = text_in(texts, "G"),
        launch_stream = shown("K.stream"),
        kernel = string("KN"),
        dst = shown("C.dst"),
        src = shown("C.src"),
        copy_stream = shown("C.stream"),
    ))?;
    let mut operations = trace.prepare(&format!(
        r#"SELECT O.gpuId, O.queueId, O.start, O."end", coalesce(nullif({}, ''), {}), O.id
           FROM temp.link JOIN rocpd_op O ON O.id = op_id
           LEFT JOIN rocpd_string D ON D.id = O.description_id
           LEFT JOIN rocpd_string T ON T.id = O.opType_id
           WHERE api_id = ?1 ORDER BY O.start, O.id"#,
        string("D"),
        string("T")
    ))?;
    loop {
        // One lock for many questions; none is held while a call is handed over, because a recorder's commit would wait for it.
        let reading = trace.unchecked_transaction()?;
        let mut read = Vec::with_capacity(AT_ONCE);
        let mut batch = || -> Result<()> {
            let mut rows = 0;
            while rows < AT_ONCE {
                let Some([_, _, id]) = order.next()? else { break };
                let mut call = calls.query_row([id], call)?;
                call.session = processes.of_row(id);
                let mut caused = operations.query([id])?;
                while let Some(row) = caused.next()? {
                    if selected.has_op(number(row, 5)?) {
                        call.operations.push(ReportedOperation {
                            place: (number(row, 0)?, number(row, 1)?),
                            times: (number(row, 2)?, number(row, 3)?),
                            name: text(row, 4)?,
                        });
                    }
                }
                rows += 1 + call.operations.len();
                read.push(call);
            }
            Ok(())
        };
        // What was read before an error is handed over before it.
        let complete = batch();
        drop(reading);
        let is_over = read.is_empty();
        for call in read {
            if each(call, &labels)?.is_break() {
                return Ok(());
            }
        }
        complete?;
        if is_over {
            return Ok(());
        }
    }
}

/// Keeps the beginnings of the long texts of a table by themselves: many rows may have one, and each would read it whole.
fn cut_long_texts(trace: &Connection, table: &str) -> rusqlite::Result<()> {
    trace.execute_batch(&format!(
        "CREATE TEMP TABLE long_{table} (id INTEGER PRIMARY KEY, string TEXT);
         INSERT OR IGNORE INTO temp.long_{table} SELECT id, {} FROM {table} WHERE {} AND typeof(id) = 'integer'",
        shown("string"),
        is_cut("string")
    ))
}

/// The text that the row `alias` of a table has, as an SQL expression; after [`cut_long_texts`].
fn text_in(table: &str, alias: &str) -> String {
    let text = format!("{alias}.string");
    format!(
        "CASE WHEN {} THEN (SELECT string FROM temp.long_{table} WHERE id = {alias}.id) ELSE {text} END",
        is_cut(&text)
    )
}

/// Start, turned-over end and id of the calls, as they follow each other: of two with one start the longer one comes first; and what their
/// processes are called.
fn in_order(
    trace: &Connection,
    processes: &Processes,
    selected: &Selected,
) -> Result<(Sorted<[i64; 3]>, ProcessLabels)> {
    let mut calls = trace.prepare(
        r#"SELECT A.start, A."end", A.id, A.pid FROM rocpd_api A
           WHERE typeof(A.start) = 'integer' AND typeof(A."end") = 'integer'"#,
    )?;
    let mut calls = calls.query([])?;
    let (mut order, mut found) = (Sorter::new(), HashSet::new());
    while let Some(row) = calls.next()? {
        let id = row.get(2)?;
        if selected.has_call(id) {
            order.push([row.get(0)?, !row.get::<_, i64>(1)?, id])?;
            found.insert((processes.of_row(id), number(row, 3)?));
        }
    }
    Ok((order.sorted()?, ProcessLabels::of(found)))
}

fn call(row: &Row<'_>) -> rusqlite::Result<ReportedCall> {
    let own = text(row, 5)?;
    let says =
        |name: &str| own.split(" | ").any(|word| word.split_once('=').is_some_and(|(key, _)| key == name));
    let mut arguments = vec![own.clone()];
    // What the call's own arguments say is not said twice, and an address that is 0 is not known.
    let mut add = |names: &[&str], from: usize| -> rusqlite::Result<()> {
        for (place, name) in names.iter().enumerate() {
            let value = text(row, from + place)?;
            let is_unknown = ["dst", "src"].contains(name) && ["", "0", "0x0"].contains(&value.as_str());
            if !says(name) && !is_unknown {
                arguments.push(format!("{name}={value}"));
            }
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
    Ok(ReportedCall {
        session: 0,
        pid: number(row, 18)?,
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

/// A value as text, empty where there is none.
fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    Ok(text_of(row.get_ref(column)?).into_owned())
}
