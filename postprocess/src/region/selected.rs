//! The rows of a trace that are in a region.

use std::sync::Arc;

use anyhow::Result;
use rpd_schema::text::text_of;
use rpd_schema::{Processes, Version};
use rusqlite::{Connection, Row};

use super::intervals::MarkerRanges;
use crate::passes::graph::function::stream_of_launch;
use crate::trace::has_table;
use crate::trace::ids::Ids;
use crate::trace::marker::is_marker;
use crate::trace::queue_streams::QueueStreams;
use crate::trace::strides::Strides;
use crate::trim::window::Window;

/// The calls and operations that are in a region.
#[derive(Debug, Default)]
pub struct Selected {
    /// None where all are.
    rows: Option<SelectedRows>,
}

#[derive(Debug)]
struct SelectedRows {
    calls: Ids,
    ops: Ids,
    /// What sensors are cut to.
    time: Window,
    gpus: Vec<i64>,
    /// See [`Selected::unasked`].
    unasked: Option<Box<Selected>>,
}

/// What is asked of calls.
pub(super) struct CallChoice<'a> {
    pub(super) window: Window,
    pub(super) pids: &'a [i64],
    pub(super) tids: &'a [i64],
    pub(super) sessions: &'a [i64],
    /// The sessions of the ranks that are asked for.
    pub(super) of_ranks: Option<Vec<i64>>,
    pub(super) nodes: Option<(&'a [i64], Strides)>,
    pub(super) within: Option<(&'a MarkerRanges, &'a Processes)>,
}

/// What is asked of operations.
pub(super) struct OpChoice<'a> {
    pub(super) gpus: &'a [i64],
    pub(super) queues: &'a [i64],
    pub(super) streams: &'a [String],
    /// Names that match.
    pub(super) kernels: Option<Ids>,
    /// Whether anything is asked of them.
    pub(super) is_any: bool,
}

/// Whether a value is among those asked for; where none is, all are.
fn among<T: PartialEq>(asked: &[T], value: &T) -> bool {
    asked.is_empty() || asked.contains(value)
}

/// The condition, in SQL, that a call's thread and time can be asked for. An operation of another call is as one that no call caused.
pub(crate) const IS_KNOWN: &str =
    "typeof(start) = 'integer' AND typeof(pid) = 'integer' AND typeof(tid) = 'integer'";

/// An integer, if there is one.
fn integer(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<i64>> {
    Ok(row.get_ref(column)?.as_i64().ok())
}

impl Selected {
    /// All of a trace.
    pub fn everything() -> Selected {
        Selected::default()
    }

    /// Whether the row of rocpd_api with this id is in it.
    pub fn has_call(&self, id: i64) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.calls.has(id))
    }

    /// Whether the row of rocpd_op with this id is in it.
    pub fn has_op(&self, id: i64) -> bool {
        self.rows.as_ref().is_none_or(|rows| rows.ops.has(id))
    }

    /// Whether any operation may be in it.
    pub fn has_ops(&self) -> bool {
        self.rows.as_ref().is_none_or(|rows| !rows.ops.is_empty())
    }

    /// Whether any call or marker may be in it.
    pub fn has_calls(&self) -> bool {
        self.rows.as_ref().is_none_or(|rows| !rows.calls.is_empty())
    }

    /// Whether all of the trace is in it.
    pub fn is_everything(&self) -> bool {
        self.rows.is_none()
    }

    /// What the region leaves out because GPUs, queues, streams or kernels are named; none where nothing of the kind is named. It has the calls
    /// that the region has without that condition, and those operations of these calls that are not in the region.
    pub(crate) fn unasked(&self) -> Option<&Selected> {
        self.rows.as_ref()?.unasked.as_deref()
    }

    /// Whether the region ends before that time, ns on the trace's clock.
    pub(crate) fn ends_before(&self, time: i64) -> bool {
        self.rows.as_ref().is_some_and(|rows| rows.time.end_ns < time)
    }

    /// As much of a sensor's run as is in it: of a GPU that is, in the time that it covers.
    pub fn of_run(&self, gpu: Option<i64>, (start, end): (i64, i64)) -> Option<(i64, i64)> {
        let Some(rows) = &self.rows else { return Some((start, end)) };
        let run = (start.max(rows.time.start_ns), end.min(rows.time.end_ns));
        let is_of_gpu = rows.gpus.is_empty() || gpu.is_some_and(|gpu| rows.gpus.contains(&gpu));
        (is_of_gpu && run.0 <= run.1).then_some(run)
    }

    /// The condition, in SQL on `trace`, that the row of rocpd_api whose id is `id` is in it.
    ///
    /// # Errors
    /// When SQLite has no memory for it.
    pub(crate) fn call_condition(&self, trace: &Connection, id: &str) -> rusqlite::Result<String> {
        condition(trace, self.rows.as_ref().map(|rows| &rows.calls), ("part_has_call", id))
    }

    /// The same of a row of rocpd_op.
    ///
    /// # Errors
    /// When SQLite has no memory for it.
    pub(crate) fn op_condition(&self, trace: &Connection, id: &str) -> rusqlite::Result<String> {
        condition(trace, self.rows.as_ref().map(|rows| &rows.ops), ("part_has_op", id))
    }

    pub(super) fn of(
        trace: &Connection,
        version: Version,
        calls: &CallChoice<'_>,
        ops: &OpChoice<'_>,
    ) -> Result<Selected> {
        let mut chosen = if has_table(trace, "rocpd_api")? { calls.scan(trace)? } else { Ids::default() };
        let possible = if has_table(trace, "rocpd_op")? { ops.scan(trace)? } else { Ids::default() };
        let on_stream = match ops.streams {
            [] => None,
            streams => Some(OnStream::of(trace, version, streams)?),
        };
        let (mut caused, mut linked, mut causing) = (Ids::default(), Ids::default(), Ids::default());
        let mut others_caused = Ids::default();
        let known = match has_table(trace, "rocpd_api")? {
            true => Ids::of(trace, &format!("SELECT id FROM rocpd_api WHERE {IS_KNOWN}"), [])?,
            false => Ids::default(),
        };
        if has_table(trace, "rocpd_api_ops")? {
            let mut links = trace.prepare("SELECT op_id, api_id FROM rocpd_api_ops")?;
            let mut links = links.query([])?;
            while let Some(row) = links.next()? {
                let (Some(op), Some(call)) = (integer(row, 0)?, integer(row, 1)?) else { continue };
                if known.has(call) {
                    linked.add(op);
                }
                let is_in = possible.has(op)
                    && chosen.has(call)
                    && on_stream.as_ref().is_none_or(|on_stream| on_stream.has(op, call));
                if is_in {
                    caused.add(op);
                    causing.add(call);
                } else if ops.is_any && chosen.has(call) {
                    others_caused.add(op);
                }
            }
        }
        // No thread is known to have caused them, and no stream is known of them.
        if calls.pids.is_empty() && calls.tids.is_empty() && ops.streams.is_empty() {
            calls.gather_uncaused(trace, &possible, &linked, &mut caused)?;
        }
        let mut time = calls.window;
        if let Some((first, last)) = calls.within.and_then(|(ranges, _)| ranges.hull()) {
            time.start_ns = time.start_ns.max(first);
            time.end_ns = time.end_ns.min(last);
        }
        let mut unasked = None;
        if ops.is_any {
            others_caused.remove_all(&caused);
            let rows = SelectedRows {
                calls: chosen.clone(),
                ops: others_caused,
                time,
                gpus: Vec::new(),
                unasked: None,
            };
            unasked = Some(Box::new(Selected { rows: Some(rows) }));
            let markers = format!("SELECT id FROM rocpd_api WHERE {}", is_marker(""));
            let mut others = chosen.clone();
            others.remove_all(&Ids::of(trace, &markers, [])?);
            others.remove_all(&causing);
            chosen.remove_all(&others);
        }
        let rows = SelectedRows { calls: chosen, ops: caused, time, gpus: ops.gpus.to_vec(), unasked };
        Ok(Selected { rows: Some(rows) })
    }
}

/// Makes the ids known to SQL as a function of that name; the condition that they have the id. Where there is no set, all are in it.
fn condition(trace: &Connection, ids: Option<&Ids>, (name, id): (&str, &str)) -> rusqlite::Result<String> {
    let Some(ids) = ids else { return Ok("1".to_string()) };
    Arc::new(ids.clone()).name(trace, name)?;
    Ok(format!("{name}({id})"))
}

impl CallChoice<'_> {
    /// Whether the session of the row with this id is asked for.
    fn is_of_session(&self, id: i64) -> bool {
        let session = id >> 32;
        among(self.sessions, &session) && self.of_ranks.as_ref().is_none_or(|of| of.contains(&session))
    }

    fn scan(&self, trace: &Connection) -> Result<Ids> {
        let mut chosen = Ids::default();
        let mut rows = trace.prepare(&format!(
            "SELECT id, pid, tid, start FROM rocpd_api WHERE typeof(start) = 'integer' AND {}",
            self.window.condition("start")
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (Some(id), Some(pid), Some(tid), Some(start)) =
                (integer(row, 0)?, integer(row, 1)?, integer(row, 2)?, integer(row, 3)?)
            else {
                continue;
            };
            let is_within = || {
                self.within.is_none_or(|(ranges, processes)| ranges.has((processes.of_row(id), pid), start))
            };
            let is_of = among(self.pids, &pid)
                && among(self.tids, &tid)
                && self.is_of_session(id)
                && self.nodes.is_none_or(|(nodes, strides)| nodes.contains(&(pid / strides.pid)));
            if is_of && is_within() {
                chosen.add(id);
            }
        }
        Ok(chosen)
    }

    /// Adds the ops that no call caused and that start in the time.
    fn gather_uncaused(
        &self,
        trace: &Connection,
        possible: &Ids,
        linked: &Ids,
        found: &mut Ids,
    ) -> Result<()> {
        if !has_table(trace, "rocpd_op")? {
            return Ok(());
        }
        let mut rows = trace.prepare(&format!(
            "SELECT id, start, gpuId FROM rocpd_op WHERE typeof(start) = 'integer' AND {}",
            self.window.condition("start")
        ))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (Some(id), Some(start)) = (integer(row, 0)?, integer(row, 1)?) else { continue };
            let gpu = integer(row, 2)?;
            let is_on = |(nodes, strides): (&[i64], Strides)| {
                gpu.is_some_and(|gpu| nodes.contains(&(gpu / strides.gpu)))
            };
            if possible.has(id)
                && !linked.has(id)
                && self.is_of_session(id)
                && self.nodes.is_none_or(is_on)
                && self.within.is_none_or(|(ranges, _)| ranges.has_any(start))
            {
                found.add(id);
            }
        }
        Ok(())
    }
}

impl OpChoice<'_> {
    fn scan(&self, trace: &Connection) -> Result<Ids> {
        let unnamed = Ids::of(trace, "SELECT id FROM rocpd_string WHERE string = ''", [])?;
        let mut chosen = Ids::default();
        let mut rows = trace.prepare("SELECT id, gpuId, queueId, description_id, opType_id FROM rocpd_op")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let Some(id) = integer(row, 0)? else { continue };
            let is_asked = |asked: &[i64], column| -> rusqlite::Result<bool> {
                Ok(asked.is_empty() || integer(row, column)?.is_some_and(|value| asked.contains(&value)))
            };
            let has_name = || -> rusqlite::Result<bool> {
                let Some(kernels) = &self.kernels else { return Ok(true) };
                let description = integer(row, 3)?.filter(|id| !unnamed.has(*id));
                let name = if description.is_some() { description } else { integer(row, 4)? };
                Ok(name.is_some_and(|name| kernels.has(name)))
            };
            if is_asked(self.gpus, 1)? && is_asked(self.queues, 2)? && has_name()? {
                chosen.add(id);
            }
        }
        Ok(chosen)
    }
}

/// What is on the streams that were asked for.
struct OnStream {
    calls: Ids,
    /// Operations whose queue is a stream, whatever call caused them: those that are on one of these streams, and all.
    queued: Ids,
    all_queued: Ids,
}

impl OnStream {
    fn of(trace: &Connection, version: Version, streams: &[String]) -> Result<OnStream> {
        let calls = calls_on(trace, version, streams)?;
        let numbers: Vec<i64> = streams.iter().filter_map(|stream| number(stream.trim())).collect();
        let queues = QueueStreams::of(trace)?;
        let (mut queued, mut all_queued) = (Ids::default(), Ids::default());
        if queues.is_empty() || !has_table(trace, "rocpd_op")? {
            return Ok(OnStream { calls, queued, all_queued });
        }
        let mut rows = trace.prepare("SELECT id, gpuId, queueId FROM rocpd_op")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (Some(op), Some(gpu), Some(queue)) = (integer(row, 0)?, integer(row, 1)?, integer(row, 2)?)
            else {
                continue;
            };
            if let Some(stream) = queues.stream(gpu, queue) {
                all_queued.add(op);
                if numbers.contains(&stream) {
                    queued.add(op);
                }
            }
        }
        Ok(OnStream { calls, queued, all_queued })
    }

    fn has(&self, op: i64, call: i64) -> bool {
        if self.all_queued.has(op) { self.queued.has(op) } else { self.calls.has(call) }
    }
}

/// The number of a stream, as tables have it or as arguments do: `13` or `0xd`.
fn number(stream: &str) -> Option<i64> {
    match stream.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => stream.parse().ok(),
    }
}

/// The launches and copies on these streams; launches of graphs too, whose arguments say it.
fn calls_on(trace: &Connection, version: Version, streams: &[String]) -> Result<Ids> {
    let is_asked =
        |stream: &str| streams.iter().any(|asked| asked.trim().eq_ignore_ascii_case(stream.trim()));
    let mut found = Ids::default();
    for table in ["rocpd_kernelapi", "rocpd_copyapi"] {
        if version == Version::V1 || !has_table(trace, table)? {
            continue;
        }
        let mut rows = trace.prepare(&format!("SELECT api_ptr_id, stream FROM {table}"))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            if let Some(id) = integer(row, 0)?
                && is_asked(&text_of(row.get_ref(1)?))
            {
                found.add(id);
            }
        }
    }
    let texts = if version == Version::V3 { "rocpd_ustring" } else { "rocpd_string" };
    let mut rows = trace.prepare(&format!(
        "SELECT A.id, N.string, {} FROM rocpd_api A
         JOIN rocpd_string N ON N.id = A.apiName_id JOIN {texts} G ON G.id = A.args_id
         WHERE A.apiName_id IN (SELECT id FROM rocpd_string WHERE string GLOB '*GraphLaunch*')",
        rpd_schema::text::arguments("G.string")
    ))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (function, arguments) = (text_of(row.get_ref(1)?), text_of(row.get_ref(2)?));
        if let Some(id) = integer(row, 0)?
            && stream_of_launch(&function, &arguments).is_some_and(is_asked)
        {
            found.add(id);
        }
    }
    Ok(found)
}
