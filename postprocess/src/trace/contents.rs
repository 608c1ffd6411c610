//! What a trace holds, counted: sessions, GPUs and queues, operations, tables, time span.
//!
//! Operations are scanned once, here; everything else is counted by SQLite in the order of the file. Of
//! any schema version, and of any writer: what a file does not say is absent, not guessed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;

use anyhow::Result;
use rpd_schema::{SessionInfo, Version, session_fact};
use rusqlite::Connection;
use serde::Serialize;

use crate::check::outlier::Outliers;
use crate::region::Selected;
use crate::trace::instrumented::Instrumented;
use crate::trace::op_kind::OpKind;
use crate::trace::replaced::Replaced;
use crate::trace::span::Span;
use crate::trace::{self, Strings};

/// Everything that `rpd info` tells: of a trace, or of a part of one.
#[derive(Debug, Serialize)]
pub struct Contents {
    /// The file, as it was named.
    pub file: String,
    /// Schema version: 1, 2 or 3.
    pub schema: String,
    /// Size of the file in bytes, without a journal.
    pub size_bytes: u64,
    /// From the first start to the last end of calls and operations; none where there are none. Those that are days away from nearly all
    /// others do not count.
    pub span: Option<Span>,
    /// How many are days away.
    #[serde(skip)]
    pub far: u64,
    /// Operations whose GPU or queue is no number; they are in none.
    #[serde(skip)]
    pub without_place: u64,
    /// By number; of a part those that have calls or operations in it.
    pub sessions: Vec<Session>,
    /// By index; of a part those that have operations in it.
    pub gpus: Vec<GpuContents>,
    /// By type, most frequent first.
    pub operations: Vec<OpType>,
    /// Kernels that ran in place of others; none where all dispatches ran the program's own.
    pub replaced: Option<Replaced>,
    /// Instrumented kernels that ran; none where there are none.
    pub instrumented: Option<Instrumented>,
    /// Rows of every table of the format, its extensions included; not of a part, because most have no place in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<BTreeMap<String, u64>>,
    /// Records lost while recording, by cause, over these sessions; without causes that lost nothing.
    pub lost: BTreeMap<String, u64>,
    /// Recorded launches whose kernels were not known to have completed when the file was last written, over these sessions.
    pub launches_without_op: u64,
}

/// One recording process.
#[derive(Debug, Serialize)]
pub struct Session {
    /// Its number: its ids begin at this times 2^32.
    pub session: i64,
    /// Name of the host, if the recorder noted it; so with all that follow.
    pub host: Option<String>,
    /// Process id.
    pub pid: Option<u32>,
    /// Rank of the process in its job.
    pub rank: Option<String>,
    /// Command line.
    pub command: Option<String>,
    /// When recording began: UTC, to the second.
    pub started: Option<String>,
    /// How long it was recorded, ns; none if it was killed or still runs.
    pub duration_ns: Option<u64>,
    /// API calls and markers in the file.
    pub calls: u64,
    /// GPU operations in the file.
    pub operations: u64,
    /// Records lost, by cause.
    pub lost: BTreeMap<String, u64>,
    /// Every fact of the session as it is in the file.
    pub facts: BTreeMap<String, String>,
}

/// One GPU of the recording node (or nodes, in a merged trace).
#[derive(Debug, Serialize)]
pub struct GpuContents {
    /// Its index: `gpuId` of its operations.
    pub gpu: i64,
    /// Product name, if the recorder noted it; so with all that follow.
    pub name: Option<String>,
    /// Instruction set: gfx90a ...
    pub target: Option<String>,
    /// PCI address.
    pub bdf: Option<String>,
    /// Unique id.
    pub uuid: Option<String>,
    /// Its queues that have operations, by number.
    pub queues: Vec<QueueContents>,
}

/// A hardware queue.
#[derive(Debug, Serialize)]
pub struct QueueContents {
    /// `queueId` of its operations.
    pub queue: i64,
    /// How many it has.
    pub operations: u64,
}

/// Operations of one type.
#[derive(Debug, Serialize)]
pub struct OpType {
    /// The type as it is in the file.
    #[serde(rename = "type")]
    pub name: String,
    /// What it means.
    pub kind: OpKind,
    /// How many there are.
    pub count: u64,
}

impl Contents {
    /// Counts what is in a part of an open trace.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(file: &Path, trace: &Connection, version: Version, selected: &Selected) -> Result<Contents> {
        let (is_call, is_op) = (selected.call_condition(trace, "id")?, selected.op_condition(trace, "id")?);
        let near = Outliers::of(trace)?.others();
        let ops = Ops::scan(trace, &is_op)?;
        let [(of_ops, far_ops), (of_calls, far_calls)] =
            [span(trace, "rocpd_op", &is_op, &near)?, span(trace, "rocpd_api", &is_call, &near)?];
        let is_part = !selected.is_everything();
        let mut contents = Contents {
            file: file.to_string_lossy().into_owned(),
            schema: version.to_string(),
            size_bytes: fs::metadata(file)?.len(),
            span: match (of_ops, of_calls) {
                (Some(ops), Some(calls)) => Some(ops.around(calls)),
                (ops, calls) => ops.or(calls),
            },
            far: far_ops + far_calls,
            without_place: ops.without_place,
            sessions: sessions(trace, [is_call.as_str(), is_op.as_str()])?,
            gpus: gpus(trace, &ops.queues)?,
            operations: op_types(trace, &ops.types)?,
            replaced: Replaced::of(trace, selected)?,
            instrumented: Instrumented::of(trace, selected)?,
            tables: if is_part { None } else { Some(tables(trace)?) },
            lost: rpd_schema::lost(trace)?,
            launches_without_op: rpd_schema::launches_without_op(trace)?,
        };
        if is_part {
            contents.sessions.retain(|session| session.calls + session.operations > 0);
            contents.gpus.retain(|gpu| !gpu.queues.is_empty());
            (contents.lost, contents.launches_without_op) = (BTreeMap::new(), 0);
            for session in &contents.sessions {
                for (cause, count) in &session.lost {
                    let all = contents.lost.entry(cause.clone()).or_default();
                    *all = all.saturating_add(*count);
                }
                let open = session.facts.get(session_fact::LAUNCHES_WITHOUT_OP);
                // Those of a part that is not the last are counted in the next.
                let open = open.filter(|_| !session.facts.contains_key(session_fact::NEXT_PART));
                let open = open.and_then(|count| count.parse().ok()).unwrap_or(0);
                contents.launches_without_op = contents.launches_without_op.saturating_add(open);
            }
        }
        Ok(contents)
    }
}

/// Sums over `rocpd_op`.
struct Ops {
    /// By gpuId and queueId.
    queues: BTreeMap<(i64, i64), u64>,
    /// By id of the type's string.
    types: HashMap<i64, u64>,
    /// Whose GPU or queue is no number.
    without_place: u64,
}

impl Ops {
    /// Those for whose ids the condition holds.
    fn scan(trace: &Connection, is_in: &str) -> rusqlite::Result<Ops> {
        let mut found = Ops { queues: BTreeMap::new(), types: HashMap::new(), without_place: 0 };
        let mut ops =
            trace.prepare(&format!("SELECT gpuId, queueId, opType_id FROM rocpd_op WHERE {is_in}"))?;
        let mut ops = ops.query([])?;
        while let Some(op) = ops.next()? {
            let number = |column| op.get_ref(column).map(|value| value.as_i64().ok());
            match number(0)?.zip(number(1)?) {
                Some(place) => *found.queues.entry(place).or_default() += 1,
                None => found.without_place += 1,
            }
            *found.types.entry(number(2)?.unwrap_or(-1)).or_default() += 1;
        }
        Ok(found)
    }
}

/// First start and last end in a table of things with times, of which `is_in` holds and which are `near` (both SQL), and how many are not near.
fn span(trace: &Connection, table: &str, is_in: &str, near: &str) -> rusqlite::Result<(Option<Span>, u64)> {
    let times = format!(
        r#"SELECT min(start) FILTER (WHERE {near}), max("end") FILTER (WHERE {near}), count(*) FILTER (WHERE NOT ({near}))
           FROM {table} WHERE typeof(start) = 'integer' AND typeof("end") = 'integer' AND {is_in}"#
    );
    let (start, end, far): (Option<i64>, Option<i64>, i64) =
        trace.query_row(&times, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    Ok((start.zip(end).map(|(start_ns, end_ns)| Span { start_ns, end_ns }), far.unsigned_abs()))
}

/// All sessions, with the rows of which the conditions hold, of calls and of operations.
fn sessions(trace: &Connection, [is_call, is_op]: [&str; 2]) -> Result<Vec<Session>> {
    let mut known: BTreeMap<i64, SessionInfo> = rpd_schema::sessions(trace)?
        .into_iter()
        .map(|session| (i64::from(session.session), session))
        .collect();
    let counted = |table: &str, is_in: &str| match is_in {
        "1" => trace::rows_by_session(trace, table, "id"),
        _ => rows_in_part(trace, table, is_in),
    };
    let (calls, operations) = (counted("rocpd_api", is_call)?, counted("rocpd_op", is_op)?);
    // Other recorders say nothing about their sessions, but their ids do.
    for session in calls.keys().chain(operations.keys()) {
        known.entry(*session).or_default();
    }
    let rows = |of: &BTreeMap<i64, u64>, session| of.get(&session).copied().unwrap_or(0);
    known
        .into_iter()
        .map(|(number, session)| {
            let rows = (rows(&calls, number), rows(&operations, number));
            Ok(Session::of(trace, number, session, rows)?)
        })
        .collect()
}

/// How many rows of a table for which the condition holds each session has.
fn rows_in_part(trace: &Connection, table: &str, is_in: &str) -> rusqlite::Result<BTreeMap<i64, u64>> {
    let count = format!("SELECT id >> 32, count(*) FROM {table} WHERE {is_in} GROUP BY 1");
    let mut count = trace.prepare(&count)?;
    let found = count.query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs())))?;
    found.collect()
}

impl Session {
    fn of(
        trace: &Connection,
        number: i64,
        session: SessionInfo,
        (calls, operations): (u64, u64),
    ) -> rusqlite::Result<Session> {
        let times = [session_fact::START_MONOTONIC_NS, session_fact::END_MONOTONIC_NS];
        let [start, end] = times.map(|key| session.number(key));
        Ok(Session {
            session: number,
            host: session.host().map(str::to_string),
            pid: session.pid(),
            rank: session.rank().map(str::to_string),
            command: session.command().map(str::to_string),
            started: match session.number(session_fact::START_REALTIME_NS) {
                Some(ns) => utc(trace, ns)?,
                None => None,
            },
            duration_ns: start.zip(end).map(|(start, end)| end.saturating_sub(start)),
            calls,
            operations,
            lost: session.lost().into_iter().filter(|(_, count)| *count > 0).collect(),
            facts: session.facts,
        })
    }
}

/// Seconds since 1970 as people write them; SQLite knows the calendar.
fn utc(trace: &Connection, realtime_ns: u64) -> rusqlite::Result<Option<String>> {
    let seconds = (realtime_ns / 1_000_000_000).cast_signed();
    trace.query_row("SELECT strftime('%Y-%m-%dT%H:%M:%SZ', ?1, 'unixepoch')", [seconds], |row| row.get(0))
}

fn gpus(trace: &Connection, queues: &BTreeMap<(i64, i64), u64>) -> rusqlite::Result<Vec<GpuContents>> {
    let mut gpus: BTreeMap<i64, GpuContents> = rpd_schema::gpus(trace)?
        .into_iter()
        .map(|gpu| {
            let fact = |key| gpu.get(key).map(str::to_string);
            let described = GpuContents {
                gpu: i64::from(gpu.gpu),
                name: fact(session_fact::GPU_NAME),
                target: fact(session_fact::GPU_TARGET),
                bdf: fact(session_fact::GPU_BDF),
                uuid: fact(session_fact::GPU_UUID),
                queues: Vec::new(),
            };
            (described.gpu, described)
        })
        .collect();
    for (&(gpu, queue), &operations) in queues {
        gpus.entry(gpu)
            .or_insert_with(|| GpuContents {
                gpu,
                name: None,
                target: None,
                bdf: None,
                uuid: None,
                queues: Vec::new(),
            })
            .queues
            .push(QueueContents { queue, operations });
    }
    Ok(gpus.into_values().collect())
}

fn op_types(trace: &Connection, types: &HashMap<i64, u64>) -> rusqlite::Result<Vec<OpType>> {
    let mut strings = Strings::of(trace)?;
    // Each session has its own string for the same type.
    let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
    for (&id, &count) in types {
        *by_name.entry(strings.get(id)?.unwrap_or_default()).or_default() += count;
    }
    let mut op_types: Vec<OpType> =
        by_name.into_iter().map(|(name, count)| OpType { kind: OpKind::of(&name), name, count }).collect();
    op_types.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    Ok(op_types)
}

fn tables(trace: &Connection) -> rusqlite::Result<BTreeMap<String, u64>> {
    let mut names = trace.prepare(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND (name GLOB 'rocpd_*' OR name GLOB 'ext_*')",
    )?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    names.into_iter().map(|name| trace::row_count(trace, &name).map(|rows| (name, rows))).collect()
}
