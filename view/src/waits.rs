//! The operation that a call or an operation waited for, as far as the trace says it.
//!
//! A call that synchronizes names a stream or an event, and so does hipStreamWaitEvent. The call that recorded an event names its stream. Such
//! a call waits for the last operation that the same process launched on that stream before. If the times contradict this, there was no wait.
//! Where a call does not say its stream, or a process has default streams on several GPUs, nothing is known. Traces of old recorders say of
//! the operations themselves which ones they waited for (`rocpd_op_inputSignals`).

use std::cmp::Reverse;

use anyhow::Result;
use rpd_postprocess::library::arguments::address;
use rpd_postprocess::trace::arguments::pairs;
use rpd_postprocess::trace::has_table;
use rpd_schema::Version;
use rpd_schema::text::{arguments, text_of};
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::names::arguments_table;
use crate::search::{Hit, hit};
use crate::timeline::{Shown, Timeline};

/// Dependencies in an answer.
const MOST: usize = 200;

/// Default streams: of a device, also as CUDA's cudaStreamLegacy; of a thread.
const DEFAULT: u64 = 0;
const LEGACY: u64 = 1;
const OF_THREAD: u64 = 2;

/// An event that did not go on before an operation had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// The call, or the operation, that waited.
    pub waits: u32,
    /// The operation that it waited for.
    pub on: u32,
    /// The call that ties them: that recorded the event, or that made the stream wait.
    pub through: Option<u32>,
}

/// All that are known of a trace.
#[derive(Debug, Default)]
pub struct Waits {
    by_waiter: Vec<Dependency>,
    by_op: Vec<Dependency>,
}

/// What an event waited for, or what waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Waited {
    /// The other event.
    #[serde(flatten)]
    pub hit: Hit,
    /// The call that ties them.
    pub through: Option<Hit>,
}

/// The dependencies of one event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Dependencies {
    /// What it waited for.
    pub waited_for: Vec<Waited>,
    /// What waited for it, and how many these are.
    pub waited_by: Vec<Waited>,
    /// See `waited_by`.
    pub all_waited_by: u64,
}

/// What a call does to streams and events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Launches,
    Records,
    WaitsOnStream,
    SynchronizesStream,
    SynchronizesEvent,
    SynchronizesAll,
    EndsStream,
    EndsEvent,
}

/// The functions of HIP, and CUDA's of the same names.
fn function(name: &str) -> Option<Does> {
    let plain = name.strip_prefix("hip").or_else(|| name.strip_prefix("cuda"));
    let plain = plain.or_else(|| name.strip_prefix("cu"))?;
    let plain =
        ["_spt", "_ptsz", "_v2"].iter().fold(plain, |name, end| name.strip_suffix(end).unwrap_or(name));
    Some(match plain {
        "EventRecord" | "EventRecordWithFlags" => Does::Records,
        "StreamWaitEvent" => Does::WaitsOnStream,
        "StreamSynchronize" => Does::SynchronizesStream,
        "EventSynchronize" => Does::SynchronizesEvent,
        "DeviceSynchronize" | "CtxSynchronize" => Does::SynchronizesAll,
        "StreamDestroy" => Does::EndsStream,
        "EventDestroy" => Does::EndsEvent,
        _ if plain.starts_with("Memset") || plain.starts_with("GraphLaunch") => Does::Launches,
        _ => return None,
    })
}

/// What a call says.
#[derive(Debug, Clone, Copy, Default)]
struct Said {
    does: Option<Does>,
    stream: Option<u64>,
    event: Option<u64>,
}

/// A stream of a process: its handle, and of the default stream of a thread the thread.
type Stream = (u64, u32);

/// What is known of a process at a time.
#[derive(Debug, Default)]
struct Process {
    last_of: FxHashMap<Stream, u32>,
    latest: Option<u32>,
    recorded: FxHashMap<u64, (Option<u32>, u32)>,
    /// Operations that a stream has to wait for, each with the call that says so.
    held: FxHashMap<Stream, Vec<(u32, u32)>>,
}

impl Waits {
    /// Reads those of the trace with this number.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(
        timeline: &Timeline,
        number: usize,
        (trace, version): (&Connection, Version),
    ) -> Result<Waits> {
        let said = said(timeline, number, (trace, version))?;
        let stated = stated(timeline, number, trace)?;
        Ok(Waits::of(timeline, number, &said, stated))
    }

    fn of(timeline: &Timeline, number: usize, said: &FxHashMap<u32, Said>, stated: Vec<Dependency>) -> Waits {
        let columns = &timeline.columns;
        let group_of = groups_of_tracks(timeline);
        let group = |event: u32| group_of.get(&timeline.subtrack(event).track).copied();
        // The GPU of a process that used one.
        let mut gpus: FxHashMap<u32, Option<u32>> = FxHashMap::default();
        let mut calls: Vec<u32> = said.keys().copied().collect();
        let mut before = None;
        for (call, op) in timeline.links.pairs() {
            let Some((process, gpu)) = group(call).zip(group(op)) else { continue };
            if timeline.source_of(call) != number {
                continue;
            }
            let one = gpus.entry(process).or_insert(Some(gpu));
            if *one != Some(gpu) {
                *one = None;
            }
            if before.replace(call) != Some(call) && !said.contains_key(&call) {
                calls.push(call);
            }
        }
        calls.sort_unstable_by_key(|call| (columns.times(*call).0, *call));
        let mut processes: FxHashMap<u32, Process> = FxHashMap::default();
        let mut found = stated;
        for call in calls {
            let Some(group) = group(call) else { continue };
            let has_one_gpu = gpus.get(&group).copied().flatten().is_some();
            let of = said.get(&call).copied().unwrap_or_default();
            let stream = of.stream.and_then(|handle| match handle {
                DEFAULT | LEGACY => has_one_gpu.then_some((DEFAULT, 0)),
                OF_THREAD => has_one_gpu.then_some((OF_THREAD, timeline.subtrack(call).track)),
                _ => Some((handle, 0)),
            });
            let process = processes.entry(group).or_default();
            process.call(timeline, (call, of, stream, has_one_gpu), &mut found);
        }
        found.sort_unstable();
        found.dedup();
        let mut by_op = found.clone();
        by_op.sort_unstable_by_key(|of| (of.on, of.waits, of.through));
        Waits { by_waiter: found, by_op }
    }

    /// All of them.
    pub fn all(&self) -> &[Dependency] {
        &self.by_waiter
    }

    /// Those of an event.
    pub fn of_event(&self, timeline: &Timeline, event: u32) -> Dependencies {
        let part = |all: &[Dependency], key: fn(&Dependency) -> u32| {
            let first = all.partition_point(|of| key(of) < event);
            first..all.partition_point(|of| key(of) <= event)
        };
        let waited = |of: &Dependency, other: u32| Waited {
            hit: hit(timeline, other),
            through: of.through.map(|call| hit(timeline, call)),
        };
        let waited_for = &self.by_waiter[part(&self.by_waiter, |of| of.waits)];
        let waited_by = &self.by_op[part(&self.by_op, |of| of.on)];
        Dependencies {
            waited_for: waited_for.iter().take(MOST).map(|of| waited(of, of.on)).collect(),
            waited_by: waited_by.iter().take(MOST).map(|of| waited(of, of.waits)).collect(),
            all_waited_by: waited_by.len() as u64,
        }
    }
}

impl Process {
    fn call(
        &mut self,
        timeline: &Timeline,
        (call, said, stream, has_one_gpu): (u32, Said, Option<Stream>, bool),
        found: &mut Vec<Dependency>,
    ) {
        let columns = &timeline.columns;
        let begin = |event: u32| columns.times(event).0;
        let end = |event: u32| columns.times(event).1;
        let mut add = |waits: u32, on: u32, through: Option<u32>, until: u64| {
            // What had not ended by then was not waited for, whatever the calls say.
            if end(on) <= until {
                found.push(Dependency { waits, on, through });
            }
        };
        if timeline.links.ops(call).len() > 0 {
            if let Some(stream) = stream {
                let first = timeline.links.ops(call).min_by_key(|op| (begin(*op), *op));
                let last = timeline.links.ops(call).max_by_key(|op| (end(*op), Reverse(*op)));
                if let Some(first) = first {
                    for (on, through) in self.held.remove(&stream).unwrap_or_default() {
                        add(first, on, Some(through), begin(first));
                    }
                }
                self.last_of.extend(last.map(|op| (stream, op)));
            }
            for op in timeline.links.ops(call) {
                self.latest = self.latest.filter(|latest| end(*latest) >= end(op)).or(Some(op));
            }
        }
        let last_of = |stream: Option<Stream>| stream.and_then(|stream| self.last_of.get(&stream).copied());
        match said.does {
            None | Some(Does::Launches) => (),
            Some(Does::Records) => {
                self.recorded.extend(said.event.map(|event| (event, (last_of(stream), call))));
            }
            Some(Does::WaitsOnStream) => {
                let recorded = said.event.and_then(|event| self.recorded.get(&event));
                if let Some((Some(on), through)) = recorded.copied() {
                    found.push(Dependency { waits: call, on, through: Some(through) });
                    if let Some(stream) = stream {
                        self.held.entry(stream).or_default().push((on, call));
                    }
                }
            }
            Some(Does::SynchronizesStream) => {
                if let Some(on) = last_of(stream) {
                    add(call, on, None, end(call));
                }
            }
            Some(Does::SynchronizesEvent) => {
                let recorded = said.event.and_then(|event| self.recorded.get(&event));
                if let Some((Some(on), through)) = recorded.copied() {
                    add(call, on, Some(through), end(call));
                }
            }
            Some(Does::SynchronizesAll) => {
                if let Some(on) = self.latest.filter(|_| has_one_gpu) {
                    add(call, on, None, end(call));
                }
            }
            Some(Does::EndsStream) => {
                if let Some(stream) = stream {
                    self.last_of.remove(&stream);
                    self.held.remove(&stream);
                }
            }
            Some(Does::EndsEvent) => {
                said.event.and_then(|event| self.recorded.remove(&event));
            }
        }
    }
}

/// The group of each track, by number.
fn groups_of_tracks(timeline: &Timeline) -> FxHashMap<u32, u32> {
    let mut of_track = FxHashMap::default();
    for (number, group) in (0_u32..).zip(&timeline.groups) {
        for row in group.tracks.iter().flat_map(|track| &track.rows) {
            if let Some(Shown::Subtrack(subtrack)) = timeline.rows.get(*row as usize).map(|row| &row.shown) {
                of_track.insert(timeline.columns.subtracks()[*subtrack].track, number);
            }
        }
    }
    of_track
}

/// What a trace says of operations: which waited for which.
fn stated(timeline: &Timeline, number: usize, trace: &Connection) -> Result<Vec<Dependency>> {
    let mut found = Vec::new();
    if !has_table(trace, "rocpd_op_inputSignals")? {
        return Ok(found);
    }
    let mut rows = trace.prepare("SELECT from_op_id, to_op_id FROM rocpd_op_inputSignals")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let op = |column| -> Result<Option<u32>> {
            let id = row.get_ref(column)?.as_i64().ok();
            Ok(id.and_then(|id| timeline.event_of(number, true, id)))
        };
        if let Some((waits, on)) = op(0)?.zip(op(1)?) {
            found.push(Dependency { waits, on, through: None });
        }
    }
    Ok(found)
}

/// What calls of a trace say of streams and events.
fn said(
    timeline: &Timeline,
    number: usize,
    (trace, version): (&Connection, Version),
) -> Result<FxHashMap<u32, Said>> {
    let mut found: FxHashMap<u32, Said> = FxHashMap::default();
    for table in ["rocpd_kernelapi", "rocpd_copyapi", "rocpd_graphLaunchapi"] {
        if !has_table(trace, table)? {
            continue;
        }
        let mut rows = trace.prepare(&format!("SELECT api_ptr_id, stream FROM {table}"))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let call = row.get_ref(0)?.as_i64().ok().and_then(|id| timeline.event_of(number, false, id));
            let stream = address(&text_of(row.get_ref(1)?));
            if let Some((call, stream)) = call.zip(stream) {
                found.entry(call).or_default().stream = Some(stream);
            }
        }
    }
    if !has_table(trace, "rocpd_api")? {
        return Ok(found);
    }
    let mut functions: FxHashMap<i64, Does> = FxHashMap::default();
    let mut names = trace
        .prepare("SELECT id, string FROM rocpd_string WHERE string GLOB 'hip*' OR string GLOB 'cu[dA-Z]*'")?;
    let mut names = names.query([])?;
    while let Some(row) = names.next()? {
        let does = function(&text_of(row.get_ref(1)?));
        functions.extend(row.get_ref(0)?.as_i64().ok().zip(does));
    }
    if functions.is_empty() {
        return Ok(found);
    }
    let ids: Vec<String> = functions.keys().map(ToString::to_string).collect();
    let mut rows = trace.prepare(&format!(
        "SELECT A.id, A.apiName_id, {} FROM rocpd_api A LEFT JOIN {} G ON G.id = A.args_id WHERE A.apiName_id IN ({})",
        arguments("G.string"),
        arguments_table(version),
        ids.join(", ")
    ))?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let number_of = |column| row.get_ref(column).map(|value| value.as_i64().ok());
        let call = number_of(0)?.and_then(|id| timeline.event_of(number, false, id));
        let does = number_of(1)?.and_then(|name| functions.get(&name));
        let Some((call, does)) = call.zip(does) else { continue };
        let said = found.entry(call).or_default();
        said.does = Some(*does);
        for (key, value) in pairs(&text_of(row.get_ref(2)?)) {
            match key {
                "stream" | "hStream" => said.stream = said.stream.or_else(|| address(value)),
                "event" | "hEvent" => said.event = address(value),
                _ => (),
            }
        }
    }
    Ok(found)
}
