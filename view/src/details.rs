//! All that the trace says of one event. It is read from the file by its key, when the page asks for it.

use anyhow::Result;
use rpd_postprocess::library::arguments::address;
use rpd_postprocess::report::memory::Life;
use rpd_postprocess::trace::arguments::pairs;
use rpd_postprocess::trace::{Strings, has_table};
use rpd_schema::Version;
use rpd_schema::text::{arguments, shown, text_of};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension};
use serde::Serialize;

use crate::names::{EventKind, arguments_table};
use crate::search::{Hit, hit};
use crate::timeline::Timeline;

/// Events of an answer that are linked to it.
const MOST_LINKS: usize = 1000;

/// Columns that refer to texts, in any table.
const TEXTS: [&str; 7] =
    ["description_id", "opType_id", "apiName_id", "args_id", "kernelName_id", "domain_id", "category_id"];

/// A row of a table of the trace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TableRow {
    /// The table.
    pub table: String,
    /// Columns and their values; in place of a reference to a text the text.
    pub cells: Vec<(String, String)>,
}

/// An allocation, as the call that made it has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CallMemory {
    /// Its address, in hexadecimal digits.
    pub address: String,
    /// Bytes.
    pub bytes: u64,
    /// When it was freed, ns since the trace's begin; none where it never was.
    pub until_ns: Option<u64>,
    /// The call that freed it.
    pub freed_by: Option<Hit>,
    /// Calls that copied to and from it, or filled it, while it lived.
    pub uses: Vec<Hit>,
    /// How many these are.
    pub all_uses: u64,
}

/// An allocation that a call copies to or from, or fills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Touched {
    /// The call that allocated it.
    #[serde(flatten)]
    pub hit: Hit,
    /// The argument with an address in it.
    pub argument: String,
    /// Bytes.
    pub bytes: u64,
}

/// The operations of the calls inside of a marker, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Under {
    /// When the first of them begins, ns.
    pub start_ns: u64,
    /// When the last of them ends, ns.
    pub end_ns: u64,
    /// The sum of their durations, ns.
    pub total_ns: u64,
}

/// All that is known of an event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Details {
    /// Where it is.
    #[serde(flatten)]
    pub hit: Hit,
    /// Its id in the trace, as a text: numbers of the page are not exact so far.
    pub id: String,
    /// Which of the traces it is of, by number.
    pub source: usize,
    /// Whether it is an operation of a GPU.
    pub is_op: bool,
    /// Its whole name.
    pub text: String,
    /// What it is.
    pub kind: &'static str,
    /// Its begin on the clock of the recording host, ns.
    pub begin_ns: String,
    /// Rows about it.
    pub rows: Vec<TableRow>,
    /// Its arguments.
    pub arguments: Vec<(String, String)>,
    /// The memory that it allocated, where lives of allocations were worked out.
    pub memory: Option<CallMemory>,
    /// The allocations that it copies to or from, where lives were worked out.
    pub touched: Vec<Touched>,
    /// What the operations of a marker are together, where there are any.
    pub under: Option<Under>,
    /// What it caused, or was caused by; of a marker the operations of the calls inside of it.
    pub links: Vec<Hit>,
    /// How many of these there are.
    pub all_links: u64,
}

/// What is known of an event without a look into the file.
pub fn brief(timeline: &Timeline, event: u32) -> Option<Details> {
    if event as usize >= timeline.columns.len() {
        return None;
    }
    let is_op = timeline.is_op(event);
    let hit_of = hit(timeline, event);
    let name = timeline.name(event);
    let number = timeline.source_of(event);
    let source = &timeline.sources[number];
    let begin_ns = i128::from(source.first_ns) + i128::from(hit_of.start_ns) - i128::from(source.shift_ns);
    let all: Vec<u32> = match (is_op, name.kind) {
        (true, _) => timeline.links.calls(event).collect(),
        (false, EventKind::Marker) => ops_under(timeline, event),
        (false, _) => timeline.links.ops(event).collect(),
    };
    let under = (name.kind == EventKind::Marker && !all.is_empty()).then(|| {
        let times = || all.iter().map(|op| timeline.columns.times(*op));
        Under {
            start_ns: times().map(|(start, _)| start).min().unwrap_or_default(),
            end_ns: times().map(|(_, end)| end).max().unwrap_or_default(),
            total_ns: times().map(|(start, end)| end - start).sum(),
        }
    });
    Some(Details {
        source: number,
        id: timeline.columns.id(event).to_string(),
        is_op,
        text: name.text.to_string(),
        kind: name.kind.word(),
        begin_ns: begin_ns.to_string(),
        hit: hit_of,
        rows: Vec::new(),
        arguments: Vec::new(),
        memory: None,
        touched: Vec::new(),
        under,
        links: all.iter().take(MOST_LINKS).map(|event| hit(timeline, *event)).collect(),
        all_links: all.len() as u64,
    })
}

/// The operations of the calls of a marker's thread that it encloses, by their start.
fn ops_under(timeline: &Timeline, marker: u32) -> Vec<u32> {
    let columns = &timeline.columns;
    let (from, to) = columns.times(marker);
    let track = timeline.subtrack(marker).track;
    let mut ops = Vec::new();
    for subtrack in columns.subtracks().iter().filter(|subtrack| subtrack.track == track) {
        let calls = columns.within(subtrack, from, to.saturating_add(1));
        let is_inside = |call: u32| {
            let (start, end) = columns.times(call);
            start >= from && end <= to
        };
        let links = timeline.links.of_calls(calls);
        ops.extend(links.filter(|(call, _)| is_inside(*call)).map(|(_, op)| op));
    }
    ops.sort_unstable_by_key(|op| (columns.times(*op).0, *op));
    ops.dedup();
    ops
}

/// Adds to `details` what the file has.
///
/// # Errors
/// When the file cannot be read.
pub fn complete(
    details: &mut Details,
    timeline: &Timeline,
    (trace, version): (&Connection, Version),
) -> Result<()> {
    let id: i64 = details.id.parse()?;
    let tables: &[(&str, &str)] = match details.is_op {
        true => &[
            ("rocpd_op", "id"),
            ("ext_dispatch", "op_id"),
            ("ext_launchattribute", "op_id"),
            ("rocpd_barrierop", "op_ptr_id"),
            ("ext_replacement", "id"),
            ("ext_instrumentation", "id"),
        ],
        false => &[
            ("rocpd_api", "id"),
            ("rocpd_kernelapi", "api_ptr_id"),
            ("rocpd_copyapi", "api_ptr_id"),
            ("ext_autogradapi", "api_ptr_id"),
        ],
    };
    for (table, key) in tables {
        details.rows.extend(row(trace, version, table, key, id)?);
    }
    let has_own = details.rows.iter().any(|row| row.table == "ext_dispatch");
    if let Some(call) = details.links.first().filter(|_| details.is_op && !has_own) {
        let call = timeline.columns.id(call.event);
        details.rows.extend(row(trace, version, "rocpd_kernelapi", "api_ptr_id", call)?);
    }
    let cell = |rows: &[TableRow], column: &str| {
        let cells = rows.iter().flat_map(|row| &row.cells);
        cells.into_iter().find(|(name, _)| name == column).map(|(_, value)| value.clone())
    };
    let kernel = cell(&details.rows, "codeObject_id").and_then(|id| id.parse().ok());
    if let Some(kernel) = kernel.filter(|kernel| *kernel != 0) {
        for table in ["rocpd_kernelcodeobject", "ext_kernelcodeobject"] {
            details.rows.extend(row(trace, version, table, "id", kernel)?);
        }
    }
    if let Some(arguments) = cell(&details.rows, "args_id") {
        details.arguments = pairs(&arguments).map(|(key, value)| (key.into(), value.into())).collect();
    }
    Ok(())
}

/// Adds the memory that a call allocated, or that it copies or fills.
///
/// # Errors
/// When the file cannot be read.
pub fn remember(
    details: &mut Details,
    timeline: &Timeline,
    (trace, version): (&Connection, Version),
) -> Result<()> {
    let cells = details.rows.iter().flat_map(|row| &row.cells).chain(&details.arguments);
    let addresses: Vec<(String, u64)> = cells
        .filter(|(key, _)| ["dst", "src"].contains(&key.as_str()))
        .filter_map(|(key, value)| Some((key.clone(), address(value)?)))
        .collect();
    details.touched = touched(timeline, details.source, details.hit.event, &addresses);
    let Some(life) = timeline.derived.life(details.hit.event) else { return Ok(()) };
    let number = details.source;
    let source = &timeline.sources[number];
    let mut memory = CallMemory {
        address: format!("{:#x}", life.address),
        bytes: life.bytes,
        until_ns: life.end_ns.and_then(|end| source.time(end)),
        freed_by: life.freed_by.and_then(|id| Some(hit(timeline, timeline.event_of(number, false, id)?))),
        uses: Vec::new(),
        all_uses: 0,
    };
    let mut uses = Vec::new();
    let mut add = |id: Option<i64>, addresses: [Option<u64>; 2]| {
        let is_inside = |at: &u64| life.covers(*at);
        if let Some(call) = id.filter(|_| addresses.iter().flatten().any(is_inside)) {
            uses.extend(
                timeline.event_of(number, false, call).filter(|call| is_of(timeline, number, *call, life)),
            );
        }
    };
    if has_table(trace, "rocpd_copyapi")? {
        let mut rows = trace.prepare("SELECT api_ptr_id, dst, src FROM rocpd_copyapi")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let at = |column: usize| row.get_ref(column).map(|value| address(&text_of(value)));
            add(row.get_ref(0)?.as_i64().ok(), [at(1)?, at(2)?]);
        }
    }
    // Fills have no table: their arguments say where.
    let mut rows = trace.prepare(&format!(
        "SELECT A.id, {} FROM rocpd_api A JOIN {} G ON G.id = A.args_id
         WHERE A.apiName_id IN (SELECT id FROM rocpd_string WHERE string GLOB '*Memset*')",
        arguments("G.string"),
        arguments_table(version)
    ))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let text = text_of(row.get_ref(1)?);
        let at =
            |key: &str| pairs(&text).find(|(known, _)| *known == key).and_then(|(_, value)| address(value));
        add(row.get_ref(0)?.as_i64().ok(), [at("dst").or_else(|| at("dstDevice")), None]);
    }
    uses.sort_unstable_by_key(|call| (timeline.columns.times(*call).0, *call));
    uses.dedup();
    memory.all_uses = uses.len() as u64;
    memory.uses = uses.into_iter().take(MOST_LINKS).map(|call| hit(timeline, call)).collect();
    details.memory = Some(memory);
    Ok(())
}

/// Whether a call began while an allocation of its process lived: addresses are used again.
fn is_of(timeline: &Timeline, number: usize, call: u32, life: &Life) -> bool {
    let begin = timeline.sources[number].clock(timeline.columns.times(call).0);
    let is_of_session = timeline.columns.id(call) >> 32 == life.call >> 32;
    is_of_session && begin >= life.start_ns && life.end_ns.is_none_or(|end| begin <= end)
}

/// The allocations that a call's addresses lie in.
fn touched(timeline: &Timeline, number: usize, call: u32, addresses: &[(String, u64)]) -> Vec<Touched> {
    let mut found = Vec::new();
    if addresses.is_empty() {
        return found;
    }
    for (allocated, life) in timeline.derived.lives() {
        if timeline.source_of(allocated) != number || !is_of(timeline, number, call, life) {
            continue;
        }
        for (argument, _) in addresses.iter().filter(|(_, address)| life.covers(*address)) {
            let (argument, bytes) = (argument.clone(), life.bytes);
            found.push(Touched { hit: hit(timeline, allocated), argument, bytes });
        }
    }
    found.sort_by(|one, other| (&one.argument, one.hit.event).cmp(&(&other.argument, other.hit.event)));
    found.dedup();
    found
}

/// The row of a table with this key, if there are a table and a row.
fn row(trace: &Connection, version: Version, table: &str, key: &str, id: i64) -> Result<Option<TableRow>> {
    if !has_table(trace, table)? {
        return Ok(None);
    }
    let columns: Vec<String> = {
        let mut columns = trace.prepare("SELECT name FROM pragma_table_info(?1)")?;
        let columns = columns.query_map([table], |row| Ok(text_of(row.get_ref(0)?).into_owned()))?;
        columns.collect::<rusqlite::Result<_>>()?
    };
    // A table that lacks the key is of another writer, and says nothing of this event.
    if !columns.iter().any(|column| column == key) {
        return Ok(None);
    }
    let quoted = |column: &String| shown(&format!("\"{}\"", column.replace('"', "\"\"")));
    let list = columns.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let query = format!("SELECT {list} FROM \"{table}\" WHERE \"{key}\" = ?1 LIMIT 1");
    let values = trace.query_row(&query, [id], |row| {
        let values = (0..columns.len()).map(|at| {
            let value = row.get_ref(at)?;
            let id = value.as_i64().ok();
            Ok((id, if value == ValueRef::Null { "NULL".to_string() } else { text_of(value).into_owned() }))
        });
        values.collect::<rusqlite::Result<Vec<_>>>()
    });
    let Some(values) = values.optional()? else { return Ok(None) };
    let mut cells = Vec::with_capacity(columns.len());
    for (column, (id, value)) in columns.into_iter().zip(values) {
        let text = match id.filter(|_| TEXTS.contains(&column.as_str())) {
            Some(id) => {
                let table = if column == "args_id" { arguments_table(version) } else { "rocpd_string" };
                Strings::in_table(trace, table)?.get(id)?
            }
            None => None,
        };
        cells.push((column, text.unwrap_or(value)));
    }
    Ok(Some(TableRow { table: table.to_string(), cells }))
}
