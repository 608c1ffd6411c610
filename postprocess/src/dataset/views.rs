//! Tables of a dataset over one trace, for queries that are the same for both: temporary views with the names, columns and values that the
//! dataset would have.

use std::path::Path;

use anyhow::{Context, Result};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::AddOptions;
use super::cells::From;
use super::clock::HostsOfTrace;
use super::place::encoded;
use super::rows::{OF_API, OF_MONITOR, OF_OP, Read};
use super::source::{RankPart, TraceSource};
use super::texts::word;
use crate::check::rule::has_possible_times;
use crate::notes::SharedNotes;
use crate::text::escape_path;
use crate::trace::barriers::BARRIER;
use crate::trace::layout::quote;

/// The function (SQL) that tells which part a row is of, by its id: its number in the temporary table of parts.
const PART_OF: &str = "dataset_part_of";

/// The tables: the name in a dataset, the table of the trace, and its columns.
const TABLES: [(&str, &str, &[Read]); 3] =
    [("op", "rocpd_op", &OF_OP), ("api", "rocpd_api", &OF_API), ("monitor", "rocpd_monitor", &OF_MONITOR)];

/// Adds the views `op`, `api` and `monitor` to a connection to the trace at `path`; they hide what has these names.
///
/// `with_calls`: the column `api_id` of operations is asked for. It takes a temporary table, since links have no index by operation.
///
/// # Errors
/// When the trace is none of schema 2 or 3, or cannot be read.
pub(crate) fn add(trace: &Connection, path: &Path, with_calls: bool, notes: &SharedNotes) -> Result<()> {
    let source = TraceSource::look_at(path, notes)?;
    let ranks = source.ranks(&HostsOfTrace::default(), None, &AddOptions::default(), notes)?;
    let cannot = || format!("cannot read {}", escape_path(path));
    add_parts(trace, &source, &ranks).with_context(cannot)?;
    let links = source.layout.table("rocpd_api_ops");
    let links = links.filter(|table| with_calls && table.has("api_id") && table.has("op_id"));
    let call = match links {
        None => "NULL",
        Some(links) => {
            let id = links.id();
            // The first link counts, where there are several.
            trace
                .execute_batch(&format!(
                    "CREATE TEMP TABLE dataset_link (op_id INTEGER PRIMARY KEY, api_id INTEGER);
                     INSERT OR IGNORE INTO dataset_link SELECT op_id, api_id FROM rocpd_api_ops
                         WHERE typeof(op_id) = 'integer' AND typeof(api_id) = 'integer' ORDER BY {id}"
                ))
                .with_context(cannot)?;
            "(SELECT l.api_id FROM temp.dataset_link l WHERE l.op_id = t.id)"
        }
    };
    for (name, table, columns) in TABLES {
        let statement = view(&source, name, table, columns, call);
        trace.execute_batch(&statement).with_context(cannot)?;
    }
    Ok(())
}

/// The parts that the dataset would have, and which rows are of each.
fn add_parts(trace: &Connection, source: &TraceSource, ranks: &[RankPart]) -> Result<()> {
    trace.execute_batch(
        "CREATE TEMP TABLE dataset_part (number INTEGER PRIMARY KEY, job TEXT, node TEXT, rank INTEGER, part INTEGER, offset_ns INTEGER)",
    )?;
    let mut insert = trace.prepare("INSERT INTO dataset_part VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?;
    let mut shares = Vec::new();
    for (number, rank) in (0i64..).zip(ranks) {
        // As names of folders begin, and longer ones are cut.
        let (job, node) = (folder_name("j", &rank.job), folder_name("n", &rank.node));
        let offset = rank.offset_ns.unwrap_or(0);
        insert.execute((number, job, node, rank.rank, source.part(rank)?, offset))?;
        shares.extend(rank.ids.iter().map(|(first, last)| (*first, *last, number)));
    }
    shares.sort_unstable();
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    trace.create_scalar_function(PART_OF, 1, flags, move |context| {
        let id: Option<i64> = context.get(0)?;
        let at = id.map(|id| shares.partition_point(|(_, last, _)| *last < id));
        Ok(at.and_then(|at| shares.get(at)).map(|(_, _, number)| *number))
    })?;
    Ok(())
}

/// A job or node as readers of the dataset have it from the name of its folder.
fn folder_name(letter: &str, name: &str) -> String {
    let coded = encoded(name);
    let decoded = percent_encoding::percent_decode_str(&coded).decode_utf8_lossy();
    format!("{letter}{decoded}")
}

/// The statement that makes a view.
fn view(source: &TraceSource, name: &str, table: &str, columns: &[Read], call: &str) -> String {
    let layout = source.layout.table(table);
    let texts = if source.layout.table("rocpd_ustring").is_some() { "rocpd_ustring" } else { "rocpd_string" };
    let has_barriers = source.layout.table("rocpd_barrierop").is_some_and(|table| table.has("op_ptr_id"));
    let mut shown: Vec<String> = columns
        .iter()
        .map(|(column, from)| {
            let of = format!("t.{}", quote(column));
            let is_there = layout.is_some_and(|layout| layout.has(column));
            let integer = |of: &str| format!("CASE WHEN typeof({of}) = 'integer' THEN {of} END");
            let value = match from {
                // The key is an integer, and is found as such.
                From::Integer if *column == "id" => "t.id".to_string(),
                _ if !is_there => "NULL".to_string(),
                From::Integer | From::Gpu | From::Process => integer(&source.of_node(&of, *from)),
                From::Time => format!("{} + p.offset_ns", integer(&of)),
                From::TextId => {
                    let texts = if *column == "args_id" { texts } else { "rocpd_string" };
                    let text = format!("(SELECT s.string FROM main.{texts} s WHERE s.id = {of})");
                    if *column == "opType_id" && has_barriers {
                        let is_barrier = "t.id IN (SELECT op_ptr_id FROM main.rocpd_barrierop)";
                        format!("CASE WHEN {is_barrier} THEN '{BARRIER}' ELSE {text} END")
                    } else {
                        text
                    }
                }
                From::Word => word(&of),
            };
            format!("{value} AS {}", quote(column.trim_end_matches("_id")))
        })
        .collect();
    if name == "op" {
        shown.push(format!("{call} AS api_id"));
    }
    let shown = shown.join(", ");
    // A table that is not there has no rows.
    let table = match layout {
        Some(layout) if layout.id() == quote("id") => table.to_string(),
        Some(layout) => format!("(SELECT {} AS id, * FROM {table})", layout.id()),
        None => "(SELECT NULL AS id)".to_string(),
    };
    let condition = match layout {
        Some(layout) if layout.is_timed() => format!(" WHERE {}", has_possible_times()),
        Some(_) => String::new(),
        None => " WHERE t.id IS NOT NULL".to_string(),
    };
    format!(
        "DROP VIEW IF EXISTS temp.{name};
         CREATE TEMP VIEW {name} AS SELECT {shown}, p.part, p.job, p.node, p.rank, 0 AS slice
             FROM {table} t CROSS JOIN temp.dataset_part p ON p.number = {PART_OF}(t.id){condition}"
    )
}
