//! Rows as data frames want them: what a trace has in several tables, side by side, with times in ns and in seconds.
//!
//! A frame has rows with possible times and places only. Its numbers are numbers in every trace: what another recorder left out or wrote
//! as something else is NULL.

use anyhow::Result;
use rpd_schema::text::text_of;
use rpd_schema::{Version, sessions};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

use super::part::{HAS_CALL, HAS_OP};
use crate::export::columns::ColumnKind;
use crate::passes::graph::function::stream_of_launch;
use crate::trace::has_table;
use crate::trace::marker::{is_marker, is_text};
use crate::trace::op_kind::KERNEL_TYPES;
use crate::trace::queue_streams::QueueStreams;
use crate::trim::window::span;

/// A kind of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Frame {
    /// Kernels that ran, each with its launch.
    Kernels,
    /// Calls of runtimes.
    Apis,
    /// Markers.
    Markers,
    /// Copies and fills that ran.
    Copies,
}

impl Frame {
    /// All of them.
    pub const ALL: [Frame; 4] = [Frame::Kernels, Frame::Apis, Frame::Markers, Frame::Copies];

    /// What people call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Frame::Kernels => "kernels",
            Frame::Apis => "apis",
            Frame::Markers => "markers",
            Frame::Copies => "copies",
        }
    }

    /// The type of one of its columns, also where that has no value.
    #[must_use]
    pub fn kind(column: &str) -> ColumnKind {
        match column {
            "name" | "args" | "stream" => ColumnKind::SharedText,
            "start_s" => ColumnKind::Real,
            _ => ColumnKind::Integer,
        }
    }

    /// The query that gives its rows of `trace`, or of a part of it, in order of time.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub(super) fn statement(self, trace: &Connection, version: Version, is_part: bool) -> Result<String> {
        // In a trace without rows nothing is counted from anything.
        let zero = span(trace).map_or(0, |span| span.start_ns);
        let ranks = ranks(trace)?;
        let condition = |function: &str, id: &str| match is_part {
            true => format!("typeof({id}) = 'integer' AND {function}({id})"),
            false => "1".to_string(),
        };
        let of_calls = condition(HAS_CALL, "C.id");
        let of_ops = condition(HAS_OP, "O.id");
        Ok(match self {
            Frame::Kernels => operations((trace, version), zero, &ranks, Operations::Kernels, &of_ops)?,
            Frame::Copies => operations((trace, version), zero, &ranks, Operations::Copies, &of_ops)?,
            Frame::Apis => calls(version, zero, &ranks, false, &of_calls),
            Frame::Markers => calls(version, zero, &ranks, true, &of_calls),
        })
    }

    /// How many of its rows in a trace have impossible times or places, and are left out.
    ///
    /// # Errors
    /// When the trace cannot be read.
    pub fn left_out(self, trace: &Connection) -> Result<u64> {
        let marker = is_marker("C.");
        let of_ops = |kind| {
            format!(
                "rocpd_op O LEFT JOIN rocpd_string T ON T.id = O.opType_id WHERE {kind} AND NOT ({})",
                is_possible_op()
            )
        };
        let of_calls = |kind| format!("rocpd_api C WHERE {kind} AND NOT ({})", is_possible_call());
        let (table, rows) = match self {
            Frame::Kernels => ("rocpd_op", of_ops(Operations::Kernels.condition())),
            Frame::Copies => ("rocpd_op", of_ops(Operations::Copies.condition())),
            Frame::Apis => ("rocpd_api", of_calls(format!("NOT {marker}"))),
            Frame::Markers => ("rocpd_api", of_calls(marker)),
        };
        if !has_table(trace, table)? {
            return Ok(0);
        }
        let count = format!("SELECT count(*) FROM {rows}");
        Ok(trace.query_row(&count, [], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }
}

/// Which operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operations {
    Kernels,
    Copies,
}

impl Operations {
    /// The condition that the type `T` of an operation is theirs.
    fn condition(self) -> String {
        match self {
            Operations::Kernels => format!("T.string IN ({KERNEL_TYPES})"),
            Operations::Copies => "(substr(T.string, 1, 4) IN ('Copy', 'Fill'))".to_string(),
        }
    }
}

/// The rank of each session as SQL has a table of it.
fn ranks(trace: &Connection) -> Result<String> {
    let mut rows = Vec::new();
    for session in sessions(trace)? {
        if let Some(rank) = session.rank().and_then(|rank| rank.trim().parse::<i64>().ok()) {
            rows.push(format!("({}, {rank})", session.session));
        }
    }
    Ok(match rows.is_empty() {
        true => "SELECT NULL, NULL WHERE 0".to_string(),
        false => format!("VALUES {}", rows.join(", ")),
    })
}

/// `column` where it is a number.
fn number(column: &str) -> String {
    format!("CASE WHEN typeof({column}) = 'integer' THEN {column} END")
}

/// `column` as a text where it is one.
fn text(column: &str) -> String {
    format!("CASE WHEN typeof({column}) IN ('text', 'blob') THEN CAST({column} AS TEXT) END")
}

/// Begin, end and duration of the row `alias`.
fn times(alias: &str, zero: i64) -> String {
    format!(
        "{alias}.start AS start_ns, {alias}.\"end\" AS end_ns, {alias}.\"end\" - {alias}.start AS duration_ns,
         ({alias}.start - {zero}) / 1e9 AS start_s"
    )
}

/// The condition that the times of the row `alias` can be.
fn is_possible(alias: &str) -> String {
    format!(
        "typeof({alias}.start) = 'integer' AND typeof({alias}.\"end\") = 'integer'
         AND {alias}.start >= 0 AND {alias}.\"end\" >= {alias}.start"
    )
}

/// The condition that the call `C` has times that can be, and a thread.
fn is_possible_call() -> String {
    format!("{} AND typeof(C.pid) = 'integer' AND typeof(C.tid) = 'integer'", is_possible("C"))
}

/// The condition that the operation `O` has times that can be, and a GPU and a queue.
fn is_possible_op() -> String {
    format!("{} AND typeof(O.gpuId) = 'integer' AND typeof(O.queueId) = 'integer'", is_possible("O"))
}

fn calls(version: Version, zero: i64, ranks: &str, are_markers: bool, part: &str) -> String {
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    let marker = is_marker("C.");
    let (columns, condition) = match are_markers {
        true => {
            (format!("iif({}, {}, {}) AS name", is_text("C."), text("G.string"), text("N.string")), marker)
        }
        false => {
            (format!("{} AS name, {} AS args", text("N.string"), text("G.string")), format!("NOT {marker}"))
        }
    };
    format!(
        "WITH ranks (session, rank) AS ({ranks})
         SELECT {columns}, {times}, C.id >> 32 AS session, R.rank AS rank, C.pid AS pid, C.tid AS tid, C.id AS id
         FROM rocpd_api C
             LEFT JOIN rocpd_string N ON N.id = C.apiName_id
             LEFT JOIN {texts} G ON G.id = C.args_id
             LEFT JOIN ranks R ON R.session = C.id >> 32
         WHERE {possible} AND {condition} AND {part}
         ORDER BY C.start, C.id",
        times = times("C", zero),
        possible = is_possible_call(),
    )
}

/// The function by which a statement asks for the stream of a launch of a graph: of its name and arguments.
const STREAM_OF: &str = "stream_of_graph_launch";

fn add_stream_function(trace: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    trace.create_scalar_function(STREAM_OF, 2, flags, |context| {
        let (function, arguments) = (text_of(context.get_raw(0)), text_of(context.get_raw(1)));
        Ok(stream_of_launch(&function, &arguments).map(str::to_string))
    })
}

fn operations(
    (trace, version): (&Connection, Version),
    zero: i64,
    ranks: &str,
    asked: Operations,
    part: &str,
) -> Result<String> {
    let has = |table: &str| -> Result<bool> { Ok(version != Version::V1 && has_table(trace, table)?) };
    let (launches, copies, dispatches) =
        (has("rocpd_kernelapi")?, has("rocpd_copyapi")?, has("ext_dispatch")?);
    let mut joins = String::new();
    // Of several calls of an operation, which only a damaged trace has, the first one counts.
    if has_table(trace, "rocpd_api_ops")? {
        joins.push_str(
            " LEFT JOIN (SELECT op_id, min(api_id) AS api_id FROM rocpd_api_ops GROUP BY op_id) L ON L.op_id = O.id
              LEFT JOIN rocpd_api C ON C.id = L.api_id",
        );
    } else {
        joins.push_str(" LEFT JOIN (SELECT NULL AS id, NULL AS pid, NULL AS tid, NULL AS start WHERE 0) C");
    }
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    let has_calls = version != Version::V1 && has_table(trace, "rocpd_api_ops")?;
    if has_calls {
        add_stream_function(trace)?;
        joins.push_str(&format!(
            " LEFT JOIN rocpd_string CN ON CN.id = C.apiName_id LEFT JOIN {texts} CG ON CG.id = C.args_id"
        ));
    }
    let mut add = |is_there: bool, join: &str| {
        if is_there {
            joins.push_str(join);
        }
    };
    add(launches, " LEFT JOIN rocpd_kernelapi K ON K.api_ptr_id = C.id");
    add(copies, " LEFT JOIN rocpd_copyapi M ON M.api_ptr_id = C.id");
    add(dispatches, " LEFT JOIN ext_dispatch D ON D.op_id = O.id");
    // The first of these tables that has a value, where it is there.
    let first = |tables: &[(bool, &str)], column: &str| {
        let there = tables.iter().filter(|(is_there, _)| *is_there);
        let values: Vec<String> = there.map(|(_, alias)| format!("{alias}.{column}")).collect();
        match values.as_slice() {
            [] => "NULL".to_string(),
            [one] => one.clone(),
            several => format!("coalesce({})", several.join(", ")),
        }
    };
    let mut stream = text(&first(&[(launches, "K"), (copies, "M")], "stream"));
    if has_calls {
        // The rows of launches and copies go first, as in other reports.
        stream = format!(
            "coalesce({stream}, {STREAM_OF}({}, {}))",
            text("CN.string"),
            rpd_schema::text::arguments("CG.string")
        );
    }
    let stream = QueueStreams::of(trace)?.or_sql("O", &stream);
    let columns = match asked {
        Operations::Copies => format!("{} AS bytes", number(&first(&[(copies, "M")], "size"))),
        Operations::Kernels => {
            let of_launch = [(dispatches, "D"), (launches, "K")];
            let named = [
                ("gridX", "grid_x"),
                ("gridY", "grid_y"),
                ("gridZ", "grid_z"),
                ("workgroupX", "workgroup_x"),
                ("workgroupY", "workgroup_y"),
                ("workgroupZ", "workgroup_z"),
                ("groupSegmentSize", "lds_bytes"),
                ("privateSegmentSize", "scratch_bytes"),
            ];
            named.map(|(column, name)| format!("{} AS {name}", number(&first(&of_launch, column)))).join(", ")
        }
    };
    let condition = asked.condition();
    Ok(format!(
        "WITH ranks (session, rank) AS ({ranks})
         SELECT coalesce(nullif({description}, ''), {kind}) AS name, {times}, O.gpuId AS gpu, O.queueId AS queue,
             {stream} AS stream, O.id >> 32 AS session, R.rank AS rank, {pid} AS pid, {tid} AS tid,
             {launched} AS launched_ns, {columns}, O.id AS id, C.id AS api_id
         FROM rocpd_op O
             LEFT JOIN rocpd_string N ON N.id = O.description_id
             LEFT JOIN rocpd_string T ON T.id = O.opType_id
             {joins}
             LEFT JOIN ranks R ON R.session = O.id >> 32
         WHERE {possible} AND {condition} AND {part}
         ORDER BY O.start, O.id",
        description = text("N.string"),
        kind = text("T.string"),
        times = times("O", zero),
        pid = number("C.pid"),
        tid = number("C.tid"),
        launched = number("C.start"),
        possible = is_possible_op(),
    ))
}
