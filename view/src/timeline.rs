//! A trace as it is shown: processes with their threads, GPUs with their queues, events in subtracks, and what each shows from afar.

use serde::Serialize;

use crate::columns::{Busy, Columns, Subtrack};
use crate::counters::Counter;
use crate::derived::{Derived, Picked};
use crate::links::Links;
use crate::names::Name;
use crate::packed::Packed;
use crate::pyramid::{Pyramid, Run};
use crate::recording::RecordedSpan;

/// A process or a GPU.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// What it is called in links to the page: the same in each reading of a file.
    pub key: String,
    /// Its name.
    pub label: String,
    /// What else is known of it.
    pub detail: String,
    /// Whether it is a GPU.
    pub is_gpu: bool,
    /// Number of a GPU or another device.
    #[serde(skip)]
    pub device: Option<i64>,
    /// Which of the traces it is of, by number.
    pub source: usize,
    /// Name of its host, where the trace has several.
    pub host: Option<String>,
    /// Its threads or queues.
    pub tracks: Vec<Track>,
    /// Its numbers over time.
    pub counters: Vec<CounterTrack>,
    /// The row with the times in which any of its events runs.
    pub busy: u32,
}

/// A thread or a queue.
#[derive(Debug, Clone, Serialize)]
pub struct Track {
    /// What it is called in links to the page.
    pub key: String,
    /// Its name.
    pub label: String,
    /// Its rows, from the top.
    pub rows: Vec<u32>,
    /// The row with the times in which any of its events runs.
    pub busy: u32,
    /// How many events it has.
    pub events: u64,
    /// Events that found no row, because too many overlap.
    pub not_shown: u64,
}

/// A number over time of a GPU or another device.
#[derive(Debug, Clone, Serialize)]
pub struct CounterTrack {
    /// What it is called in links to the page.
    pub key: String,
    /// Its name.
    pub label: String,
    /// Its row.
    pub row: u32,
    /// How many values it has; equal ones behind each other are one.
    pub values: u64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
    /// Of memory, the allocations that it is the sum of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<Stack>,
}

/// Allocations in the order of their begin, in columns: the largest of a process and a place, and what the others are together.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stack {
    /// Begin of each, ns.
    pub start: Vec<u64>,
    /// Its end, ns.
    pub end: Vec<u64>,
    /// Bytes.
    pub bytes: Vec<u64>,
    /// The call that allocated it.
    pub event: Vec<u32>,
    /// Number of the name of that call.
    pub name: Vec<u32>,
    /// Row of a counter with the bytes of the others, where there are more.
    pub rest: Option<u32>,
    /// How many others.
    pub others: u64,
}

/// What a row shows.
#[derive(Debug)]
pub enum Shown {
    /// The events of a subtrack, by its number.
    Subtrack(usize),
    /// Times in which any of several runs.
    Busy(Busy),
    /// A number over time.
    Counter(Box<Counter>),
    /// Spans that were worked out of events.
    Picked(Picked),
}

/// A row of pixels on the page, known by its number.
#[derive(Debug)]
pub struct Row {
    /// What it shows.
    pub shown: Shown,
    /// What it shows from afar.
    pub pyramid: Pyramid,
}

impl Row {
    /// The subtrack whose events it shows, if it shows those.
    pub fn subtrack(&self) -> Option<usize> {
        match self.shown {
            Shown::Subtrack(subtrack) => Some(subtrack),
            Shown::Busy(_) | Shown::Counter(_) | Shown::Picked(_) => None,
        }
    }

    /// How much memory its levels take, bytes.
    pub fn bytes(&self) -> usize {
        match &self.shown {
            Shown::Counter(counter) => counter.bytes(),
            Shown::Subtrack(_) | Shown::Busy(_) | Shown::Picked(_) => self.pyramid.bytes(),
        }
    }
}

/// What a trace holds and lacks.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Facts {
    /// Name of the file.
    pub file: String,
    /// Its size, bytes.
    pub bytes: u64,
    /// Version of its schema.
    pub schema: String,
    /// When its first event begins, ns of the recording host's clock; a text, because numbers of the page are not exact so far.
    pub first_ns: String,
    /// From the begin of the timeline to the last end, ns.
    pub span_ns: u64,
    /// Calls and markers.
    pub calls: u64,
    /// Operations.
    pub ops: u64,
    /// Processes that were recorded.
    pub sessions: u64,
    /// Records lost while recording, by cause.
    pub lost: Vec<(String, u64)>,
    /// Launches whose operation is not known.
    pub launches_without_op: u64,
    /// Rows with impossible times, ids or places, which are not shown.
    pub impossible: u64,
    /// Rows that begin or end days away from nearly all others, which are not shown.
    pub outliers: u64,
    /// Rows that end more than 104 days behind the timeline's begin, up to where the page counts ns exactly; they are not shown.
    pub far: u64,
    /// When the first of them begins that also begins there, ns of the recording host's clock; a text, as `first_ns` is.
    pub far_from_ns: Option<String>,
    /// Values of sensors that are no numbers, which are not shown.
    pub no_numbers: u64,
}

/// A trace that is shown: the only one, or one of two.
#[derive(Debug)]
pub struct Source {
    /// What it holds.
    pub facts: Facts,
    /// When its first event begins, ns of the recording host's clock.
    pub first_ns: i64,
    /// From the begin of the timeline to there, ns.
    pub shift_ns: u64,
    /// The calls in the order of their ids.
    pub calls_by_id: Packed,
    /// The operations in the order of their ids.
    pub ops_by_id: Packed,
}

impl Source {
    /// A time of the trace's clock on the timeline; none before its begin.
    pub fn time(&self, clock_ns: i64) -> Option<u64> {
        let since = i128::from(clock_ns) - i128::from(self.first_ns) + i128::from(self.shift_ns);
        u64::try_from(since).ok()
    }

    /// A time of the timeline on the trace's clock.
    pub fn clock(&self, time_ns: u64) -> i64 {
        let clock = i128::from(self.first_ns) - i128::from(self.shift_ns) + i128::from(time_ns);
        clock.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

/// All of it.
#[derive(Debug)]
pub struct Timeline {
    /// The traces, by number.
    pub sources: Vec<Source>,
    /// Which of them each track is of.
    pub source_of_track: Vec<u8>,
    /// From the begin to the last end, ns.
    pub span_ns: u64,
    /// Processes, then GPUs.
    pub groups: Vec<Group>,
    /// Tracks by their number in subtracks: those before this are threads, the others queues.
    pub queues_from: u32,
    /// The events.
    pub columns: Columns,
    /// The rows, by number.
    pub rows: Vec<Row>,
    /// The row of each subtrack; none for an overfull one.
    pub row_of_subtrack: Vec<Option<u32>>,
    /// Calls and their operations.
    pub links: Links,
    /// When processes were not recorded, and when records were lost.
    pub recording: Vec<RecordedSpan>,
    /// Names by number.
    pub names: Vec<Name>,
    /// Rows that are worked out when they are asked for.
    pub derived: Derived,
}

impl Timeline {
    /// The row with this number, which may be one that was worked out.
    pub fn row(&self, number: u32) -> Option<&Row> {
        self.rows.get(number as usize).or_else(|| self.derived.row(number))
    }

    /// The runs of a row.
    pub fn runs(&self, row: u32, level: u8, buckets: std::ops::Range<u64>) -> Vec<Run> {
        let Some(Row { shown, pyramid }) = self.row(row) else { return Vec::new() };
        match shown {
            Shown::Subtrack(subtrack) => {
                let subtrack = &self.columns.subtracks()[*subtrack];
                pyramid.runs(&self.columns.of_subtrack(subtrack), level, buckets)
            }
            Shown::Busy(busy) => pyramid.runs(busy, level, buckets),
            Shown::Picked(picked) => pyramid.runs(picked, level, buckets),
            Shown::Counter(_) => Vec::new(),
        }
    }

    /// The counter that a row shows.
    pub fn counter(&self, row: u32) -> Option<&Counter> {
        match &self.row(row)?.shown {
            Shown::Counter(counter) => Some(counter),
            Shown::Subtrack(_) | Shown::Busy(_) | Shown::Picked(_) => None,
        }
    }

    /// The subtrack of an event.
    pub fn subtrack(&self, event: u32) -> &Subtrack {
        &self.columns.subtracks()[self.columns.subtrack_of(event)]
    }

    /// Whether an event is an operation of a GPU.
    pub fn is_op(&self, event: u32) -> bool {
        self.subtrack(event).track >= self.queues_from
    }

    /// The name of an event.
    pub fn name(&self, event: u32) -> &Name {
        &self.names[self.columns.name(event) as usize]
    }

    /// Number of the trace that an event is of.
    pub fn source_of(&self, event: u32) -> usize {
        usize::from(self.source_of_track[self.subtrack(event).track as usize])
    }

    /// The event of an operation or a call of a trace with this id.
    pub fn event_of(&self, source: usize, is_op: bool, id: i64) -> Option<u32> {
        let source = self.sources.get(source)?;
        let events = if is_op { &source.ops_by_id } else { &source.calls_by_id };
        let id_of = |event: u64| self.columns.id(event as u32);
        let at = events.partition_point(0..events.len(), |event| id_of(event) < id);
        (at < events.len())
            .then(|| events.get(at))
            .filter(|event| id_of(*event) == id)
            .map(|event| event as u32)
    }

    /// The first event of a row.
    pub fn first_of(&self, row: u32) -> Option<u32> {
        match &self.row(row)?.shown {
            Shown::Subtrack(subtrack) => Some(self.columns.subtracks()[*subtrack].events.start),
            Shown::Picked(picked) => picked.at(0, u64::MAX).map(|(_, _, event)| event),
            Shown::Busy(_) | Shown::Counter(_) => None,
        }
    }

    /// The event that is so many further in the subtrack of an event, or the last one there.
    pub fn further(&self, event: u32, by: i64) -> Option<u32> {
        if event as usize >= self.columns.len() {
            return None;
        }
        let events = &self.subtrack(event).events;
        let last = i64::from(events.end) - 1;
        u32::try_from(i64::from(event).saturating_add(by).clamp(i64::from(events.start), last)).ok()
    }
}
