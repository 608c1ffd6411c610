//! Rows that the server works out when the page asks for them: operations by stream, what markers and launches of graphs ran on each GPU, memory
//! that is allocated.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::Result;
use rpd_postprocess::region::Selected;
use rpd_postprocess::report::memory::{Life, MemoryPlace, each_life};
use rpd_postprocess::text::shorten;
use rpd_postprocess::trace::has_table;
use rpd_schema::Version;
use rpd_schema::text::text_of;
use rusqlite::Connection;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use crate::columns::Busy;
use crate::counters::{Counter, Steps, Value};
use crate::layout::{Layout, MOST, Placement};
use crate::names::EventKind;
use crate::packed::PackedRows;
use crate::pyramid::{Pyramid, Spans};
use crate::reading::prefixed;
use crate::timeline::{CounterTrack, Row, Shown, Stack, Timeline, Track};
use crate::waits::Waits;

/// Numbers of rows that are worked out begin here; each kind has so many.
const FIRST_ROW: u32 = 1 << 30;
const ROWS_OF_KIND: u32 = 1 << 24;

/// Allocations of a process and a place that are listed one by one: the page lays them out for each picture.
const MOST_ALLOCATIONS: usize = 2000;

/// Columns of the name of a stream.
const STREAM_WIDTH: usize = 24;

/// What is worked out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DerivedRows {
    /// A row for each stream of each GPU.
    Streams,
    /// For each marker, on each GPU, from the first start to the last end of what was launched inside of it.
    Markers,
    /// The same of launches of graphs.
    Graphs,
    /// Memory: how much is allocated, and how long each allocation lives.
    Memory,
    /// How many bytes a second copies move on each GPU.
    Bandwidth,
}

/// Traces that are shown together at most.
const MOST_TRACES: usize = 2;

const ALL: [DerivedRows; 5] = [
    DerivedRows::Streams,
    DerivedRows::Markers,
    DerivedRows::Graphs,
    DerivedRows::Memory,
    DerivedRows::Bandwidth,
];

/// Spans that do not overlap, each with an event that it belongs to.
#[derive(Debug, Default)]
pub struct Picked {
    /// Begin, duration and event.
    spans: PackedRows<3>,
}

impl Picked {
    fn push(&mut self, span: &Span) {
        self.spans.push([span.start, span.end - span.start, span.event.into()]);
    }

    /// The span at a time, or the one that begins next within `near` ns: begin, end, event.
    pub fn at(&self, time: u64, near: u64) -> Option<(u64, u64, u32)> {
        let behind = self.spans.column(0).partition_point(0..self.count(), |start| start <= time);
        let is_there = |place: &usize| {
            let (start, end) = Spans::at(self, *place);
            start <= time.saturating_add(near) && end.saturating_add(near) >= time
        };
        let place = behind
            .checked_sub(1)
            .filter(is_there)
            .or_else(|| Some(behind).filter(|place| *place < self.count()).filter(is_there))?;
        let ((start, end), (event, _)) = (Spans::at(self, place), self.event(place));
        Some((start, end, event))
    }
}

impl Spans for Picked {
    fn count(&self) -> usize {
        self.spans.len()
    }

    fn at(&self, place: usize) -> (u64, u64) {
        let start = self.spans.column(0).get(place);
        (start, start + self.spans.column(1).get(place))
    }

    fn event(&self, place: usize) -> (u32, u64) {
        (self.spans.column(2).get(place) as u32, self.spans.column(1).get(place))
    }
}

/// Tracks of a group of the timeline that are worked out.
#[derive(Debug, Clone, Serialize)]
pub struct OfGroup {
    /// The group.
    pub key: String,
    /// Its tracks.
    pub tracks: Vec<Track>,
    /// Its numbers over time.
    pub counters: Vec<CounterTrack>,
}

/// What was worked out.
#[derive(Debug, Default)]
pub struct Worked {
    /// Where it stands.
    pub groups: Vec<OfGroup>,
    rows: Vec<Row>,
    /// Allocations by their calls.
    pub lives: FxHashMap<u32, Life>,
}

/// All that can be worked out; nothing is until it is asked for.
#[derive(Debug, Default)]
pub struct Derived {
    rows: [OnceLock<Worked>; ALL.len()],
    /// Of each trace.
    waits: [OnceLock<Waits>; MOST_TRACES],
}

impl Derived {
    /// The row with this number, if it was worked out.
    pub fn row(&self, number: u32) -> Option<&Row> {
        let place = number.checked_sub(FIRST_ROW)?;
        let worked = self.rows.get((place / ROWS_OF_KIND) as usize)?.get()?;
        worked.rows.get((place % ROWS_OF_KIND) as usize)
    }

    /// The allocation that a call made.
    pub fn life(&self, call: u32) -> Option<&Life> {
        self.rows[DerivedRows::Memory as usize].get()?.lives.get(&call)
    }

    /// All allocations with the calls that made them, once they were worked out.
    pub fn lives(&self) -> impl Iterator<Item = (u32, &Life)> {
        let worked = self.rows[DerivedRows::Memory as usize].get();
        worked.into_iter().flat_map(|worked| &worked.lives).map(|(call, life)| (*call, life))
    }
}

/// What waits of the trace with this number waited for, worked out or as it was.
///
/// # Errors
/// When the trace cannot be read.
pub fn waits<'a>(timeline: &'a Timeline, number: usize, trace: (&Connection, Version)) -> Result<&'a Waits> {
    let known = &timeline.derived.waits[number];
    if let Some(waits) = known.get() {
        return Ok(waits);
    }
    let waits = Waits::read(timeline, number, trace)?;
    Ok(known.get_or_init(|| waits))
}

/// A span that is to be put into a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Span {
    start: u64,
    end: u64,
    event: u32,
}

/// Works something out, or gives what was. `traces` are those of the timeline, by number.
///
/// # Errors
/// When the trace cannot be read.
pub fn derive<'a>(
    timeline: &'a Timeline,
    traces: &[(&Connection, Version)],
    what: DerivedRows,
) -> Result<&'a Worked> {
    let known = &timeline.derived.rows[what as usize];
    if let Some(worked) = known.get() {
        return Ok(worked);
    }
    let mut worked = Worked::default();
    let first_row = FIRST_ROW + what as u32 * ROWS_OF_KIND;
    match what {
        DerivedRows::Streams => streams(timeline, traces, &mut worked, first_row)?,
        DerivedRows::Markers => {
            under(timeline, &mut worked, first_row, "markers", |kind, _| kind == EventKind::Marker)
        }
        DerivedRows::Graphs => {
            under(timeline, &mut worked, first_row, "graph launches", |_, name| name.contains("GraphLaunch"))
        }
        DerivedRows::Memory => memory(timeline, traces, &mut worked, first_row)?,
        DerivedRows::Bandwidth => bandwidth(timeline, traces, &mut worked, first_row)?,
    }
    Ok(known.get_or_init(|| worked))
}

impl Worked {
    fn group(&mut self, key: &str) -> &mut OfGroup {
        let place = self.groups.iter().position(|group| group.key == key).unwrap_or_else(|| {
            self.groups.push(OfGroup { key: key.to_string(), tracks: Vec::new(), counters: Vec::new() });
            self.groups.len() - 1
        });
        &mut self.groups[place]
    }

    fn row(&mut self, shown: Shown, pyramid: Pyramid, first_row: u32) -> u32 {
        self.rows.push(Row { shown, pyramid });
        first_row + self.rows.len() as u32 - 1
    }

    /// Adds a track with these spans to a group.
    fn track(
        &mut self,
        (group, key, label): (&str, &str, String),
        mut spans: Vec<Span>,
        order: Placement,
        first_row: u32,
    ) {
        spans.sort_unstable_by_key(|span| (span.start, u64::MAX - span.end, span.event));
        let mut subtracks = Layout::new(order);
        let mut picked: Vec<Picked> = Vec::new();
        let mut not_shown = 0;
        for span in &spans {
            let subtrack = subtracks.place(span.start, span.end);
            if subtrack == MOST {
                not_shown += 1;
                continue;
            }
            if subtrack >= picked.len() {
                picked.resize_with(subtrack + 1, Picked::default);
            }
            picked[subtrack].push(span);
        }
        let busy = Busy::of_spans(spans.iter().map(|span| (span.start, span.end, span.event)));
        let busy = self.row_of_busy(busy, first_row);
        let rows = picked.into_iter().map(|picked| {
            let pyramid = Pyramid::of(&picked);
            self.rows.push(Row { shown: Shown::Picked(picked), pyramid });
            first_row + self.rows.len() as u32 - 1
        });
        let rows = rows.collect();
        let track =
            Track { key: format!("{group}.{key}"), label, rows, busy, events: spans.len() as u64, not_shown };
        self.group(group).tracks.push(track);
    }

    /// Adds a number over time to a group.
    fn counter(
        &mut self,
        (group, key, label): (&str, &str, &str),
        values: Vec<(u64, Value)>,
        end: u64,
        first_row: u32,
    ) {
        let steps = Steps::of(values.into_iter(), end);
        let Some((least, greatest)) = steps.extremes(0..steps.len()) else { return };
        let (least, greatest) = (steps.number(least), steps.number(greatest));
        let values = steps.len() as u64;
        let row = self.row(Shown::Counter(Box::new(Counter::of(steps))), Pyramid::default(), first_row);
        let (key, label) = (format!("{group}.c-{key}"), label.to_string());
        let counter = CounterTrack { key, label, row, values, least, greatest, stack: None };
        self.group(group).counters.push(counter);
    }

    fn row_of_busy(&mut self, busy: Busy, first_row: u32) -> u32 {
        let pyramid = Pyramid::of(&busy);
        self.row(Shown::Busy(busy), pyramid, first_row)
    }
}

/// The GPU of each operation: key of its group.
struct Gpus<'a> {
    timeline: &'a Timeline,
    of_track: FxHashMap<u32, &'a str>,
}

impl<'a> Gpus<'a> {
    fn of(timeline: &'a Timeline) -> Gpus<'a> {
        let mut of_track = FxHashMap::default();
        for group in timeline.groups.iter().filter(|group| group.is_gpu) {
            for row in group.tracks.iter().flat_map(|track| &track.rows) {
                if let Some(Shown::Subtrack(subtrack)) =
                    timeline.rows.get(*row as usize).map(|row| &row.shown)
                {
                    of_track.insert(timeline.columns.subtracks()[*subtrack].track, group.key.as_str());
                }
            }
        }
        Gpus { timeline, of_track }
    }

    fn key(&self, op: u32) -> Option<&'a str> {
        self.of_track.get(&self.timeline.subtrack(op).track).copied()
    }
}

/// Operations by the stream that they were launched on.
fn streams(
    timeline: &Timeline,
    traces: &[(&Connection, Version)],
    worked: &mut Worked,
    first_row: u32,
) -> Result<()> {
    let mut stream_of: FxHashMap<u32, u32> = FxHashMap::default();
    let mut streams: Vec<String> = Vec::new();
    let tables = ["rocpd_kernelapi", "rocpd_copyapi", "rocpd_graphLaunchapi"];
    let all = traces
        .iter()
        .enumerate()
        .flat_map(|(source, (trace, _))| tables.into_iter().map(move |table| (source, *trace, table)));
    for (source, trace, table) in all {
        if !has_table(trace, table)? {
            continue;
        }
        let mut rows = trace.prepare(&format!("SELECT api_ptr_id, stream FROM {table}"))?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let call = row.get_ref(0)?.as_i64().ok().and_then(|id| timeline.event_of(source, false, id));
            let Some(call) = call.filter(|call| timeline.links.ops(*call).len() > 0) else { continue };
            let stream = text_of(row.get_ref(1)?);
            let number = streams.iter().position(|known| *known == stream).unwrap_or_else(|| {
                streams.push(stream.into_owned());
                streams.len() - 1
            });
            stream_of.insert(call, number as u32);
        }
    }
    let gpus = Gpus::of(timeline);
    let mut spans: BTreeMap<(&str, u32), Vec<Span>> = BTreeMap::new();
    for (call, op) in timeline.links.pairs() {
        let Some((stream, gpu)) = stream_of.get(&call).zip(gpus.key(op)) else { continue };
        let (start, end) = timeline.columns.times(op);
        spans.entry((gpu, *stream)).or_default().push(Span { start, end, event: op });
    }
    for ((gpu, stream), spans) in spans {
        let name = shorten(&streams[stream as usize], STREAM_WIDTH);
        let label = format!("stream {name}");
        worked.track((gpu, &format!("s{stream}"), label), spans, Placement::FirstFree, first_row);
    }
    Ok(())
}

/// What was launched inside of calls of a kind, by GPU: from the first start to the last end.
fn under(
    timeline: &Timeline,
    worked: &mut Worked,
    first_row: u32,
    label: &str,
    is_wanted: impl Fn(EventKind, &str) -> bool,
) {
    let wanted: Vec<bool> = timeline.names.iter().map(|name| is_wanted(name.kind, &name.text)).collect();
    let gpus = Gpus::of(timeline);
    let columns = &timeline.columns;
    let mut found: FxHashMap<(u32, &str), Span> = FxHashMap::default();
    let threads = columns.subtracks().chunk_by(|one, other| one.track == other.track);
    for subtracks in threads.filter(|subtracks| subtracks[0].track < timeline.queues_from) {
        let mut events: Vec<u32> = subtracks.iter().flat_map(|subtrack| subtrack.events.clone()).collect();
        events.sort_unstable_by_key(|event| {
            let (start, end) = columns.times(*event);
            (start, u64::MAX - end, *event)
        });
        // Those that are open, each with its end.
        let mut open: Vec<(u64, u32)> = Vec::new();
        for event in events {
            let (start, end) = columns.times(event);
            open.retain(|(until, _)| *until > start);
            if wanted[columns.name(event) as usize] {
                open.push((end, event));
            }
            for op in timeline.links.ops(event) {
                let Some(gpu) = gpus.key(op) else { continue };
                let (start, end) = columns.times(op);
                for (_, outer) in &open {
                    let span = found.entry((*outer, gpu)).or_insert(Span { start, end, event: *outer });
                    span.start = span.start.min(start);
                    span.end = span.end.max(end);
                }
            }
        }
    }
    let mut by_gpu: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for ((_, gpu), span) in found {
        by_gpu.entry(gpu).or_default().push(span);
    }
    for (gpu, spans) in by_gpu {
        let key = label.replace(' ', "-");
        worked.track((gpu, &key, label.to_string()), spans, Placement::Nested, first_row);
    }
}

/// Whose memory: number of the trace, process id, first session of the process, and where it is.
type MemoryOf = (usize, i64, i64, MemoryPlace);

/// Memory that is allocated: how much, and each allocation from its begin to its end.
fn memory(
    timeline: &Timeline,
    traces: &[(&Connection, Version)],
    worked: &mut Worked,
    first_row: u32,
) -> Result<()> {
    let mut found: BTreeMap<MemoryOf, Vec<(Span, u64)>> = BTreeMap::new();
    for (number, (trace, source)) in traces.iter().zip(&timeline.sources).enumerate() {
        let time = |ns: i64| source.time(ns).unwrap_or(0);
        each_life(*trace, &Selected::everything(), |life| {
            let Some(event) = timeline.event_of(number, false, life.call) else { return };
            let start = time(life.start_ns);
            let end = life.end_ns.map_or(timeline.span_ns, time).max(start);
            let key = (number, life.pid, life.session, life.place);
            found.entry(key).or_default().push((Span { start, end, event }, life.bytes));
            worked.lives.insert(event, life);
        })?;
    }
    for ((source, pid, session, place), lives) in found {
        let group = prefixed(source, format!("p{pid}.{session}"));
        let Some(known) = timeline.groups.iter().find(|group_of| group_of.key == group) else { continue };
        let (key, label) = match place {
            MemoryPlace::Device => ("memory", "GPU memory"),
            MemoryPlace::Host => ("pinned", "pinned memory"),
        };
        let key_of = known.key.clone();
        let is_freed = |event: u32| worked.lives.get(&event).is_some_and(|life| life.end_ns.is_some());
        let lives: Vec<Allocated> = lives
            .into_iter()
            .map(|(span, bytes)| Allocated { span, bytes, is_freed: is_freed(span.event) })
            .collect();
        let mut stack = Stack::default();
        let mut largest = lives.clone();
        largest.sort_by_key(|of| (Reverse(of.bytes), of.span));
        let others = largest.split_off(MOST_ALLOCATIONS.min(largest.len()));
        largest.sort_by_key(|of| of.span);
        for Allocated { span, bytes, .. } in largest {
            stack.start.push(span.start);
            stack.end.push(span.end);
            stack.bytes.push(bytes);
            stack.event.push(span.event);
            stack.name.push(timeline.columns.name(span.event));
        }
        stack.others = others.len() as u64;
        if !others.is_empty() {
            let steps = Steps::of(allocated(&others).into_iter(), timeline.span_ns);
            let rest = Shown::Counter(Box::new(Counter::of(steps)));
            stack.rest = Some(worked.row(rest, Pyramid::default(), first_row));
        }
        worked.counter((&key_of, key, label), allocated(&lives), timeline.span_ns, first_row);
        let counters = &mut worked.group(&key_of).counters;
        if let Some(counter) = counters.last_mut() {
            counter.stack = Some(stack);
        }
        let spans = lives.into_iter().map(|of| of.span).collect();
        worked.track((&key_of, key, format!("{label}, each")), spans, Placement::FirstFree, first_row);
    }
    Ok(())
}

/// An allocation.
#[derive(Debug, Clone, Copy)]
struct Allocated {
    span: Span,
    bytes: u64,
    is_freed: bool,
}

/// How many bytes are allocated, from each time at which that changes.
fn allocated(lives: &[Allocated]) -> Vec<(u64, Value)> {
    let mut changes: Vec<(u64, bool, u64)> = Vec::with_capacity(2 * lives.len());
    for Allocated { span, bytes, is_freed } in lives {
        changes.push((span.start, true, *bytes));
        if *is_freed {
            changes.push((span.end, false, *bytes));
        }
    }
    // What is freed is so before something else is allocated at that time.
    changes.sort_unstable();
    let mut bytes: u64 = 0;
    let values = changes.into_iter().map(|(at, is_more, by)| {
        bytes = if is_more { bytes.saturating_add(by) } else { bytes.saturating_sub(by) };
        (at, Value::whole(i64::try_from(bytes).unwrap_or(i64::MAX)))
    });
    values.collect()
}

/// What copies of a known size move while they run: each its bytes over its time.
fn bandwidth(
    timeline: &Timeline,
    traces: &[(&Connection, Version)],
    worked: &mut Worked,
    first_row: u32,
) -> Result<()> {
    let gpus = Gpus::of(timeline);
    let mut edges: BTreeMap<&str, Vec<(u64, bool, f64)>> = BTreeMap::new();
    for (source, (trace, _)) in traces.iter().enumerate() {
        if !has_table(trace, "rocpd_copyapi")? {
            continue;
        }
        let mut rows = trace.prepare("SELECT api_ptr_id, size FROM rocpd_copyapi")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let number = |column| row.get_ref(column).map(|value| value.as_i64().ok());
            let call = number(0)?.and_then(|id| timeline.event_of(source, false, id));
            let Some((call, bytes)) = call.zip(number(1)?.filter(|bytes| *bytes > 0)) else { continue };
            let mut copies = timeline.links.ops(call).filter(|op| timeline.name(*op).kind == EventKind::Copy);
            // Of several copies of a call nobody knows which moved how much.
            let (Some(op), None) = (copies.next(), copies.next()) else { continue };
            let (start, end) = timeline.columns.times(op);
            let Some(gpu) = gpus.key(op).filter(|_| end > start) else { continue };
            let rate = bytes as f64 * 1e9 / (end - start) as f64;
            edges.entry(gpu).or_default().extend([(start, true, rate), (end, false, rate)]);
        }
    }
    for (gpu, mut edges) in edges {
        edges.sort_by_key(|(at, begins, _)| (*at, *begins));
        let (mut rate, mut running) = (0.0, 0_u64);
        let values = edges.into_iter().map(|(at, begins, by)| {
            (rate, running) = if begins { (rate + by, running + 1) } else { (rate - by, running - 1) };
            // Sums of fractions leave a rest.
            rate = if running == 0 { 0.0 } else { rate };
            (at, Value { number: rate, digits: None })
        });
        let values = values.collect();
        worked.counter((gpu, "bandwidth", "copy bandwidth"), values, timeline.span_ns, first_row);
    }
    Ok(())
}
